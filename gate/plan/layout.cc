#include "gate/plan/layout.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <numeric>

namespace gantry::gate {
namespace {

constexpr std::uint64_t kIds = 0x7fffffff;  // of servers, for consistent hashing

ServerState state_of(const proto::GateReplica& replica, const ReplicaState& known) {
  if (replica.draining) return ServerState::drain;
  return known.health == proto::ReplicaHealth::ready ? ServerState::ready : ServerState::maint;
}

std::string host_and_port(const std::string& host, std::uint16_t port) {
  return host.find(':') == std::string::npos || host.starts_with('[')
             ? fmt::format("{}:{}", host, port)
             : fmt::format("[{}]:{}", host, port);
}

bool takes_requests(const Backend& backend) {
  return std::any_of(backend.servers.begin(), backend.servers.end(),
                     [](const auto& s) { return s.second.state == ServerState::ready; });
}

// Returns the part of a replica's concurrency that is this gate's; 0 = no limit. Each gate has one
// place at least.
std::uint32_t part_of_concurrency(std::uint32_t concurrency, std::uint32_t gates) {
  return concurrency == 0 ? 0 : std::max(1u, concurrency / std::max(1u, gates));
}

void add_backends(const proto::GateService& service, const ReplicaStates& states,
                  std::uint32_t gates, Layout& out) {
  for (const proto::GateVersion& version : service.versions) {
    Backend& backend = out.backends[backend_name(service, version.name)];
    backend.service = &service;
    backend.version = version.name;
  }
  for (const proto::GateReplica& replica : service.replicas) {
    Backend& backend = out.backends[backend_name(service, replica.version)];
    backend.service = &service;
    backend.version = replica.version;
    const auto known = states.find(replica.key);
    const ReplicaState state = known == states.end() ? ReplicaState{} : known->second;
    backend.servers[server_name(replica.key)] =
        Server{host_and_port(replica.address, replica.port),
               static_cast<std::uint32_t>(replica.key.job.value() % kIds) + 1, state.weight,
               part_of_concurrency(service.route.concurrency, gates), state_of(replica, state)};
  }
}

// Which version gets which part of the requests. A version without a ready replica gets none, so
// that one that is on its way does no harm.
void add_shares(const proto::GateService& service, Layout& out) {
  std::vector<const std::string*> names;
  std::vector<std::uint32_t> weights;
  bool any = false;
  for (const proto::GateVersion& version : service.versions) {
    if (!takes_requests(out.backends.at(backend_name(service, version.name)))) continue;
    names.push_back(&version.name);
    weights.push_back(version.weight);
    any = any || version.weight > 0;
  }
  if (names.empty()) return;
  // Only those without a part are ready: better one of them than none.
  if (!any) weights.assign(weights.size(), 1);
  const auto id = service_id(service);
  const auto parts = shares(weights);
  int bucket = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string backend = backend_name(service, *names[i]);
    if (parts[i] == kBuckets) {
      out.tables[table::kWhole][id] = backend;
      continue;
    }
    for (int n = 0; n < parts[i]; ++n)
      out.tables[table::kParts][fmt::format("{}:{}", id, bucket++)] = backend;
  }
}

void add_rules(const proto::GateService& service, Layout& out) {
  const auto id = service_id(service);
  const tenancy::ServiceRoute& route = service.route;
  auto& tables = out.tables;
  std::vector<std::string> hosts = route.hosts;
  if (hosts.empty()) hosts.push_back(service.name + "." + service.tenant);
  const std::string path = route.path.empty() || route.path == "/" ? "/" : route.path + "/";
  for (const std::string& host : hosts)
    if (is_plain(host) && is_plain(path)) tables[table::kRoutes].try_emplace(host + path, id);
  tables[table::kAccess][id] = enum_name(route.access);
  for (const std::string& caller : route.callers)
    if (is_plain(caller)) tables[table::kCallers][id + ":" + caller] = "yes";
  if (!service.replicas.empty() && is_plain(service.replicas.front().password))
    tables[table::kDoors][id] = service.replicas.front().password;
  tables[table::kHolds][id] = std::to_string(service.hold.us / 1000);
  if (route.queue > 0) tables[table::kQueues][id] = std::to_string(route.queue);
  if (route.requests > 0) tables[table::kCalls][id] = std::to_string(route.requests);
}

}  // namespace

std::string service_id(const proto::GateService& service) {
  return service.tenant + ":" + service.name;
}

std::string backend_name(const proto::GateService& service, const std::string& version) {
  return service_id(service) + ":" + version;
}

std::string server_name(const proto::AttemptKey& key) {
  return fmt::format("j{}.{}", key.job.value(), key.attempt.value());
}

proto::AttemptKey key_of_server(const std::string& name) {
  std::uint64_t job = 0;
  std::uint32_t attempt = 0;
  const char* const end = name.data() + name.size();
  if (!name.starts_with('j')) return {};
  const auto first = std::from_chars(name.data() + 1, end, job);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '.') return {};
  const auto second = std::from_chars(first.ptr + 1, end, attempt);
  if (second.ec != std::errc{} || second.ptr != end) return {};
  return {JobId{static_cast<JobId::rep>(job)}, Attempt{static_cast<Attempt::rep>(attempt)}};
}

std::vector<int> shares(const std::vector<std::uint32_t>& weights) {
  const std::uint64_t sum = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  std::vector<int> out(weights.size(), 0);
  if (sum == 0) return out;
  std::vector<std::pair<std::uint64_t, std::size_t>> rest;  // what is left over, whose
  int left = kBuckets;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::uint64_t exact = std::uint64_t{weights[i]} * kBuckets;
    out[i] = static_cast<int>(exact / sum);
    if (out[i] == 0 && weights[i] > 0) out[i] = 1;
    left -= out[i];
    rest.emplace_back(exact % sum, i);
  }
  std::stable_sort(rest.begin(), rest.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [remainder, i] : rest)
    if (left > 0 && remainder > 0 && weights[i] > 0) ++out[i], --left;
  // The least ones were rounded up to one: the largest gives that back.
  const auto largest = std::max_element(out.begin(), out.end());
  *largest += left;
  return out;
}

Duration wait_of(const proto::GateService& service) {
  return service.route.wait > Duration{} ? service.route.wait : service.target;
}

bool is_plain(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_.~/:@+=").find(c) != std::string_view::npos;
  });
}

Layout lay_out(const proto::GateTable& table, const ReplicaStates& states) {
  Layout out;
  for (const proto::GateService& service : table.services) {
    if (!is_plain(service.tenant) || !is_plain(service.name)) continue;
    add_backends(service, states, table.gates, out);
    add_shares(service, out);
    add_rules(service, out);
  }
  for (const proto::GateTenant& tenant : table.tenants)
    if (tenant.requests > 0 && is_plain(tenant.name))
      out.tables[table::kTenants][tenant.name] = std::to_string(tenant.requests);
  return out;
}

}  // namespace gantry::gate
