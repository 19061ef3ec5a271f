// The GPUs of one node that are in MIG mode, as placement sees them: the slices that jobs have,
// what else fits, and where it is placed. Slices that exist but belong to no job are no obstacle:
// the node makes room for what a job was given. GPUs that are partitioned by hand stay as they are.
// A slice of which jobs have parts belongs to one tenant, and is in use until the last part is
// released.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/resources/gpu.h"
#include "ctld/sched/change.h"
#include "ctld/sched/gpu/mig_place.h"
#include "ctld/sched/gpu/mig_room.h"

namespace gantry::sched {

// "1g.10gb" has 1 compute slice, "3g.40gb+me" 3; 0: not the name of a profile.
std::uint32_t compute_slices_of(std::string_view profile);

// Compiled geometries, shared by nodes with the same geometry.
class MigShapes {
 public:
  struct Shape {
    MigGeometry geometry;
    MigTable table;
    MigOrder order;           // with the same weight for every profile
    std::uint32_t index = 0;  // of the shape
    Shape(const MigGeometry& g, MigTable t, std::uint32_t at)
        : geometry(g),
          table(std::move(t)),
          order(table, std::vector<std::uint32_t>(table.profiles().size(), 1)),
          index(at) {}
  };
  // null: the driver's report makes no sense; such a GPU gets no jobs.
  const Shape* of(const MigGeometry& geometry);
  [[nodiscard]] std::size_t size() const { return shapes_.size(); }
  [[nodiscard]] const Shape& operator[](std::size_t i) const { return *shapes_[i]; }

 private:
  std::vector<std::unique_ptr<Shape>> shapes_;
};

// A job that asks for slices of a node.
struct MigAsk {
  std::string_view profile;
  Instant end = kMigNever;           // the job has ended by then
  std::uint32_t owner = 0xFFFFFFFF;  // its class: places kept for this class do not exclude it
  PartitionId tenant{};
  DevicePart part{};  // part of one slice; 0 = whole slices
};

class MigNode {
 public:
  struct Hold {  // a place that is kept for a job of a class, from a certain time on
    JobId job;
    MigPlacementId at = 0;
    Instant from{};  // kMigNever: time not known
    std::uint32_t owner = 0;
  };
  struct Shared {  // a slice of which jobs have parts
    MigPlacementId at = 0;
    PartitionId tenant{};
    DevicePart taken{};  // taken parts of the slice
  };
  struct Gpu {
    std::uint16_t index = 0;
    const MigShapes::Shape* shape = nullptr;
    std::uint64_t layout = 0;  // bits of placements that jobs have
    MigState state = 0;
    bool by_hand = false;
    std::uint64_t existing = 0;  // if by hand: the slices that exist
    std::uint32_t fleet = 0;     // number of the GPU in MigFleet
    std::vector<Shared> shared;  // slices of the layout that are shared
    std::vector<Hold> holds;     // places kept in the current plan
    std::vector<MigUsed> used;   // if there are holds: the slices in use, and until when
  };

  void set(std::span<const GpuView> devices, const std::vector<MigGeometry>& geometries,
           MigShapes& shapes);
  [[nodiscard]] std::span<const Gpu> gpus() const { return gpus_; }
  void number(std::size_t i, std::uint32_t fleet) { gpus_[i].fleet = fleet; }

  [[nodiscard]] bool has(std::string_view profile) const;
  [[nodiscard]] std::uint32_t compute_slices() const;  // compute slices of all GPUs, in use or not
  // How many of the compute slices of its GPUs these grants take.
  [[nodiscard]] SliceThousandths compute_of(std::span<const GpuGrant> devices) const;
  [[nodiscard]] std::uint32_t fits(const MigAsk& ask) const;  // for a part: more than 0 if it fits
  // True if the tenant has a shared slice with room for this part.
  [[nodiscard]] bool room_beside(const MigAsk& ask) const { return beside(ask).second != nullptr; }
  [[nodiscard]] bool has_parts() const;
  [[nodiscard]] GpuThousandths thousandths(std::string_view profile) const;  // weight of one slice
  // Chooses `count` slices. First come GPUs that are partitioned by hand and GPUs on which places
  // are kept for others (until these are needed), then the order of mig_place.h. A part goes into
  // the fullest slice of its tenant that has room, else into a new one. Asserts that enough fit.
  [[nodiscard]] std::vector<GpuGrant> choose(const MigAsk& ask, std::uint32_t count) const;
  // Jobs take or release these slices. Grants that are not slices, or that name GPUs which the node
  // does not have, are ignored. Asserts that no slice has two tenants, and that only parts that
  // were taken are released.
  void mark(std::span<const GpuGrant> devices, PartitionId tenant, bool taken);
  // The GPU (its index in gpus()) and the placement of a grant; nullopt if it is no slice of this
  // node.
  [[nodiscard]] std::optional<std::pair<std::size_t, MigPlacementId>> find(const GpuGrant& d) const;

  // Keeps a place until drop_holds(). `used`: the slices in use on the GPU, with their ends.
  void hold(std::size_t gpu, const Hold& hold, std::vector<MigUsed> used);
  void drop_holds();
  // On GPUs with holds: slices that were marked since hold() are in use until `until`.
  void lasts(std::span<const GpuGrant> devices, Instant until);

 private:
  struct Try;
  [[nodiscard]] std::uint64_t open(const Gpu& gpu, std::uint32_t profile, const MigAsk& ask,
                                   MigState state, std::uint64_t also) const;
  static bool mark_part(Gpu& g, MigPlacementId at, DevicePart part, PartitionId tenant, bool taken);
  [[nodiscard]] std::pair<const Gpu*, const Shared*> beside(const MigAsk& ask) const;
  std::vector<Gpu> gpus_;
};

}  // namespace gantry::sched
