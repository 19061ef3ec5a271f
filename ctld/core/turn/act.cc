// Orders to nodes, derived from what a job is and what was sent last; see settle.h.
//
//   launched                     -> Launch (held, if there are more nodes or components)
//   ready, and so are all        -> Go
//   running, not as wanted       -> Freeze (to freeze or to thaw)
//   finishing, not released      -> Terminate
//   given back, not released     -> Terminate
//
// An order that has not changed State yet is sent again, with growing pauses. A node carries out
// each order once.
#include <fmt/core.h>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "common/job/older_given.h"
#include "common/proto/gate.h"
#include "common/proto/job_network.h"
#include "common/proto/node_order.h"
#include "common/text/text.h"
#include "config/config.h"
#include "ctld/core/context.h"
#include "ctld/core/job/het.h"
#include "ctld/core/node_links.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/record.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/network.h"
#include "ctld/core/tenancy/secrets.h"
#include "ctld/core/tenancy/storage.h"
#include "ctld/core/turn/memory.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

constexpr Duration kResendFirst = seconds(5);  // doubles each time
constexpr Duration kResendMost = seconds(60);

store::Digest digest_of_bytes(const Bytes& bytes) {
  store::Digest out{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), out.size()), out.begin());
  return out;
}

SentKind wanted(const State& state, const Job& job, const NodeRun& run) {
  if (run.state == RunState::released) return SentKind::none;
  if (job.phase == Phase::finishing || run.given_back) return SentKind::terminate;
  if (run.state == RunState::launched) return SentKind::launch;
  const bool freeze = job.active->suspended.has_value();
  if (run.state == RunState::running && run.frozen != freeze)
    return freeze ? SentKind::freeze : SentKind::thaw;
  if (run.state != RunState::ready) return SentKind::none;
  for (const NodeRun& other : job.active->nodes)
    if (other.state == RunState::launched) return SentKind::none;
  return siblings_ready(state, job) ? SentKind::go : SentKind::none;
}

NodePlacement placement_of(const State& state, const sched::NodeGrant& grant) {
  return {state.node(grant.node).name,
          grant.cpus,
          grant.memory,
          grant.scratch,
          grant.tasks,
          grant.devices,
          grant.gres};
}

proto::NetworkPart part_of(const State& state, const Job& job, const sched::NodeGrant& grant) {
  const Node& node = state.node(grant.node);
  return {node.name,           grant.node.value(), job.id,
          grant.slot,          node.facts.address, network_group(state, job),
          node.facts.transport};
}

// Jobs of tenants may be on any node, so the node is told the addresses of all others: each has a
// part of job 0, which is no real job and whose address nobody uses.
void fill_ways(const State& state, proto::JobNetwork& network) {
  if (network.reach.to.empty() && network.reach.from.empty()) return;
  for (const Node& node : state.nodes)
    if (!node.facts.address.empty() && node.id.value() != network.own.number)
      network.peers.push_back({node.name, node.id.value(), JobId{}, std::nullopt,
                               node.facts.address, 0, node.facts.transport});
}

// A job that asked for no own network runs without one on nodes that make none: it may have been
// submitted before they reported so.
void settle_network(const Context& ctx, const Job& job, JobSpec& spec) {
  if (spec.network != NetworkMode::job || spec.network_named) return;
  const auto& nodes = job.active->nodes;
  if (!ctx.config.controller.job_networks ||
      std::any_of(nodes.begin(), nodes.end(), [&](const NodeRun& run) {
        return no_job_networks(ctx.state.node(run.grant.node)).has_value();
      }))
    spec.network = NetworkMode::loopback;
}

// Tells the node of all other parts of the job, also of other components: they are placed together.
void fill_network(const State& state, const Job& job, std::uint32_t index, proto::Launch& launch) {
  if (launch.spec.network != NetworkMode::job) return;
  proto::JobNetwork& network = launch.network.emplace();
  network.reach = reach_of(state, job, launch.spec.network_profile);
  network.bits_per_second = launch.spec.network_rate;
  const auto& het = class_of(state, job).het;
  for (std::uint32_t i = 0; i < (het ? het->size : 1); ++i) {
    const Job* part = het ? state.jobs.find(het->member(i)) : &job;
    if (part == nullptr || !part->placed()) continue;
    for (std::uint32_t n = 0; n < part->active->nodes.size(); ++n) {
      auto there = part_of(state, *part, part->active->nodes[n].grant);
      if (part->id == job.id && n == index)
        network.own = std::move(there);
      else
        network.peers.push_back(std::move(there));
    }
  }
  fill_ways(state, network);
}

void fill_array(const State& state, const Job& job, proto::Launch& launch) {
  if (!job.is_element()) return;
  const ArrayIndexes& indexes = state.jobs.at(job.array).tasks->indexes;
  launch.array_job = job.array;
  launch.array_task = job.task;
  launch.array_count = indexes.count();
  launch.array_min = indexes.ranges().front().first;
  launch.array_max = indexes.ranges().back().last;
  launch.array_step = indexes.ranges().front().step;
}

// Components are placed together, so all of them are placed when the first one is launched.
void fill_components(const State& state, const Job& job, proto::Launch& launch) {
  const auto& het = class_of(state, job).het;
  for (std::uint32_t i = 0; het && launch.runs_batch && i < het->size; ++i) {
    proto::HetGroup& group = launch.het.emplace_back();
    group.job = het->member(i);
    const Job* part = state.jobs.find(group.job);
    if (part == nullptr || !part->placed()) continue;  // this component was cancelled alone
    const auto stored = codec::decode<StoredSpec>(spec_bytes(state, *part));
    GANTRY_ASSERT(stored.has_value(), "a spec that was read once");
    group.partition = state.partition(class_of(state, *part).partition).name;
    group.shape = class_of(state, *part).shape;
    group.given = stored->spec.given;
    group.older_given = given_for_older_node(group.given, std::nullopt, "");
    group.name = stored->spec.name;
    group.priority_class = stored->spec.priority_class;
    for (const NodeRun& run : part->active->nodes)
      group.placement.push_back(placement_of(state, run.grant));
  }
}

void send_launch(Context& ctx, const Job& job, std::uint32_t index) {
  auto stored = codec::decode<StoredSpec>(spec_bytes(ctx.state, job));
  GANTRY_ASSERT(stored.has_value(), "a spec that was read once");
  const Active& active = *job.active;
  proto::Launch launch;
  launch.stamp = ctx.stamp(active.nodes[index].grant.node);
  launch.key = {job.id, job.attempt};
  launch.hold = active.nodes.size() > 1 || class_of(ctx.state, job).het;
  launch.runs_batch = index == 0 && job.kind == JobKind::batch;
  fill_array(ctx.state, job, launch);
  fill_components(ctx.state, job, launch);
  launch.restarts = job.restarts;
  launch.owner = std::move(stored->owner);
  launch.spec = std::move(stored->spec);
  launch.spec.name = ctx.state.names.text(job.name);
  launch.spec.shape = class_of(ctx.state, job).shape;
  launch.spec.requeue = job.may_requeue;
  launch.spec.older_given =
      given_for_older_node(launch.spec.given, launch.spec.distribution, launch.spec.submit_dir);
  for (const NodeRun& run : active.nodes)
    launch.placement.push_back(placement_of(ctx.state, run.grant));
  launch.node_index = index;
  settle_network(ctx, job, launch.spec);
  fill_network(ctx.state, job, index, launch);
  const Partition& queue = ctx.state.partition(class_of(ctx.state, job).partition);
  launch.partition = queue.name;
  launch.tenant = queue.payer();
  launch.time_limit = time_limit_of(ctx.state, job);
  launch.placed_at = active.placed;
  BlobRefs blobs;
  if (!stored->script_digest.empty() && launch.runs_batch)
    blobs.script = digest_of_bytes(stored->script_digest);
  if (!stored->environment_digest.empty())
    blobs.environment = digest_of_bytes(stored->environment_digest);
  launch.storage = storage_for(ctx.state, job);
  if (launch.spec.replica && active.door != 0)  // the shell fills in the password
    launch.door =
        proto::JobDoor{static_cast<std::uint16_t>(active.door), launch.spec.replica->port, ""};
  blobs.sealed = sealed_for(ctx.state, job);
  add_object_store(ctx.state, job, launch, blobs);
  blobs.identity = claims_for(ctx.state, job, launch.spec, active.nodes[index].grant.node);
  ctx.send(active.nodes[index].grant.node, std::move(launch), std::move(blobs));
}

// Clients of Slurm search for the words after "CANCELLED AT".
std::string notice_of(const State& state, const Job& job, const NodeRun& run) {
  const Finish& finish = *job.active->finish;
  if (!job.started) return {};  // the job has no output that somebody reads
  std::string_view why;
  if (finish.requeue == RequeueWhy::asked)
    why = " DUE TO JOB REQUEUE";
  else if (finish.requeue == RequeueWhy::preempted)
    why = " DUE TO PREEMPTION";
  else if (finish.requeue == RequeueWhy::idle_gpus)
    why = " DUE TO IDLE GPUS";
  else if (finish.requeue)
    why = " DUE TO NODE FAILURE";
  else if (finish.outcome == Outcome::timeout)
    why = " DUE TO TIME LIMIT";
  else if (finish.outcome == Outcome::deadline)
    why = " DUE TO DEADLINE";
  else if (finish.outcome == Outcome::node_fail)
    why = " DUE TO NODE FAILURE";
  else if (finish.outcome != Outcome::cancelled)
    return {};
  return fmt::format("slurmstepd: error: *** JOB {} ON {} CANCELLED AT {}{} ***", job.id.value(),
                     state.node(run.grant.node).name, format_time(finish.since), why);
}

void send_terminate(Context& ctx, const Job& job, const NodeRun& run) {
  proto::Terminate order;
  order.stamp = ctx.stamp(run.grant.node);
  order.key = {job.id, job.attempt};
  const std::optional<Finish>& finish = job.active->finish;
  Duration grace = ctx.config.controller.kill_wait;
  if (finish) grace = finish->grace.value_or(grace);
  // The grace time counts from the decision, so a repeated order does not extend it.
  const Instant since = run.given_back ? *run.given_back : finish->since;
  order.grace = std::max(Duration{}, grace - (ctx.now - since));
  if (finish) order.notice = notice_of(ctx.state, job, run);
  ctx.send(run.grant.node, std::move(order));
}

}  // namespace

void act(Context& ctx, const Job& job) {
  if (!job.placed()) {
    ctx.rt.turn->sent.erase(job.id);
    return;
  }
  const auto& nodes = job.active->nodes;
  std::vector<Sent>& sent = ctx.rt.turn->sent[job.id];
  if (sent.size() != nodes.size()) sent.assign(nodes.size(), Sent{});
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const SentKind want = wanted(ctx.state, job, nodes[i]);
    const NodeLink& link = ctx.link(nodes[i].grant.node);
    if (want == SentKind::none || !ctx.hears(nodes[i].grant.node, job)) continue;
    Sent& last = sent[i];
    const bool repeated = last.kind == want && last.session == link.session;
    if (repeated && ctx.now < last.at + last.again) continue;
    if (!repeated)
      last = Sent{want, link.session, ctx.now, ctx.now, kResendFirst};
    else
      last.again = std::min(last.again * 2, kResendMost);
    last.at = ctx.now;
    if (want == SentKind::launch && !nodes[i].perhaps_over) send_launch(ctx, job, i);
    if (want == SentKind::terminate) send_terminate(ctx, job, nodes[i]);
    if (want == SentKind::freeze || want == SentKind::thaw)
      ctx.send(nodes[i].grant.node, proto::Freeze{ctx.stamp(nodes[i].grant.node),
                                                  {job.id, job.attempt},
                                                  want == SentKind::freeze});
    if (want == SentKind::go)
      ctx.send(nodes[i].grant.node,
               proto::Go{ctx.stamp(nodes[i].grant.node), {job.id, job.attempt}});
  }
}

std::optional<Instant> next_act(const Context& ctx, const Job& job) {
  std::optional<Instant> next;
  if (!job.placed()) return next;
  const auto it = ctx.rt.turn->sent.find(job.id);
  if (it == ctx.rt.turn->sent.end()) return next;
  for (std::size_t i = 0; i < it->second.size(); ++i) {
    const NodeRun& run = job.active->nodes[i];
    if (wanted(ctx.state, job, run) == SentKind::none || !ctx.hears(run.grant.node, job)) continue;
    const Instant again = it->second[i].at + it->second[i].again;
    if (!next || again < *next) next = again;
  }
  return next;
}

}  // namespace gantry::core
