// ListServices and ChangeService: services for people.
#include <fmt/core.h>

#include <algorithm>

#include "ctld/core/access/authorise.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/handlers.h"
#include "ctld/core/services/gate_table.h"
#include "ctld/core/services/reconcile.h"
#include "ctld/core/services/sets.h"

namespace gantry::core {
namespace {

constexpr std::int64_t kMinute = 60;  // seconds that listings look back

std::string state_of(const Job& job, const ReplicaMarks* marks) {
  if (job.phase == Phase::queued) return "pending";
  if (job.phase == Phase::finishing || (marks != nullptr && marks->draining)) return "draining";
  if (marks != nullptr && marks->ready) return "ready";
  return marks != nullptr && marks->was_ready ? "unready" : "starting";
}

proto::ReplicaRow replica_row(const Context& ctx, const Job& job, const ReplicaOf& of) {
  const auto it = ctx.rt.services.replicas.find(job.id);
  const ReplicaMarks* marks = it == ctx.rt.services.replicas.end() ? nullptr : &it->second;
  proto::ReplicaRow row;
  row.job = job.id;
  row.version = set_name(of.version, of.revision);
  row.shape = of.shape;
  row.since = job.started.value_or(job.submitted);
  row.state = state_of(job, marks);
  if (job.placed()) row.node = ctx.state.node(job.active->nodes.front().grant.node).name;
  if (marks == nullptr) return row;
  if (marks->ready) row.since = *marks->ready;
  for (const auto& [gate, said] : marks->gates) {
    row.running += said.report.running;
    row.response = std::max(row.response, said.report.response);
    if (row.state != "ready" && row.why.empty()) row.why = said.report.why;
  }
  return row;
}

std::string rollout_text(const tenancy::Service& doc, const ServiceState& service) {
  std::string out;
  for (const ReplicaSet& set : service.sets)
    if (const ReplicaSet* before = set_before(service, set))
      out += fmt::format("{}{} of {} since {}: {} takes the place of {}", out.empty() ? "" : "; ",
                         enum_name(doc.rollout.kind), set.what.name, format_time(set.since),
                         set_name(set.what.name, set.revision),
                         set_name(before->what.name, before->revision));
  return out;
}

void fill_load(const Context& ctx, const tenancy::Service& doc, const ServiceMarks& marks,
               proto::ServiceRow& row) {
  const scale::LoadSum sum = marks.load.last(kMinute, ctx.now);
  const scale::TimeCounts times = marks.load.times(kMinute, ctx.now);
  row.requests = sum.requests;
  row.errors = sum.errors;
  row.refused = sum.refused;
  row.p50 = times.percentile(50);
  row.reached = times.percentile(doc.percentile);
  row.p99 = times.percentile(99);
  for (const auto& [gate, n] : marks.running) row.running += n;
  for (const auto& [gate, n] : marks.waiting) row.waiting += n;
  row.minutes = marks.load.minutes();
  row.minutes_kept = marks.load.minutes_kept();
  const std::uint32_t at_once = std::max(1u, doc.route.concurrency);
  if (row.ready > 0)
    row.utilisation = static_cast<std::uint32_t>(
        std::min(100.0, sum.concurrency * 100 / (double(row.ready) * at_once)));
  if (!marks.cost) return;
  const auto placed = static_cast<std::int64_t>(row.ready + row.draining);
  row.cost_per_hour = Money{marks.cost->micros * placed};
  row.currency = ctx.state.ledger.prices.currency;
  if (sum.rate() > 0)
    row.cost_per_1000 = Money{static_cast<std::int64_t>(
        static_cast<double>(row.cost_per_hour->micros) / (sum.rate() * 3600) * 1000)};
}

proto::ServiceRow row_of(const Context& ctx, const std::string& name, const ServiceState& service,
                         const tenancy::Service& doc, bool whole) {
  proto::ServiceRow row;
  row.name = name;
  row.tenant = service.tenant;
  row.wanted = service.wanted;
  row.least = doc.scale.least;
  row.most = doc.scale.most;
  row.reason = service.reason;
  row.target = doc.target;
  row.percentile = doc.percentile;
  row.paused = service.paused;
  row.hosts = tenancy::hosts_of(doc);
  row.rollout = rollout_text(doc, service);
  if (!service.sets.empty()) row.owner = service.sets.back().owner.user;
  for (const proto::GateService& one : ctx.rt.services.table.services)
    if (one.name == name) row.versions = one.versions;
  if (const auto jobs = ctx.state.services.jobs.find(name); jobs != ctx.state.services.jobs.end())
    for (const JobId id : jobs->second) {
      const Job& job = ctx.state.jobs.at(id);
      if (job.phase == Phase::ended) continue;
      proto::ReplicaRow one = replica_row(ctx, job, ctx.state.services.replicas.at(id));
      if (one.state == "ready") ++row.ready;
      if (one.state == "pending" || one.state == "starting") ++row.pending;
      if (one.state == "draining") ++row.draining;
      if (whole) row.replicas.push_back(std::move(one));
    }
  if (whole) row.events = service.events;
  const auto marks = ctx.rt.services.services.find(name);
  if (marks == ctx.rt.services.services.end()) return row;
  if (!marks->second.reason.empty()) row.reason = marks->second.reason;
  fill_load(ctx, doc, marks->second, row);
  return row;
}

void add_gates(const Context& ctx, proto::ServiceList& out) {
  for (const auto& [name, gate] : ctx.rt.services.gates)
    if (gate.at + kGateSilent > ctx.now)
      out.gates.push_back(fmt::format("{} {}", name, gate.address));
}

// Who may change what a service runs may command it.
bool may_change(const Context& ctx, const Identity& who, const std::string& tenant) {
  return is_admin(who) || has_right(ctx.state, who, tenant, tenancy::TenantRight::change_jobs);
}

}  // namespace

void handle(Context& ctx, const ClientRequest& from, proto::ListServices&& message) {
  const Sight sight(ctx.state, from.who);
  proto::ServiceList out;
  for (const auto& [name, service] : ctx.state.services.all) {
    const tenancy::Service* doc = service_document(ctx.state, name);
    if (doc == nullptr || !sight.tenant(service.tenant)) continue;
    if (!message.name.empty() && message.name != name) continue;
    if (!message.tenants.empty() && std::find(message.tenants.begin(), message.tenants.end(),
                                              service.tenant) == message.tenants.end())
      continue;
    out.rows.push_back(row_of(ctx, name, service, *doc, !message.name.empty()));
  }
  if (!message.name.empty() && out.rows.empty())
    return refuse(ctx, from,
                  {ErrorCode::not_found, fmt::format("there is no service {}", message.name)});
  add_gates(ctx, out);
  ctx.reply(from, std::move(out));
}

void handle(Context& ctx, const ClientRequest& from, proto::ChangeService&& message) {
  const auto it = ctx.state.services.all.find(message.name);
  const Sight sight(ctx.state, from.who);
  if (it == ctx.state.services.all.end() || !sight.tenant(it->second.tenant))
    return refuse(ctx, from,
                  {ErrorCode::not_found, fmt::format("there is no service {}", message.name)});
  if (!may_change(ctx, from.who, it->second.tenant))
    return refuse(
        ctx, from,
        {ErrorCode::permission_denied, fmt::format("{} may not change services of tenant {}",
                                                   from.who.owner.user, it->second.tenant)});
  const std::string& user = from.who.owner.user;
  switch (message.action) {
    case proto::ServiceAction::pause: pause_service(ctx, message.name, true, user); break;
    case proto::ServiceAction::resume: pause_service(ctx, message.name, false, user); break;
    case proto::ServiceAction::roll_back:
      if (!roll_back(ctx, message.name, "asked by " + user))
        return refuse(ctx, from,
                      {ErrorCode::wrong_state,
                       fmt::format("no rollout of service {} is under way: there is nothing to go "
                                   "back to",
                                   message.name)});
      break;
    case proto::ServiceAction::restart: restart_service(ctx, message.name, from.who); break;
  }
  proto::ServiceList out;
  const ServiceState& service = ctx.state.services.all.at(message.name);
  if (const tenancy::Service* doc = service_document(ctx.state, message.name))
    out.rows.push_back(row_of(ctx, message.name, service, *doc, true));
  add_gates(ctx, out);
  ctx.reply(from, std::move(out));
}

}  // namespace gantry::core
