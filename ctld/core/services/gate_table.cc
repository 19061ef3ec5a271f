#include "ctld/core/services/gate_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "common/codec/codec.h"
#include "common/proto/gate.h"
#include "ctld/core/context.h"
#include "ctld/core/runtime.h"
#include "ctld/core/services/memory.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

// The host of "HOST:PORT"; an IPv6 address is in brackets there.
std::string host_of(const Node& node) {
  const std::string& address = node.facts.address;
  if (address.empty()) return node.name;
  const std::size_t colon = address.rfind(':');
  const bool has_port =
      colon != std::string::npos && (address.find(':') == colon || address[colon - 1] == ']');
  std::string host = has_port ? address.substr(0, colon) : address;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

// Replicas of a set to which gates may send requests, or from which they have to withdraw them.
void add_replicas(const Context& ctx, const std::string& name, proto::GateService& out) {
  const auto jobs = ctx.state.services.jobs.find(name);
  if (jobs == ctx.state.services.jobs.end()) return;
  for (const JobId id : jobs->second) {
    const Job* job = ctx.state.jobs.find(id);
    if (job == nullptr || !job->active || job->active->door == 0) continue;
    if (job->phase != Phase::running && job->phase != Phase::finishing) continue;
    const ReplicaOf& of = ctx.state.services.replicas.at(id);
    const auto marks = ctx.rt.services->replicas.find(id);
    proto::GateReplica& replica = out.replicas.emplace_back();
    replica.key = {id, job->attempt};
    replica.version = set_name(of.version, of.revision);
    replica.address = host_of(ctx.state.node(job->active->nodes.front().grant.node));
    replica.port = static_cast<std::uint16_t>(job->active->door);
    replica.draining =
        job->phase == Phase::finishing ||
        (marks != ctx.rt.services->replicas.end() && marks->second.draining.has_value());
  }
}

std::uint32_t ready_of(const Context& ctx, const std::string& name, std::uint64_t revision) {
  const auto jobs = ctx.state.services.jobs.find(name);
  if (jobs == ctx.state.services.jobs.end()) return 0;
  return static_cast<std::uint32_t>(
      std::count_if(jobs->second.begin(), jobs->second.end(), [&](JobId id) {
        const auto marks = ctx.rt.services->replicas.find(id);
        return marks != ctx.rt.services->replicas.end() && marks->second.ready &&
               !marks->second.draining && ctx.state.services.replicas.at(id).revision == revision;
      }));
}

// During a rollout, requests are divided between both sets by their numbers of replicas.
void add_versions(const Context& ctx, const tenancy::Service& doc, const std::string& name,
                  const ServiceState& service, proto::GateService& out) {
  for (const ReplicaSet& set : service.sets) {
    std::uint32_t weight = 0;
    for (const tenancy::ServiceVersion& v : doc.versions)
      if (v.name == set.what.name) weight = v.weight;
    std::uint32_t part = set.part;
    const auto beside = std::find_if(service.sets.begin(), service.sets.end(), [&](const auto& s) {
      return s.what.name == set.what.name && s.revision != set.revision;
    });
    if (beside != service.sets.end() && doc.rollout.kind == tenancy::RolloutKind::rolling) {
      const std::uint32_t own = ready_of(ctx, name, set.revision);
      const std::uint32_t all = own + ready_of(ctx, name, beside->revision);
      part = all == 0 ? 500 : own * 1000 / all;
    }
    out.versions.push_back({set_name(set.what.name, set.revision), weight * part});
  }
}

std::uint32_t gates_now(const Context& ctx) {
  const auto& gates = ctx.rt.services->gates;
  return static_cast<std::uint32_t>(std::count_if(gates.begin(), gates.end(), [&](const auto& one) {
    return one.second.at + kGateSilent > ctx.now;
  }));
}

}  // namespace

const tenancy::Service* service_document(const State& state, const std::string& name) {
  const auto it = state.tenancy.documents.find({tenancy::Service::kKind, name});
  return it == state.tenancy.documents.end() ? nullptr : &std::get<tenancy::Service>(it->second);
}

std::vector<std::string> service_names(const State& state) {
  std::vector<std::string> out;
  for (const auto& [name, service] : state.services.all) out.push_back(name);
  return out;
}

std::string set_name(const std::string& version, std::uint64_t revision) {
  return fmt::format("{}.{}", version, revision);
}

std::uint64_t revision_of(std::string_view name) {
  const std::size_t point = name.rfind('.');
  std::uint64_t revision = 0;
  if (point != std::string_view::npos)
    std::from_chars(name.data() + point + 1, name.data() + name.size(), revision);
  return revision;
}

void refresh_table(Context& ctx) {
  proto::GateTable next;
  for (const auto& [name, service] : ctx.state.services.all) {
    const tenancy::Service* doc = service_document(ctx.state, name);
    if (doc == nullptr) continue;
    proto::GateService& out = next.services.emplace_back();
    out.tenant = service.tenant;
    out.name = name;
    out.route = doc->route;
    out.route.hosts = tenancy::hosts_of(*doc);
    out.target = doc->target;
    out.drain = doc->drain;
    out.hold = doc->startup;
    add_versions(ctx, *doc, name, service, out);
    add_replicas(ctx, name, out);
  }
  for (const auto& [name, tenant] : ctx.state.tenancy.compiled.tenants)
    if (const auto most = tenant.effective.counts.service_requests)
      next.tenants.push_back({name, std::max(1u, *most)});
  next.gates = std::max(1u, gates_now(ctx));
  proto::GateTable& now = ctx.rt.services->table;
  next.revision = now.revision;
  if (now.revision != 0 && codec::encode(next) == codec::encode(now)) return;
  // The epoch is in the upper half, so that a restarted controller never uses a number again.
  next.revision = now.revision == 0 ? (ctx.state.epoch.value() << 32) + 1 : now.revision + 1;
  now = std::move(next);
}

}  // namespace gantry::core
