// SyncGate: the report of a gantry-gate, answered with the table that it has to follow.
#include <fmt/core.h>

#include <algorithm>

#include "common/proto/gate.h"
#include "config/config.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/services/gate_table.h"
#include "ctld/core/services/memory.h"
#include "ctld/core/services/reconcile.h"
#include "ctld/core/services/subject.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr std::size_t kMostGates = 64;
constexpr Duration kGateGone = minutes(5);
constexpr Duration kSpanMost = seconds(60);
constexpr Duration kSoonest = milliseconds(200);  // between two looks at all services

// Gates see who asks for what, and affect what services cost: so only those that the cluster's
// configuration names, and operators, may be gates.
bool may_be_gate(const Context& ctx, const Identity& who) {
  const auto& gates = ctx.config.controller.gates;
  return is_operator(ctx.state, who) ||
         std::find(gates.begin(), gates.end(), who.owner.user) != gates.end();
}

void take_samples(Context& ctx, const std::string& gate, std::vector<proto::GateSample>& samples) {
  std::map<std::string, std::pair<std::uint32_t, std::uint32_t>> now;  // running, waiting
  for (proto::GateSample& sample : samples) {
    const auto service = ctx.state.services.all.find(sample.service);
    if (service == ctx.state.services.all.end() || service->second.tenant != sample.tenant)
      continue;
    sample.span = std::clamp(sample.span, Duration{}, kSpanMost);
    ServiceMarks& marks = ctx.rt.services->services[sample.service];
    marks.load.add(sample, ctx.now);
    auto& [running, waiting] = now[sample.service];
    running += sample.running;
    waiting += sample.waiting;
    const std::uint64_t revision = revision_of(sample.version);
    if (revision == 0) continue;
    scale::SetFacts& facts = marks.sets[revision].facts;
    facts.requests += sample.requests;
    facts.errors += sample.errors;
    facts.times.add(sample.times);
  }
  for (const auto& [name, counts] : now) {
    ServiceMarks& marks = ctx.rt.services->services[name];
    marks.running[gate] = counts.first;
    marks.waiting[gate] = counts.second;
  }
}

void take_reports(Context& ctx, const std::string& gate,
                  std::vector<proto::ReplicaReport>& reports) {
  for (proto::ReplicaReport& report : reports) {
    const Job* job = ctx.state.jobs.find(report.key.job);
    if (job == nullptr || job->attempt != report.key.attempt || job->phase == Phase::ended ||
        !ctx.state.services.replicas.contains(report.key.job))
      continue;
    ctx.rt.services->replicas[report.key.job].gates[gate] = {ctx.now, std::move(report)};
  }
}

// Requests of a gate that is gone are no longer counted.
void forget_gates(Context& ctx) {
  auto& gates = ctx.rt.services->gates;
  for (auto it = gates.begin(); it != gates.end();) {
    if (it->second.at + kGateGone > ctx.now) {
      ++it;
      continue;
    }
    for (auto& [name, marks] : ctx.rt.services->services) {
      marks.running.erase(it->first);
      marks.waiting.erase(it->first);
    }
    for (auto& [job, marks] : ctx.rt.services->replicas) marks.gates.erase(it->first);
    it = gates.erase(it);
  }
}

// Whether something waits that only a new look at the services can settle.
bool urgent(const Context& ctx, const proto::SyncGate& said) {
  return std::any_of(said.samples.begin(), said.samples.end(), [&](const proto::GateSample& s) {
    const auto service = ctx.state.services.all.find(s.service);
    return s.waiting > 0 && service != ctx.state.services.all.end() && service->second.wanted == 0;
  });
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::SyncGate&& message) {
  if (!may_be_gate(ctx, from.who))
    return refuse(ctx, from,
                  {ErrorCode::permission_denied,
                   fmt::format("{} is no gate: controller.gates names the users that are",
                               from.who.owner.user)});
  if (message.gate.empty() || message.gate.size() > 64)
    return refuse(ctx, from, {ErrorCode::invalid_argument, "a gate has a name of 1 to 64 bytes"});
  auto& gates = ctx.rt.services->gates;
  const auto it = gates.find(message.gate);
  if (it == gates.end() && gates.size() >= kMostGates)
    return refuse(
        ctx, from,
        {ErrorCode::limit_exceeded, fmt::format("there are {} gates already", kMostGates)});
  if (it != gates.end() && it->second.user != from.who.owner.user &&
      it->second.at + kGateGone > ctx.now)
    return refuse(
        ctx, from,
        {ErrorCode::already_exists, fmt::format("another user's gate is called {}", message.gate)});
  forget_gates(ctx);
  gates[message.gate] = {ctx.now, message.address, message.revision, from.who.owner.user};
  const bool now = urgent(ctx, message);
  take_samples(ctx, message.gate, message.samples);
  take_reports(ctx, message.gate, message.replicas);
  if (now || ctx.now - ctx.rt.services->looked >= kSoonest) run_services(ctx);
  proto::GateTable reply;
  const proto::GateTable& table = ctx.rt.services->table;
  if (table.revision == message.revision && table.revision != 0) {
    reply.revision = table.revision;
    reply.unchanged = true;
  } else {
    reply = table;
  }
  ctx.reply(from, std::move(reply));
}

const Subject kGateMessages{.name = "gate", .handlers = kHandlers<proto::SyncGate>};

}  // namespace gantry::core
