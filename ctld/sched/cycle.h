// The parts of one plan in the making, shared by its steps: whose turn it is, what has been tried,
// and what the partitions may still reserve.
#pragma once

#include <queue>
#include <vector>

#include "ctld/sched/schedule.h"

namespace gantry::sched {

// One class in a plan: how far its jobs have been dealt with.
struct Turn {
  std::uint32_t class_index = 0;
  OrderedSlots::Cursor at;                   // the job whose turn it is
  std::uint32_t started = 0;                 // elements of that job (an array) dealt with
  std::optional<OrderedSlots::Cursor> head;  // the first that must wait; set = nothing fits now
  bool searched = false;                     // find_place() has been asked once
  bool reserved = false;                     // the head has a reservation
  ClassPlace place;                          // of the job whose turn it is
};

class Cycle {
 public:
  Cycle(Replica& replica, Instant now, const Policy& policy);
  ~Cycle();  // puts everything back
  Cycle(const Cycle&) = delete;
  Cycle& operator=(const Cycle&) = delete;

  // ---- eligible, priority: the class whose first job comes next; nullopt when none is left, or
  // the budget is spent, or it would be too deep behind the first blocked job.
  std::optional<Turn> next_turn();
  void again(const Turn& turn);  // has more jobs
  void close(const Turn& turn);  // its other jobs wait as well

  // ---- place now, backfill; reserve ahead. Each moves the turn to its next job when it succeeds.
  bool place_now(Turn& turn);
  bool reserve_ahead(Turn& turn);

  // ---- verdicts
  void estimate();  // expected starts of the first blocked jobs
  void explain();   // a verdict for every class that was looked at

  Plan take_plan() { return std::move(plan_); }

 private:
  struct PartitionState {
    std::uint32_t reservations = 0;  // made
    bool blocked = false;
    std::vector<std::uint32_t> started;  // jobs that are started whole; sorted by explain()
  };
  struct Failure {
    Demand demand;
    Instant until;
  };
  struct Taken {
    std::uint32_t node;
    Room room;
    std::vector<std::uint16_t> cpus;
  };
  struct Later {
    bool operator()(const Turn& a, const Turn& b) const { return b.place < a.place; }
  };

  [[nodiscard]] JobClass& cls(const Turn& t) { return r_.queue_.job_class(t.class_index); }
  [[nodiscard]] const Waiting& job(const Turn& t, OrderedSlots::Cursor at) {
    return r_.queue_[cls(t).jobs[at]];
  }
  PartitionState& partition(const Turn& t);
  bool advance(Turn& turn);  // to the next job or element; false at the end of the class
  Bits* hopeful(Turn& turn);
  // Has this plan already failed to place something that asks for no more?
  [[nodiscard]] bool known_to_fail(const JobClass& c) const;
  void remember_failure(const JobClass& c);
  std::nullopt_t no_more_turns();
  void start(Turn& turn, const std::vector<Share>& shares);
  Verdict explain_head(const Turn& turn);
  Verdict explain_waiting(const Turn& turn, OrderedSlots::Cursor at);

  Replica& r_;
  const Policy& policy_;
  Instant now_;
  Plan plan_;
  std::vector<Taken> taken_;
  std::vector<PartitionState> partitions_;  // by id
  std::set<ClassPlace>::const_iterator untouched_;
  std::priority_queue<Turn, std::vector<Turn>, Later> touched_;
  std::vector<Turn> closed_;
  std::vector<std::vector<Failure>> failures_;  // by node set; none asks for more than another
  std::vector<std::optional<Bits>> hopeful_;    // by class: nodes not yet found too small
  std::uint32_t behind_ = 0;                    // classes blocked so far
};

}  // namespace gantry::sched
