#include "gate/plan/layout.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "gate/plan/config_text.h"

namespace gantry::gate {

namespace {

constexpr std::uint64_t kIds = 0x7fffffff;  // hash ids of servers, for consistent hashing

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
  return std::ranges::any_of(backend.servers,
                             [](const auto& s) { return s.second.state == ServerState::ready; });
}

// Returns this gate's part of a replica's concurrency; 0 = no limit. Each gate has at least one
// place.
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

// The share of the requests of each version. A version without a ready replica gets none, so that a
// new version does no harm.
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
  // Only versions without a share are ready: using one of them is better than none.
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

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t end = text.find(at);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

template <class Each>
void each_line(std::string_view text, const Each& each) {
  for (const std::string_view line : split(text, '\n'))
    if (!line.empty()) each(line);
}

std::uint32_t number(std::string_view text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The used columns of the CSV, by name, because their positions differ between releases.
struct Columns {
  std::size_t backend = 0, server = 0, waiting = 0, running = 0, most = 0, status = 0, weight = 0,
              address = 0;
  explicit Columns(const std::vector<std::string_view>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "qcur") waiting = i;
      if (names[i] == "svname") server = i;
      if (names[i] == "scur") running = i;
      if (names[i] == "slim") most = i;
      if (names[i] == "status") status = i;
      if (names[i] == "uweight") weight = i;
      if (names[i] == "addr") address = i;
    }
  }
};

ServerState state_of(std::string_view status) {
  if (status.starts_with("MAINT")) return ServerState::maint;
  if (status.starts_with("DRAIN")) return ServerState::drain;
  return ServerState::ready;
}

const char* word_of(ServerState state) {
  switch (state) {
    case ServerState::ready: return "ready";
    case ServerState::drain: return "drain";
    case ServerState::maint: return "maint";
  }
  return "maint";
}

void remove(const std::string& name, const SeenServer& seen, ServerCommands& out) {
  if (seen.state != ServerState::maint)
    out.after.push_back(fmt::format("set server {} state maint", name));
  if (seen.running == 0) out.after.push_back(fmt::format("del server {}", name));
}

void add(const std::string& name, const Server& server, bool by_hash, ServerCommands& out) {
  if (server.state == ServerState::drain) return;  // it was removed, so nothing of it is here
  out.before.push_back(fmt::format("add server {} {}", name, server_options(server, by_hash)));
  if (server.state == ServerState::ready)
    out.before.push_back(fmt::format("set server {} state ready", name));
}

void change(const std::string& name, const Server& server, const SeenServer& seen,
            ServerCommands& out) {
  if (server.weight != seen.weight)
    out.before.push_back(fmt::format("set server {} weight {}", name, server.weight));
  if (server.most != seen.most)
    out.before.push_back(fmt::format("set maxconn server {} {}", name, server.most));
  if (server.state == seen.state) return;
  auto& when = server.state == ServerState::ready ? out.before : out.after;
  when.push_back(fmt::format("set server {} state {}", name, word_of(server.state)));
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
  std::vector<std::pair<std::uint64_t, std::size_t>> rest;  // (remainder, index)
  int left = kBuckets;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::uint64_t exact = std::uint64_t{weights[i]} * kBuckets;
    out[i] = static_cast<int>(exact / sum);
    if (out[i] == 0 && weights[i] > 0) out[i] = 1;
    left -= out[i];
    rest.emplace_back(exact % sum, i);
  }
  std::ranges::stable_sort(rest, [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [remainder, i] : rest)
    if (left > 0 && remainder > 0 && weights[i] > 0) ++out[i], --left;
  // The least ones were rounded up to one: the largest gives that back.
  const auto largest = std::ranges::max_element(out);
  *largest += left;
  return out;
}

Duration wait_of(const proto::GateService& service) {
  return service.route.wait > Duration{} ? service.route.wait : service.target;
}

bool is_plain(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) {
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

Seen read_stat(std::string_view csv) {
  Seen out;
  std::optional<Columns> columns;
  each_line(csv, [&](std::string_view line) {
    if (line.starts_with("# ")) columns.emplace(split(line.substr(2), ','));
    if (line.starts_with('#') || !columns) return;
    const auto words = split(line, ',');
    const auto word = [&](std::size_t at) {
      return at < words.size() ? words[at] : std::string_view();
    };
    SeenBackend& backend = out[std::string(word(columns->backend))];
    const std::string_view name = word(columns->server);
    if (name == "BACKEND") {
      backend.waiting = number(word(columns->waiting));
      return;
    }
    SeenServer& server = backend.servers[std::string(name)];
    server.address = word(columns->address);
    server.weight = number(word(columns->weight));
    server.most = number(word(columns->most));
    server.state = state_of(word(columns->status));
    // Those that wait for this very server are told apart from those that are in it.
    server.running = number(word(columns->running));
  });
  return out;
}

std::map<std::string, std::uint32_t> read_held(std::string_view text) {
  std::map<std::string, std::uint32_t> out;
  each_line(text, [&](std::string_view line) {
    const std::size_t blank = line.find(' ');
    if (blank != std::string_view::npos)
      out[std::string(line.substr(0, blank))] = number(line.substr(blank + 1));
  });
  return out;
}

std::map<std::string, std::string> read_table(std::string_view text) {
  std::map<std::string, std::string> out;
  each_line(text, [&](std::string_view line) {
    const auto words = split(line, ' ');
    if (words.size() == 3) out[std::string(words[1])] = words[2];
  });
  return out;
}

ServerCommands server_commands(const Layout& wanted, const Seen& seen) {
  ServerCommands out;
  for (const auto& [backend_name, has] : seen) {
    const auto it = wanted.backends.find(backend_name);
    for (const auto& [server_name, server] : has.servers) {
      const std::string name = backend_name + "/" + server_name;
      const bool kept = it != wanted.backends.end() && it->second.servers.contains(server_name);
      if (!kept && key_of_server(server_name).job != JobId{}) {
        remove(name, server, out);
      } else if (kept) {
        // An attempt never changes its place; if it did, it is another server.
        const Server& to_be = it->second.servers.at(server_name);
        if (to_be.address != server.address)
          remove(name, server, out);
        else
          change(name, to_be, server, out);
      }
    }
    if (it == wanted.backends.end()) continue;
    const bool by_hash = it->second.service->route.balance == tenancy::BalancePolicy::key;
    for (const auto& [server_name, server] : it->second.servers)
      if (!has.servers.contains(server_name))
        add(backend_name + "/" + server_name, server, by_hash, out);
  }
  return out;
}

std::vector<std::string> table_commands(const Tables& wanted, const Tables& has,
                                        const std::string& directory) {
  static const std::map<std::string, std::string> kNone;
  const auto rows = [](const Tables& tables, const std::string& name) -> const auto& {
    const auto it = tables.find(name);
    return it == tables.end() ? kNone : it->second;
  };
  std::vector<std::string> out;
  for (const std::string& name : table_names())
    for (const auto& [key, value] : rows(wanted, name)) {
      const auto& old = rows(has, name);
      const auto it = old.find(key);
      if (it == old.end())
        out.push_back(fmt::format("add map {}/{}.map {} {}", directory, name, key, value));
      else if (it->second != value)
        out.push_back(fmt::format("set map {}/{}.map {} {}", directory, name, key, value));
    }
  for (const std::string& name : table_names())
    for (const auto& [key, value] : rows(has, name))
      if (!rows(wanted, name).contains(key))
        out.push_back(fmt::format("del map {}/{}.map {}", directory, name, key));
  return out;
}

Tables tables_for(const Tables& tables, const std::set<std::string>& backends) {
  const auto service_of = [](const std::string& name) { return name.substr(0, name.rfind(':')); };
  Tables out = tables;
  std::set<std::string> known;
  for (const std::string& backend : backends) known.insert(service_of(backend));
  std::erase_if(out[table::kRoutes], [&](const auto& row) { return !known.contains(row.second); });
  std::erase_if(out[table::kWhole],
                [&](const auto& row) { return !backends.contains(row.second); });
  std::map<std::string, std::string> other;  // a backend of each service that gets a part
  for (const auto& [key, backend] : out[table::kParts])
    if (backends.contains(backend)) other[service_of(key)] = backend;
  for (auto& [key, backend] : out[table::kParts])
    if (const auto it = other.find(service_of(key)); !backends.contains(backend))
      backend = it == other.end() ? "" : it->second;
  std::erase_if(out[table::kParts], [](const auto& row) { return row.second.empty(); });
  return out;
}

const std::vector<std::string>& table_names() {
  // The rules about who may call come before the routes: a service is never open before its rules
  // are in force.
  static const std::vector<std::string> kNames{
      table::kAccess, table::kCallers, table::kDoors, table::kHolds, table::kQueues,
      table::kCalls,  table::kTenants, table::kParts, table::kWhole, table::kRoutes};
  return kNames;
}

}  // namespace gantry::gate
