// The profiles of one GPU model, and where each may be placed, as the driver reports
// (common/resources/gpu.h). mig.h has which profiles may exist together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/resources/gpu.h"
#include "common/result.h"

namespace gantry::sched {

inline constexpr std::uint32_t kMostMigSlices = 16;      // memory or compute slices of a GPU
inline constexpr std::uint32_t kMostMigPlacements = 64;  // placements of all profiles together
inline constexpr std::uint32_t kMostMigProfiles = 32;

struct MigPlacement {
  std::uint8_t profile = 0;  // index into MigCatalog::profiles()
  std::uint8_t start = 0;    // memory slice
  std::uint32_t mask = 0;    // memory slices, bit 0 first
  friend bool operator==(const MigPlacement&, const MigPlacement&) = default;
};
using MigPlacementId = std::uint8_t;  // index into MigCatalog::placements()

// A part of a GPU, exactly: compute / of_compute of its compute, memory / of_memory of its memory.
struct MigShare {
  std::uint32_t compute = 0, of_compute = 1;
  std::uint32_t memory = 0, of_memory = 1;
  // The amount for quota, fair share and usage: the mean of both parts, rounded down. It adds up to
  // at most 1000 for every legal layout, and a whole GPU is 1000. The larger of both parts would
  // not do: 4g + 3g, which fill an 8-slice GPU, would be 571 + 500.
  [[nodiscard]] GpuThousandths thousandths() const;
  friend bool operator==(const MigShare&, const MigShare&) = default;
};

class MigCatalog {
 public:
  // Error malformed: the driver's report makes no sense.
  static Result<MigCatalog> read(const MigGeometry& geometry);

  [[nodiscard]] const std::string& model() const { return model_; }
  [[nodiscard]] std::uint32_t compute_slices() const { return compute_; }
  [[nodiscard]] std::uint32_t memory_slices() const { return memory_; }
  [[nodiscard]] std::span<const MigProfile> profiles() const { return profiles_; }
  [[nodiscard]] std::optional<std::uint32_t> profile_named(std::string_view name) const;
  [[nodiscard]] std::optional<std::uint32_t> profile_of_id(std::uint32_t id) const;
  // The profile that takes all compute and all memory slices, if there is one.
  [[nodiscard]] std::optional<std::uint32_t> full_profile() const { return full_; }
  [[nodiscard]] MigShare share(std::uint32_t profile) const;

  [[nodiscard]] std::span<const MigPlacement> placements() const { return placements_; }
  [[nodiscard]] std::uint64_t placements_of(std::uint32_t profile) const { return of_[profile]; }
  [[nodiscard]] std::optional<MigPlacementId> placement(std::uint32_t profile,
                                                        std::uint32_t start) const;

 private:
  MigCatalog() = default;

  std::string model_;
  std::uint32_t compute_ = 0, memory_ = 0;
  std::vector<MigProfile> profiles_;
  std::optional<std::uint32_t> full_;
  std::vector<MigPlacement> placements_;
  std::vector<std::uint64_t> of_;  // bits of each profile's placements
};

}  // namespace gantry::sched
