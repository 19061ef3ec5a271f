// The high-water mark: a small file beside data.mdb that says how far the store has got at least. A
// data.mdb that is behind it was restored from a copy, or is a new one in the place of one that is
// gone. It is durable before what it stands for is seen outside: job ids are reserved in blocks,
// events are noted now and then, after their commit.
#pragma once

#include <optional>
#include <string>

#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::age {

inline constexpr std::uint64_t kJobBlock = 16'384;  // ids reserved at once: one sync for so many
inline constexpr Duration kNoteEvents = seconds(10);

struct HighWater {
  Epoch epoch{};     // of the last controller that has started
  EventSeq event{};  // committed
  JobId job{};       // no higher id was given, by any controller
  // Epochs below this one are of before an old store was accepted (accept.h).
  Epoch accepted{};
  bool hold = false;  // jobs that wait are to be held: they may have run since the copy was made
  friend bool operator==(const HighWater&, const HighWater&) = default;
};

std::string high_water_path(const std::string& state_dir);

// nullopt: there is none yet. malformed: it cannot be read, and the sentence says what to do.
Result<std::optional<HighWater>> load_high_water(const std::string& state_dir);
Result<void> save_high_water(const std::string& state_dir, const HighWater& mark);  // durable

// Text that replaces a whole file, durably. For the files of this folder.
Result<void> replace_file(const std::string& path, const std::string& text);
// nullopt: there is none.
Result<std::optional<std::string>> read_whole(const std::string& path);

// "" or why a store at this epoch and event is older than the mark.
std::string behind(const HighWater& mark, Epoch epoch, EventSeq last);

}  // namespace gantry::age
