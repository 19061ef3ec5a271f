// The plan that is being made: what all of its steps read, and the results that they write. Each
// step is a type of its own (README.md) that holds a Draft and its own data.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ctld/sched/cycle/left.h"
#include "ctld/sched/cycle/view.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/policy.h"
#include "ctld/sched/queue/order.h"

namespace gantry::sched {

struct PartitionProgress {
  std::uint32_t starts = 0;            // starts of the partition's jobs in this plan
  bool blocked = false;                // one of its jobs must wait
  bool begun = false;                  // one of its lines has had a turn
  bool passed_over = false;            // skipped before all of its lines have had a turn
  std::vector<std::uint32_t> started;  // slots of jobs of which all parts were started
};

struct Draft {
  Draft(View& its_view, Left& its_left, Instant its_now, const Policy& its_policy)
      : view(its_view), left(its_left), policy(its_policy), now(its_now) {
    plan.made_at = now;
  }

  View& view;
  Left& left;
  const Policy& policy;
  const Instant now;
  Plan plan;
  std::optional<Order> order;  // gives the turns; set once the plan has begun
  std::unordered_map<std::uint32_t, PartitionProgress> partitions;  // by id
  std::vector<Blocked> blocked;  // why the first jobs of lines must wait: see block()
  std::map<JobId, std::uint32_t> started_ahead;  // elements that started before their turn
  bool everything = true;  // false: only partitions that are awake are looked at
  bool cut = false;        // the plan ends, because jobs that it skipped may be able to start now
  bool again = false;      // a next plan follows, because this one left resources unused

  // ---- the job of a turn
  [[nodiscard]] JobClass& cls(const LineTurn& t) { return view.queue.job_class(t.class_index); }
  [[nodiscard]] const OrderedSlots& jobs(const LineTurn& t) { return view.queue.line(t.line).jobs; }
  [[nodiscard]] const Waiting& job(const LineTurn& t, OrderedSlots::Cursor at) {
    return view.queue[jobs(t)[at]];
  }
  [[nodiscard]] JobClass& class_of(const Waiting& w) {
    return view.queue.job_class(view.queue.line(w.line).class_index);
  }
  [[nodiscard]] Place place(const LineTurn& t) const {
    return {view.queue.partition(t.partition).priority, t.first.rank};
  }
  // The end of the class's next job if it started now; Timeline::kNever without a limit.
  [[nodiscard]] Instant end_of(const JobClass& c) const {
    return Timeline::end_of(now, c.key.least_limit());
  }
  PartitionProgress& partition(std::uint32_t id) { return partitions[id]; }

  // ---- steps of a turn
  // Moves the turn to the line's next job or element; false at the end of the line.
  bool advance(LineTurn& turn) {
    if (++turn.started >= job(turn, turn.at).startable) {
      turn.at = jobs(turn).next(turn.at);
      turn.started = turn.ahead = 0;
      if (jobs(turn).at_end(turn.at)) return false;
      turn.first = job(turn, turn.at);
    }
    return true;
  }
  // Notes this as the reason why the turn's job must wait.
  void block(LineTurn& turn, const Blocked& why) {
    blocked.push_back(why);
    turn.blocked = static_cast<std::uint32_t>(blocked.size());
    partition(turn.partition).blocked = true;
  }
  // Why the first job of the turn's line must wait; null if it need not wait, or can never run.
  [[nodiscard]] const Blocked* why(const LineTurn& turn) const {
    return turn.blocked == 0 ? nullptr : &blocked[turn.blocked - 1];
  }
  void expect(const Reservation& reservation) {  // writes its start into the plan
    Expected expected{reservation.job, reservation.start, {}};
    for (const Share& s : reservation.shares) expected.nodes.push_back(NodeId{s.node});
    plan.expected.push_back(std::move(expected));
  }
  // Does the same for the job of the turn, which has the reservation; then the turn moves on.
  void tell(LineTurn& turn, Reservation& reservation) {
    expect(reservation);
    reservation.told = true;
    if (turn.at == *turn.head) turn.reserved = true;
    ++turn.ahead;
    advance(turn);
  }
};

}  // namespace gantry::sched
