// Time: each job and each node has at most one entry in an ordered set, which says when it has to
// be looked at. A look checks everything that may be due, so a superfluous entry does no harm.
#include <fmt/core.h>

#include "common/proto/job_change.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "common/text/text.h"
#include "config/config.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/job/queue_choice.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/node/attempt_end.h"
#include "ctld/core/node/memory.h"
#include "ctld/core/node/racks.h"
#include "ctld/core/node_links.h"
#include "ctld/core/notify/triggers.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/runtime.h"
#include "ctld/core/services/reconcile.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/multifactor.h"
#include "ctld/core/tenancy/storage.h"
#include "ctld/core/tenancy/tenants.h"
#include "ctld/core/turn/memory.h"
#include "ctld/core/turn/subject.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

constexpr Duration kStuckMargin = seconds(60);  // after kill_wait; then the node is drained
constexpr Duration kFenceMargin = seconds(30);  // after fence_after and kill_wait
constexpr std::size_t kForgetPerTurn = 4096;
constexpr const char* kNotResponding = "not responding";
// Some starts become possible by time alone: a job overruns its limit and the reservation that
// follows it moves, a victim has run for its protected time, or a reserved start is due. So while
// jobs wait, a plan is asked for this often.
constexpr Duration kPlanAgain = seconds(5);

void earliest(std::optional<Instant>& a, std::optional<Instant> b) {
  if (b && (!a || *b < *a)) a = b;
}

// When the time limit ends the job. Unset while its batch node is silent, because nobody could tell
// it to end; and its machine may be asleep, which the node reports when it is back.
std::optional<Instant> limit_of(const Context& ctx, const Job& job) {
  if (!job.started || !ctx.hears(job.active->nodes.front().grant.node, job)) return std::nullopt;
  const auto end = limit_end(ctx.state, job);
  return end ? std::optional(*end + asleep(ctx, job)) : std::nullopt;
}

bool passed(std::optional<Instant> t, Instant now) {
  return t && *t <= now;
}

Duration start_timeout(const Context& ctx, const Job& job) {
  return ctx.config.controller.start_timeout * (job.has_image ? kImageStarts : 1) +
         stage_in_time(ctx, job);
}

// When the start is given up, because a node that was told to start the job has not done so.
std::optional<Instant> start_due(const Context& ctx, const Job& job) {
  const auto it = ctx.rt.turn->sent.find(job.id);
  if (it == ctx.rt.turn->sent.end()) return std::nullopt;
  std::optional<Instant> due;
  for (std::size_t i = 0; i < it->second.size(); ++i) {
    const NodeRun& run = job.active->nodes[i];
    const Sent& sent = it->second[i];
    // A node that is ready has nothing more to do until it is told to start the job.
    const bool owes = run.state == RunState::launched ||
                      (i == 0 && run.state == RunState::ready && sent.kind == SentKind::go);
    if (!owes || !ctx.hears(run.grant.node, job)) continue;
    earliest(due, sent.first + start_timeout(ctx, job));
  }
  return due;
}

std::optional<Instant> stuck_due(const Context& ctx, const Job& job) {
  if (job.phase != Phase::finishing) return std::nullopt;
  const Finish& finish = *job.active->finish;
  return finish.since + finish.grace.value_or(ctx.config.controller.kill_wait) + kStuckMargin;
}

std::optional<Instant> due_of(const Context& ctx, const Job& job) {
  std::optional<Instant> next = next_act(ctx, job);
  switch (job.phase) {
    case Phase::queued:
      if (job.not_before && *job.not_before > ctx.now) earliest(next, job.not_before);
      if (const auto latest = latest_start(ctx.state, job))
        earliest(next, *latest + microseconds(1));
      earliest(next, rank_now(ctx, job).next);
      earliest(next, next_queue_look(ctx, job));
      break;
    case Phase::starting: earliest(next, start_due(ctx, job)); break;
    case Phase::running: {
      const auto limit = limit_of(ctx, job);
      earliest(next, limit);
      if (limit && job.warn && !job.active->warned) earliest(next, *limit - job.warn->before);
      earliest(next, job.deadline);
      earliest(next, trigger_due(ctx, job));
      break;
    }
    case Phase::finishing:
      if (const auto stuck = stuck_due(ctx, job); stuck && *stuck > ctx.now) earliest(next, stuck);
      break;
    case Phase::ended:
    case Phase::suspended: break;
  }
  return next;
}

}  // namespace

void send_warning(Context& ctx, const Job& job) {
  ctx.record(event::JobWarned{job.id});
  const auto scope =
      job.warn->batch_shell_only ? proto::SignalScope::batch_shell : proto::SignalScope::steps;
  for (const NodeRun& run : job.active->nodes) {
    const NodeId node = run.grant.node;
    if (run.state == RunState::released || ctx.link(node).session == 0) continue;
    if (job.warn->batch_shell_only && &run != &job.active->nodes.front()) continue;
    ctx.send(node, proto::SignalAttempt{
                       ctx.stamp(node), {job.id, job.attempt}, job.warn->signal, scope, {}});
  }
}

namespace {

void drain(Context& ctx, NodeId node, std::string reason) {
  ctx.note(fmt::format("node {} is drained: {}", ctx.state.node(node).name, reason));
  if (ctx.state.node(node).intent != NodeIntent::open) return;
  ctx.record(event::NodeIntentChanged{node, NodeIntent::drain, std::move(reason), "gantry"});
}

void running_due(Context& ctx, const Job& job) {
  const auto limit = limit_of(ctx, job);
  if (passed(limit, ctx.now)) {
    end_job(
        ctx, job.id, Outcome::timeout,
        fmt::format("over its time limit of {}", format_duration(*time_limit_of(ctx.state, job))));
  } else if (passed(job.deadline, ctx.now)) {
    end_job(ctx, job.id, Outcome::deadline,
            fmt::format("over its deadline {}", format_time(*job.deadline)));
  } else if (limit && job.warn && !job.active->warned && *limit - job.warn->before <= ctx.now) {
    send_warning(ctx, job);
  }
}

void finishing_due(Context& ctx, const Job& job) {
  if (!passed(stuck_due(ctx, job), ctx.now)) return;
  for (const NodeRun& run : job.active->nodes) {
    const Node& node = ctx.state.node(run.grant.node);
    if (run.state == RunState::released || ctx.link(node.id).session == 0) continue;
    if (node.intent != NodeIntent::open) continue;
    drain(ctx, node.id, fmt::format("job {} does not end there", display_id(ctx.state, job)));
  }
}

void job_due(Context& ctx, JobId id) {
  const Job& job = ctx.state.jobs.at(id);
  switch (job.phase) {
    case Phase::queued: {
      const auto latest = latest_start(ctx.state, job);
      if (!latest || *latest >= ctx.now)
        look_at_queues(ctx, id);
      else
        end_job(ctx, id, Outcome::deadline,
                fmt::format("it could not end before its deadline {}", format_time(*job.deadline)));
      break;
    }
    case Phase::starting: {
      if (passed(start_due(ctx, job), ctx.now)) give_up_start(ctx, job);
      break;
    }
    case Phase::running: running_due(ctx, job); break;
    case Phase::finishing: finishing_due(ctx, job); break;
    case Phase::ended:
    case Phase::suspended: break;
  }
}

std::optional<Instant> fence_due(const Context& ctx, const Node& node) {
  const ControllerConfig& c = ctx.config.controller;
  if (c.lost_node_policy != LostNodePolicy::fence || node.health != NodeHealth::lost)
    return std::nullopt;
  if (node.jobs.empty()) return std::nullopt;
  return ctx.link(node.id).last_seen + c.fence_after + c.kill_wait + kFenceMargin;
}

// True if the node has just been lost.
bool node_due(Context& ctx, NodeId id) {
  const Node& node = ctx.state.node(id);
  const Instant last_seen = ctx.link(id).last_seen;
  const bool lost =
      node.health == NodeHealth::up && last_seen + ctx.config.controller.node_timeout <= ctx.now;
  if (lost) {
    ctx.rt.links->all.at(id.value()).session = 0;
    drop_logs(ctx, id);
    drop_probes(ctx, id);
    ctx.note(fmt::format("node {} is lost: silent for {}", node.name,
                         format_duration(ctx.now - last_seen)));
    ctx.record(event::NodeHealthChanged{id, NodeHealth::lost, kNotResponding});
  }
  if (passed(fence_due(ctx, node), ctx.now)) {
    const bool alone = node.intent != NodeIntent::open || node.reason == kNotResponding;
    release_all(ctx, id, proto::ExitCause::fenced,
                fmt::format("{} was lost for so long that it has ended its jobs{}", node.name,
                            alone ? "" : fmt::format(" ({})", node.reason)));
  }
  return lost;
}

std::optional<Instant> plan_due(const Context& ctx) {
  if (ctx.state.counters.queued == 0) return std::nullopt;
  return ctx.rt.turn->planned + kPlanAgain;
}

void forget_ended(Context& ctx) {
  event::JobsForgotten e;
  const Instant before = ctx.now - ctx.config.controller.min_job_age;
  for (const auto& [at, id] : ctx.state.ended) {
    if (at > before || e.jobs.size() >= kForgetPerTurn) break;
    e.jobs.push_back(id);
  }
  for (const JobId id : e.jobs) {
    ctx.rt.turn->waits_since.erase(id);
    ctx.rt.node->asleep.erase(id);
    ctx.rt.plan->marks.forget(id);
  }
  if (!e.jobs.empty()) ctx.record(e);
}

}  // namespace

void give_up_start(Context& ctx, const Job& job) {
  const std::vector<Sent> sent = ctx.rt.turn->sent[job.id];
  std::string names;
  std::vector<NodeId> late;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const NodeRun& run = job.active->nodes[i];
    const bool owes = run.state == RunState::launched || (i == 0 && run.state == RunState::ready);
    if (!owes || !ctx.hears(run.grant.node, job)) continue;
    if (sent[i].first + start_timeout(ctx, job) > ctx.now) continue;
    late.push_back(run.grant.node);
    names += (names.empty() ? "" : ",") + ctx.state.node(run.grant.node).name;
  }
  const std::string limit = format_duration(start_timeout(ctx, job));
  const std::string cause = fmt::format("{}: no start within {}", names, limit);
  const std::string reason =
      fmt::format("job {} did not start within {}", display_id(ctx.state, job), limit);
  std::optional<RequeueWhy> again;
  if (job.kind == JobKind::batch || (class_of(ctx.state, job).het && job.may_requeue))
    again = RequeueWhy::start_timeout;  // nothing of the job has run
  ctx.record(event::JobFinishing{job.id, Outcome::launch_failed, {}, cause, again, {}});
  for (const NodeId node : late) drain(ctx, node, reason);
}

void set_timer(Context& ctx, const Job& job) {
  const Instant due = due_of(ctx, job).value_or(Instant{});
  const Instant last = ctx.rt.plan->marks.at(job.id).timer;
  if (due == last) return;
  if (last != Instant{}) ctx.rt.turn->job_timers.erase({last, job.id});
  ctx.rt.plan->marks.edit(job.id).timer = due;
  if (due != Instant{}) ctx.rt.turn->job_timers.insert({due, job.id});
}

void set_timer(Context& ctx, NodeId id) {
  if (id.value() >= ctx.rt.links->all.size()) return;
  const Node& node = ctx.state.node(id);
  NodeLink& link = ctx.rt.links->all[id.value()];
  std::optional<Instant> next = fence_due(ctx, node);
  if (node.health == NodeHealth::up)
    earliest(next, link.last_seen + ctx.config.controller.node_timeout);
  const Instant due = next.value_or(Instant{});
  if (due == link.timer) return;
  if (link.timer != Instant{}) ctx.rt.turn->node_timers.erase({link.timer, id});
  link.timer = due;
  if (due != Instant{}) ctx.rt.turn->node_timers.insert({due, id});
}

namespace {

std::optional<Instant> node_timer(const Context& ctx) {
  const auto& timers = ctx.rt.turn->node_timers;
  return timers.empty() ? std::nullopt : std::optional(timers.begin()->first);
}

void ring_nodes(Context& ctx) {
  std::vector<NodeId> lost;
  while (passed(node_timer(ctx), ctx.now)) {
    const NodeId id = ctx.rt.turn->node_timers.begin()->second;
    ctx.rt.turn->node_timers.erase(ctx.rt.turn->node_timers.begin());
    ctx.rt.links->all[id.value()].timer = {};
    if (node_due(ctx, id)) lost.push_back(id);
    set_timer(ctx, id);
  }
  if (!lost.empty()) look_at_racks(ctx, lost);
}

std::optional<Instant> job_timer(const Context& ctx) {
  const auto& timers = ctx.rt.turn->job_timers;
  return timers.empty() ? std::nullopt : std::optional(timers.begin()->first);
}

void ring_jobs(Context& ctx) {
  while (passed(job_timer(ctx), ctx.now)) {
    const JobId id = ctx.rt.turn->job_timers.begin()->second;
    ctx.rt.turn->job_timers.erase(ctx.rt.turn->job_timers.begin());
    ctx.rt.plan->marks.edit(id).timer = {};
    job_due(ctx, id);
    ctx.touched.jobs.push_back(id);  // act again, and set the next timer
    settle(ctx);
  }
}

void plan_again(Context& ctx) {
  ctx.rt.turn->planned = ctx.now;
  ctx.turn.schedule = true;
}

std::optional<Instant> next_forgotten(const Context& ctx) {
  if (ctx.state.ended.empty()) return std::nullopt;
  return ctx.state.ended.front().first + ctx.config.controller.min_job_age;
}

}  // namespace

const Subject kNodeTimers{.name = "nodes", .due = node_timer, .ring = ring_nodes};
const Subject kJobTimers{.name = "jobs", .due = job_timer, .ring = ring_jobs};
const Subject kPlanning{.name = "plans", .due = plan_due, .ring = plan_again};
const Subject kForgetting{.name = "ended jobs", .due = next_forgotten, .ring = forget_ended};

void run_timers(Context& ctx) {
  for (const Subject* one : subjects())
    if (one->ring != nullptr && passed(one->due(ctx), ctx.now)) one->ring(ctx);
}

std::optional<Instant> next_wake(const Context& ctx) {
  std::optional<Instant> next;
  for (const Subject* one : subjects())
    if (one->due != nullptr) earliest(next, one->due(ctx));
  return next;
}

}  // namespace gantry::core
