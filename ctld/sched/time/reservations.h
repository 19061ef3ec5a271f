// What plans have reserved for waiting jobs: nodes and a start. A reservation is kept between plans
// and never moved later, but for a job of higher rank, an owner's reclaim or a lost node:
//
// - it is reserved again at the beginning of the next plan, before anything of its rank is looked
//   at; only what is planned for higher ranks stands before it. Without room it is broken, and the
//   job is planned anew at its turn. So it is if an owner claims what is guaranteed to it, and the
//   reservation was made to a borrower (room.cc), unless that one's rank has been raised since it
//   has waited for long. Such a claim itself comes before all else: jobs leave for it;
// - it is any job's of its line (one class, one user): the first have the earliest (exchange.cc);
// - at its job's turn it is exchanged for an earlier start if there is one now that delays no other
//   reservation; looked for once a second (whether the job can start now is asked in every plan);
// - when its time has come the job starts on its nodes, whatever its place in the queue is by then.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/time/time.h"
#include "common/types.h"
#include "ctld/sched/queue/geometry.h"

namespace gantry::sched {

inline constexpr Duration kReplanPeriod = seconds(1);

struct Reservation {
  JobId job;
  PartitionId partition{};
  Instant start{};
  std::vector<Share> shares;
  std::uint32_t flavor = 0;
  // Jobs that were asked to leave for it and have not gone yet; by then they have.
  std::vector<JobId> leaving;
  Instant leave_by{};
  // It was asked for: what it takes is charged to its tenant from then on, so that neither the room
  // that others leave nor the quota is anybody else's in between.
  bool claimed = false;
  // Claimed, and of what its tenant is guaranteed: it goes before all else, and nobody takes it.
  bool guaranteed = false;
  bool aged = false;  // the rank of its job is raised: no claim takes its nodes
  // Its place: that of its job, at the beginning of the plan.
  std::uint32_t priority = 0;
  std::int32_t rank = 0;
  Instant looked{};   // for an earlier start
  bool told = false;  // it is in the plan's expected starts
};

// All reservations in force, by job; an array may have several.
using Reservations = std::map<JobId, std::vector<Reservation>>;

}  // namespace gantry::sched
