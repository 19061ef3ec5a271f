// What is being done to a GPU's slices, on disk before the driver is asked, so that a daemon that
// died in between knows what to finish or take back. One small file a GPU, `mig-<uuid>`: a GPU is
// re-partitioned one slice at a time.
#pragma once

#include <array>
#include <string>
#include <vector>

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
  MigSlice slice;   // of create: profile and start only
  template <class S, class V>
  static void fields(S& s, V&& v) {
    v(1, "step", s.step);
    v(2, "gpu", s.gpu);
    v(3, "slice", s.slice);
  }
  friend bool operator==(const MigIntent&, const MigIntent&) = default;
};

class MigJournal {
 public:
  static Result<MigJournal> open(const std::string& dir);  // made if there is none

  // Durable when it returns. wrong_state: one for the same GPU is not done yet (recover() it).
  [[nodiscard]] Result<void> begin(const MigIntent& intent) const;
  [[nodiscard]] Result<void> done(const std::string& gpu) const;
  // Those not done. A file that cannot be read is one that was never whole, and is removed.
  [[nodiscard]] Result<std::vector<MigIntent>> pending() const;

 private:
  MigJournal(std::string dir, Fd fd) : dir_(std::move(dir)), fd_(std::move(fd)) {}
  std::string dir_;
  Fd fd_;
};

}  // namespace gantry::gpu
