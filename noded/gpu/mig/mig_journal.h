// Stores on disk what is about to be done to a GPU's slices, before the driver is asked. So if the
// daemon dies in between, the next one knows what to finish or undo. There is one small file for
// each GPU, `mig-<uuid>`, because a GPU is re-partitioned one slice at a time.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/resources/gpu.h"
#include "common/result.h"
#include "noded/machine/files.h"

namespace gantry::gpu {

enum class MigStep : std::uint8_t { create = 1, destroy = 2 };
constexpr auto enum_names(MigStep) {
  return std::array<std::pair<MigStep, std::string_view>, 2>{
      {{MigStep::create, "create"}, {MigStep::destroy, "destroy"}}};
}

struct MigIntent {
  MigStep step = MigStep::create;
  std::string gpu;  // UUID
  MigSlice slice;   // for `create` only profile and start are set
  GANTRY_FIELDS(FIELD(1, step), FIELD(2, gpu), FIELD(3, slice))
  friend bool operator==(const MigIntent&, const MigIntent&) = default;
};

class MigJournal {
 public:
  static Result<MigJournal> open(const std::string& dir);  // makes the directory if there is none

  // Durable when it returns. wrong_state: an intent for the same GPU is not done yet; call
  // recover() first.
  [[nodiscard]] Result<void> begin(const MigIntent& intent) const;
  [[nodiscard]] Result<void> done(const std::string& gpu) const;
  // Intents that are not done. A file that cannot be read was never written completely, and is
  // removed.
  [[nodiscard]] Result<std::vector<MigIntent>> pending() const;

 private:
  MigJournal(std::string dir, Fd fd) : dir_(std::move(dir)), fd_(std::move(fd)) {}
  std::string dir_;
  Fd fd_;
};

}  // namespace gantry::gpu
