// The GPUs while a plan fills them: what is taken, reserved, destroyed and created on each, and
// what is left for other jobs. Only mig_plan.cc uses it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ctld/sched/gpu/mig_place.h"
#include "ctld/sched/gpu/mig_plan.h"
#include "ctld/sched/gpu/mig_room.h"

namespace gantry::sched {

class MigBoard {
 public:
  // `wanted`: by table and profile, how much the queue wants (MigOrder).
  MigBoard(const MigView& view, Duration change,
           const std::vector<std::vector<std::uint32_t>>& wanted);
  MigBoard(const MigBoard&) = delete;  // not copied, because the pools point at the orders
  MigBoard& operator=(const MigBoard&) = delete;

  using Used = MigUsed;
  using Reserved = MigReserved;
  struct Gpu {
    MigState busy = 0;  // the state of `used`
    std::vector<Used> used;
    std::uint64_t idle = 0;  // bits of existing slices that no job has
    std::vector<Reserved> reserved;
    std::uint32_t turn = 0;  // the turn of its change on the node; 0: none
    std::vector<MigPlacementId> destroy, create;
    bool slices = false;                // slices can be planned on it
    bool whole = false;                 // it can be given to a job as a whole
    Instant whole_until{};              // in use or taken until then; the epoch: free
    std::optional<Instant> whole_from;  // reserved from then on; kMigNever: time not known
    JobId whole_for;
  };
  struct Node {
    std::uint32_t first = 0, count = 0;  // index and number of its GPUs
    std::uint32_t turns = 0;             // turns planned on the node
    bool changing = false;               // a change is under way
  };
  // A place and a time at which a slice could be made, given what is in use and reserved.
  struct Chance {
    std::uint32_t gpu = 0;
    MigPlacementId at = 0;
    Instant from{};            // kMigNever: not known
    std::uint32_t in_way = 0;  // memory slices in use that have to become free first
  };

  [[nodiscard]] const MigView& view() const { return *view_; }
  [[nodiscard]] const Gpu& gpu(std::uint32_t g) const { return gpus_[g]; }
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] std::uint32_t node_of(std::uint32_t g) const { return node_of_[g]; }
  [[nodiscard]] const MigTable& table(std::uint32_t g) const {
    return *view_->tables[*view_->gpus[g].table];
  }
  [[nodiscard]] const MigOrder& order(std::uint32_t g) const {
    return orders_[*view_->gpus[g].table];
  }
  [[nodiscard]] const MigPool& pool(std::uint32_t table) const { return pools_[table]; }
  [[nodiscard]] const std::vector<std::uint32_t>& drained() const { return drained_; }
  [[nodiscard]] const Bits& fixed_idle(std::uint32_t table) const { return fixed_idle_[table]; }

  // The places of one job; all are on one node.
  using Places = std::vector<std::pair<std::uint32_t, MigPlacementId>>;
  // The turn of the last change that these places need; 0: they need none.
  [[nodiscard]] std::uint32_t turn_of(const Places& places) const;
  // The end of a job with this limit on these places; kMigNever without a limit.
  [[nodiscard]] Instant end_of(const Places& places, const std::optional<Duration>& limit) const;
  // Placements of the profile that a job may have on the GPU now, next to reservations. `also`:
  // other placements that it gets there, as bits.
  [[nodiscard]] std::uint64_t open(std::uint32_t g, std::uint32_t profile,
                                   const std::optional<Duration>& limit, std::uint64_t also) const;
  // True if a job in these places until `end` hinders no job for which the GPU is reserved.
  [[nodiscard]] bool spares_reserved(std::uint32_t g, std::uint64_t places, Instant end) const;
  // The earliest time for one more slice; `also`: placements that the same job gets there, as bits.
  [[nodiscard]] std::optional<Chance> chance(std::uint32_t g, std::uint32_t profile,
                                             std::uint64_t also) const;

  // Takes the placement until `end`; plans to destroy and create what is needed for it.
  MigGrant claim(std::uint32_t g, MigPlacementId at, Instant end);
  void claim_whole(std::uint32_t g, const std::optional<Duration>& limit);
  void reserve(std::uint32_t g, Reserved reserved);
  void reserve_whole(std::uint32_t g, JobId job, Instant from);
  void unreserve(std::uint32_t g, JobId job);

  [[nodiscard]] std::vector<MigChange> changes() const;

 private:
  void add(std::uint32_t g);
  void refresh(std::uint32_t g);
  void make_room(std::uint32_t g, MigPlacementId at);
  [[nodiscard]] std::optional<Chance> fixed_chance(std::uint32_t g, std::uint32_t profile,
                                                   std::uint64_t also) const;

  const MigView* view_;
  Duration change_;
  std::vector<Gpu> gpus_;
  std::vector<Node> nodes_;  // by the node's place here; node_of() finds it
  std::vector<std::uint32_t> node_of_;
  std::vector<MigOrder> orders_;  // by table
  std::vector<MigPool> pools_;
  std::vector<Bits> fixed_idle_;  // by table: GPUs that stay as they are and have an idle slice
  std::vector<std::uint32_t> drained_;  // GPUs with reservations, ascending
};

}  // namespace gantry::sched
