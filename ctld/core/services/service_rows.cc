#include "ctld/core/services/service_rows.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/proto/gate.h"
#include "common/proto/services.h"
#include "common/text/text.h"
#include "ctld/core/runtime.h"
#include "ctld/core/services/gate_table.h"
#include "ctld/core/services/sets.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr std::int64_t kMinute = 60;  // seconds of the past that listings count

std::string state_of(const Job& job, const ReplicaMarks* marks) {
  if (job.phase == Phase::queued) return "pending";
  if (job.phase == Phase::finishing || (marks != nullptr && marks->draining)) return "draining";
  if (marks != nullptr && marks->ready) return "ready";
  return marks != nullptr && marks->was_ready ? "unready" : "starting";
}

proto::ReplicaRow replica_row(const ServiceView& v, const Job& job, const ReplicaOf& of) {
  const auto it = v.rt.replicas.find(job.id);
  const ReplicaMarks* marks = it == v.rt.replicas.end() ? nullptr : &it->second;
  proto::ReplicaRow row;
  row.job = job.id;
  row.version = set_name(of.version, of.revision);
  row.shape = of.shape;
  row.since = job.started.value_or(job.submitted);
  row.state = state_of(job, marks);
  if (job.placed()) row.node = v.state.node(job.active->nodes.front().grant.node).name;
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

void fill_load(const ServiceView& v, const tenancy::Service& doc, const ServiceMarks& marks,
               proto::ServiceRow& row) {
  const scale::LoadSum sum = marks.load.last(kMinute, v.now);
  const scale::TimeCounts times = marks.load.times(kMinute, v.now);
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
  row.currency = v.state.ledger.prices.currency;
  if (sum.rate() > 0)
    row.cost_per_1000 = Money{static_cast<std::int64_t>(
        static_cast<double>(row.cost_per_hour->micros) / (sum.rate() * 3600) * 1000)};
}

}  // namespace

proto::ServiceRow service_row(const ServiceView& v, const std::string& name,
                              const ServiceState& service, const tenancy::Service& doc,
                              bool whole) {
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
  for (const proto::GateService& one : v.rt.table.services)
    if (one.name == name) row.versions = one.versions;
  if (const auto jobs = v.state.services.jobs.find(name); jobs != v.state.services.jobs.end())
    for (const JobId id : jobs->second) {
      const Job& job = v.state.jobs.at(id);
      if (job.phase == Phase::ended) continue;
      proto::ReplicaRow one = replica_row(v, job, v.state.services.replicas.at(id));
      if (one.state == "ready") ++row.ready;
      if (one.state == "pending" || one.state == "starting") ++row.pending;
      if (one.state == "draining") ++row.draining;
      if (whole) row.replicas.push_back(std::move(one));
    }
  if (whole) row.events = service.events;
  const auto marks = v.rt.services.find(name);
  if (marks == v.rt.services.end()) return row;
  if (!marks->second.reason.empty()) row.reason = marks->second.reason;
  fill_load(v, doc, marks->second, row);
  return row;
}

}  // namespace gantry::core
