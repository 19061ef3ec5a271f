// The memory that a plan leaves for the next one: which partitions are asleep (all of their lines
// have been looked at and must wait), what would wake them, and what has changed since.
//
// A partition is woken by a change of its queue, by freed resources for a request of one of its
// jobs that its quota allows (RequestKeys knows which requests have failed), by a change on a node
// that is reserved for one of its jobs, and, if it waits for anything else, by any change of a
// node. A plan may skip all other partitions: it would find the same again. Time alone wakes no
// partition, so at intervals (Policy::everything) a plan looks at everything. forget() is for
// changes after which none of this is valid: then the next plan looks at everything.
#pragma once

#include <optional>
#include <vector>

#include "common/types.h"
#include "ctld/sched/bits.h"
#include "ctld/sched/policy.h"
#include "ctld/sched/queue/order.h"

namespace gantry::sched {

class Memory {
 public:
  struct Wait {
    std::uint32_t request = 0;
    std::int32_t rank = 0;
  };
  struct PartitionMemory {
    bool asleep = false;
    bool restless = false;  // any change of a node wakes the partition
    std::vector<Wait> waits;
  };

  // ---- what has changed
  void forget() {
    looked_at_all_.reset();
    keys.forget();
  }
  void touch_partition(PartitionId partition) {
    of(partition.value()).asleep = false;
    keys.forget(partition.value());
  }
  void touch_job(JobId job) { jobs_.push_back(job); }
  void touch_node(std::uint32_t node) {
    if (touched_.test(node)) return;
    if (touched_.words() * 64 <= node) touched_.resize(node + 1);
    touched_.set(node);
    nodes_.push_back(node);
  }

  // ---- plans
  // True: this plan may pass over partitions that sleep; else it begins anew. `boundary`: the next
  // moment at which a window opens or closes.
  bool may_pass_over(Instant now, const Policy& policy, std::optional<Instant> boundary);
  // Notes that the plan has looked at everything, or at all partitions that are awake; or (cut)
  // that it stopped early.
  void planned(bool everything, bool cut, Instant now, const Policy& policy);

  PartitionMemory& of(std::uint32_t partition) {
    if (partitions_.size() <= partition) partitions_.resize(partition + 1);
    return partitions_[partition];
  }
  // Nodes and jobs that have changed since forget_changes().
  [[nodiscard]] bool touched(std::uint32_t node) const { return touched_.test(node); }
  [[nodiscard]] const std::vector<std::uint32_t>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<JobId>& jobs() const { return jobs_; }
  void forget_changes();

  KnownKeys keys;

 private:
  std::optional<Instant> looked_at_all_;
  std::optional<Instant> boundary_;
  Policy policy_;
  std::vector<PartitionMemory> partitions_;  // by partition
  Bits touched_;
  std::vector<std::uint32_t> nodes_;
  std::vector<JobId> jobs_;
};

}  // namespace gantry::sched
