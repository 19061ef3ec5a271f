// The high-water mark: a small file beside data.mdb with the newest epoch, event and job id that
// the store is known to have had. If data.mdb is behind the mark, it was restored from a copy, or
// was created anew after the old one was lost. The mark is durable before anybody outside gets such
// an id: job ids are reserved in blocks, and events are noted at intervals, after their commit.
#pragma once

#include <optional>
#include <string>

#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::age {

// Ids reserved at once, so that there is one sync for all of them.
inline constexpr std::uint64_t kJobBlock = 16'384;
inline constexpr Duration kNoteEvents = seconds(10);

struct HighWater {
  Epoch epoch{};     // epoch of the last controller that has started
  EventSeq event{};  // last committed event that was noted in the mark
  JobId job{};       // no controller has used a higher id
  // Epochs below this one are from before an old store was accepted (accept.h).
  Epoch accepted{};
  bool hold =
      false;  // waiting jobs must be held, because they may have run since the copy was made
  friend bool operator==(const HighWater&, const HighWater&) = default;
};

std::string high_water_path(const std::string& state_dir);

// Returns nullopt if there is no mark yet. The error malformed means that it cannot be read; its
// text tells what to do.
Result<std::optional<HighWater>> load_high_water(const std::string& state_dir);
Result<void> save_high_water(const std::string& state_dir, const HighWater& mark);  // durable

// Replaces a whole file durably; for the files of this folder.
Result<void> replace_file(const std::string& path, const std::string& text);
// Returns nullopt if the file does not exist.
Result<std::optional<std::string>> read_whole(const std::string& path);

// Says why a store at this epoch and event is older than the mark; "" if it is not.
std::string behind(const HighWater& mark, Epoch epoch, EventSeq last);

}  // namespace gantry::age
