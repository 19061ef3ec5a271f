// Steps: the controller numbers them, lays them out over the nodes of a running job, and issues a
// permission, which the shell signs; the data of steps does not pass through it. This file also
// ends allocations.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "common/limits.h"
#include "common/proto/job_change.h"
#include "common/proto/job_ref.h"
#include "common/proto/job_text.h"
#include "common/proto/node_order.h"
#include "common/proto/session.h"
#include "common/proto/step_attach.h"
#include "common/proto/steps.h"
#include "common/text/text.h"
#include "config/config.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/select.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/reported.h"
#include "ctld/core/job/step_check.h"
#include "ctld/core/job/step_claims.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/node_links.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/moves.h"
#include "ctld/core/state/record.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr Duration kPermissionLife = minutes(10);  // time in which the step has to be launched
constexpr Duration kLongestStep = hours(24 * 3'650);

// The placed job, if the asker may change it.
Result<const Job*> usable(const Context& ctx, const Identity& who, JobId id, Trigger trigger) {
  const Job* job = ctx.state.jobs.find(id);
  if (job == nullptr || !may(May::change, ctx.state, who, *job))
    return fail(ErrorCode::not_found, fmt::format("there is no job {}", id.value()));
  if (job->is_array())
    return fail(ErrorCode::invalid_argument,
                fmt::format("job {} is an array: name one task", id.value()));
  TRY(may_move(trigger, job->phase, display_id(ctx.state, *job)));
  return job;
}

// The number of tasks that fit on this many cores. With overcommit, tasks share cores.
std::uint32_t room_in(std::size_t cores, const proto::StepShape& shape,
                      std::uint32_t cpus_per_task) {
  const auto tasks = shape.overcommit ? (cores > 0 ? kMaxStepTasks : 0)
                                      : static_cast<std::uint32_t>(cores) / cpus_per_task;
  return std::min(tasks, shape.tasks_per_node.value_or(tasks));
}

// How many running steps have claimed each core of the job on this node. It is more than one if the
// job has too few cores; only a step that shares no core waits then.
std::map<std::uint16_t, std::uint32_t> users_of(const Job& job, const NodeRun& run) {
  std::map<std::uint16_t, std::uint32_t> users;
  for (const std::uint16_t cpu : run.grant.cpus) users[cpu] = 0;
  for (const StepState& step : job.active->steps) {
    if (step.ended) continue;
    for (std::size_t i = 0; i < step.cores.size(); ++i)
      if (step.nodes[i] == run.grant.node)
        for (const std::uint16_t cpu : step.cores[i]) ++users[cpu];
  }
  return users;
}

std::uint32_t free_cores(const Job& job, const NodeRun& run) {
  std::uint32_t free = 0;
  for (const auto& [cpu, users] : users_of(job, run)) free += users == 0 ? 1 : 0;
  return free;
}

// Keeps `most` of the nodes, in rank order, preferring those with free cores and GPUs for a task.
void keep_nodes(const State& state, const Job& job, std::vector<const NodeRun*>& nodes,
                std::size_t most, std::uint32_t cpus_per_task, const proto::StepShape& shape) {
  if (nodes.size() <= most) return;
  if (!shape.overlap)
    std::stable_partition(nodes.begin(), nodes.end(), [&](const NodeRun* run) {
      return free_cores(job, *run) >= cpus_per_task && has_free_gpus(state, job, *run, shape, most);
    });
  nodes.resize(most);
  std::sort(nodes.begin(), nodes.end());  // nodes lie in one array in rank order
}

// The nodes of the job that take part in the step, in rank order.
Result<std::vector<const NodeRun*>> nodes_of(const Context& ctx, const Job& job,
                                             const proto::StepShape& shape,
                                             std::uint32_t cpus_per_task) {
  std::vector<const NodeRun*> out;
  std::set<NodeId> held, named;
  for (const NodeRun& run : job.active->nodes)
    if (!run.given_back) held.insert(run.grant.node);
  for (const std::string& name : shape.nodelist) {
    const Node* node = ctx.state.node_named(name);
    if (node == nullptr || !held.contains(node->id))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("node {} is not one of job {}'s", name, display_id(ctx.state, job)));
    named.insert(node->id);
  }
  std::set<NodeId> excluded;
  for (const std::string& name : shape.excluded)
    if (const Node* node = ctx.state.node_named(name)) excluded.insert(node->id);
  for (const NodeRun& run : job.active->nodes)
    if ((named.empty() || named.contains(run.grant.node)) && held.contains(run.grant.node) &&
        !excluded.contains(run.grant.node))
      out.push_back(&run);
  if (out.empty())
    return fail(ErrorCode::never_fits,
                fmt::format("all nodes of job {} are excluded", display_id(ctx.state, job)));
  if (shape.nodes > out.size())
    return fail(ErrorCode::invalid_argument,
                fmt::format("the step asks for {} nodes, job {} has {}", shape.nodes,
                            display_id(ctx.state, job), out.size()));
  if (shape.nodes > 0) keep_nodes(ctx.state, job, out, shape.nodes, cpus_per_task, shape);
  return out;
}

using Counts = std::vector<std::uint32_t>;  // number of tasks by node

// Deals the tasks to the nodes in turn, `block` at a time, so that 8 tasks on 3 nodes are 3, 3, 2
// with a block of 1. The nodes must have room for all.
Counts deal(std::uint32_t tasks, const Counts& room, std::uint32_t block) {
  Counts out(room.size(), 0);
  for (std::uint32_t left = tasks; left > 0;)
    for (std::size_t i = 0; i < room.size() && left > 0; ++i) {
      const std::uint32_t some = std::min({block, left, room[i] - out[i]});
      out[i] += some;
      left -= some;
    }
  return out;
}

// The number of tasks by node; empty if there is room, but other steps have it now.
Result<Counts> layout(const Job& job, const std::vector<const NodeRun*>& nodes, std::uint32_t tasks,
                      const proto::StepShape& shape, std::uint32_t cpus_per_task) {
  Counts room, free;
  for (const NodeRun* run : nodes) {
    room.push_back(room_in(run->grant.cpus.size(), shape, cpus_per_task));
    if (shape.exclusive) free.push_back(room_in(free_cores(job, *run), shape, cpus_per_task));
  }
  const auto in_all = std::accumulate(room.begin(), room.end(), std::uint64_t{0});
  if (tasks > in_all)
    return fail(
        ErrorCode::never_fits,
        fmt::format("{} tasks of {} cores do not fit the step's nodes, which have room for {}",
                    tasks, cpus_per_task, in_all));
  const std::uint32_t block = shape.pack ? tasks : std::max(shape.plane, 1u);
  if (!shape.exclusive) return deal(tasks, room, block);
  const auto free_in_all = std::accumulate(free.begin(), free.end(), std::uint64_t{0});
  const auto full = [](std::uint32_t tasks_free) { return tasks_free == 0; };
  if (tasks > free_in_all || (shape.nodes > 0 && std::any_of(free.begin(), free.end(), full)))
    return Counts{};
  return deal(tasks, free, block);
}

// The cores that are used by the fewest other steps; with overlap simply the first ones.
std::vector<std::uint16_t> step_cores(const Job& job, const NodeRun& run, std::size_t count,
                                      bool overlap) {
  std::vector<std::uint16_t> cores = run.grant.cpus;
  if (!overlap) {
    auto users = users_of(job, run);
    std::stable_sort(cores.begin(), cores.end(),
                     [&](std::uint16_t a, std::uint16_t b) { return users[a] < users[b]; });
  }
  cores.resize(std::min(cores.size(), count));
  std::sort(cores.begin(), cores.end());
  return cores;
}

proto::StepNode step_node(const Node& node, std::vector<std::uint16_t> cores, std::uint32_t rank,
                          std::uint32_t tasks) {
  proto::StepNode out;
  out.node = node.name;
  out.address = node.facts.address;
  out.public_key = node.public_key;
  out.cpus = std::move(cores);
  out.first_rank = rank;
  out.tasks = tasks;
  return out;
}

// Numbers the tasks round-robin over the nodes that still have tasks left, `block` at a time.
void number_in_turn(std::vector<proto::StepNode>& nodes, std::uint32_t block) {
  std::uint32_t rank = 0;
  for (bool more = true; more;) {
    more = false;
    for (proto::StepNode& node : nodes)
      for (std::uint32_t i = 0; i < block && node.ranks.size() < node.tasks; ++i) {
        node.ranks.push_back(rank++);
        more = true;
      }
  }
  for (proto::StepNode& node : nodes) node.first_rank = node.ranks.front();
}

// Numbers the tasks of a step that have no number yet, in the way that the step asks for.
void number(std::vector<proto::StepNode>& nodes, bool cyclic, std::uint32_t block) {
  const bool numbered = !nodes.empty() && !nodes.front().ranks.empty();
  if (!numbered && (cyclic || block > 0)) number_in_turn(nodes, std::max(block, 1u));
}

struct StepPlan {
  std::vector<const NodeRun*> nodes;  // empty: the step has to wait for other steps
  std::vector<std::uint32_t> tasks;   // by node, each above 0
  std::vector<std::vector<std::uint32_t>>
      ranks;  // by node; empty: numbered as proto::StepShape asks
  std::uint32_t total = 0;
  std::uint32_t cpus_per_task = 1;
  StepClaims claims;
  [[nodiscard]] bool busy() const { return nodes.empty() || claims.busy; }
};

// How many GPUs the tasks of the step may use, on all of its nodes.
std::uint32_t gpus_seen(const StepPlan& plan) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i)
    sum += i < plan.claims.gpus.size() ? plan.claims.gpus[i].size()
                                       : plan.nodes[i]->grant.devices.size();
  return static_cast<std::uint32_t>(sum);
}

// Adds the job's GPUs and memory that the step has for itself.
Result<StepPlan> with_claims(const State& state, const Job& job, const proto::StepShape& shape,
                             StepPlan plan) {
  ASSIGN(claims, claims_of(state, job, shape, plan.nodes, plan.tasks, plan.cpus_per_task));
  plan.claims = std::move(*claims);
  return plan;
}

// The plan of a step that names the node of each of its tasks.
Result<StepPlan> plan_by_hosts(const Context& ctx, const Job& job, const proto::StepShape& shape,
                               StepPlan plan) {
  std::map<std::string, std::vector<std::uint32_t>> by_name;
  for (std::uint32_t rank = 0; rank < shape.hosts.size(); ++rank)
    by_name[shape.hosts[rank]].push_back(rank);
  plan.total = static_cast<std::uint32_t>(shape.hosts.size());
  for (const NodeRun& run : job.active->nodes) {
    const auto here = by_name.find(ctx.state.node(run.grant.node).name);
    if (here == by_name.end() || run.given_back) continue;
    const std::uint32_t room = room_in(run.grant.cpus.size(), shape, plan.cpus_per_task);
    if (here->second.size() > room)
      return fail(ErrorCode::never_fits,
                  fmt::format("{} tasks of {} cores do not fit the step's node {}, which has room "
                              "for {}",
                              here->second.size(), plan.cpus_per_task, here->first, room));
    if (shape.exclusive &&
        room_in(free_cores(job, run), shape, plan.cpus_per_task) < here->second.size())
      return StepPlan{};
    plan.nodes.push_back(&run);
    plan.tasks.push_back(static_cast<std::uint32_t>(here->second.size()));
    plan.ranks.push_back(std::move(here->second));
    by_name.erase(here);
  }
  if (by_name.empty()) return plan;
  return fail(ErrorCode::invalid_argument,
              fmt::format("node {} is not one of job {}'s", by_name.begin()->first,
                          display_id(ctx.state, job)));
}

Result<StepPlan> plan_step(const Context& ctx, const Job& job, proto::StepShape shape) {
  const JobShape& whole = class_of(ctx.state, job).shape;
  shape.overcommit = shape.overcommit || whole.overcommit;
  StepPlan plan;
  if (!shape.all_cores)
    plan.cpus_per_task =
        shape.cpus_per_task > 0 ? shape.cpus_per_task : std::max(1u, whole.cpus_per_task);
  if (!shape.hosts.empty()) {
    auto by_hosts = plan_by_hosts(ctx, job, shape, std::move(plan));
    return by_hosts ? with_claims(ctx.state, job, shape, std::move(*by_hosts)) : by_hosts;
  }
  ASSIGN(nodes, nodes_of(ctx, job, shape, plan.cpus_per_task));
  plan.total = shape.tasks;
  if (plan.total == 0 && shape.tasks_per_node)
    plan.total = *shape.tasks_per_node * static_cast<std::uint32_t>(nodes->size());
  if (plan.total == 0)
    for (const NodeRun* run : *nodes) plan.total += std::max(1u, run->grant.tasks);
  if (plan.total > kMaxStepTasks)
    return fail(ErrorCode::limit_exceeded, fmt::format("{} tasks in a step; at most {} are allowed",
                                                       plan.total, kMaxStepTasks));
  keep_nodes(ctx.state, job, *nodes, std::max(shape.nodes, plan.total), plan.cpus_per_task, shape);
  if (shape.nodes > plan.total) plan.total = shape.nodes;
  ASSIGN(tasks, layout(job, *nodes, plan.total, shape, plan.cpus_per_task));
  for (std::size_t i = 0; i < tasks->size(); ++i) {
    if ((*tasks)[i] == 0) continue;
    plan.nodes.push_back((*nodes)[i]);
    plan.tasks.push_back((*tasks)[i]);
  }
  return with_claims(ctx.state, job, shape, std::move(plan));
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::StepCreate&& message) {
  // A component may be told to start a little later than the leader's script.
  if (const Job* job = ctx.state.jobs.find(message.job);
      job != nullptr && job->phase == Phase::starting && class_of(ctx.state, *job).het &&
      may(May::change, ctx.state, from.who, *job))
    return ctx.reply(from, proto::StepGranted{{}, {}, true});
  const auto found = usable(ctx, from.who, message.job, Trigger::step);
  if (!found) return refuse(ctx, from, found.error());
  const Job& job = **found;
  if (auto r = check_step(ctx, from.who, job, message); !r) return refuse(ctx, from, r.error());
  // As in Slurm, the client asks again until the job is resumed.
  if (job.active->suspended) return ctx.reply(from, proto::StepGranted{{}, {}, true});
  const auto plan = plan_step(ctx, job, message.shape);
  if (!plan) return refuse(ctx, from, plan.error());
  if (plan->busy()) return ctx.reply(from, proto::StepGranted{{}, {}, true});
  auto stored = codec::decode<StoredSpec>(spec_bytes(ctx.state, job));
  GANTRY_ASSERT(stored.has_value(), "a spec that was read once");

  proto::StepPermission permission;
  permission.key = {job.id, job.attempt};
  permission.step = number_of_step(ctx.state, job, message.part_of);
  permission.owner = std::move(stored->owner);
  permission.tasks = plan->total;
  permission.cpus_per_task = plan->cpus_per_task;
  permission.name = message.name;
  permission.expires = ctx.now + kPermissionLife;
  permission.epoch = ctx.state.epoch;
  permission.kill_wait = ctx.config.controller.kill_wait;
  event::StepCreated made;
  made.job = job.id;
  made.step = permission.step;
  made.name = std::move(message.name);
  made.tasks = plan->total;
  made.time_limit = permission.time_limit =
      std::clamp(message.shape.time_limit, Duration{}, kLongestStep);
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < plan->nodes.size(); ++i) {
    const NodeRun& run = *plan->nodes[i];
    const std::size_t count = message.shape.all_cores
                                  ? run.grant.cpus.size()
                                  : std::size_t{plan->tasks[i]} * plan->cpus_per_task;
    permission.nodes.push_back(step_node(ctx.state.node(run.grant.node),
                                         step_cores(job, run, count, message.shape.overlap), rank,
                                         plan->tasks[i]));
    plan->claims.put(i, permission.nodes.back());
    if (!message.shape.overlap) made.cores.push_back(permission.nodes.back().cpus);
    made.cpus += static_cast<std::uint32_t>(permission.nodes.back().cpus.size());
    made.nodes.push_back(run.grant.node);
    rank += plan->tasks[i];
  }
  if (!message.shape.overlap) {
    made.gpus = plan->claims.gpus;
    made.memory = plan->claims.memory;
  }
  made.node_tasks = plan->tasks;
  made.gpus_seen = gpus_seen(*plan);
  made.tres = std::move(message.shape.tres);
  const bool several = permission.nodes.size() > 1;
  if (several) made.block = message.shape.plane;
  made.cyclic = message.shape.cyclic && several && made.block == 0;
  for (std::size_t i = 0; several && i < plan->ranks.size(); ++i) {
    permission.nodes[i].ranks = plan->ranks[i];
    permission.nodes[i].first_rank = plan->ranks[i].front();
  }
  if (several) made.ranks = plan->ranks;
  number(permission.nodes, made.cyclic, made.block);
  ctx.record(made);
  ctx.reply(from, proto::StepGranted{codec::encode(permission), {}, false});
}

static void handle(Context& ctx, const ClientRequest& from, proto::StepDone&& message) {
  const Job* job = ctx.state.jobs.find(message.key.job);
  if (job == nullptr || !may(May::change, ctx.state, from.who, *job))
    return refuse(
        ctx, from,
        {ErrorCode::not_found, fmt::format("there is no job {}", message.key.job.value())});
  // A report about an attempt that is over comes too late: its accounting is written already.
  const bool open = job->attempt == message.key.attempt && job->placed();
  const auto known = [&](const StepState& s) { return s.id == message.step && !s.ended; };
  if (open && std::any_of(job->active->steps.begin(), job->active->steps.end(), known)) {
    hold_to_possible(message, job->started.value_or(ctx.now), ctx.now);
    ctx.record(event::StepEnded{message.key.job, message.step, message.exit, message.started,
                                message.ended, std::move(message.usage), message.timed_out});
  }
  ctx.reply(from, proto::Ok{});
}

namespace {

std::pair<const Job*, const StepState*> running_step(const Context& ctx, const Identity& who,
                                                     const proto::JobRef& ref, StepId id) {
  std::vector<proto::JobRef> unknown;
  const auto found = resolve(ctx.state, who, {ref}, unknown, May::change);
  const Job* job = found.size() == 1 ? &ctx.state.jobs.at(found[0].job) : nullptr;
  if (job == nullptr || !job->placed()) return {};
  for (const StepState& step : job->active->steps)
    if (step.id == id && !step.ended) return {job, &step};
  return {};
}

Error no_such_step(const proto::JobRef& job, StepId step) {
  return {ErrorCode::not_found,
          fmt::format("there is no step {}.{} that runs", format_job_ref(job), step.value())};
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::SignalStep&& message) {
  if (message.signal < 1 || message.signal > 64)
    return refuse(
        ctx, from,
        {ErrorCode::invalid_argument, fmt::format("a signal is 1 to 64, not {}", message.signal)});
  const auto [job, step] = running_step(ctx, from.who, message.job, message.step);
  if (step == nullptr) return refuse(ctx, from, no_such_step(message.job, message.step));
  if (job->active->suspended)
    return refuse(ctx, from,
                  {ErrorCode::wrong_state, fmt::format("job {} is suspended: resume it first",
                                                       display_id(ctx.state, *job))});
  for (const NodeId node : step->nodes) {
    if (ctx.link(node).session == 0) continue;
    ctx.send(node, proto::SignalAttempt{ctx.stamp(node),
                                        {job->id, job->attempt},
                                        message.signal,
                                        proto::SignalScope::steps,
                                        message.step});
  }
  ctx.reply(from, proto::Ok{});
}

// Users who may change the job may see what the step writes; only the job's owner may type into it.
static void handle(Context& ctx, const ClientRequest& from, proto::StepAttach&& message) {
  const auto [job, step] = running_step(ctx, from.who, message.job, message.step);
  // An attached client sees the output of the step and gives it input.
  if (step == nullptr || !may(May::read, ctx.state, from.who, *job))
    return refuse(ctx, from, no_such_step(message.job, message.step));
  if (step->node_tasks.size() != step->nodes.size())
    return refuse(ctx, from,
                  {ErrorCode::unsupported,
                   "the step began under an older controller, which did "
                   "not note where its tasks are"});
  auto stored = codec::decode<StoredSpec>(spec_bytes(ctx.state, *job));
  GANTRY_ASSERT(stored.has_value(), "a spec that was read once");
  proto::StepPermission permission;
  permission.key = {job->id, job->attempt};
  permission.step = step->id;
  permission.owner = std::move(stored->owner);
  permission.tasks = step->tasks;
  permission.name = step->name;
  permission.expires = ctx.now + kPermissionLife;
  permission.epoch = ctx.state.epoch;
  permission.may_type = from.who.owner.uid == permission.owner.uid;
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < step->nodes.size(); ++i) {
    permission.nodes.push_back(
        step_node(ctx.state.node(step->nodes[i]), {}, rank, step->node_tasks[i]));
    rank += step->node_tasks[i];
  }
  for (std::size_t i = 0; i < step->ranks.size(); ++i) {
    permission.nodes[i].ranks = step->ranks[i];
    permission.nodes[i].first_rank = step->ranks[i].front();
  }
  number(permission.nodes, step->cyclic, step->block);
  ctx.reply(from, proto::StepGranted{codec::encode(permission), {}, false, true});
}

static void handle(Context& ctx, const ClientRequest& from, proto::EndAllocation&& message) {
  const auto found = usable(ctx, from.who, message.job, Trigger::end_allocation);
  if (!found) return refuse(ctx, from, found.error());
  const Job& job = **found;
  if (job.kind != JobKind::allocation)
    return refuse(ctx, from,
                  {ErrorCode::wrong_state,
                   fmt::format("job {} is a batch job, not an allocation: cancel it instead",
                               message.job.value())});
  message.exit.code = std::clamp(message.exit.code, 0, 255);
  message.exit.signal = std::clamp(message.exit.signal, 0, 64);
  const bool clean = message.exit == ExitStatus{};
  if (job.phase == Phase::queued)
    end_job(ctx, job.id, Outcome::cancelled, "its owner went away while it waited");
  else if (job.phase != Phase::finishing)
    ctx.record(event::JobFinishing{
        job.id, clean ? Outcome::completed : Outcome::failed, message.exit, {}, {}, {}});
  ctx.reply(from, proto::Ok{});
}

const Subject kStepMessages{
    .name = "step",
    .handlers = kHandlers<proto::StepCreate, proto::StepDone, proto::SignalStep, proto::StepAttach,
                          proto::EndAllocation>};

}  // namespace gantry::core
