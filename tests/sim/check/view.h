// The facts that the scheduler was told, compared with what the core would tell a scheduler that
// starts now.
#pragma once

#include <map>
#include <string>

#include "ctld/sched/change.h"
#include "ctld/sched/tenancy.h"

namespace gantry::sim {

class View {
 public:
  void apply(const sched::Change& change);
  [[nodiscard]] std::string text() const;

 private:
  void take(const sched::NodeChanged& c);
  void take(const sched::PartitionChanged& c);
  void take(const sched::JobQueued& c);
  void take(const sched::JobsQueued& c);
  void take(const sched::JobUnqueued& c);
  void take(const sched::JobPlaced& c);
  void take(const sched::JobLimitChanged& c);
  void take(const sched::NodeReleased& c);
  void take(const sched::TenancyChanged& c);
  void take(const sched::ShareChanged& c);
  void take(const sched::NamesakesApart& c);
  void take(const sched::ReservationChanged& c);

  std::map<NodeId, sched::NodeChanged> nodes_;
  std::map<PartitionId, sched::PartitionChanged> partitions_;
  std::map<JobId, sched::JobQueued> queued_;
  std::map<JobId, sched::JobPlaced> placed_;
  sched::TenancyPtr tenancy_;
  std::map<sched::ShareId, sched::ShareChanged> shares_;
  std::map<std::string, sched::ReservationChanged> reservations_;
  sched::NamesakesApart apart_;
};

}  // namespace gantry::sim
