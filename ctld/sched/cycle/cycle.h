// One plan in the making: whose turn it is, what has been tried, what may still be reserved.
#pragma once
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "ctld/sched/cycle/in_vain.h"
#include "ctld/sched/cycle/schedule.h"
#include "ctld/sched/gpu/mig_plan.h"
#include "ctld/sched/nodes/neighbours.h"
#include "ctld/sched/queue/order.h"

namespace gantry::sched {

struct HeldQuota;  // preempt.h
struct HeldRoom;   // preempt.h
struct VictimSet;  // preempt.h
class Cycle {
 public:
  Cycle(Replica& replica, Instant now, const Policy& policy);
  ~Cycle();  // puts everything back
  Cycle(const Cycle&) = delete;
  Cycle& operator=(const Cycle&) = delete;

  // ---- in order: the line whose first job comes next; nullopt when none is left, or the budget is
  // spent, or it would be too deep behind the first blocked job.
  std::optional<Turn> next_turn();
  void again(const Turn& turn);  // has more jobs
  void close(const Turn& turn);  // its other jobs wait as well

  // ---- place now, make room, reserve ahead. Each moves the turn to its next job when it succeeds.
  bool place_now(Turn& turn);
  bool make_room(Turn& turn);
  bool reserve_ahead(Turn& turn);

  void plan_slices();  // slices.cc: which GPUs are kept for jobs that wait for slices
  // ---- verdicts
  void estimate();  // expected starts of the first blocked jobs
  void explain();   // a verdict for every class that was looked at

  Plan take_plan();  // and keeps its promises

 private:
  friend class HetGroup;  // het.h
  struct PartitionState {
    std::uint32_t reservations = 0;  // made or kept
    std::uint32_t starts = 0;
    bool blocked = false;
    bool begun = false;                  // has had a turn
    bool passed_over = false;            // before all its lines had one
    std::vector<std::uint32_t> started;  // jobs that are started whole; sorted by explain()
  };
  struct Taken {
    std::uint32_t node;
    Room room;
    std::vector<std::uint16_t> cpus;
    std::vector<GpuGrant> devices;
    std::vector<GresGrant> gres;
    PartitionId tenant;
    std::optional<Instant> until;
    [[nodiscard]] Things things() const { return {cpus, devices, gres, tenant}; }
  };
  struct Charged {  // by a start of this plan, or by a promise that waits for jobs to leave
    JobId job;
    std::uint32_t tenant;
    QuotaNeed need;
    std::optional<Instant> ends_by;
  };
  struct Ending {
    Instant at;
    JobId job;
    std::uint32_t tenant;
  };
  struct Asked {  // to leave
    JobId victim;
    std::optional<Instant> limit;
    Instant by;
  };
  struct KindNotes {                       // what this plan knows of a kind
    std::optional<std::uint32_t> fitting;  // nodes, see count_fitting()
    std::optional<Verdict> plans;          // explain_plans(); reason none: nothing is in the way
  };

  [[nodiscard]] JobClass& cls(const Turn& t) { return r_.queue_.job_class(t.class_index); }
  [[nodiscard]] const OrderedSlots& jobs(const Turn& t) { return r_.queue_.line(t.line).jobs; }
  [[nodiscard]] const Waiting& job(const Turn& t, OrderedSlots::Cursor at) {
    return r_.queue_[jobs(t)[at]];
  }
  PartitionState& partition(std::uint32_t id);
  [[nodiscard]] Place place(const Turn& t) const {
    return {r_.queue_.partition(t.partition).priority, t.first.rank};
  }
  bool advance(Turn& turn);  // to the next job or element; false at the end of the line
  bool settle(Turn& turn);   // on a job that was not started ahead of its turn
  [[nodiscard]] Instant end_of(const JobClass& c) const {
    return Timeline::end_of(now_, c.key.time_limit);
  }

  // ---- claim.cc: quota
  [[nodiscard]] Claim claim(std::uint32_t partition, std::uint32_t class_index);
  [[nodiscard]] std::uint32_t tenant_of(const JobClass& c) const;
  [[nodiscard]] std::uint32_t jobs_of_tenant(std::uint32_t tenant) const;
  [[nodiscard]] bool has_job_left(std::uint32_t tenant) const;
  [[nodiscard]] std::vector<QuotaNeed> needs_of(const JobClass& c,
                                                const std::vector<Share>& shares) const;
  [[nodiscard]] QuotaFit fit(std::uint32_t tenant, const std::vector<QuotaNeed>& needs) const;
  void charge(const Waiting& w, const JobClass& c, const std::vector<QuotaNeed>& needs);
  void uncharge(JobId job);
  // When the quota will do, going by the limits.
  std::optional<Instant> quota_ready(std::uint32_t tenant, const QuotaNeed& need);
  std::optional<Instant> quota_ready(std::uint32_t tenant, const QuotaNeed& need, QuotaFit fit,
                                     std::uint32_t top);
  const std::vector<Ending>& ends_below(std::uint32_t node);

  // ---- cycle.cc: places
  std::optional<Blocked> try_now(Turn& turn);  // nullopt: it starts
  std::optional<Blocked> try_before_others(Turn& turn);
  std::optional<Blocked> try_choice(Turn& turn, std::uint32_t tenant, const NodeChoice& choice);
  // Whom it may have beside it, if that is to be asked.
  [[nodiscard]] std::optional<Neighbours> neighbours_of(const JobClass& c,
                                                        std::uint32_t user) const;
  GpuScores* scores();  // null: no node has GPUs
  [[nodiscard]] const Bits& nodes_for(const JobClass& c, const NodeChoice& choice);
  Bits* hopeful(Turn& turn, const NodeChoice& choice);
  // See kinds.h; kNone: nothing is to be noted about it. `choice`: one of flavors_of(c).
  std::uint32_t wish(JobClass& c, const NodeChoice& choice);
  KindNotes* notes(JobClass& c);  // null: none
  void note_step(const Turn& turn);
  void no_more_turns();
  void start(JobClass& c, std::uint32_t slot, const std::vector<Share>& shares);

  // ---- react.cc: what the last plan has left (memory.h)
  void begin_anew();
  void order(const std::vector<std::uint32_t>& partitions, std::optional<Order::Passing> passing);
  void begin_after_changes();
  std::vector<Promise> take_changed_promises(std::set<std::uint32_t>& nodes);
  void keep_where_they_are(std::vector<Promise> promises);
  [[nodiscard]] bool keep_there(const Promise& promise);
  void sort_kept();
  void stands(Promise promise);                           // it is in the timeline
  [[nodiscard]] std::set<std::uint32_t> lines_to_deal();  // exchange.cc
  void deal_out(std::vector<Promise>& promises, const std::set<std::uint32_t>& lines);
  bool reopen(std::uint32_t node);  // true: some wish that has failed could be met there now
  [[nodiscard]] bool could(const Wish& wish, std::uint32_t node) const;
  [[nodiscard]] bool could_start(std::uint32_t partition, std::uint32_t wish, std::int32_t rank);
  [[nodiscard]] bool could_start(std::uint32_t partition);  // any of its lines
  bool pass_over(std::uint32_t partition);
  void look_from(Place place);  // promises of lower ones are out of the way until their turn
  void loosened(const Promise& promise);  // it is not in force any more, or somewhere else
  void hold_over(const JobClass& c, const Promise& promise, const std::vector<Share>& place);
  void wake_behind(const Promise& promise, const std::vector<Share>& place);
  void remember_waits();  // of the lines that are closed
  void note_wait(const Turn& turn);

  // ---- ahead.cc: promises
  void keep_promises(std::uint32_t priority, std::int32_t rank);  // of these and higher ones
  void keep(Promise promise);
  bool put_back(Promise& promise, const JobClass& c);
  bool start_promised(const Promise& promise, JobClass& c, std::uint32_t slot);
  bool may_start_later(Promise& promise, const JobClass& c);
  void refresh(Promise& promise);
  [[nodiscard]] bool may_use(const JobClass& c, const std::vector<Share>& shares) const;
  Promise* promise_of(const Turn& turn);  // null: none
  void lift(const Promise& promise);
  [[nodiscard]] std::optional<std::pair<Slot, std::uint32_t>> earliest(
      const JobClass& c, Instant before = Timeline::kNever);
  [[nodiscard]] bool may_reserve(const Turn& turn);
  Promise& remember(const Turn& turn, Promise promise);
  void tell(Turn& turn, Promise& promise);

  // ---- room.cc: preemption
  struct Taking;                                 // what a search for victims has found
  std::optional<Asker> asker(const Turn& turn);  // nullopt: it is alone of its kind
  [[nodiscard]] bool may_ask(const Turn& turn);
  // Within what is guaranteed to its tenant, or to a cohort that contains it.
  [[nodiscard]] bool is_guaranteed(const JobClass& c, std::uint32_t flavor) const;
  std::optional<Taking> victims_for(const Turn& turn);
  // With all of the set gone, the job would still be above the limit of its own tenant.
  [[nodiscard]] bool exceeds_own_limit(const JobClass& c, const VictimSet& set);
  bool take_from(Turn& turn, const Taking& taking);
  void look_at_starts();
  bool start_on(Turn& turn, const Taking& taking);
  bool promise_room(Turn& turn, const Taking& taking, Instant free_by);
  [[nodiscard]] std::vector<JobId> leaving_for(const VictimSet& set) const;
  void ask_to_leave(JobId victim, Instant by);
  void take_back_asking();
  // Promises that a claim goes before, where they are in its way: taken out, or put back.
  std::vector<Promise> break_promises(JobId but, const std::vector<Share>& shares, Instant from,
                                      Instant until);
  void mend_promises(std::vector<Promise> broken);
  std::vector<HeldRoom> promised_room(JobId but, bool guaranteed, Instant from, Instant until);
  std::vector<HeldQuota> claimed_quota();
  // ---- slices.cc
  void restore_slices();
  void note_slices(const Turn& turn);
  [[nodiscard]] bool waits_for_slices(const JobClass& c) const;
  [[nodiscard]] std::vector<MigUsed> used_on(std::uint32_t node, std::size_t gpu) const;
  [[nodiscard]] MigView view_slices(
      std::vector<std::pair<std::uint32_t, std::size_t>>& places) const;
  void add_wants(const JobClass& c, MigView& view) const;
  void ask_slices(MigView& view);
  [[nodiscard]] std::optional<Verdict> explain_slices(JobId job) const;
  Verdict explain_head(const Turn& turn);
  Verdict explain_waiting(const Turn& turn, const Waiting& w);
  Verdict explain_quota(const QuotaFit& fit);
  [[nodiscard]] std::optional<QuotaFit> quota_everywhere(const JobClass& c) const;
  const std::string& borrowers(const QuotaCell& cell);
  std::optional<Verdict> explain_plans(const Turn& turn);
  std::uint32_t fitting(JobClass& c);
  bool has_room(JobClass& c);
  Replica& r_;
  const Policy& policy_;
  Instant now_;
  Plan plan_;
  bool quota_on_ = false;
  std::vector<Taken> taken_;
  std::vector<Charged> charged_;
  std::unordered_map<std::uint32_t, PartitionState> partitions_;    // by id
  std::unordered_map<std::uint32_t, std::uint32_t> tenant_starts_;  // of this plan, by quota node
  std::optional<Order> order_;
  std::vector<Turn> closed_;
  std::vector<Blocked> blocked_;                     // Turn::blocked counts from 1
  std::vector<KindNotes> kinds_;                     // by kind
  std::unordered_map<std::uint64_t, Bits> hopeful_;  // by class and nodes: not yet found too small
  Bits in_window_;                                   // scratch of nodes_for()
  std::uint32_t behind_ = 0;                         // lines blocked so far
  std::vector<Turn> slice_waiters_;                  // lines blocked for want of slices, in order
  std::vector<Promise> kept_;  // of former plans, not looked at yet: the last one comes first
  Promises& promises_;         // in force
  std::map<JobId, std::uint32_t> started_ahead_;  // elements
  std::vector<Asked> asked_;
  std::set<std::uint32_t> in_vain_;  // classes: searched for victims, none were found
  InVain alike_in_vain_;
  bool searches_cut_ = false;                                       // there were more to make
  std::unordered_map<std::uint32_t, std::vector<Ending>> endings_;  // by quota node
  std::map<std::tuple<std::uint32_t, std::uint32_t, Resource>, std::string> borrowers_;  // by cell
  std::uint32_t reservations_ = 0, replans_ = 0, searches_ = 0;
  bool everything_ = true;  // or only what is awake
  bool cut_ = false;        // something may be possible now that this plan has passed over
  bool again_ = false;      // and something that this plan could not use
  std::vector<Promise> held_over_;
  std::vector<std::uint32_t> promised_;    // reservations at the beginning, by partition
  std::set<std::uint32_t> woken_;          // partitions that are not awake for a wish alone
  std::map<Place, std::uint32_t> places_;  // promises in force that are left as they were
  std::set<JobId> lowered_;                // by look_from()
  std::vector<JobId> rekept_;              // by keep()
};

}  // namespace gantry::sched
