// How a plan's jobs stand towards their tenants' quota.
#include <algorithm>

#include "ctld/sched/cycle.h"

namespace gantry::sched {

std::uint32_t Cycle::tenant_of(const JobClass& c) const {
  return quota_on_ ? r_.charges_.quota_node(c.key.partition) : kNoIndex;
}

// For the order: with the flavor in which it borrows least.
Claim Cycle::claim(const Turn& turn) {
  JobClass& c = cls(turn);
  Claim claim;
  const std::uint32_t tenant = tenant_of(c);
  if (tenant == kNoIndex) return claim;
  r_.eligible_.refresh(c, r_.grid_);
  claim.quota_node = tenant;
  claim.need.amount = c.least;
  claim.levels = std::numeric_limits<std::uint32_t>::max();
  for (const NodeChoice& choice : r_.eligible_.flavors_of(c)) {
    const QuotaNeed need{choice.flavor, c.least};
    const std::uint32_t levels = r_.charges_.tree().fit(tenant, need).levels;
    if (levels >= claim.levels) continue;
    claim.levels = levels;
    claim.need = need;
    if (levels == 0) break;
  }
  return claim;
}

bool Cycle::has_job_left(std::uint32_t tenant, std::uint32_t id) {
  if (tenant == kNoIndex) return true;
  const auto& most = r_.tenancy_->nodes[tenant].max_running;
  return !most || r_.charges_.running(tenant) + partition(id).starts < *most;
}

std::vector<QuotaNeed> Cycle::needs_of(const JobClass& c, const std::vector<Share>& shares) const {
  std::vector<QuotaNeed> needs;
  for (const Share& share : shares) {
    const Room room = need_for(c.demand, r_.grid_.room(share.node), share.tasks);
    QuotaNeed need{r_.charges_.flavor(share.node), {}};
    need.amount[Resource::cpu] = std::int64_t{room.cpus} * 1000;
    need.amount[Resource::memory] = room.memory;
    need.amount[Resource::gpu] = room.gpus;
    need.amount[Resource::scratch] = room.scratch;
    const auto same = std::find_if(needs.begin(), needs.end(),
                                   [&](const QuotaNeed& n) { return n.flavor == need.flavor; });
    if (same == needs.end())
      needs.push_back(need);
    else
      same->amount += need.amount;
  }
  return needs;
}

QuotaFit Cycle::fit(std::uint32_t tenant, const std::vector<QuotaNeed>& needs) const {
  QuotaFit all;
  all.fits = true;
  for (const QuotaNeed& need : needs) {
    all = r_.charges_.tree().fit(tenant, need);
    if (!all.fits) break;
  }
  return all;
}

void Cycle::charge(const Waiting& w, const JobClass& c, const std::vector<QuotaNeed>& needs) {
  if (const std::uint32_t share = r_.queue_.line(w.line).share; share != kNoShare)
    if (r_.shares_.knows(ShareId{share}))
      for (const QuotaNeed& need : needs)
        r_.shares_.charge(ShareId{share}, charge_rate(*r_.tenancy_, need));
  const std::uint32_t tenant = tenant_of(c);
  if (tenant == kNoIndex) return;
  std::optional<Instant> ends_by;
  if (c.key.time_limit) ends_by = end_of(c);
  for (const QuotaNeed& need : needs) {
    r_.charges_.tree().add(tenant, need);
    charged_.push_back({w.job, tenant, need, ends_by});
  }
}

void Cycle::uncharge(JobId job) {
  std::erase_if(charged_, [&](const Charged& c) {
    if (c.job != job) return false;
    r_.charges_.tree().remove(c.tenant, c.need);
    return true;
  });
}

// Ends of everything that is charged at or below the node.
std::vector<std::pair<Instant, JobId>> Cycle::ends_below(std::uint32_t node) const {
  std::vector<std::pair<Instant, JobId>> ends;
  std::vector<std::uint32_t> nodes{node};
  while (!nodes.empty()) {
    const std::uint32_t n = nodes.back();
    nodes.pop_back();
    for (const JobId job : r_.charges_.jobs_of(n))
      if (const auto end = r_.charges_.ends_by(job))
        ends.emplace_back(std::max(*end, now_ + Timeline::kOverdue), job);
    const auto& children = r_.charges_.children(n);
    nodes.insert(nodes.end(), children.begin(), children.end());
  }
  std::sort(ends.begin(), ends.end());
  return ends;
}

// Takes running jobs out of the quota in the order of their ends until the need fits. Starts of
// this plan are taken to last.
std::optional<Instant> Cycle::quota_ready(std::uint32_t tenant, const QuotaNeed& need) {
  constexpr std::size_t kMaxSteps = 4096;
  QuotaTree& tree = r_.charges_.tree();
  QuotaFit fit = tree.fit(tenant, need);
  if (fit.fits) return now_;
  if (tree.never_fits(tenant, need)) return std::nullopt;
  std::uint32_t top = tenant;  // all that is in the way is charged below the root
  while (r_.tenancy_->nodes[top].parent != kNoIndex && !fit.tenant_limit)
    top = r_.tenancy_->nodes[top].parent;
  std::optional<Instant> ready;
  std::vector<std::pair<std::uint32_t, QuotaNeed>> removed;
  std::size_t steps = 0;
  for (const auto& [end, job] : ends_below(top)) {
    if (++steps > kMaxSteps) break;
    const std::uint32_t of = r_.charges_.tenant_of(job);
    for (const QuotaNeed& n : r_.charges_.needs_of(job)) {
      tree.remove(of, n);
      removed.emplace_back(of, n);
    }
    if (tree.fit(tenant, need).fits) {
      ready = end;
      break;
    }
  }
  for (const auto& [of, n] : removed) tree.add(of, n);
  plan_.stats.steps += steps;
  return ready;
}

}  // namespace gantry::sched
