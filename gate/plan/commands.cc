#include "gate/plan/commands.h"

#include <fmt/core.h>

#include "gate/plan/config_text.h"

namespace gantry::gate {
namespace {

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
  if (server.state == ServerState::drain) return;  // it leaves: nothing of it is here
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
  // Who may call comes before where calls go: a service is never open before its rules are there.
  static const std::vector<std::string> kNames{
      table::kAccess, table::kCallers, table::kDoors, table::kHolds, table::kQueues,
      table::kCalls,  table::kTenants, table::kParts, table::kWhole, table::kRoutes};
  return kNames;
}

}  // namespace gantry::gate
