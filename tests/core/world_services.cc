// Commands of scenarios about services: documents, and gates that say what the scenario says.
//
//   service score tenant=fraud target=100ms least=1 most=8 at_once=4 version=v1:python,v2:java:50
//           rollout=canary step=20 idle=1m down_after=10s drain=5s startup=30s cpus=1
//   gate g1 score ready=1,2 unready=3 dead=4 running=1:2,2:1 ms=20 set=v1.1 requests=10 errors=1
//           refused=2 waiting=3            one message of a gate, with one sample of a second
//   traffic g1 score for=60s rate=40 ms=20 ready=1,2 set=v1.1     the same each second
//   services alice [score]   pause|resume|rollback_service|restart_service alice score
#include <fmt/core.h>

#include <algorithm>

#include "common/proto/gate.h"
#include "common/proto/node_report.h"
#include "common/proto/services.h"
#include "common/text/split.h"
#include "ctld/core/core.h"
#include "tests/core/world.h"

namespace gantry::core::test {
namespace {

std::uint32_t number(const Words& w, const char* key, std::uint32_t otherwise) {
  const std::string* text = w.find(key);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::stoul(*text));
}

void length(const Words& w, const char* key, Duration& out) {
  if (const std::string* text = w.find(key)) out = parse_length(*text);
}

tenancy::ServiceVersion version_of(const std::string& text, const Words& w) {
  const auto parts = split(text, ':');
  tenancy::ServiceVersion v;
  v.name = parts.at(0);
  v.command = parts.size() > 1 ? parts[1] : "serve";
  if (parts.size() > 2) v.weight = static_cast<std::uint32_t>(std::stoul(parts[2]));
  for (const std::string& cpus : split(w.find("cpus") ? *w.find("cpus") : "1", '/')) {
    tenancy::ServiceShape& shape = v.shapes.emplace_back();
    shape.name = "s" + cpus;
    shape.cpus = static_cast<std::uint32_t>(std::stoul(cpus));
  }
  return v;
}

tenancy::Service service_of(const Words& w) {
  tenancy::Service s;
  s.name = w.plain.at(1);
  if (w.find("tenant")) s.tenant = *w.find("tenant");
  if (w.find("partition")) s.partition = *w.find("partition");
  s.target = milliseconds(100);
  length(w, "target", s.target);
  length(w, "drain", s.drain);
  length(w, "startup", s.startup);
  length(w, "idle", s.scale.idle);
  length(w, "down_after", s.scale.down_after);
  length(w, "pause", s.rollout.pause);
  s.scale.least = number(w, "least", 1);
  s.scale.most = number(w, "most", 4);
  s.route.concurrency = number(w, "at_once", 0);
  s.rollout.step = number(w, "step", 10);
  if (const std::string* kind = w.find("rollout"))
    for (const auto& [value, name] : enum_names(tenancy::RolloutKind{}))
      if (name == *kind) s.rollout.kind = value;
  if (const std::string* hosts = w.find("hosts")) s.route.hosts = split(*hosts, ',');
  for (const std::string& one : split(w.find("version") ? *w.find("version") : "v1", ','))
    s.versions.push_back(version_of(one, w));
  return s;
}

std::size_t bucket_of(std::uint64_t us) {
  std::size_t at = 0;
  while (at < proto::kLatencyBuckets.size() && proto::kLatencyBuckets[at] < us) ++at;
  return at;
}

}  // namespace

proto::SyncGate World::gate_message(const Words& w) const {
  proto::SyncGate m;
  m.gate = w.plain.at(1);
  const auto known = gates_.find(m.gate);
  if (known != gates_.end()) m.revision = known->second;
  const auto running = [&](const std::string& job) -> std::uint32_t {
    if (const std::string* text = w.find("running"))
      for (const std::string& one : split(*text, ','))
        if (one.substr(0, one.find(':')) == job)
          return static_cast<std::uint32_t>(std::stoul(one.substr(one.find(':') + 1)));
    return 0;
  };
  const Duration response = milliseconds(number(w, "ms", 0));
  for (const auto& [health, name] : enum_names(proto::ReplicaHealth{}))
    if (const std::string* text = w.find(std::string(name)))
      for (const std::string& job : split(*text, ',')) {
        proto::ReplicaReport& report = m.replicas.emplace_back();
        report.key = {JobId(std::stoull(job)), Attempt(1)};
        report.health = health;
        report.running = running(job);
        if (health == proto::ReplicaHealth::ready) report.response = response;
        if (health == proto::ReplicaHealth::dead) report.why = "no answer";
      }
  if (w.plain.size() < 3) return m;
  proto::GateSample& sample = m.samples.emplace_back();
  const auto of = core_->state().services.all.find(w.plain.at(2));
  sample.service = w.plain.at(2);
  if (of != core_->state().services.all.end()) sample.tenant = of->second.tenant;
  sample.version = w.find("set") ? *w.find("set") : "";
  sample.span = seconds(1);
  sample.requests = number(w, "requests", number(w, "rate", 0));
  sample.errors = number(w, "errors", 0);
  sample.refused = number(w, "refused", 0);
  sample.waiting = number(w, "waiting", 0);
  sample.concurrency = sample.requests * static_cast<std::uint64_t>(response.us) / 1000;
  if (sample.requests > 0) {
    sample.times.resize(proto::kLatencyBuckets.size() + 1);
    sample.times[bucket_of(static_cast<std::uint64_t>(response.us))] = sample.requests;
  }
  return m;
}

bool World::services_command(const std::string& verb, const Words& w) {
  if (verb == "service") return pending_.documents.emplace_back(service_of(w)), true;
  if (verb == "gate" || verb == "traffic") {
    const std::string user = w.find("user") ? *w.find("user") : "root";
    const std::int64_t times = verb == "gate" ? 1 : parse_length(*w.find("for")).us / 1'000'000;
    for (std::int64_t i = 0; i < times; ++i) {
      if (verb == "traffic") advance(seconds(1));
      for (auto& [name, node] : nodes_)  // a step of a second is too short for advance() to do it
        if (node.beats && verb == "traffic" && i % 5 == 4)
          step(FromNode{name, proto::Heartbeat{node.session, 0.5, 1 << 30, {}}});
      gate_ = w.plain.at(1);
      ask(user, gate_message(w));
    }
    return true;
  }
  if (verb == "services") {
    proto::ListServices m;
    if (w.plain.size() > 2) m.name = w.plain.at(2);
    return ask(w.plain.at(1), std::move(m)), true;
  }
  proto::ChangeService change;
  if (verb == "pause")
    change.action = proto::ServiceAction::pause;
  else if (verb == "resume")
    change.action = proto::ServiceAction::resume;
  else if (verb == "rollback_service")
    change.action = proto::ServiceAction::roll_back;
  else if (verb == "restart_service")
    change.action = proto::ServiceAction::restart;
  else
    return false;
  change.name = w.plain.at(2);
  return ask(w.plain.at(1), std::move(change)), true;
}

void World::print(const proto::GateTable& m) {
  if (m.unchanged) return;
  gates_[gate_] = m.revision;
  for (const proto::GateService& s : m.services) {
    std::string text = fmt::format("  {} for {}:", s.name, s.tenant);
    for (const proto::GateVersion& v : s.versions) text += fmt::format(" {}={}", v.name, v.weight);
    line(text);
    for (const proto::GateReplica& r : s.replicas)
      line(fmt::format("    {} of {} at {}:{}{}", r.key.job.value(), r.version, r.address, r.port,
                       r.draining ? " draining" : ""));
  }
}

void World::print(const proto::ServiceList& m) {
  for (const proto::ServiceRow& row : m.rows) {
    line(fmt::format("{} of {} by {}: {} wanted, {} ready, {} pending, {} draining{}: {}", row.name,
                     row.tenant, row.owner, row.wanted, row.ready, row.pending, row.draining,
                     row.paused ? ", paused" : "", row.reason));
    if (!row.rollout.empty()) line("  rollout: " + row.rollout);
    if (row.minutes > 0)
      line(fmt::format("  promise kept in {} of {} minutes", row.minutes_kept, row.minutes));
    for (const proto::ReplicaRow& r : row.replicas)
      line(fmt::format("  {} {} {} {}", r.job.value(), r.version, r.node.empty() ? "-" : r.node,
                       r.state));
    for (const proto::ServiceEvent& e : row.events)
      line(fmt::format("  {} {}", time_text(e.at), e.text));
  }
}

}  // namespace gantry::core::test
