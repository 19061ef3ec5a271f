// NodeRegister: a node opens a session. It lists every attempt that it has, and each is compared
// with what is placed there. An attempt that should not run is killed; one whose end is recorded is
// forgotten; one that should run but is not listed has failed, unless its order may never have
// arrived. Missing attempts are judged only when the first heartbeat has shown that this
// registration was no late copy.
#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "common/proto/attempt.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "config/config.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/reported.h"
#include "ctld/core/node/attempt_end.h"
#include "ctld/core/node/node_report.h"
#include "ctld/core/node/subject.h"
#include "ctld/core/node_links.h"
#include "ctld/core/resources/gpus.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr std::size_t kMostLayers = 64;      // layers of isolation that a node can lack
constexpr std::size_t kMostTransport = 128;  // bytes of a node's text about its transport

NodeFacts facts_of(const Node& node, proto::NodeRegister& message, Instant now) {
  NodeFacts facts;
  facts.booted = node.facts.boot_id == message.boot_id ? node.facts.booted : now;
  facts.boot_id = std::move(message.boot_id);
  facts.address = node.declared->address.empty() ? message.address : node.declared->address;
  facts.version = std::move(message.version);
  facts.runtime = std::move(message.runtime);
  facts.layers_off = std::move(message.layers_off);
  if (facts.layers_off.size() > kMostLayers) facts.layers_off.resize(kMostLayers);
  facts.cpus = static_cast<std::uint32_t>(message.cpus.size());
  facts.memory = message.memory;
  facts.scratch = message.scratch;
  facts.sockets = std::max(1u, message.sockets);
  facts.cores_per_socket = std::max(1u, message.cores_per_socket);
  facts.threads_per_core = std::max(1u, message.threads_per_core);
  facts.transport = message.transport.substr(0, kMostTransport);
  facts.gpus = held_to_possible(std::move(message.gpus));
  facts.abilities = message.abilities;
  facts.sandboxes = std::move(message.sandboxes);
  if (facts.sandboxes.size() > kMostLayers) facts.sandboxes.resize(kMostLayers);
  return facts;
}

// For example "reports 2 cores where 4 are declared"; "" = nothing is missing.
std::string shortage(const Node& node, const proto::NodeRegister& message) {
  std::vector<std::uint16_t> have = message.cpus;
  std::sort(have.begin(), have.end());
  if (!std::includes(have.begin(), have.end(), node.cpus.begin(), node.cpus.end())) {
    if (have.size() < node.cpus.size())
      return fmt::format("reports {} cores where {} are declared", have.size(), node.cpus.size());
    return "does not have the declared core numbers";
  }
  if (message.memory < node.declared->memory)
    return fmt::format("reports {} MiB of memory where {} are declared", message.memory >> 20,
                       node.declared->memory >> 20);
  if (message.scratch < node.declared->scratch)
    return fmt::format("reports {} MiB of scratch where {} are declared", message.scratch >> 20,
                       node.declared->scratch >> 20);
  for (const GresCount& g : node.gres) {
    const auto has = std::find_if(message.gres.begin(), message.gres.end(),
                                  [&](const GresCount& m) { return m.name == g.name; });
    if (has == message.gres.end() || has->count < g.count)
      return fmt::format("reports {} of {} where {} are declared",
                         has == message.gres.end() ? 0 : has->count, g.name, g.count);
  }
  return {};
}

const NodeRun* run_of(const Job& job, NodeId node) {
  if (!job.placed()) return nullptr;
  for (const NodeRun& run : job.active->nodes)
    if (run.grant.node == node) return &run;
  return nullptr;
}

// Sorts listed attempts into kill and forget; attempts that belong there go into neither.
void judge_listed(const Context& ctx, NodeId node, const std::vector<proto::AttemptStatus>& listed,
                  proto::NodeAccept& answer) {
  for (const proto::AttemptStatus& status : listed) {
    const Job* job = ctx.state.jobs.find(status.key.job);
    const NodeRun* run = job && job->attempt == status.key.attempt ? run_of(*job, node) : nullptr;
    const bool ours = run != nullptr && run->state != RunState::released;
    if (ours) continue;
    if (status.phase == proto::AttemptPhase::exited)
      answer.forget.push_back(status.key);
    else
      answer.kill.push_back(status.key);
  }
}

// Attempts placed here that the node does not list. Attempts whose order may have been lost are not
// among them, because act() repeats the order. After a reboot, or with an old store, the order may
// have been carried out before, so they are.
std::vector<proto::AttemptKey> missing_from(const Context& ctx, NodeId node, bool rebooted,
                                            const std::vector<proto::AttemptStatus>& listed) {
  std::set<proto::AttemptKey> has;
  for (const proto::AttemptStatus& status : listed) has.insert(status.key);
  std::vector<proto::AttemptKey> missing;
  for (const JobId id : ctx.state.node(node).jobs) {
    const Job& job = ctx.state.jobs.at(id);
    const proto::AttemptKey key{id, job.attempt};
    if (has.contains(key)) continue;
    const NodeRun& run = *run_of(job, node);
    if (rebooted || run.perhaps_over || run.state != RunState::launched) missing.push_back(key);
  }
  return missing;
}

// Takes over what the node reports of the attempts that should run there.
void take_phases(Context& ctx, NodeId node, const std::vector<proto::AttemptStatus>& listed) {
  for (const proto::AttemptStatus& status : listed) {
    if (status.phase == proto::AttemptPhase::held)
      handle(ctx, node, proto::LaunchReady{status.key});
    if (status.phase != proto::AttemptPhase::running) continue;
    handle(ctx, node, proto::Started{status.key, status.started.value_or(Instant{})});
    note_sleep(ctx, node, status.key, status.asleep);
    // An earlier answer may have been lost. If the attempt is frozen now, the node reports that
    // afterwards.
    const Job* job = ctx.state.jobs.find(status.key.job);
    const NodeRun* run = job && job->attempt == status.key.attempt ? run_of(*job, node) : nullptr;
    if (run != nullptr && run->frozen) handle(ctx, node, proto::Frozen{status.key, false});
  }
}

}  // namespace

static void handle(Context& ctx, NodeId id, proto::NodeRegister&& message) {
  const Node& node = ctx.state.node(id);
  if (message.node != node.name || node.declared == nullptr) {
    ++ctx.rt.stats.reports_ignored;
    ctx.note(fmt::format("registration of {} ignored: it came as \"{}\"", node.name, message.node));
    return;
  }
  NodeLink& link = ctx.rt.links->all.at(id.value());
  drop_logs(ctx, id);
  drop_probes(ctx, id);
  link.session = (ctx.state.epoch.value() << 32) | ctx.rt.links->next_session++;
  link.next_seq = 1;
  link.last_seen = ctx.now;
  const bool rebooted = !node.facts.boot_id.empty() && node.facts.boot_id != message.boot_id;
  // A registration may be read long after it was sent, for example when the controller was stopped.
  // So the known offset of the node's clock is kept, unless the machine was rebooted.
  if (rebooted) link.clock = {};
  link.clock.heard(message.sent, ctx.now);

  const std::string missing = shortage(node, message);
  const std::vector<proto::AttemptStatus> listed = std::move(message.attempts);
  proto::NodeAccept answer;
  answer.stamp = {ctx.state.epoch, link.session, 0};
  answer.heard = message.sent;
  answer.cluster = ctx.config.cluster;
  answer.heartbeat = ctx.config.controller.heartbeat;
  if (ctx.config.controller.lost_node_policy == LostNodePolicy::fence)
    answer.fence_after = ctx.config.controller.fence_after;

  const JobId highest = message.highest_job;
  NodeFacts facts = facts_of(node, message, ctx.now);
  link.missing = missing_from(ctx, id, rebooted, listed);
  link.facts.reset();
  if (!link.missing.empty())
    link.facts = std::move(facts);
  else if (!(facts == node.facts))
    ctx.record(event::NodeRegistered{id, std::move(facts)});
  // The nodes can know newer jobs only if an older copy of the store was restored.
  if (highest > ctx.state.last_job &&
      highest.value() - ctx.state.last_job.value() <= proto::kMostIdsAhead)
    ctx.record(event::NodeRegistered{id, node.facts, highest});
  if (node.health != NodeHealth::up) ctx.record(event::NodeHealthChanged{id, NodeHealth::up, {}});
  if (!missing.empty() && node.intent == NodeIntent::open)
    ctx.record(event::NodeIntentChanged{id, NodeIntent::drain, missing, "gantry"});
  if (link.missing.empty()) act_on_faults(ctx, id);

  judge_listed(ctx, id, listed, answer);
  ctx.send(id, std::move(answer));
  take_phases(ctx, id, listed);
  // In the new session, everything has to be sent to this node again.
  for (const JobId job : ctx.state.node(id).jobs) ctx.touched.jobs.push_back(job);
  ctx.touched.nodes.push_back(id);
}

// A registration may come late or twice, and then attempts that it does not list may still exist.
// But a node accepts only the session of its newest registration, so a heartbeat in this session
// proves that the list was the newest.
void judge_missing(Context& ctx, NodeId id) {
  NodeLink& link = ctx.rt.links->all.at(id.value());
  const std::vector<proto::AttemptKey> missing = std::exchange(link.missing, {});
  std::optional<NodeFacts> facts = std::exchange(link.facts, std::nullopt);
  const Node& node = ctx.state.node(id);
  const bool rebooted =
      facts && !node.facts.boot_id.empty() && node.facts.boot_id != facts->boot_id;
  for (const proto::AttemptKey& key : missing) {
    const Job* job = ctx.state.jobs.find(key.job);
    const NodeRun* run = job && job->attempt == key.attempt ? run_of(*job, id) : nullptr;
    if (run == nullptr || run->state == RunState::released) continue;
    proto::ExitReport report;
    report.key = key;
    report.cause = rebooted ? proto::ExitCause::node_rebooted : proto::ExitCause::shim_lost;
    report.message = rebooted ? fmt::format("{} rebooted", node.name)
                              : fmt::format("{} has lost every trace of the job", node.name);
    release_node(ctx, *job, id, std::move(report));
  }
  if (facts && !(*facts == node.facts)) ctx.record(event::NodeRegistered{id, std::move(*facts)});
  act_on_faults(ctx, id);
}

const Subject kNodeRegisterMessages{.name = "node register",
                                    .handlers = kHandlers<proto::NodeRegister>};

}  // namespace gantry::core
