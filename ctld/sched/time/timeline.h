// The timeline: what is free when, by the limits of running jobs and by the plans made so far.
//
// It is exact, without time slots: running jobs are kept in the order of their ends, and a node on
// which a plan has reserved something carries a few checkpoints: what is left from each
// reservation's start on. Between checkpoints free resources only grow, so the least over a span is
// that at its start and at the checkpoints inside it. A search for the earliest start walks along
// the ends in order and looks only at nodes where something is released; a job that fits soon costs
// few steps.
//
// Reservations name particular nodes and bind every job that uses those nodes, whatever the
// partition. They last for one plan: begin() forgets them; reservations that are kept for longer
// (reservations.h) are entered again at the beginning of the next plan.
//
// Windows close nodes (windows.h). Every answer is for the job for which Windows::speak_for() was
// called.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "ctld/sched/bits.h"
#include "ctld/sched/nodes/running.h"
#include "ctld/sched/queue/queue.h"
#include "ctld/sched/time/walk.h"
#include "ctld/sched/time/windows.h"

namespace gantry::sched {

class Timeline {
 public:
  // A job past its limit will end soon: it is assumed to end this long from now.
  static constexpr Duration kOverdue = seconds(1);
  static constexpr Instant kNever{std::numeric_limits<std::int64_t>::max()};

  Timeline(const Grid& grid, const Running& running, Windows& windows)
      : grid_(grid), running_(running), windows_(windows) {}

  // Begins a plan without reservations; answers are for jobs that name no window.
  void begin(Instant now);
  // Like begin(), but the reservations stay; the caller removes those on nodes that have changed.
  void resume(Instant now);
  void clear(std::uint32_t node);  // as if nothing was ever reserved, if no reservation is left
  template <class F>
  void each_reserved(std::uint32_t node,
                     F&& f) const {  // calls f(job) for each job with a reservation on the node
    if (reserved_.test(node))
      for (const Held& r : ahead_[node].reservations) f(r.job);
  }
  [[nodiscard]] Instant now() const { return now_; }

  [[nodiscard]] bool any_reserved() const { return !reserved_nodes_.empty(); }
  [[nodiscard]] std::uint64_t reserved_word(std::size_t w) const { return reserved_.word(w); }

  // How many tasks fit on the node over [from, until), if `room` is free there at `from`, not
  // counting reservations. Later ends of running jobs are not needed: they only add room.
  [[nodiscard]] std::uint32_t fits(std::uint32_t node, const Demand& demand, Instant from,
                                   Instant until, const Room& room) const;
  // The same as fits(...) >= tasks, but cheaper.
  [[nodiscard]] bool holds(std::uint32_t node, const Demand& demand, Instant from, Instant until,
                           const Room& room, std::uint32_t tasks) const {
    return may_fit_less(node) ? fits(node, demand, from, until, room) >= tasks
                              : sched::holds(demand, grid_.room(node), room, tasks);
  }
  // The start time after which fits() may return less for the same room; nullopt if there is none.
  [[nodiscard]] std::optional<Instant> same_until(std::uint32_t node, Instant from,
                                                  Instant until) const;

  // Notes that this plan starts a job now; the grid has the start already.
  void started(const Demand& demand, const std::vector<Share>& shares,
               std::optional<Instant> until);

  // The earliest start after now, and not before `from`, at which the class's next job fits without
  // delaying a reservation; nullopt if the known ends never make room, or not before `before`.
  // `steps` grows by the number of ends examined.
  std::optional<Slot> earliest(const JobClass& cls, const Bits& allowed, Instant from,
                               std::uint64_t& steps, Instant before = kNever);
  void reserve(const JobClass& cls, const Slot& slot, JobId job);
  // reserve() for a start that was found in an earlier plan; returns false if it does not fit any
  // more.
  bool keep(const JobClass& cls, JobId job, Instant start, const std::vector<Share>& shares);
  void lift(JobId job, Instant start, const std::vector<Share>& shares);  // removes it again

  // Notes that a running job will leave by `by` and not at its limit; call it before
  // Running::set_end(). moved() with the times exchanged undoes it.
  void moved(const Placement& placement, Instant by, std::optional<Instant> limit);

  // The free resources of the node at a time, by the limits of jobs, before reservations are
  // subtracted.
  [[nodiscard]] Room room_at(std::uint32_t node, Instant at) const;
  // A job, other than `but`, that has reserved something of the node for a part of [from, until).
  [[nodiscard]] std::optional<JobId> reserved_in(std::uint32_t node, Instant from, Instant until,
                                                 JobId but) const;

  static Instant end_of(Instant start, const std::optional<Duration>& limit);

 private:
  struct Held {
    JobId job;
    Instant from, until;
    Room room;
    std::uint32_t tasks = 0;  // distinguishes two elements of an array that begin at the same time
  };
  struct Checkpoint {
    Instant at;
    Room spare;  // free then, without running jobs and reservations
  };
  struct Ahead {
    std::vector<Held> reservations;
    std::vector<Checkpoint> checkpoints;  // by time
  };
  [[nodiscard]] Room spare_at(const Ahead& ahead, Instant at, Room room) const;
  // True if a reservation or a window may limit the node at some time.
  [[nodiscard]] bool may_fit_less(std::uint32_t node) const {
    return reserved_.test(node) || windows_.closed(node);
  }
  Ahead& ahead_of(std::uint32_t node);
  static void take_off(Checkpoint& point, const Room& need);
  void sort_freed();
  void fit_grid();

  const Grid& grid_;
  const Running& running_;
  Windows& windows_;
  Instant now_{};
  Bits reserved_;
  std::vector<std::uint32_t> reserved_nodes_;
  std::vector<Ahead> ahead_;  // by node; empty except for reserved nodes
  std::vector<Freed> freed_;  // the first sorted_freed_ are sorted by time, then node
  std::size_t sorted_freed_ = 0;
  std::vector<Freed> started_;  // what jobs started by this plan release
  WalkNotes notes_;
};

}  // namespace gantry::sched
