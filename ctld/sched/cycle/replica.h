// The scheduler's own view of the cluster, advanced by each turn's changes: nodes, partitions,
// waiting jobs in classes, placements, and the timeline. A plan needs no copy of the queue, and no
// lock.
//
// apply() is the only way in for facts. Repeating a change has no effect. Between plans the replica
// is a function of the changes alone, except for the reservations that plans have made, the mix of
// requests that they expect (gpu_scores.h), and what they have found out (memory.h). With the same
// reservations and mix the same changes give the same plans, and so does a replica built anew from
// the current facts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ctld/sched/change.h"
#include "ctld/sched/cycle/left.h"
#include "ctld/sched/cycle/view.h"

namespace gantry::sched {

class Replica {
 public:
  Replica() = default;
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  void apply(const Change& change);

  [[nodiscard]] const Grid& grid() const { return view_.grid; }
  [[nodiscard]] const Running& running() const { return view_.running; }
  [[nodiscard]] const Queue& queue() const { return view_.queue; }
  [[nodiscard]] const PartitionChanged* partition(PartitionId id) const {
    return view_.eligible.partition(id);
  }
  [[nodiscard]] std::size_t waiting() const { return view_.queue.size(); }
  [[nodiscard]] std::size_t queue_bytes() const { return view_.queue.bytes(); }

  [[nodiscard]] const Tenancy& tenancy() const { return *view_.tenancy; }
  [[nodiscard]] const ShareTree& shares() const { return view_.shares; }
  [[nodiscard]] const Charges& charges() const { return view_.charges; }
  [[nodiscard]] std::vector<Reservation> reservations() const;
  void set_reservations(
      const std::vector<Reservation>& reservations);  // replaces all reservations by these
  [[nodiscard]] const std::vector<MigKept>& kept_slices() const { return left_.kept_slices; }
  void keep_slices(std::vector<MigKept> kept) { left_.kept_slices = std::move(kept); }

  // The mix of requests that plans expect; it decides which nodes with GPUs are chosen.
  [[nodiscard]] const GpuMix& mix() const { return view_.scores.mix(); }
  void expect(const GpuMix& mix) { view_.scores.expect(mix); }

  // Makes the next plan look at everything, as a new replica with these reservations would.
  void look_at_everything() { left_.memory.forget(); }

  // Only schedule() uses these; it restores the view afterwards.
  [[nodiscard]] View& view() { return view_; }
  [[nodiscard]] Left& left() { return left_; }

  // Compares every derived number with one counted from scratch; returns "" or the first that is
  // wrong.
  [[nodiscard]] std::string audit() const;

 private:
  void touch_queue(JobId job);  // if the job waits
  void touch_nodes(JobId job);  // if the job runs

  View view_;
  Left left_;
  std::map<std::string, ReservationChanged> windows_;  // by name
};

}  // namespace gantry::sched
