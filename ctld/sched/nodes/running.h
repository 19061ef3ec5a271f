// The placements that hold nodes, ordered by the time at which their limits end them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ctld/sched/change.h"
#include "ctld/sched/nodes/grid.h"
#include "ctld/sched/queue/ordered_slots.h"

namespace gantry::sched {

struct Use {  // one node of one job
  std::uint32_t node = 0;
  Room room;  // only CPUs and GPUs that the node still has
  std::vector<std::uint16_t> cpus;
  std::vector<GpuGrant> devices;
  std::vector<GresGrant> gres;
  std::size_t granted_cpus = 0;  // the number that quota counts, even if the node has fewer now
  std::uint32_t granted_gpus = 0;
  std::int64_t io = 0, net = 0;  // as in NodeGrant
};

struct Placement {
  JobId job{};
  std::optional<Instant> ends_by;  // unset = unlimited
  bool exclusive = false;
  bool leaving = false;
  bool requeue = true;
  NodeSharing sharing = NodeSharing::any;
  PartitionId partition{};
  std::uint32_t priority_class = 0;
  std::optional<ShareId> share;
  Instant started{};
  std::optional<Instant> checkpoint;
  std::uint32_t preemptions = 0;
  std::string anti_affinity;
  std::uint32_t namesake = 0;  // see NamesakesApart
  std::uint32_t group_at = 0;  // index in its group
  std::uint32_t flavor = 0;    // flavor of all its nodes; 0 if they differ
  Resources held;              // amounts that quota counts
  std::vector<Use> uses;       // by node
  [[nodiscard]] const Use& use_of(std::uint32_t node) const;  // the node must be one of the job's
};

// The resources that a placement releases at its end, in one cache line: walks along the ends
// (walk.cc) read thousands of these, and little else.
struct End {
  Instant at{};
  std::uint32_t node = 0;   // if the placement has one node
  std::uint32_t nodes = 0;  // if several nodes: see Placement::uses
  Room room;
};

// Placements that preemption treats alike. Their order is not fixed.
struct PlacementGroup {
  PartitionId partition{};
  std::uint32_t priority_class = 0;
  bool leaving = false;
  friend auto operator<=>(const PlacementGroup&, const PlacementGroup&) = default;
};

struct Owner {
  PartitionId partition{};
  std::optional<ShareId> user;
};
// A node of a job that the current plan has started; see neighbours.h.
struct Guest {
  std::uint32_t node = 0;
  Owner owner;
  NodeSharing sharing = NodeSharing::any;
  std::string anti_affinity;
  std::uint32_t namesake = 0;
};

// Every function that changes placements also updates the grid.
class Running {
 public:
  void place(const JobPlaced& change, Grid& grid);   // replaces what a known job held
  void release(JobId job, NodeId node, Grid& grid);  // does nothing if the job does not hold it
  void set_end(JobId job, std::optional<Instant> ends_by);
  void set_leaving(JobId job,
                   bool leaving);  // true if a plan preempts it; then it is no victim for others
  void node_changed(const NodeChanged& change, Grid& grid);

  [[nodiscard]] const Placement& operator[](std::uint32_t slot) const { return pool_[slot]; }
  // Prefetches the placement: a loop over thousands of them mostly waits for memory.
  void fetch(std::uint32_t slot) const {
    const char* at = reinterpret_cast<const char*>(&pool_[slot]);
    for (std::size_t line = 0; line < sizeof(Placement); line += 64) __builtin_prefetch(at + line);
  }
  [[nodiscard]] std::optional<std::uint32_t> find(JobId job) const {
    const auto it = by_job_.find(job);
    return it == by_job_.end() ? std::nullopt : std::optional(it->second);
  }
  [[nodiscard]] std::size_t size() const { return by_job_.size(); }
  [[nodiscard]] std::span<const std::uint32_t> on_node(std::uint32_t n) const {
    return n < on_node_.size() ? std::span<const std::uint32_t>(on_node_[n])
                               : std::span<const std::uint32_t>();
  }
  // The end of a placement that has one.
  [[nodiscard]] const End& end_of(std::uint32_t slot) const { return end_of_[slot]; }
  // Placements with an end, earliest first (then by job id).
  [[nodiscard]] const OrderedSlots& ends() const { return ends_; }
  [[nodiscard]] OrderedSlots::Cursor first_ending_after(Instant t) const {
    return ends_.lower_bound([&](std::uint32_t s) { return *pool_[s].ends_by <= t; });
  }
  [[nodiscard]] const std::map<PlacementGroup, std::vector<std::uint32_t>>& groups() const {
    return groups_;  // slots; no group is empty
  }

  // For neighbours.h: placements with a key; whether any job limits which jobs may run beside it;
  // and the nodes of jobs that the current plan has started.
  [[nodiscard]] std::span<const std::uint32_t> with_key(const std::string& key) const;
  // The placements of jobs that have this number (NamesakesApart), which is not 0.
  [[nodiscard]] std::span<const std::uint32_t> of_namesake(std::uint32_t namesake) const;
  [[nodiscard]] bool any_locks() const { return locks_ > 0; }
  [[nodiscard]] std::span<const Guest> guests() const { return guests_; }
  void add_guest(const Guest& guest);
  void forget_guests();

  [[nodiscard]] std::string audit(const Grid& grid) const;

 private:
  [[nodiscard]] auto earlier() const {
    return [this](std::uint32_t a, std::uint32_t b) {
      return std::pair{*pool_[a].ends_by, pool_[a].job} <
             std::pair{*pool_[b].ends_by, pool_[b].job};
    };
  }
  static Things things_of(const Use& use, const Placement& p) {
    return {use.cpus, use.devices, use.gres, p.partition};
  }
  void measure(Use& use, const Placement& p, const Grid& grid) const;
  void remove(std::uint32_t slot);
  static void note_flavor(Placement& p, const Grid& grid);
  void note_held(std::uint32_t slot);  // call it when its uses or its end have changed
  void join_group(std::uint32_t slot);
  void leave_group(std::uint32_t slot);
  static PlacementGroup group_of(const Placement& p) {
    return {p.partition, p.priority_class, p.leaving};
  }

  std::vector<Placement> pool_;
  std::vector<End> end_of_;  // by slot
  std::vector<std::uint32_t> free_;
  std::unordered_map<JobId, std::uint32_t> by_job_;
  std::vector<std::vector<std::uint32_t>> on_node_;  // slots
  OrderedSlots ends_;
  std::map<PlacementGroup, std::vector<std::uint32_t>> groups_;
  std::unordered_map<std::string, std::vector<std::uint32_t>> by_key_;         // no entry is empty
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> by_namesake_;  // the same
  std::size_t locks_ = 0;  // placements and guests that do not share with everybody
  std::vector<Guest> guests_;
};

}  // namespace gantry::sched
