#include "ctld/replay/live.h"

#include <fmt/core.h>

#include <algorithm>

namespace gantry::replay {

Result<void> enrol(const std::string& trace, const TraceJob& job, const Site& site,
                   ShareBook& shares, Live& live) {
  std::uint32_t queue = 0;
  const auto tenant = site.compiled.tenants.find(job.tenant);
  if (const auto it = site.queue_of.find(job.tenant); it != site.queue_of.end())
    queue = it->second;
  else if (site.has_tenants)
    return wrong_line(trace, job.line, "tenant",
                      fmt::format("there is no tenant \"{}\" in {}", job.tenant, site.label));
  live.key.partition = PartitionId(queue);
  if (tenant != site.compiled.tenants.end()) {
    live.key.priority_class = tenant->second.default_class;
    live.share = shares.leaf(job.tenant, job.project, job.user);
  }
  if (!job.priority_class.empty() && site.has_tenants) {
    const auto& classes = site.compiled.classes;
    const auto it = std::find_if(classes.begin(), classes.end(),
                                 [&](const auto& c) { return c.name == job.priority_class; });
    if (it == classes.end())
      return wrong_line(
          trace, job.line, "class",
          fmt::format("there is no priority class \"{}\" in {}", job.priority_class, site.label));
    live.key.priority_class = static_cast<std::uint32_t>(it - classes.begin());
    if (tenant != site.compiled.tenants.end() &&
        !std::binary_search(tenant->second.allowed_classes.begin(),
                            tenant->second.allowed_classes.end(), live.key.priority_class))
      return wrong_line(
          trace, job.line, "class",
          fmt::format("tenant {} may not use \"{}\"", job.tenant, job.priority_class));
  }
  if (!job.unlimited) live.key.time_limit = job.limit.value_or(job.run);
  live.run = live.key.time_limit ? std::min(job.run, *live.key.time_limit) : job.run;
  live.every = job.checkpoint;
  return {};
}

Result<std::vector<Live>> enrol_all(const Trace& trace, const Cluster& cluster, const Site& site,
                                    std::optional<Duration> checkpoint_every, ShareBook& shares,
                                    Outcome& out) {
  std::vector<Live> all(trace.jobs.size());
  std::size_t too_large = 0;
  std::string first;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const TraceJob& job = trace.jobs[i];
    const auto shape = shape_of(job, cluster);
    JobResult& result = out.jobs[i];
    result.tenant = static_cast<std::uint32_t>(
        std::lower_bound(out.tenants.begin(), out.tenants.end(), job.tenant) - out.tenants.begin());
    if (!shape) {
      if (too_large++ == 0)
        first = fmt::format("{}:{}: {}", trace.name, job.line, shape.error().message);
      result.left_out = true;
      all[i].phase = Phase::done;
      continue;
    }
    result.units = cluster.unit == Resource::gpu
                       ? std::int64_t{shape->gpus_per_node} * shape->min_nodes
                       : std::int64_t{shape->tasks} * shape->cpus_per_task;
    all[i].key.shape = *shape;
    TRY(enrol(trace.name, job, site, shares, all[i]));
    if (!all[i].every) all[i].every = checkpoint_every;
    if (all[i].every && all[i].every->us <= 0) all[i].every.reset();
  }
  if (too_large > 0)
    out.notes.push_back(
        fmt::format("{} jobs are larger than the cluster and were left out; the "
                    "first is {}",
                    too_large, first));
  return all;
}

}  // namespace gantry::replay
