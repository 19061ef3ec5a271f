#include "ctld/core/node/idle_gpus.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "common/proto/tenant_events.h"
#include "common/text/text.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/job/rows.h"
#include "ctld/core/node_links.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"
#include "ctld/core/state/tenancy_state.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

using proto::IdleGpuStep;

struct IdleGpu {
  NodeId node{};
  std::string name;  // "gpu01:3", "gpu01:3/1g.10gb"
  Duration idle{};
  bool has_process = false;
};

struct Seen {
  std::vector<IdleGpu> gpus;  // idle GPUs of the job
  bool all = true;            // true if these are all GPUs of the job
};

const tenancy::IdleGpuLimits* limits_of(const State& state, const Job& job) {
  const CompiledTenant* tenant =
      state.tenancy.tenant(state.partition(class_of(state, job).partition).payer());
  return tenant != nullptr && tenant->effective.idle_gpus.any() ? &tenant->effective.idle_gpus
                                                                : nullptr;
}

// The name of a GPU or slice: "h100 1g.10gb" on GPU 3 is "gpu01:3/1g.10gb".
std::string name_of(const std::string& node, const proto::GpuActivity& gpu) {
  const auto space = gpu.name.find(' ');
  return fmt::format("{}:{}{}{}", node, gpu.gpu, space == std::string::npos ? "" : "/",
                     space == std::string::npos ? "" : gpu.name.substr(space + 1));
}

Seen look_at(const Context& ctx, const Job& job) {
  Seen out;
  for (const NodeRun& run : job.active->nodes) {
    const NodeId node = run.grant.node;
    const NodeLink& link = ctx.link(node);
    std::size_t told = 0;
    for (const proto::GpuActivity& gpu : link.gpus) {
      if (gpu.key.job != job.id || gpu.key.attempt != job.attempt || !gpu.idle) continue;
      ++told;
      // Time in which the job was suspended is subtracted, because the node counts it as idle.
      const Duration idle = std::max(Duration{}, *gpu.idle - job.active->suspended_until(ctx.now));
      out.gpus.push_back({node, name_of(ctx.state.node(node).name, gpu), idle, gpu.has_process});
    }
    out.all = out.all && link.session != 0 && told >= run.grant.devices.size();
  }
  return out;
}

// The GPUs that have been idle for `limit`. For a step that ends the job: all of its GPUs or none.
std::vector<IdleGpu> idle_for(const Seen& seen, const std::optional<Duration>& limit, bool ends) {
  std::vector<IdleGpu> out;
  if (!limit) return out;
  for (const IdleGpu& gpu : seen.gpus)
    if (gpu.idle >= *limit) out.push_back(gpu);
  if (ends && (!seen.all || out.size() != seen.gpus.size())) out.clear();
  return out;
}

bool may_go_back(const Job& job) {
  return job.may_requeue && job.kind == JobKind::batch;
}

std::string after(const std::optional<Duration>& limit, std::string_view what) {
  return limit ? fmt::format("; after {} {}", format_duration(*limit), what) : std::string();
}

// Writes one line into the job's standard error, on every node that is registered.
void tell_job(Context& ctx, const Job& job, const tenancy::IdleGpuLimits& limits,
              const proto::QuotaAlert& a) {
  const std::string text = fmt::format(
      "gantry: warning: GPUs of this job have done nothing for {}: {}{}{}", format_duration(a.idle),
      a.gpus, may_go_back(job) ? after(limits.requeue, "it goes back to the queue") : "",
      after(limits.cancel, "it is cancelled"));
  for (const NodeRun& run : job.active->nodes) {
    const NodeId node = run.grant.node;
    if (run.state == RunState::released || ctx.link(node).session == 0) continue;
    ctx.send(node, proto::TellAttempt{ctx.stamp(node), {job.id, job.attempt}, text});
  }
}

void end(Context& ctx, const Job& job, const proto::QuotaAlert& a) {
  event::JobFinishing e;
  e.job = job.id;
  e.outcome = Outcome::cancelled;
  e.cause = fmt::format("its GPUs have done nothing for {}: {}", format_duration(a.idle), a.gpus);
  if (a.step == IdleGpuStep::requeue) e.requeue = RequeueWhy::idle_gpus;
  if (job.warn) send_warning(ctx, job);
  const JobId id = job.id;
  ctx.record(e);
  ctx.turn.changes.emplace_back(placed_view(ctx.state, ctx.state.jobs.at(id)));
}

void act_on(Context& ctx, const Job& job, const tenancy::IdleGpuLimits& limits, IdleGpuStep step,
            const std::vector<IdleGpu>& gpus) {
  constexpr std::size_t kMostNamed = 16;
  proto::QuotaAlert a;
  a.number = ctx.state.tenancy.last_alert + 1;
  a.at = ctx.now;
  a.tenant = ctx.state.partition(class_of(ctx.state, job).partition).payer();
  a.job = display_id(ctx.state, job);
  a.user = ctx.state.names.text(job.user);
  a.step = step;
  a.idle = gpus.front().idle;
  a.no_process = true;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    a.idle = std::min(a.idle, gpus[i].idle);
    a.no_process = a.no_process && !gpus[i].has_process;
    if (i < kMostNamed) a.gpus += (i == 0 ? "" : ",") + gpus[i].name;
  }
  if (gpus.size() > kMostNamed) a.gpus += fmt::format(" and {} more", gpus.size() - kMostNamed);
  // The form of this line is stable, because other programs read it.
  ctx.note(fmt::format("gpus_idle tenant={} job={} user={} step={} idle_s={} process={} gpus={}",
                       a.tenant, a.job, a.user, enum_name(step), a.idle.seconds(),
                       a.no_process ? "no" : "yes", a.gpus));
  ctx.record(event::GpusIdle{job.id, a});
  const Job& now = ctx.state.jobs.at(job.id);
  if (step == IdleGpuStep::warn) tell_job(ctx, now, limits, a);
  if (step >= IdleGpuStep::requeue) end(ctx, now, a);
}

void look(Context& ctx, const Job& job, const tenancy::IdleGpuLimits& limits) {
  const Seen seen = look_at(ctx, job);
  struct Step {
    IdleGpuStep step;
    const std::optional<Duration>* limit;
  };
  const Step steps[] = {{IdleGpuStep::cancel, &limits.cancel},
                        {IdleGpuStep::requeue, &limits.requeue},
                        {IdleGpuStep::warn, &limits.warn},
                        {IdleGpuStep::note, &limits.note}};
  for (const auto& [step, limit] : steps) {
    if (step == IdleGpuStep::requeue && !may_go_back(job)) continue;
    const auto idle = idle_for(seen, *limit, step >= IdleGpuStep::requeue);
    if (idle.empty()) continue;
    if (step > job.active->idle_told) act_on(ctx, job, limits, step, idle);
    return;
  }
  if (job.active->idle_told != IdleGpuStep::none) ctx.record(event::GpusIdle{job.id, {}});
}

}  // namespace

void look_at_idle_gpus(Context& ctx, NodeId node) {
  std::vector<JobId> jobs;
  for (const proto::GpuActivity& gpu : ctx.link(node).gpus) {
    const Job* job = ctx.state.jobs.find(gpu.key.job);
    if (job == nullptr || job->attempt != gpu.key.attempt || job->phase != Phase::running) continue;
    if (limits_of(ctx.state, *job) == nullptr) continue;
    if (std::find(jobs.begin(), jobs.end(), job->id) == jobs.end()) jobs.push_back(job->id);
  }
  for (const JobId id : jobs) {
    const Job& job = ctx.state.jobs.at(id);
    look(ctx, job, *limits_of(ctx.state, job));
  }
}

}  // namespace gantry::core
