// The last steps of a plan: when blocked jobs may expect to start, and why each class waits.
#include <algorithm>
#include <queue>

#include <fmt/core.h>

#include "ctld/sched/cycle/cycle.h"
#include "ctld/sched/cycle/het.h"
#include "ctld/sched/place/place.h"

namespace gantry::sched {

// Going on as if every job got a reservation, in order. Nothing is decided by it: the starts of
// this plan are made, and nothing stays reserved: neither reasons nor the next plan know of it.
void Cycle::estimate() {
  std::sort(rekept_.begin(), rekept_.end());
  for (const JobId id : rekept_) {
    const auto of_job = promises_.find(id);
    if (of_job == promises_.end()) continue;
    for (Promise& p : of_job->second) {
      if (std::exchange(p.told, true)) continue;
      Expected expected{id, p.start, {}};
      for (const Share& s : p.shares) expected.nodes.push_back(NodeId{s.node});
      plan_.expected.push_back(std::move(expected));
    }
  }
  if (policy_.estimates == 0 || plan_.stats.budget_spent) return;
  plan_.estimated = true;
  const auto later = [this](const Turn& a, const Turn& b) {
    const auto pa = r_.queue_.partition(a.partition).priority;
    const auto pb = r_.queue_.partition(b.partition).priority;
    return pa != pb ? pa < pb : before(b.first, a.first);
  };
  std::priority_queue<Turn, std::vector<Turn>, decltype(later)> turns(later);
  for (const Turn& t : closed_)
    if (cls(t).standing.verdict.reason == Reason::none && !cls(t).key.het && !jobs(t).at_end(t.at))
      turns.push(t);
  std::vector<std::pair<JobId, Slot>> guesses;
  for (std::uint32_t n = 0; n < policy_.estimates && !turns.empty(); ++n) {
    Turn turn = turns.top();
    turns.pop();
    JobClass& c = cls(turn);
    const JobId id = job(turn, turn.at).job;
    if (const auto slot = earliest(c)) {
      r_.timeline_.reserve(c, slot->first, id);
      guesses.emplace_back(id, slot->first);
      if (plan_.expected.empty() || plan_.expected.back().job != id)
        plan_.expected.push_back({id, slot->first.start, {}});
      if (advance(turn)) turns.push(turn);
    }
  }
  for (auto g = guesses.rbegin(); g != guesses.rend(); ++g) {
    r_.timeline_.lift(g->first, g->second.start, g->second.shares);
    for (const Share& s : g->second.shares) r_.timeline_.clear(s.node);
  }
}

void Cycle::explain() {
  if (!policy_.verdicts) return;
  const auto in_order = [this](std::uint32_t a, std::uint32_t b) {
    return before(r_.queue_[a], r_.queue_[b]);
  };
  for (auto& [id, p] : partitions_) std::sort(p.started.begin(), p.started.end(), in_order);
  struct Row {
    std::uint32_t class_index = 0;
    bool reserved = false;  // its head has a plan
    JobId head;
    Verdict of_head, of_rest;
    std::uint64_t changes = 0;  // JobClass::Told
  };
  // 0: what the others of the line wait for follows from more than the queue of the partition.
  const auto changes_of = [this](const Turn& turn) -> std::uint64_t {
    const JobClass& c = cls(turn);
    const bool alone = c.lines == 1 && c.standing.verdict.reason == Reason::none;
    if (!alone || !partition(turn.partition).started.empty()) return 0;
    return r_.queue_.partition(turn.partition).changes;
  };
  constexpr std::uint32_t kNoRow = ~std::uint32_t{0};
  std::vector<Row> rows;
  std::vector<std::uint32_t> row_of(r_.queue_.classes(), kNoRow);
  for (const Turn& turn : closed_) {
    std::uint32_t& at = row_of[turn.class_index];
    if (at != kNoRow) {  // another user's line; the one with a plan speaks for the class's head
      Row& row = rows[at];
      const bool planned = !turn.reserved || row.reserved;
      if (row.of_rest.reason == Reason::none || !planned)
        row.of_rest = planned ? explain_waiting(turn, turn.head_job) : row.of_head;
      if (!planned) {
        row.reserved = true;
        row.head = turn.head_job.job;
        row.of_head = explain_head(turn);
      }
      continue;
    }
    const JobClass& c = cls(turn);
    Verdict of_head = explain_head(turn);
    // What the other jobs of its only line wait for was told, and their queue is what it was.
    const std::uint64_t changes = changes_of(turn);
    const bool known = changes != 0 && changes == c.told.changes && policy_.everything.us > 0 &&
                       c.told.head == turn.head_job.job;
    if (known && c.told.of_head == of_head) continue;
    at = static_cast<std::uint32_t>(rows.size());
    rows.push_back(
        {turn.class_index, turn.reserved, turn.head_job.job, std::move(of_head), {}, changes});
    Row& row = rows.back();
    if (known)
      row.of_rest = c.told.of_rest;
    else if (c.standing.verdict.reason != Reason::none)
      row.of_rest = c.standing.verdict;
    else if (const auto second = jobs(turn).next(*turn.head); !jobs(turn).at_end(second))
      row.of_rest = explain_waiting(turn, job(turn, second));
  }
  plan_.verdicts.reserve(rows.size());
  for (Row& row : rows) {
    JobClass& c = r_.queue_.job_class(row.class_index);
    c.told.changes = row.changes;
    if (policy_.everything.us > 0 && c.told.head == row.head && c.told.of_head == row.of_head &&
        c.told.of_rest == row.of_rest)
      continue;
    c.told = {row.head, row.of_head, row.of_rest, row.changes};
    plan_.verdicts.push_back({row.head, std::move(row.of_head), std::move(row.of_rest)});
  }
}

Verdict Cycle::explain_head(const Turn& turn) {
  JobClass& c = cls(turn);
  if (c.key.het) return HetGroup(*this, turn).explain(turn);
  if (c.standing.verdict.reason != Reason::none) return c.standing.verdict;
  if (const auto of_job = promises_.find(turn.head_job.job);
      of_job != promises_.end() && !of_job->second.empty() && !of_job->second[0].leaving.empty())
    return {Reason::reclaiming, static_cast<std::int64_t>(of_job->second[0].leaving.size()),
            of_job->second[0].leave_by.us, ""};
  if (auto slices = explain_slices(turn.head_job.job)) return *slices;
  if (turn.blocked > 0) {
    const Blocked& why = blocked_[turn.blocked - 1];
    if (why.by == Blocked::By::reservation) return {Reason::reservation, 0, 0, c.key.reservation};
    if (why.by == Blocked::By::tenant_jobs)
      return {Reason::tenant_jobs, jobs_of_tenant(tenant_of(c)),
              *r_.tenancy_->nodes[tenant_of(c)].max_running, ""};
    if (why.by == Blocked::By::quota) return explain_quota(why.fit);
  }
  if (!c.key.reservation.empty() && r_.timeline_.speak_for(c.key.reservation)) {
    const Window& own = *r_.timeline_.own_window();
    if (now_ < own.from || end_of(c) > own.until)
      return {Reason::reservation, 0, 0, c.key.reservation};
  }
  if (!Neighbours::none(r_.running_, c) || c.demand.particular) {
    const auto neighbours = neighbours_of(c, r_.queue_.line(turn.line).share);
    for (const NodeChoice& choice : r_.eligible_.flavors_of(c))
      if (auto v =
              explain_place(r_.grid_, nodes_for(c, choice), c, neighbours ? &*neighbours : nullptr))
        return *v;
  }
  if (auto plans = explain_plans(turn)) return *plans;
  if (!turn.reserved && !may_reserve(turn)) return explain_waiting(turn, turn.head_job);
  if (const auto quota = quota_everywhere(c)) return explain_quota(*quota);
  return {Reason::resources, fitting(c), c.demand.min_nodes, ""};
}

// Every flavor whose nodes could ever hold it is out of its tenant's reach: no node that becomes
// free helps.
std::optional<QuotaFit> Cycle::quota_everywhere(const JobClass& c) const {
  const std::uint32_t tenant = tenant_of(c);
  if (tenant == kNoIndex) return std::nullopt;
  std::optional<QuotaFit> first;
  for (const NodeChoice& choice : r_.eligible_.flavors_of(c)) {
    if (!r_.eligible_.can_ever_hold(c, choice, r_.grid_)) continue;
    const QuotaFit fit = r_.charges_.tree().fit(tenant, {choice.flavor, c.least});
    if (fit.fits) return std::nullopt;
    if (!first) first = fit;
  }
  return first;
}

// The tenant's own limit, or what is left to borrow and who has borrowed.
Verdict Cycle::explain_quota(const QuotaFit& fit) {
  const QuotaCell& cell = *fit.cell;
  std::string what(kResourceTable[static_cast<std::size_t>(cell.resource)].name);
  if (cell.flavor != 0) what += " of " + r_.tenancy_->flavors[cell.flavor].name;
  if (fit.tenant_limit) return {Reason::tenant_quota, fit.would_use, fit.limit, what};
  const std::int64_t used = r_.charges_.tree().usage(cell.node, cell.flavor, cell.resource);
  return {Reason::cohort_quota, fit.would_use - used, fit.limit - used, what + borrowers(cell)};
}

// The greatest first: ": red borrows 8, blue borrows 2".
const std::string& Cycle::borrowers(const QuotaCell& cell) {
  constexpr std::size_t kMaxNamed = 3;
  const auto [at, made] = borrowers_.try_emplace({cell.node, cell.flavor, cell.resource});
  if (!made) return at->second;
  const QuotaTree& tree = r_.charges_.tree();
  std::vector<std::pair<std::int64_t, std::string>> list;
  for (const std::uint32_t n : r_.charges_.busy_below(cell.node)) {
    const std::int64_t own = tree.subtree(n, cell.flavor, cell.resource);
    const std::int64_t used = tree.usage(n, cell.flavor, cell.resource);
    if (used > own) list.emplace_back(own - used, r_.tenancy_->nodes[n].name);
  }
  std::sort(list.begin(), list.end());
  for (std::size_t i = 0; i < std::min(kMaxNamed, list.size()); ++i)
    at->second += fmt::format("{} {} borrows {}", i == 0 ? ":" : ",", list[i].second,
                              amount_words(cell.resource, -list[i].first));
  return at->second;
}

std::uint32_t Cycle::fitting(JobClass& c) {
  KindNotes* own = notes(c);
  if (own != nullptr && own->fitting) return *own->fitting;
  const std::uint32_t count = count_fitting(r_.grid_, r_.eligible_.nodes_of(c), c);
  if (own != nullptr) own->fitting = count;
  return count;
}

// Does it fit on what is free, and is kept off by a window or by a plan?
// Would the job fit now, if nothing were promised?
bool Cycle::has_room(JobClass& c) {
  if (c.demand.min_nodes == c.demand.max_nodes) return fitting(c) >= c.demand.min_nodes;
  std::vector<Candidate> all;
  const Bits& nodes = r_.eligible_.nodes_of(c);
  for (std::size_t w = 0; w < nodes.words(); ++w)
    any_in_word(nodes.word(w), w, [&](std::uint32_t n) {
      const std::uint32_t fits =
          r_.grid_.available(n) ? tasks_fitting(c.demand, r_.grid_.room(n), r_.grid_.free(n)) : 0;
      if (fits > 0)
        all.push_back({n, fits, std::binary_search(c.required.begin(), c.required.end(), n)});
      return false;
    });
  return choose_nodes(c.demand, all, static_cast<std::uint32_t>(c.required.size())).has_value();
}

std::optional<Verdict> Cycle::explain_plans(const Turn& turn) {
  JobClass& c = cls(turn);
  const JobId id = turn.head_job.job;
  KindNotes* own = notes(c);
  // What is noted of another job of the kind may be the plan of this one.
  const bool noted =
      own != nullptr && own->plans &&
      (own->plans->reason != Reason::planned || own->plans->subject != std::to_string(id.value()));
  if (noted) return own->plans->reason == Reason::none ? std::nullopt : own->plans;
  std::optional<Verdict> found;
  if (has_room(c) && r_.timeline_.speak_for(c.key.reservation)) {
    const Bits& nodes = r_.eligible_.nodes_of(c);
    for (std::size_t w = 0; w < nodes.words() && !found; ++w)
      any_in_word(nodes.word(w), w, [&](std::uint32_t n) {
        if (!r_.grid_.available(n) ||
            tasks_fitting(c.demand, r_.grid_.room(n), r_.grid_.free(n)) == 0)
          return false;
        if (const Window* window = r_.timeline_.window_in(n, now_, end_of(c)))
          found = Verdict{Reason::maintenance, window->from.us, 0, window->name};
        else if (const auto other = r_.timeline_.promised_in(n, now_, end_of(c), id))
          found = Verdict{Reason::planned, 0, 0, std::to_string(other->value())};
        return found.has_value();
      });
  }
  if (own != nullptr) own->plans = found ? *found : Verdict{};
  return found;
}

// How many stand in front, without those that this plan starts.
Verdict Cycle::explain_waiting(const Turn& turn, const Waiting& w) {
  const auto& started = partition(turn.partition).started;
  const auto gone = std::partition_point(started.begin(), started.end(),
                                         [&](std::uint32_t s) { return before(r_.queue_[s], w); }) -
                    started.begin();
  const std::size_t front = r_.queue_.in_front_of(w, cls(turn).key.partition);
  // By fair share somebody may stand in front who came later.
  return {Reason::priority, std::max<std::int64_t>(1, static_cast<std::int64_t>(front) - gone), 0,
          ""};
}

}  // namespace gantry::sched
