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
#include "common/proto/job_text.h"
#include "common/text/text.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/select.h"
#include "ctld/core/handlers.h"
#include "ctld/core/job/reported.h"
#include "ctld/core/job/step_claims.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/moves.h"
#include "ctld/core/state/record.h"

namespace gantry::core {
namespace {

constexpr Duration kPermissionLife = minutes(10);  // time in which the step has to be launched
constexpr std::uint32_t kMaxStepTasks = 65'536;
constexpr Duration kLongestStep = hours(24 * 3'650);

// The placed job, if the asker may change it.
Result<const Job*> usable(const Context& ctx, const Identity& who, JobId id, Trigger trigger) {
  const Job* job = ctx.state.jobs.find(id);
  if (job == nullptr || !may(May::change, ctx.state, who, *job))
    return fail(ErrorCode::not_found, fmt::format("there is no job {}", id.value()));
  if (job->is_array())
    return fail(ErrorCode::invalid_argument,
                fmt::format("job {} is an array: name one task", id.value()));
  if (const auto legal = may_move(trigger, job->phase, display_id(ctx.state, *job)); !legal)
    return tl::unexpected(legal.error());
  return job;
}

// The number of tasks that fit on this many cores.
std::uint32_t room_in(std::size_t cores, const proto::StepShape& shape,
                      std::uint32_t cpus_per_task) {
  const auto tasks = static_cast<std::uint32_t>(cores) / cpus_per_task;
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

// Keeps `most` nodes in rank order, preferring those with free cores for a task.
void keep_nodes(const Job& job, std::vector<const NodeRun*>& nodes, std::size_t most,
                std::uint32_t cpus_per_task, bool overlap) {
  if (nodes.size() <= most) return;
  if (!overlap)
    std::stable_partition(nodes.begin(), nodes.end(), [&](const NodeRun* run) {
      return free_cores(job, *run) >= cpus_per_task;
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
  for (const NodeRun& run : job.active->nodes) held.insert(run.grant.node);
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
    if ((named.empty() || named.contains(run.grant.node)) && !excluded.contains(run.grant.node))
      out.push_back(&run);
  if (out.empty())
    return fail(ErrorCode::never_fits,
                fmt::format("all nodes of job {} are excluded", display_id(ctx.state, job)));
  if (shape.nodes > out.size())
    return fail(ErrorCode::invalid_argument,
                fmt::format("the step asks for {} nodes, job {} has {}", shape.nodes,
                            display_id(ctx.state, job), out.size()));
  if (shape.nodes > 0) keep_nodes(job, out, shape.nodes, cpus_per_task, shape.overlap);
  return out;
}

using Counts = std::vector<std::uint32_t>;  // number of tasks by node

// Deals the tasks to the nodes in turn, so that 8 tasks on 3 nodes are 3, 3, 2. Needs room for all.
Counts deal(std::uint32_t tasks, const Counts& room) {
  Counts out(room.size(), 0);
  for (std::uint32_t left = tasks; left > 0;)
    for (std::size_t i = 0; i < room.size() && left > 0; ++i)
      if (out[i] < room[i]) {
        ++out[i];
        --left;
      }
  return out;
}

// Number of tasks by node. Empty: there is room, but other steps have it now.
Result<Counts> layout(const Job& job, const std::vector<const NodeRun*>& nodes, std::uint32_t tasks,
                      const proto::StepShape& shape, std::uint32_t cpus_per_task) {
  Counts room, free;
  for (const NodeRun* run : nodes) {
    room.push_back(room_in(run->grant.cpus.size(), shape, cpus_per_task));
    if (shape.exclusive) free.push_back(room_in(free_cores(job, *run), shape, cpus_per_task));
  }
  const auto in_all = std::accumulate(room.begin(), room.end(), std::uint32_t{0});
  if (tasks > in_all)
    return fail(
        ErrorCode::never_fits,
        fmt::format("{} tasks of {} cores do not fit the step's nodes, which have room for {}",
                    tasks, cpus_per_task, in_all));
  if (!shape.exclusive) return deal(tasks, room);
  const auto free_in_all = std::accumulate(free.begin(), free.end(), std::uint32_t{0});
  const auto full = [](std::uint32_t tasks_free) { return tasks_free == 0; };
  if (tasks > free_in_all || (shape.nodes > 0 && std::any_of(free.begin(), free.end(), full)))
    return Counts{};
  return deal(tasks, free);
}

// The cores that the fewest other steps use; with overlap simply the first ones.
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

// Numbers the tasks round-robin over the nodes that still have tasks left.
void number_cyclic(std::vector<proto::StepNode>& nodes) {
  std::uint32_t rank = 0;
  for (bool more = true; more;) {
    more = false;
    for (proto::StepNode& node : nodes) {
      if (node.ranks.size() == node.tasks) continue;
      node.ranks.push_back(rank++);
      more = true;
    }
  }
  for (proto::StepNode& node : nodes) node.first_rank = node.ranks.front();
}

struct StepPlan {
  std::vector<const NodeRun*> nodes;  // empty: the step has to wait for other steps
  std::vector<std::uint32_t> tasks;   // by node, each above 0
  std::uint32_t total = 0;
  std::uint32_t cpus_per_task = 1;
  StepClaims claims;
  [[nodiscard]] bool busy() const { return nodes.empty() || claims.busy; }
};

Result<StepPlan> plan_step(const Context& ctx, const Job& job, const proto::StepShape& shape) {
  const JobShape& whole = class_of(ctx.state, job).shape;
  StepPlan plan;
  if (!shape.all_cores)
    plan.cpus_per_task =
        shape.cpus_per_task > 0 ? shape.cpus_per_task : std::max(1u, whole.cpus_per_task);
  auto nodes = nodes_of(ctx, job, shape, plan.cpus_per_task);
  if (!nodes) return tl::unexpected(nodes.error());
  plan.total = shape.tasks;
  if (plan.total == 0 && shape.tasks_per_node)
    plan.total = *shape.tasks_per_node * static_cast<std::uint32_t>(nodes->size());
  if (plan.total == 0)
    for (const NodeRun* run : *nodes) plan.total += std::max(1u, run->grant.tasks);
  if (plan.total > kMaxStepTasks)
    return fail(ErrorCode::limit_exceeded, fmt::format("{} tasks in a step; at most {} are allowed",
                                                       plan.total, kMaxStepTasks));
  keep_nodes(job, *nodes, std::max(shape.nodes, plan.total), plan.cpus_per_task, shape.overlap);
  if (shape.nodes > plan.total) plan.total = shape.nodes;
  auto tasks = layout(job, *nodes, plan.total, shape, plan.cpus_per_task);
  if (!tasks) return tl::unexpected(tasks.error());
  for (std::size_t i = 0; i < tasks->size(); ++i) {
    if ((*tasks)[i] == 0) continue;
    plan.nodes.push_back((*nodes)[i]);
    plan.tasks.push_back((*tasks)[i]);
  }
  auto claims = claims_of(ctx.state, job, shape, plan.nodes, plan.tasks, plan.cpus_per_task);
  if (!claims) return tl::unexpected(claims.error());
  plan.claims = std::move(*claims);
  return plan;
}

Result<void> check_step(const Context& ctx, const Identity& who, const Job& job,
                        const proto::StepCreate& message) {
  // A step runs as the job's owner, so to change a job, as a tenant's admin may, is not enough.
  if (job.uid != who.owner.uid && !is_admin(who))
    return fail(ErrorCode::permission_denied,
                fmt::format("only the owner of job {} may start steps in it: they run as that user",
                            display_id(ctx.state, job)));
  if (auto r = check_text("the step's name", message.name, kMaxNameBytes); !r) return r;
  if (auto r = check_text("the GPUs' model", message.shape.gpu_model, kMaxNameBytes); !r) return r;
  const std::size_t named = std::max(message.shape.nodelist.size(), message.shape.excluded.size());
  if (named > kMaxJobNodes)
    return fail(
        ErrorCode::limit_exceeded,
        fmt::format("the step names {} nodes; at most {} may be named", named, kMaxJobNodes));
  if (job.active->steps.size() >= ctx.config.controller.max_job_steps)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("job {} has had {} steps; controller.max_job_steps allows no more",
                            display_id(ctx.state, job), job.active->steps.size()));
  return {};
}

// Steps of a heterogeneous job are numbered through all of its components, and a step over several
// of them has one number.
StepId number_of_step(const State& state, const Job& job, std::optional<StepId> part_of) {
  StepId next = job.active->next_step;
  const auto& het = class_of(state, job).het;
  if (!het) return next;
  for (std::uint32_t i = 0; i < het->size; ++i) {
    const Job* other = state.jobs.find(het->member(i));
    if (other == nullptr || !other->active || other == &job) continue;
    if (part_of && *part_of >= job.active->next_step &&
        StepId(part_of->value() + 1) == other->active->next_step)
      return *part_of;
    next = std::max(next, other->active->next_step);
  }
  return next;
}

}  // namespace

void handle(Context& ctx, const ClientRequest& from, proto::StepCreate&& message) {
  // A component may be told to go a little later than the leader's script begins.
  if (const Job* job = ctx.state.jobs.find(message.job);
      job != nullptr && job->phase == Phase::starting && class_of(ctx.state, *job).het &&
      may(May::change, ctx.state, from.who, *job))
    return ctx.reply(from, proto::StepGranted{{}, {}, true});
  const auto found = usable(ctx, from.who, message.job, Trigger::step);
  if (!found) return refuse(ctx, from, found.error());
  const Job& job = **found;
  if (auto r = check_step(ctx, from.who, job, message); !r) return refuse(ctx, from, r.error());
  // The client asks again, as in Slurm, until the job goes on.
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
  made.cyclic = message.shape.cyclic && permission.nodes.size() > 1;
  if (made.cyclic) number_cyclic(permission.nodes);
  ctx.record(std::move(made));
  ctx.reply(from, proto::StepGranted{codec::encode(permission), {}, false});
}

void handle(Context& ctx, const ClientRequest& from, proto::StepDone&& message) {
  const Job* job = ctx.state.jobs.find(message.key.job);
  if (job == nullptr || !may(May::change, ctx.state, from.who, *job))
    return refuse(
        ctx, from,
        {ErrorCode::not_found, fmt::format("there is no job {}", message.key.job.value())});
  // A report about an attempt that is over comes too late: the accounting is written.
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

void handle(Context& ctx, const ClientRequest& from, proto::SignalStep&& message) {
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
void handle(Context& ctx, const ClientRequest& from, proto::StepAttach&& message) {
  const auto [job, step] = running_step(ctx, from.who, message.job, message.step);
  if (step == nullptr) return refuse(ctx, from, no_such_step(message.job, message.step));
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
  if (step->cyclic) number_cyclic(permission.nodes);
  ctx.reply(from, proto::StepGranted{codec::encode(permission), {}, false, true});
}

void handle(Context& ctx, const ClientRequest& from, proto::EndAllocation&& message) {
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

}  // namespace gantry::core
