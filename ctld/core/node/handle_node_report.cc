// Reports of nodes about attempts. A report that does not fit (an old attempt, a second copy) is
// counted and otherwise ignored. Only an exit is always acknowledged, so that the node can forget
// it.
#include <algorithm>

#include <fmt/core.h>

#include "common/proto/attempt.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "common/text/printable.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/checkpoint.h"
#include "ctld/core/job/reported.h"
#include "ctld/core/neighbours/neighbours.h"
#include "ctld/core/node/attempt_end.h"
#include "ctld/core/node/idle_gpus.h"
#include "ctld/core/node/node_report.h"
#include "ctld/core/node/subject.h"
#include "ctld/core/node_links.h"
#include "ctld/core/resources/gpus.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/moves.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/tenants.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

// The job, if exactly this attempt is placed on the node and the trigger is legal in its phase.
const Job* expecting(Context& ctx, NodeId node, const proto::AttemptKey& key, Trigger trigger,
                     const NodeRun** run) {
  const Job* job = ctx.state.jobs.find(key.job);
  if (job != nullptr && job->attempt == key.attempt && job->active &&
      next_phase(trigger, job->phase))
    for (const NodeRun& r : job->active->nodes)
      if (r.grant.node == node && r.state != RunState::released) {
        *run = &r;
        return job;
      }
  ++ctx.rt.stats.reports_ignored;
  return nullptr;
}

void seen(Context& ctx, NodeId node) {
  ctx.rt.links->all.at(node.value()).last_seen = ctx.now;
  set_timer(ctx, node);
}

// Returns false if the node has to register first.
bool in_session(Context& ctx, NodeId node) {
  seen(ctx, node);
  if (ctx.link(node).session != 0) return true;
  ctx.send(node, proto::RegisterAgain{ctx.state.epoch});
  return false;
}

}  // namespace

namespace {

constexpr std::size_t kMostTrouble = 300;  // bytes of a node's report about itself

// A node that reports trouble gets no jobs until an operator resumes it. If it is resumed too
// early, its next heartbeat drains it again.
void drain_on_trouble(Context& ctx, NodeId id, std::string trouble) {
  if (trouble.empty() || ctx.state.node(id).intent != NodeIntent::open) return;
  trouble.resize(std::min(trouble.size(), kMostTrouble));
  for (char& c : trouble)
    if (c < 0x20 || c > 0x7e) c = '?';
  ctx.note(fmt::format("node {} drains itself: {}", ctx.state.node(id).name, trouble));
  ctx.record(event::NodeIntentChanged{id, NodeIntent::drain, std::move(trouble), "gantry"});
}

constexpr std::size_t kMostActivity = 4096;  // GPUs and parts of GPUs in use on one node

// Keeps only what a node reports of GPUs of its own jobs. Somebody who has the node's key must not
// be able to show users of other jobs anything false.
std::vector<proto::GpuActivity> of_own_jobs(const Node& node,
                                            std::vector<proto::GpuActivity> said) {
  if (said.size() > kMostActivity) said.resize(kMostActivity);
  for (proto::GpuActivity& gpu : said)
    if (gpu.name.size() > kMostGpuName) gpu.name = printable(gpu.name.substr(0, kMostGpuName));
  std::erase_if(said, [&](const proto::GpuActivity& gpu) {
    return !std::binary_search(node.jobs.begin(), node.jobs.end(), gpu.key.job);
  });
  return said;
}

constexpr std::size_t kMostStepsTold = 4096;  // reported steps of one attempt

std::vector<proto::AttemptUsage> usage_of_own_jobs(const Node& node,
                                                   std::vector<proto::AttemptUsage> said) {
  std::erase_if(said, [&](const proto::AttemptUsage& one) {
    return !std::binary_search(node.jobs.begin(), node.jobs.end(), one.key.job);
  });
  for (proto::AttemptUsage& one : said) {
    if (one.steps.size() > kMostStepsTold) one.steps.resize(kMostStepsTold);
    one.usage = held_to_possible(one.usage);
    for (proto::StepUsage& step : one.steps) step.usage = held_to_possible(step.usage);
  }
  std::sort(
      said.begin(), said.end(),
      [](const proto::AttemptUsage& a, const proto::AttemptUsage& b) { return a.key < b.key; });
  return said;
}

}  // namespace

static void handle(Context& ctx, NodeId node, proto::Heartbeat&& beat) {
  NodeLink& link = ctx.rt.links->all.at(node.value());
  seen(ctx, node);
  if (link.session == 0 || beat.session != link.session) {
    // The node is told the start of its own session, not of this controller: the newest start that
    // a node knew before it registered shows whether the store is an older copy (ctld/age).
    ctx.send(node, proto::RegisterAgain{Epoch(beat.session >> 32)});
    return;
  }
  if (!link.missing.empty()) judge_missing(ctx, node);
  link.clock.heard(beat.sent, ctx.now);
  for (const proto::AttemptSleep& sleep : beat.asleep)
    note_sleep(ctx, node, sleep.key, sleep.asleep);
  link.load = beat.load;
  link.free_memory = beat.free_memory;
  link.gpus = of_own_jobs(ctx.state.node(node), std::move(beat.gpus));
  link.usage = usage_of_own_jobs(ctx.state.node(node), std::move(beat.usage));
  take_sharing(ctx, node, std::move(beat.sharing));
  note_checkpoints(ctx, node, beat.checkpoints, beat.sent);
  look_at_idle_gpus(ctx, node);
  drain_on_trouble(ctx, node, std::move(beat.trouble));
  proto::HeartbeatAck ack;
  ack.stamp = {ctx.state.epoch, link.session, 0};
  ack.heard = beat.sent;
  ctx.send(node, std::move(ack));
}

static void handle(Context& ctx, NodeId id, proto::GpuReport&& report) {
  if (!in_session(ctx, id) || report.session != ctx.link(id).session) return;
  const Node& node = ctx.state.node(id);
  GpuInventory gpus = held_to_possible(std::move(report.gpus));
  if (node.facts.gpus == gpus) return;
  NodeFacts facts = node.facts;
  facts.gpus = std::move(gpus);
  ctx.record(event::NodeRegistered{id, std::move(facts)});
  if (const std::string trouble = gpu_trouble(ctx.state.node(id)); !trouble.empty())
    ctx.note(fmt::format("node {}: {}", ctx.state.node(id).name, trouble));
  act_on_faults(ctx, id);
}

void handle(Context& ctx, NodeId node, proto::LaunchReady&& report) {
  if (!in_session(ctx, node)) return;
  const NodeRun* run = nullptr;
  const Job* job = expecting(ctx, node, report.key, Trigger::ready, &run);
  if (job == nullptr || run->state != RunState::launched) return;
  ctx.record(event::NodeReady{job->id, node, RunState::ready});
}

void handle(Context& ctx, NodeId node, proto::Started&& report) {
  if (!in_session(ctx, node)) return;
  const NodeRun* run = nullptr;
  const Job* job = expecting(ctx, node, report.key, Trigger::ready, &run);
  if (job == nullptr || run->state == RunState::running) return;
  const JobId id = job->id;
  const bool batch_node = run == &job->active->nodes.front();
  ctx.record(event::NodeReady{id, node, RunState::running});
  if (!batch_node || !next_phase(Trigger::started, ctx.state.jobs.at(id).phase)) return;
  const Instant at = told_time(ctx, node, report.at, ctx.state.jobs.at(id).active->placed);
  ctx.record(event::JobStarted{id, at == ctx.now ? std::nullopt : std::optional(at)});
  const auto limit = time_limit_of(ctx.state, ctx.state.jobs.at(id));
  ctx.turn.changes.emplace_back(sched::JobLimitChanged{
      id, limit ? limit_end(ctx.state, ctx.state.jobs.at(id)) : std::nullopt});
}

void handle(Context& ctx, NodeId node, proto::Frozen&& report) {
  if (!in_session(ctx, node)) return;
  const NodeRun* run = nullptr;
  const Job* job = expecting(ctx, node, report.key, Trigger::suspend, &run);
  if (job == nullptr || run->frozen == report.frozen) return;
  ctx.record(event::NodeFrozen{job->id, node, report.frozen});
}

// Reports of a node that has not registered are not accepted: the offset of its clock is not known,
// so the end of the attempt could only be the time of arrival. The node registers first, and keeps
// the report until it is acknowledged.
static void handle(Context& ctx, NodeId node, proto::ExitReport&& report) {
  if (!in_session(ctx, node)) return;
  const proto::AttemptKey key = report.key;
  const NodeRun* run = nullptr;
  if (const Job* job = expecting(ctx, node, key, Trigger::exited, &run))
    release_node(ctx, *job, node, std::move(report));
  ctx.send(node, proto::AckExit{ctx.stamp(node), key});
}

static void handle(Context& ctx, NodeId node, proto::Goodbye&& report) {
  NodeLink& link = ctx.rt.links->all.at(node.value());
  if (report.session != link.session || link.session == 0) return;
  link.session = 0;
  ctx.record(event::NodeHealthChanged{node, NodeHealth::down, "the node daemon was stopped"});
}

void release_node(Context& ctx, const Job& job, NodeId node, proto::ExitReport report) {
  const JobId id = job.id;
  const std::optional<Instant> had_started = job.started;
  event::NodeExited e;
  e.job = id;
  e.node = node;
  e.cause = report.cause;
  e.exit = report.exit;
  e.message = std::move(report.message);
  e.usage = held_to_possible(report.usage);
  if (report.started && report.started->us >= 0 && report.ended >= *report.started)
    e.ran = report.ended - *report.started;
  const AttemptTimes times = attempt_times(ctx, job, node, report);
  if (times.started != had_started) e.started = times.started;
  if (times.ended != ctx.now) e.ended = times.ended;
  for (const NodeRun& run : job.active->nodes)
    if (run.grant.node == node) free_quota(ctx, job, run.grant);
  ctx.record(e);
  ctx.turn.changes.emplace_back(sched::NodeReleased{id, node});
  ctx.turn.schedule = true;
  const Job& now = ctx.state.jobs.at(id);
  const auto limit = time_limit_of(ctx.state, now);
  if (now.started != had_started && limit)  // the Started report never came, or came late
    ctx.turn.changes.emplace_back(sched::JobLimitChanged{id, placed_view(ctx.state, now).ends_by});
}

void release_all(Context& ctx, NodeId node, proto::ExitCause cause, const std::string& why) {
  for (const JobId id : std::vector<JobId>(ctx.state.node(node).jobs)) {
    const Job& job = ctx.state.jobs.at(id);
    proto::ExitReport report;
    report.key = {id, job.attempt};
    report.cause = cause;
    report.message = why;
    release_node(ctx, job, node, std::move(report));
  }
}

const Subject kNodeReportMessages{
    .name = "node report",
    .handlers = kHandlers<proto::Heartbeat, proto::GpuReport, proto::LaunchReady, proto::Started,
                          proto::Frozen, proto::ExitReport, proto::Goodbye>};

}  // namespace gantry::core
