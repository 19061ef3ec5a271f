// The nodes and starts that plans have reserved for waiting jobs. A reservation is kept between
// plans and never moved later, except for a job of higher rank, an owner's reclaim or a lost node:
//
// - It is reserved again at the beginning of the next plan, before any job of its rank is looked
//   at; only what is planned for higher ranks precedes it. If it does not fit any more, it is
//   dropped, and its job is planned again at its turn. The same happens if a tenant claims what is
//   guaranteed to it and the reservation was made for a borrower (room.cc), unless that job's rank
//   has been raised because it has waited for long. Such a claim precedes everything else: jobs
//   are preempted for it.
// - It belongs to no single job of its line (one class, one user): the first jobs get the earliest
//   ones (exchange.cc).
// - At its job's turn it is exchanged for an earlier start if there is one now that delays no other
//   reservation. The search for this is made once a second; whether the job can start now is
//   checked in every
//   plan.
// - When its time has come the job starts on its nodes, whatever its place in the queue is at that
//   time.
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
  // Preempted jobs that are still there; by leave_by they will have left.
  std::vector<JobId> leaving;
  Instant leave_by{};
  // Whether the reservation is a claim (cycle/room.h): what it takes is charged to its tenant
  // already, so that no other job gets the quota, or the place of its victims, in between. No other
  // claim takes its nodes.
  bool claimed = false;
  // Whether the claim is within its tenant's guaranteed quota: it comes before all other
  // reservations (comes_first() in cycle/book.h).
  bool guaranteed = false;
  bool aged = false;  // true if the rank of its job is raised: no claim takes its nodes
  // The place of its job in the order at the beginning of the plan.
  std::uint32_t priority = 0;
  std::int32_t rank = 0;
  Instant looked{};   // when an earlier start was last looked for
  bool told = false;  // true if the present plan has reported its start already
};

// All reservations in force, by job; an array may have several.
using Reservations = std::map<JobId, std::vector<Reservation>>;

}  // namespace gantry::sched
