#include "ctld/sched/cycle/plan_quota.h"

#include <algorithm>
#include <bit>

#include "ctld/sched/gpu/gpu_share.h"

namespace gantry::sched {
namespace {

constexpr std::size_t kMostEnds = 4096;  // ends of jobs examined to find when quota becomes free

}  // namespace

PlanQuota::PlanQuota(Draft& draft, const Trial& trial)
    : d_(draft), trial_(trial), on_(draft.policy.quota && !draft.view.charges.none()) {}

PlanQuota::~PlanQuota() {
  for (const Charged& c : charged_) d_.view.charges.tree().remove(c.tenant, c.need);
  d_.view.shares.forget_plan();
}

std::uint32_t PlanQuota::tenant_of(PartitionId partition) const {
  return on_ ? d_.view.charges.quota_node(partition) : kNoIndex;
}

// The order uses the flavor in which the class borrows least.
QuotaStanding PlanQuota::standing(std::uint32_t partition, std::uint32_t class_index) {
  JobClass& c = d_.view.queue.job_class(class_index);
  QuotaStanding standing;
  const std::uint32_t tenant = tenant_of(PartitionId{partition});
  if (tenant == kNoIndex) return standing;
  d_.view.eligible.refresh(c, d_.view.grid);
  standing.quota_node = tenant;
  standing.need.amount = c.least;
  standing.levels = std::numeric_limits<std::uint32_t>::max();
  for (const NodeChoice& choice : d_.view.eligible.flavors_of(c)) {
    const QuotaNeed need{choice.flavor, c.least};
    const std::uint32_t levels = d_.view.charges.tree().fit(tenant, need).levels;
    if (levels >= standing.levels) continue;
    standing.levels = levels;
    standing.need = need;
    if (levels == 0) break;
  }
  return standing;
}

// Counts the jobs that run, and those that this plan has started, in all partitions of the tenant.
std::uint32_t PlanQuota::jobs_of(std::uint32_t tenant) const {
  const auto started = starts_.find(tenant);
  return d_.view.charges.running(tenant) + (started == starts_.end() ? 0 : started->second);
}

bool PlanQuota::has_job_left(std::uint32_t tenant, std::int64_t beside) const {
  if (tenant == kNoIndex) return true;
  const auto& most = d_.view.tenancy->nodes[tenant].max_running;
  return !most || jobs_of(tenant) + beside < *most;
}

void PlanQuota::started(std::uint32_t tenant) {
  if (tenant != kNoIndex) ++starts_[tenant];
}

std::vector<QuotaNeed> PlanQuota::needs_of(const JobClass& c,
                                           const std::vector<Share>& shares) const {
  std::vector<QuotaNeed> needs;
  for (const Share& share : shares) {
    const Room room = need_for(c.demand, d_.view.grid.room(share.node), share.tasks);
    QuotaNeed need{d_.view.charges.flavor(share.node), {}};
    need.amount.set<Resource::cpu>(thousandths_of(Cores{room.cpus}));
    need.amount.set<Resource::memory>(ByteCount{room.memory});
    need.amount.set<Resource::gpu>(room.gpu_thousandths());
    if (const JobShape& shape = c.key.shape; !shape.gpu_slice.empty())
      need.amount.set<Resource::gpu>(
          slices_weight(shape, d_.view.grid.slices().on(share.node).thousandths(shape.gpu_slice)));
    need.amount.set<Resource::scratch>(ByteCount{room.scratch});
    need.amount.set<Resource::io>(ByteRate{c.demand.io});
    need.amount.set<Resource::net>(BitRate{c.demand.net});
    const auto same = std::find_if(needs.begin(), needs.end(),
                                   [&](const QuotaNeed& n) { return n.flavor == need.flavor; });
    if (same == needs.end())
      needs.push_back(need);
    else
      same->amount += need.amount;
  }
  return needs;
}

QuotaFit PlanQuota::fit(std::uint32_t tenant, const std::vector<QuotaNeed>& needs) const {
  QuotaFit all;
  all.fits = true;
  for (const QuotaNeed& need : needs) {
    all = d_.view.charges.tree().fit(tenant, need);
    if (!all.fits) break;
  }
  return all;
}

bool PlanQuota::is_guaranteed(const JobClass& c, std::uint32_t flavor) const {
  const std::uint32_t tenant = tenant_of(c);
  if (tenant == kNoIndex) return false;
  const QuotaNeed need{flavor, c.least};
  const QuotaTree& tree = d_.view.charges.tree();
  const QuotaFit fit = tree.fit(tenant, need);
  const std::uint32_t depth = tree.depth(tenant);
  return depth == 0 ? fit.fits : std::popcount(fit.levels) < static_cast<int>(depth);
}

void PlanQuota::charge(const Waiting& w, const JobClass& c, const std::vector<QuotaNeed>& needs) {
  if (const std::uint32_t share = d_.view.queue.line(w.line).share; share != kNoShare)
    if (d_.view.shares.knows(ShareId{share}))
      for (const QuotaNeed& need : needs)
        d_.view.shares.charge(ShareId{share}, charge_rate(*d_.view.tenancy, need));
  const std::uint32_t tenant = tenant_of(c);
  if (tenant == kNoIndex) return;
  for (const QuotaNeed& need : needs) {
    d_.view.charges.tree().add(tenant, need);
    charged_.push_back({w.job, tenant, need});
  }
}

void PlanQuota::uncharge(JobId job) {
  std::erase_if(charged_, [&](const Charged& c) {
    if (c.job != job) return false;
    d_.view.charges.tree().remove(c.tenant, c.need);
    return true;
  });
}

// The jobs charged at or below the node that have an end, in the order of the ends, kMostEnds at
// most. A job that this plan preempts ends at its deadline to leave.
const std::vector<PlanQuota::Ending>& PlanQuota::ends_below(std::uint32_t node) {
  const auto [at, made] = endings_.try_emplace(node);
  std::vector<Ending>& ends = at->second;
  if (!made) return ends;
  const Instant soonest = d_.now + Timeline::kOverdue;
  for (const std::uint32_t tenant : d_.view.charges.busy_below(node))
    for (const auto& [job, limit] : d_.view.charges.jobs_of(tenant)) {
      std::optional<Instant> end = limit;
      for (const Trial::Asked& a : trial_.asked())
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
// this plan count as if they did not end.
std::optional<Instant> PlanQuota::ready(std::uint32_t tenant, const QuotaNeed& need) {
  const QuotaFit fit = d_.view.charges.tree().fit(tenant, need);
  if (fit.fits) return d_.now;
  if (d_.view.charges.tree().never_fits(tenant, need)) return std::nullopt;
  // The jobs to wait for are those charged at or below the node where the need does not fit, or
  // else above it.
  std::uint32_t root = tenant;
  while (d_.view.tenancy->nodes[root].parent != kNoIndex)
    root = d_.view.tenancy->nodes[root].parent;
  if (const auto below = ready(tenant, need, fit, fit.cell->node)) return below;
  if (fit.cell->node == root) return std::nullopt;
  return ready(tenant, need, fit, root);
}

// Asks the tree only when enough of the missing quota has been freed.
std::optional<Instant> PlanQuota::ready(std::uint32_t tenant, const QuotaNeed& need, QuotaFit fit,
                                        std::uint32_t top) {
  QuotaTree& tree = d_.view.charges.tree();
  std::optional<Instant> ready;
  std::vector<std::pair<std::uint32_t, QuotaNeed>> removed;
  std::int64_t missing = fit.would_use - fit.limit;
  std::size_t steps = 0;
  for (const Ending& ending : ends_below(top)) {
    ++steps;
    for (const QuotaNeed& n : d_.view.charges.needs_of(ending.job)) {
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
  d_.plan.stats.steps += steps;
  return ready;
}

}  // namespace gantry::sched
