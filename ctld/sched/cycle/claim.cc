// How a plan's jobs stand towards their tenants' quota.
#include <algorithm>

#include "ctld/sched/cycle/cycle.h"
#include "ctld/sched/gpu/gpu_share.h"

namespace gantry::sched {
namespace {

constexpr std::size_t kMostEnds = 4096;  // that are looked at for when a quota is free

}  // namespace

std::uint32_t Cycle::tenant_of(const JobClass& c) const {
  return quota_on_ ? r_.charges_.quota_node(c.key.partition) : kNoIndex;
}

// For the order: with the flavor in which it borrows least.
Claim Cycle::claim(std::uint32_t partition, std::uint32_t class_index) {
  JobClass& c = r_.queue_.job_class(class_index);
  Claim claim;
  const std::uint32_t tenant =
      quota_on_ ? r_.charges_.quota_node(PartitionId{partition}) : kNoIndex;
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

// What runs, and what this plan has started, whatever the partition.
std::uint32_t Cycle::jobs_of_tenant(std::uint32_t tenant) const {
  const auto started = tenant_starts_.find(tenant);
  return r_.charges_.running(tenant) + (started == tenant_starts_.end() ? 0 : started->second);
}

bool Cycle::has_job_left(std::uint32_t tenant) const {
  if (tenant == kNoIndex) return true;
  const auto& most = r_.tenancy_->nodes[tenant].max_running;
  return !most || jobs_of_tenant(tenant) < *most;
}

std::vector<QuotaNeed> Cycle::needs_of(const JobClass& c, const std::vector<Share>& shares) const {
  std::vector<QuotaNeed> needs;
  for (const Share& share : shares) {
    const Room room = need_for(c.demand, r_.grid_.room(share.node), share.tasks);
    QuotaNeed need{r_.charges_.flavor(share.node), {}};
    need.amount.set<Resource::cpu>(thousandths_of(Cores{room.cpus}));
    need.amount.set<Resource::memory>(ByteCount{room.memory});
    need.amount.set<Resource::gpu>(room.gpu_thousandths());
    if (const JobShape& shape = c.key.shape; !shape.gpu_slice.empty())
      need.amount.set<Resource::gpu>(
          slices_weight(shape, r_.grid_.node(share.node).slices.thousandths(shape.gpu_slice)));
    need.amount.set<Resource::scratch>(ByteCount{room.scratch});
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

// The first of what is charged at or below the node and ends, in the order of the ends. Whoever
// this plan asks to leave has gone by then.
const std::vector<Cycle::Ending>& Cycle::ends_below(std::uint32_t node) {
  const auto [at, made] = endings_.try_emplace(node);
  std::vector<Ending>& ends = at->second;
  if (!made) return ends;
  const Instant soonest = now_ + Timeline::kOverdue;
  for (const std::uint32_t tenant : r_.charges_.busy_below(node))
    for (const auto& [job, limit] : r_.charges_.jobs_of(tenant)) {
      std::optional<Instant> end = limit;
      for (const Asked& a : asked_)
        if (a.victim == job) end = std::min(end.value_or(a.by), a.by);
      if (end) ends.push_back({std::max(*end, soonest), job, tenant});
    }
  const auto before = [](const Ending& a, const Ending& b) {
    return std::pair{a.at, a.job} < std::pair{b.at, b.job};
  };
  if (ends.size() > kMostEnds) {
    std::nth_element(ends.begin(), ends.begin() + kMostEnds, ends.end(), before);
    ends.resize(kMostEnds);
  }
  std::sort(ends.begin(), ends.end(), before);
  return ends;
}

// Takes running jobs out of the quota in the order of their ends until the need fits. Starts of
// this plan are taken to last.
std::optional<Instant> Cycle::quota_ready(std::uint32_t tenant, const QuotaNeed& need) {
  const QuotaFit fit = r_.charges_.tree().fit(tenant, need);
  if (fit.fits) return now_;
  if (r_.charges_.tree().never_fits(tenant, need)) return std::nullopt;
  // What is in the way is charged at or below the node that it does not fit; then perhaps above.
  std::uint32_t root = tenant;
  while (r_.tenancy_->nodes[root].parent != kNoIndex) root = r_.tenancy_->nodes[root].parent;
  if (const auto ready = quota_ready(tenant, need, fit, fit.cell->node)) return ready;
  if (fit.cell->node == root) return std::nullopt;
  return quota_ready(tenant, need, fit, root);
}

// Asks only when enough of what is missing has been given back.
std::optional<Instant> Cycle::quota_ready(std::uint32_t tenant, const QuotaNeed& need, QuotaFit fit,
                                          std::uint32_t top) {
  QuotaTree& tree = r_.charges_.tree();
  std::optional<Instant> ready;
  std::vector<std::pair<std::uint32_t, QuotaNeed>> removed;
  std::int64_t missing = fit.would_use - fit.limit;
  std::size_t steps = 0;
  for (const Ending& ending : ends_below(top)) {
    ++steps;
    for (const QuotaNeed& n : r_.charges_.needs_of(ending.job)) {
      tree.remove(ending.tenant, n);
      removed.emplace_back(ending.tenant, n);
      if (fit.cell->flavor == 0 || fit.cell->flavor == n.flavor)
        missing -= n.amount[fit.cell->resource];
    }
    if (missing > 0) continue;
    fit = tree.fit(tenant, need);
    if (fit.fits) {
      ready = ending.at;
      break;
    }
    missing = fit.would_use - fit.limit;
  }
  for (const auto& [of, n] : removed) tree.add(of, n);
  plan_.stats.steps += steps;
  return ready;
}

}  // namespace gantry::sched
