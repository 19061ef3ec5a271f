// The scheduler's own view of the cluster, advanced by each turn's changes: nodes, partitions,
// waiting jobs in classes, placements, and the view ahead. No copy of the queue per plan, no lock.
//
// apply() is the only way in for facts. Repeating a change has no effect. Between plans the replica
// is a function of the changes alone, but for the promises that plans have made, for the mix of
// requests that they expect (gpu_scores.h), and for what they have found out (memory.h): with the
// same promises and mix the same changes give the same plans, and so does a replica built from
// scratch out of the current facts.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "ctld/sched/change.h"
#include "ctld/sched/gpu/mig_kept.h"
#include "ctld/sched/nodes/eligible.h"
#include "ctld/sched/nodes/grid.h"
#include "ctld/sched/nodes/running.h"
#include "ctld/sched/place/gpu_scores.h"
#include "ctld/sched/queue/kinds.h"
#include "ctld/sched/queue/memory.h"
#include "ctld/sched/queue/queue.h"
#include "ctld/sched/tenant/charges.h"
#include "ctld/sched/tenant/fairshare.h"
#include "ctld/sched/time/promises.h"
#include "ctld/sched/time/timeline.h"

namespace gantry::sched {

class Replica {
 public:
  Replica() : timeline_(grid_, running_) {}
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  void apply(const Change& change);

  [[nodiscard]] const Grid& grid() const { return grid_; }
  [[nodiscard]] const Running& running() const { return running_; }
  [[nodiscard]] const Queue& queue() const { return queue_; }
  [[nodiscard]] const PartitionChanged* partition(PartitionId id) const {
    return eligible_.partition(id);
  }
  [[nodiscard]] std::size_t waiting() const { return queue_.size(); }
  [[nodiscard]] std::size_t queue_bytes() const { return queue_.bytes(); }

  [[nodiscard]] const Tenancy& tenancy() const { return *tenancy_; }
  [[nodiscard]] const ShareTree& shares() const { return shares_; }
  [[nodiscard]] const Charges& charges() const { return charges_; }
  [[nodiscard]] std::vector<Promise> promises() const;
  void promise(const std::vector<Promise>& promises);  // instead of all that there are
  [[nodiscard]] const std::vector<MigKept>& kept_slices() const { return kept_slices_; }
  void keep_slices(std::vector<MigKept> kept) { kept_slices_ = std::move(kept); }

  // The requests that plans expect: what nodes with GPUs are chosen by.
  [[nodiscard]] const GpuMix& mix() const { return scores_.mix(); }
  void expect(const GpuMix& mix) { scores_.expect(mix); }

  // The next plan looks at everything, as that of a new replica with these promises would.
  void look_at_everything() { memory_.forget(); }

  // Compares every derived number with one counted from scratch; "" or the first that is wrong.
  [[nodiscard]] std::string audit() const;

 private:
  friend class Cycle;  // a plan tries things here and puts them back
  friend class HetGroup;

  void touch_queue(JobId job);  // if it waits
  void touch_nodes(JobId job);  // if it runs

  TenancyPtr tenancy_ = std::make_shared<const Tenancy>();
  ShareTree shares_;
  Charges charges_;
  std::map<std::string, ReservationChanged> reservations_;
  Grid grid_;
  Running running_;
  Queue queue_;
  Eligible eligible_;
  Timeline timeline_;
  Kinds kinds_;
  Promises promises_;
  std::vector<MigKept> kept_slices_;  // by plans, for jobs that wait
  Memory memory_;
  GpuScores scores_;
  std::unordered_map<std::uint32_t, Instant> in_vain_;  // searches for victims, by class
  bool searches_cut_ = false;                           // the last plan had more to make
};

}  // namespace gantry::sched
