#include "ctld/sched/cycle/verdicts.h"

#include <algorithm>

#include <fmt/core.h>

#include "ctld/sched/place/place.h"

namespace gantry::sched {

void Verdicts::explain(std::span<const LineTurn> closed, const OfGroup& of_group) {
  if (!d_.policy.verdicts) return;
  const auto in_order = [this](std::uint32_t a, std::uint32_t b) {
    return before(d_.view.queue[a], d_.view.queue[b]);
  };
  for (auto& [id, p] : d_.partitions) std::sort(p.started.begin(), p.started.end(), in_order);
  constexpr std::uint32_t kNoRow = ~std::uint32_t{0};
  std::vector<Row> rows;
  std::vector<std::uint32_t> row_of(d_.view.queue.classes(), kNoRow);
  for (const LineTurn& turn : closed) {
    std::uint32_t& at = row_of[turn.class_index];
    if (at != kNoRow) {
      another_line(rows[at], turn, of_group);
      continue;
    }
    const JobClass& c = d_.cls(turn);
    Verdict head = of_head(turn, of_group);
    // If the class has only this line and its queue is unchanged, its other jobs got this verdict
    // before.
    const std::uint64_t changes = changes_of(turn);
    const bool known = changes != 0 && changes == c.told.changes && d_.policy.everything.us > 0 &&
                       c.told.head == turn.head_job.job;
    if (known && c.told.of_head == head) continue;
    at = static_cast<std::uint32_t>(rows.size());
    rows.push_back(
        {turn.class_index, turn.reserved, turn.head_job.job, std::move(head), {}, changes});
    Row& row = rows.back();
    if (known)
      row.of_rest = c.told.of_rest;
    else if (c.standing.verdict.reason != Reason::none)
      row.of_rest = c.standing.verdict;
    else if (const auto second = d_.jobs(turn).next(*turn.head); !d_.jobs(turn).at_end(second))
      row.of_rest = of_waiting(turn, d_.job(turn, second));
  }
  write(rows);
}

// Adds another user's line of the class; the first job of a line with a reservation becomes the
// class's first job.
void Verdicts::another_line(Row& row, const LineTurn& turn, const OfGroup& of_group) {
  const bool planned = !turn.reserved || row.reserved;
  if (row.of_rest.reason == Reason::none || !planned)
    row.of_rest = planned ? of_waiting(turn, turn.head_job) : row.of_head;
  if (planned) return;
  row.reserved = true;
  row.head = turn.head_job.job;
  row.of_head = of_head(turn, of_group);
}

// 0 if the verdict on the other jobs of the line does not follow from the partition's queue alone.
std::uint64_t Verdicts::changes_of(const LineTurn& turn) {
  const JobClass& c = d_.cls(turn);
  const bool alone = c.lines == 1 && c.standing.verdict.reason == Reason::none;
  if (!alone || !d_.partition(turn.partition).started.empty()) return 0;
  return d_.view.queue.partition(turn.partition).changes;
}

void Verdicts::write(std::vector<Row>& rows) {
  d_.plan.verdicts.reserve(rows.size());
  for (Row& row : rows) {
    JobClass& c = d_.view.queue.job_class(row.class_index);
    c.told.changes = row.changes;
    if (d_.policy.everything.us > 0 && c.told.head == row.head && c.told.of_head == row.of_head &&
        c.told.of_rest == row.of_rest)
      continue;
    c.told = {row.head, row.of_head, row.of_rest, row.changes};
    d_.plan.verdicts.push_back({row.head, std::move(row.of_head), std::move(row.of_rest)});
  }
}

Verdict Verdicts::of_head(const LineTurn& turn, const OfGroup& of_group) {
  JobClass& c = d_.cls(turn);
  if (c.key.het) return of_group(turn);
  if (c.standing.verdict.reason != Reason::none) return c.standing.verdict;
  if (const Reservation* own = book_.first_of(turn.head_job.job);
      own != nullptr && !own->leaving.empty())
    return {Reason::reclaiming, static_cast<std::int64_t>(own->leaving.size()), own->leave_by.us,
            ""};
  if (auto slices = slices_.explain(turn.head_job.job)) return *slices;
  if (auto blocked = of_blocked(turn)) return *blocked;
  if (!c.key.reservation.empty() && d_.view.windows.speak_for(c.key.reservation)) {
    const Window& own = *d_.view.windows.own();
    if (d_.now < own.from || d_.end_of(c) > own.until)
      return {Reason::reservation, 0, 0, c.key.reservation};
  }
  if (!Neighbours::none(d_.view.running, c) || c.demand.particular) {
    const auto neighbours = nodes_.neighbours_of(c, d_.view.queue.line(turn.line).share);
    for (const NodeChoice& choice : d_.view.eligible.flavors_of(c))
      if (auto v = explain_place(d_.view.grid, nodes_.nodes_for(c, choice), c,
                                 neighbours ? &*neighbours : nullptr))
        return *v;
  }
  if (auto plans = of_plans(turn)) return *plans;
  if (!turn.reserved && !book_.may_reserve(turn)) return of_waiting(turn, turn.head_job);
  if (const auto quota = quota_everywhere(c)) return of_quota(*quota);
  return {Reason::resources, usable(c), c.demand.min_nodes, ""};
}

// The verdict that comes from the quota, the tenant's number of jobs, or the reservation that the
// job names.
std::optional<Verdict> Verdicts::of_blocked(const LineTurn& turn) {
  const JobClass& c = d_.cls(turn);
  const Blocked* why = d_.why(turn);
  if (why == nullptr || why->by == Blocked::By::room) return std::nullopt;
  if (why->by == Blocked::By::reservation)
    return Verdict{Reason::reservation, 0, 0, c.key.reservation};
  if (why->by == Blocked::By::quota) return of_quota(why->fit);
  const std::uint32_t tenant = quota_.tenant_of(c);
  return Verdict{Reason::tenant_jobs, quota_.jobs_of(tenant),
                 *d_.view.tenancy->nodes[tenant].max_running, ""};
}

// The quota is the cause if it denies every flavor whose nodes could ever hold the class: then no
// freed node helps.
std::optional<QuotaFit> Verdicts::quota_everywhere(const JobClass& c) const {
  const std::uint32_t tenant = quota_.tenant_of(c);
  if (tenant == kNoIndex) return std::nullopt;
  std::optional<QuotaFit> first;
  for (const NodeChoice& choice : d_.view.eligible.flavors_of(c)) {
    if (!d_.view.eligible.can_ever_hold(c, choice, d_.view.grid)) continue;
    const QuotaFit fit = d_.view.charges.tree().fit(tenant, {choice.flavor, c.least});
    if (fit.fits) return std::nullopt;
    if (!first) first = fit;
  }
  return first;
}

Verdict Verdicts::of_quota(const QuotaFit& fit) {
  const QuotaCell& cell = *fit.cell;
  std::string what(kResourceTable[static_cast<std::size_t>(cell.resource)].name);
  if (cell.flavor != 0) what += " of " + d_.view.tenancy->flavors[cell.flavor].name;
  if (fit.tenant_limit) return {Reason::tenant_quota, fit.would_use, fit.limit, what};
  const std::int64_t used = d_.view.charges.tree().usage(cell.node, cell.flavor, cell.resource);
  return {Reason::cohort_quota, fit.would_use - used, fit.limit - used, what + borrowers(cell)};
}

// A list with the greatest borrowers first: ": red borrows 8, blue borrows 2".
const std::string& Verdicts::borrowers(const QuotaCell& cell) {
  constexpr std::size_t kMaxNamed = 3;
  const auto [at, made] = borrowers_.try_emplace({cell.node, cell.flavor, cell.resource});
  if (!made) return at->second;
  const QuotaTree& tree = d_.view.charges.tree();
  std::vector<std::pair<std::int64_t, std::string>> list;
  for (const std::uint32_t n : d_.view.charges.busy_below(cell.node)) {
    const std::int64_t own = tree.subtree(n, cell.flavor, cell.resource);
    const std::int64_t used = tree.usage(n, cell.flavor, cell.resource);
    if (used > own) list.emplace_back(own - used, d_.view.tenancy->nodes[n].name);
  }
  std::sort(list.begin(), list.end());
  for (std::size_t i = 0; i < std::min(kMaxNamed, list.size()); ++i)
    at->second += fmt::format("{} {} borrows {}", i == 0 ? ":" : ",", list[i].second,
                              amount_words(cell.resource, -list[i].first));
  return at->second;
}

std::uint32_t Verdicts::fitting(JobClass& c) {
  DemandNotes* own = notes(c);
  if (own != nullptr && own->fitting) return *own->fitting;
  const std::uint32_t count = count_fitting(d_.view.grid, d_.view.eligible.nodes_of(c), c);
  if (own != nullptr) own->fitting = count;
  return count;
}

// Like fitting(), but also fails if a node that the job names does not fit, because no other can
// replace it.
std::uint32_t Verdicts::usable(JobClass& c) {
  const auto missing = static_cast<std::uint32_t>(
      std::count_if(c.required.begin(), c.required.end(), [&](std::uint32_t n) {
        return !d_.view.grid.available(n) ||
               tasks_fitting(c.demand, d_.view.grid.room(n), d_.view.grid.free(n)) == 0;
      }));
  if (missing == 0) return fitting(c);
  return std::min(fitting(c), c.demand.min_nodes - std::min(missing, c.demand.min_nodes));
}

// True if the job would fit now if nothing were reserved.
bool Verdicts::has_room(JobClass& c) {
  if (c.demand.min_nodes == c.demand.max_nodes) return usable(c) >= c.demand.min_nodes;
  std::vector<Candidate> all;
  const Bits& nodes = d_.view.eligible.nodes_of(c);
  for (std::size_t w = 0; w < nodes.words(); ++w)
    any_in_word(nodes.word(w), w, [&](std::uint32_t n) {
      const std::uint32_t fits =
          d_.view.grid.available(n)
              ? tasks_fitting(c.demand, d_.view.grid.room(n), d_.view.grid.free(n))
              : 0;
      if (fits > 0)
        all.push_back({n, fits, std::binary_search(c.required.begin(), c.required.end(), n)});
      return false;
    });
  return choose_nodes(c.demand, all, static_cast<std::uint32_t>(c.required.size())).has_value();
}

// The verdict on a job that fits on free resources, but is kept off by a window or a reservation.
std::optional<Verdict> Verdicts::of_plans(const LineTurn& turn) {
  JobClass& c = d_.cls(turn);
  const JobId id = turn.head_job.job;
  DemandNotes* own = notes(c);
  // A verdict noted for another job with the same request may name this job's own reservation.
  const bool noted =
      own != nullptr && own->plans &&
      (own->plans->reason != Reason::planned || own->plans->subject != std::to_string(id.value()));
  if (noted) return own->plans->reason == Reason::none ? std::nullopt : own->plans;
  std::optional<Verdict> found;
  if (has_room(c) && d_.view.windows.speak_for(c.key.reservation)) {
    const Bits& nodes = d_.view.eligible.nodes_of(c);
    const Window* own_window = d_.view.windows.own();
    const auto elsewhere =
        [&](std::uint32_t n) {  // nodes outside the reservation that the job names
          return own_window != nullptr &&
                 std::find(own_window->nodes.begin(), own_window->nodes.end(), n) ==
                     own_window->nodes.end();
        };
    for (std::size_t w = 0; w < nodes.words() && !found; ++w)
      any_in_word(nodes.word(w), w, [&](std::uint32_t n) {
        if (elsewhere(n) || !d_.view.grid.available(n) ||
            tasks_fitting(c.demand, d_.view.grid.room(n), d_.view.grid.free(n)) == 0)
          return false;
        if (const Window* window = d_.view.windows.in(n, d_.now, d_.end_of(c)))
          found = Verdict{Reason::maintenance, window->from.us, 0, window->name};
        else if (const auto other = d_.view.timeline.reserved_in(n, d_.now, d_.end_of(c), id))
          found = Verdict{Reason::planned, 0, 0, std::to_string(other->value())};
        return found.has_value();
      });
  }
  if (own != nullptr) own->plans = found ? *found : Verdict{};
  return found;
}

Verdict Verdicts::of_waiting(const LineTurn& turn, const Waiting& w) {
  const auto& started = d_.partition(turn.partition).started;
  const auto gone =
      std::partition_point(started.begin(), started.end(),
                           [&](std::uint32_t s) { return before(d_.view.queue[s], w); }) -
      started.begin();
  const std::size_t front = d_.view.queue.in_front_of(w, d_.cls(turn).key.partition);
  // By fair share, a later job may precede it.
  return {Reason::priority, std::max<std::int64_t>(1, static_cast<std::int64_t>(front) - gone), 0,
          ""};
}

Verdicts::DemandNotes* Verdicts::notes(JobClass& c) {
  const auto id = nodes_.demand_id_of(c);
  if (!id) return nullptr;
  if (notes_.size() <= *id) notes_.resize(d_.left.requests.demand_ids());
  return &notes_[*id];
}

}  // namespace gantry::sched
