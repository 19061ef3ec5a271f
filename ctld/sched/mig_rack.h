// The GPUs of one node that are in MIG mode, as placement sees them: what is cut out of each by
// jobs, what more fits, and where it goes. Slices that exist and nobody has are no obstacle: the
// node makes room for what a job was given.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/gpu.h"
#include "ctld/sched/change.h"
#include "ctld/sched/mig_place.h"

namespace gantry::sched {

// "1g.10gb" has 1 compute slice, "3g.40gb+me" 3; 0: not the name of a profile.
std::uint32_t compute_slices_of(std::string_view profile);

// Compiled geometries, shared by nodes alike.
class MigShapes {
 public:
  struct Shape {
    MigGeometry geometry;
    MigTable table;
    MigOrder order;  // every profile wanted alike
    Shape(const MigGeometry& g, MigTable t)
        : geometry(g),
          table(std::move(t)),
          order(table, std::vector<std::uint32_t>(table.profiles().size(), 1)) {}
  };
  // null: what the driver says makes no sense; such a GPU gets no jobs.
  const Shape* of(const MigGeometry& geometry);

 private:
  std::vector<std::unique_ptr<Shape>> shapes_;
};

class MigRack {
 public:
  void set(std::span<const GpuView> devices, const std::vector<MigGeometry>& geometries,
           MigShapes& shapes);
  [[nodiscard]] bool has(std::string_view profile) const;
  [[nodiscard]] std::uint32_t compute_slices() const;  // of all, in use or not
  [[nodiscard]] std::uint32_t compute_of(std::span<const GpuGrant> devices) const;  // of its GPUs
  [[nodiscard]] std::uint32_t fits(std::string_view profile) const;
  [[nodiscard]] std::uint32_t thousandths(std::string_view profile) const;  // of one slice
  // `count` of them, on the fullest GPUs (mig_place.h). Fewer fit: our bug.
  [[nodiscard]] std::vector<GpuGrant> choose(std::string_view profile, std::uint32_t count) const;
  // Those that are not slices, or of GPUs that it has not, are passed over.
  void mark(std::span<const GpuGrant> devices, bool taken);

 private:
  struct Gpu {
    std::uint16_t index = 0;
    const MigShapes::Shape* shape = nullptr;
    std::uint64_t layout = 0;  // bits of placements that jobs have
    MigState state = 0;
  };
  std::vector<Gpu> gpus_;
};

}  // namespace gantry::sched
