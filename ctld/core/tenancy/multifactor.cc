#include "ctld/core/tenancy/multifactor.h"

#include <algorithm>
#include <cmath>

#include "common/proto/tenancy_view.h"
#include "config/config.h"
#include "ctld/core/context.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/tenancy/memory.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/sched/tenant/decay.h"

namespace gantry::core {
namespace {

double age_factor(const Context& ctx, const Job& job) {
  const double waited = static_cast<double>((ctx.rt.tenancy->weights.as_of - job.eligible).us);
  const auto most = static_cast<double>(ctx.config.controller.priority_max_age.us);
  return std::clamp(waited / most, 0.0, 1.0);
}

double size_factor(const Context& ctx, const Job& job) {
  const JobShape& s = class_of(ctx.state, job).shape;
  const double cores = static_cast<double>(s.least_cores());
  return ctx.rt.tenancy->weights.cores > 0 ? std::min(1.0, cores / ctx.rt.tenancy->weights.cores)
                                           : 0;
}

double share_factor(const Context& ctx, const Job& job) {
  if (!job.share) return 1;
  const auto it = ctx.rt.tenancy->weights.fair.find(*job.share);
  return it == ctx.rt.tenancy->weights.fair.end() ? 1 : it->second;
}

double factor_of(const Context& ctx, const Partition& p) {
  std::uint32_t most = 0;
  for (const PartitionConfig& c : ctx.config.partitions) most = std::max(most, c.priority);
  return p.declared != nullptr && most > 0 ? static_cast<double>(p.declared->priority) / most : 0;
}

double partition_factor(const Context& ctx, const Job& job) {
  return factor_of(ctx, ctx.state.partition(class_of(ctx.state, job).partition));
}

double class_factor(const Context& ctx, const Job& job) {
  const auto& classes = ctx.state.tenancy.compiled.view->classes;
  std::int32_t most = 0;
  for (const sched::ClassView& c : classes) most = std::max(most, c.value);
  const std::int32_t own = classes.at(class_of(ctx.state, job).priority_class).value;
  return most > 0 ? std::max(0.0, static_cast<double>(own) / most) : 0;
}

// The factor 2^(-usage / share) for each user's leaf, within its tenant.
std::unordered_map<sched::ShareId, double> fair_factors(const Context& ctx) {
  const auto& nodes = ctx.state.tenancy.shares;
  struct Sum {
    double shares = 0, usage = 0;
  };
  std::vector<Sum> below(nodes.size());
  std::vector<double> usage(nodes.size()), shares(nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    usage[n] = sched::amount_at(nodes[n].usage, ctx.now, ctx.state.tenancy.half_life);
    shares[n] = share_view(ctx.state, nodes[n]).shares;
    if (!nodes[n].parent) continue;
    below[nodes[n].parent->value()].usage += usage[n];
    below[nodes[n].parent->value()].shares += shares[n];
  }
  std::unordered_map<sched::ShareId, double> out;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (!nodes[n].parent || !nodes[nodes[n].parent->value()].parent) continue;  // users only
    const std::size_t project = nodes[n].parent->value();
    const std::size_t tenant = nodes[project].parent->value();
    const auto part = [](double own, double all) { return all > 0 ? own / all : 0; };
    const double share =
        part(shares[n], below[project].shares) * part(shares[project], below[tenant].shares);
    const double used = part(usage[n], below[tenant].usage);
    out[nodes[n].id] = share > 0 ? std::exp2(-used / share) : (used > 0 ? 0 : 1);
  }
  return out;
}

struct Factor {
  std::string_view name;
  std::uint32_t ControllerConfig::*weight;
  double (*of)(const Context& ctx, const Job& job);
};
constexpr Factor kFactors[] = {
    {"age", &ControllerConfig::priority_weight_age, age_factor},
    {"fairshare", &ControllerConfig::priority_weight_fairshare, share_factor},
    {"jobsize", &ControllerConfig::priority_weight_job_size, size_factor},
    {"partition", &ControllerConfig::priority_weight_partition, partition_factor},
    {"class", &ControllerConfig::priority_weight_class, class_factor},
};

}  // namespace

std::int64_t priority_of(const State& state, const Job& job) {
  const Partition& partition = state.partition(class_of(state, job).partition);
  const std::int64_t base = partition.declared ? partition.declared->priority : 0;
  const std::int64_t own =
      job.priority ? static_cast<std::int64_t>(*job.priority) : kDefaultPriority;
  return base * kPartitionWeight + own + job.class_priority + job.site_factor - job.nice;
}

std::int64_t own_priority_of(const State& state, const Job& job) {
  if (tenant_of(state, job) == nullptr) return 0;
  return std::int64_t{job.class_priority} - std::min(0, job.nice);
}

bool weighted(const Config& config) {
  const ControllerConfig& c = config.controller;
  return c.priority_weight_age + std::uint64_t{c.priority_weight_fairshare} +
             c.priority_weight_job_size + c.priority_weight_partition + c.priority_weight_class >
         0;
}

std::vector<proto::PriorityTerm> weights_of(const Context& ctx) {
  std::vector<proto::PriorityTerm> out;
  if (!weighted(ctx.config)) return out;
  for (const auto& [name, weight, factor] : kFactors)
    if (const std::uint32_t w = ctx.config.controller.*weight; w > 0)
      out.push_back({std::string(name), w});
  return out;
}

std::vector<proto::PriorityTerm> terms_of(const Context& ctx, const Job& job) {
  std::vector<proto::PriorityTerm> out;
  if (!weighted(ctx.config)) return out;
  for (const auto& [name, weight, factor] : kFactors) {
    const std::uint32_t w = ctx.config.controller.*weight;
    if (w == 0) continue;
    const double part = factor(ctx, job);
    out.push_back({std::string(name), w, part, std::llround(w * part)});
  }
  return out;
}

std::int64_t priority_now(const Context& ctx, const Job& job) {
  const std::int64_t plain = priority_of(ctx.state, job);
  if (job.priority || !weighted(ctx.config)) return plain;
  std::int64_t sum = plain - kDefaultPriority;
  for (const proto::PriorityTerm& term : terms_of(ctx, job)) sum += term.points;
  return sum;
}

std::int64_t priority_in(const Context& ctx, const Job& job, const Partition& queue) {
  const Partition& present = ctx.state.partition(class_of(ctx.state, job).partition);
  const auto base = [&](const Partition& p) {
    std::int64_t points = p.declared ? p.declared->priority * kPartitionWeight : 0;
    if (!job.priority && weighted(ctx.config))
      points += std::llround(ctx.config.controller.priority_weight_partition * factor_of(ctx, p));
    return points;
  };
  return priority_now(ctx, job) - base(present) + base(queue);
}

Rank rank_now(const Context& ctx, const Job& job) {
  const Rank rank = rank_of(ctx.state, job, ctx.now, ctx.config.controller.oldest_first_after);
  if (!weighted(ctx.config)) return rank;
  const auto& compiled = ctx.state.tenancy.compiled;
  const std::uint32_t index = class_of(ctx.state, job).priority_class;
  if (index >= compiled.classes.size() || compiled.classes[index].preempts) return rank;
  return {compiled.classes.at(compiled.default_class).value, std::nullopt};
}

std::optional<Instant> next_reckoning(const Context& ctx) {
  if (!weighted(ctx.config) || ctx.state.counters.queued == 0) return std::nullopt;
  return ctx.rt.tenancy->weights.as_of + ctx.config.controller.priority_period;
}

void reckon(Context& ctx) {
  if (!weighted(ctx.config)) return;
  ctx.rt.tenancy->weights.as_of = ctx.now;
  ctx.rt.tenancy->weights.fair = fair_factors(ctx);
  ctx.rt.tenancy->weights.cores = 0;
  for (const Node& node : ctx.state.nodes)
    if (node.declared != nullptr)
      ctx.rt.tenancy->weights.cores += static_cast<double>(node.cpus.size());
  ctx.state.jobs.walk(JobId{}, [&](const Job& job) {
    if (job.phase == Phase::queued) ctx.touched.jobs.push_back(job.id);
    return true;
  });
}

}  // namespace gantry::core
