#include "ctld/sched/cycle/victim_search.h"

#include <algorithm>

namespace gantry::sched {
namespace {

constexpr Duration kLongPause = seconds(5);     // pause if a plan reached its limit of searches
constexpr std::uint64_t kSearchAttempts = 100;  // Policy::attempts that a search counts as

}  // namespace

std::optional<Asker> VictimSearch::asker(const LineTurn& turn) {
  JobClass& c = d_.cls(turn);
  const auto id = nodes_.demand_id_of(c);
  if (!id || nodes_.neighbours_of(c, d_.view.queue.line(turn.line).share)) return std::nullopt;
  return Asker{quota_.tenant_of(c), *id, c.key.priority_class};
}

bool VictimSearch::may_ask(const LineTurn& turn) {
  if (!d_.policy.preemption || !turn.head || d_.why(turn) == nullptr) return false;
  JobClass& c = d_.cls(turn);
  if (c.standing.verdict.reason != Reason::none || !c.key.reservation.empty()) return false;
  const Blocked& why = *d_.why(turn);
  if (why.by != Blocked::By::room && why.by != Blocked::By::quota) return false;
  if (why.by == Blocked::By::quota && why.fit.tenant_limit) return false;
  const Reservation* reservation = book_.of(turn);
  if (reservation != nullptr && (reservation->claimed || reservation->start <= d_.now + kKillTime))
    return false;
  if (in_vain_.contains(turn.class_index)) return false;
  const auto last = d_.left.in_vain.find(turn.class_index);
  if (last == d_.left.in_vain.end() || d_.now < last->second) return true;
  return d_.now - last->second >= (d_.left.searches_cut ? kLongPause : d_.policy.search_pause);
}

std::optional<Taking> VictimSearch::find(const LineTurn& turn) {
  const auto limit = d_.cls(turn).key.least_limit();
  const auto alike = asker(turn);
  if (alike && alike_in_vain_.knows(*alike, limit)) {
    in_vain_.insert(turn.class_index);
    return std::nullopt;
  }
  auto found = search(turn);
  if (alike && !found && in_vain_.contains(turn.class_index)) alike_in_vain_.note(*alike, limit);
  return found;
}

void VictimSearch::failed(std::uint32_t class_index) {
  if (in_vain_.contains(class_index)) d_.left.in_vain[class_index] = d_.now;
}

std::optional<Taking> VictimSearch::search(const LineTurn& turn) {
  JobClass& c = d_.cls(turn);
  const auto& classes = d_.view.tenancy->classes;
  const bool by_class =
      c.key.priority_class < classes.size() && classes[c.key.priority_class].preempts;
  const bool by_share = d_.policy.balance.us > 0 && quota_.tenant_of(c) != kNoIndex;
  // The job starts at the latest when its victims have left, and ends by `until`. Resources that
  // others have reserved for a part of that time are not used.
  Duration grace{};
  for (const ClassView& v : classes)
    if (v.preemptible) grace = std::max(grace, v.grace);
  const Instant until = Timeline::end_of(d_.now + grace + kKillTime, c.key.least_limit());
  std::optional<std::vector<HeldQuota>>
      claimed;  // filled only when needed, because most searches find no victims
  std::optional<Taking> best;
  for (const NodeChoice& choice : d_.view.eligible.flavors_of(c)) {
    const bool guaranteed = quota_.is_guaranteed(c, choice.flavor);
    if (!guaranteed && !by_class && !by_share) continue;
    if (searches_++ >= d_.policy.searches) {
      cut_ = true;
      break;
    }
    d_.plan.stats.attempts += kSearchAttempts;
    in_vain_.insert(turn.class_index);
    if (!claimed) claimed = claimed_quota();
    const auto held = room_of_others(turn.first.job, guaranteed, d_.now, until);
    auto set = find_victims({.grid = d_.view.grid,
                             .running = d_.view.running,
                             .eligible = d_.view.eligible,
                             .quota = d_.view.charges.tree(),
                             .cls = c,
                             .choice = choice,
                             .need = {choice.flavor, c.least},
                             .now = d_.now,
                             .held = held,
                             .claimed = *claimed,
                             .user = d_.view.queue.line(turn.line).share,
                             .reclaim = guaranteed,
                             .by_class = by_class,
                             .balance = by_share ? d_.policy.balance : Duration{}});
    if (!set || exceeds_own_limit(c, *set)) continue;
    const auto loss = [](const VictimSet& s) { return std::pair{s.highest_class, s.cost}; };
    if (!best || loss(*set) < loss(best->set)) best = Taking{std::move(*set), choice, guaranteed};
  }
  return best;
}

// The search uses the least that the job may be charged. On nodes where the job takes more (it has
// them alone, or its tasks are spread over more of them) it could exceed the limit of its own
// tenant when all victims have left: these would leave in vain, again and again.
bool VictimSearch::exceeds_own_limit(const JobClass& c, const VictimSet& set) {
  const std::uint32_t tenant = quota_.tenant_of(c);
  if (tenant == kNoIndex) return false;
  QuotaTree& tree = d_.view.charges.tree();
  const std::vector<JobId> leaving = leaving_for(set);
  for (const JobId job : leaving)
    for (const QuotaNeed& need : d_.view.charges.needs_of(job))
      tree.remove(d_.view.charges.tenant_of(job), need);
  const QuotaFit exact = quota_.fit(tenant, quota_.needs_of(c, set.shares));
  for (const JobId job : leaving)
    for (const QuotaNeed& need : d_.view.charges.needs_of(job))
      tree.add(d_.view.charges.tenant_of(job), need);
  return !exact.fits && exact.tenant_limit;
}

std::vector<HeldRoom> VictimSearch::room_of_others(JobId but, bool guaranteed, Instant from,
                                                   Instant until) const {
  std::vector<HeldRoom> held;
  for (const auto& [job, of_job] : book_.in_force()) {
    if (job == but) continue;
    const auto slot = d_.view.queue.find(job);
    if (!slot) continue;
    const JobClass& c =
        d_.view.queue.job_class(d_.view.queue.line(d_.view.queue[*slot].line).class_index);
    for (const Reservation& p : of_job)
      if ((!guaranteed || p.claimed || p.aged) && p.start < until &&
          from < Timeline::end_of(p.start, c.key.least_limit()))
        for (const Share& s : p.shares)
          held.push_back({s.node, need_for(c.demand, d_.view.grid.room(s.node), s.tasks)});
  }
  return held;
}

std::vector<HeldQuota> VictimSearch::claimed_quota() const {
  std::vector<HeldQuota> held;
  for (const auto& [job, of_job] : book_.in_force()) {
    if (std::none_of(of_job.begin(), of_job.end(), [](const Reservation& p) { return p.claimed; }))
      continue;
    const auto slot = d_.view.queue.find(job);
    if (!slot) continue;
    const JobClass& c =
        d_.view.queue.job_class(d_.view.queue.line(d_.view.queue[*slot].line).class_index);
    const std::uint32_t tenant = quota_.tenant_of(c);
    if (tenant == kNoIndex) continue;
    for (const Reservation& p : of_job)
      if (p.claimed)
        for (const QuotaNeed& need : quota_.needs_of(c, p.shares)) held.push_back({tenant, need});
  }
  return held;
}

std::vector<JobId> VictimSearch::leaving_for(const VictimSet& set) const {
  std::vector<JobId> jobs;
  for (const Victim& v : set.victims) jobs.push_back(v.job);
  for (const Share& s : set.shares)
    for (const std::uint32_t slot : d_.view.running.on_node(s.node))
      if (d_.view.running[slot].leaving) jobs.push_back(d_.view.running[slot].job);
  std::sort(jobs.begin(), jobs.end());
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  return jobs;
}

bool VictimSearch::missed_starts() {
  if (d_.plan.starts.empty() || in_vain_.empty()) return false;
  const QuotaTree& tree = d_.view.charges.tree();
  const auto exceeds = [&](const PlanQuota::Charged& started, const JobClass& c) {
    return started.tenant != quota_.tenant_of(c) && !book_.in_force().contains(started.job) &&
           std::any_of(std::begin(kResourceTable), std::end(kResourceTable), [&](const auto& row) {
             return c.least[row.id] > 0 &&
                    tree.usage(started.tenant, 0, row.id) > tree.subtree(started.tenant, 0, row.id);
           });
  };
  for (const std::uint32_t class_index : in_vain_) {
    const JobClass& c = d_.view.queue.job_class(class_index);
    const auto choices = d_.view.eligible.flavors_of(c);
    if (std::any_of(choices.begin(), choices.end(),
                    [&](const auto& choice) { return quota_.is_guaranteed(c, choice.flavor); }) &&
        std::any_of(quota_.charged().begin(), quota_.charged().end(),
                    [&](const PlanQuota::Charged& started) { return exceeds(started, c); }))
      return true;
  }
  return false;
}

}  // namespace gantry::sched
