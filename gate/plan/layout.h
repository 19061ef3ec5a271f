// The wanted state of HAProxy: a backend for each version of each service, and tables that route
// requests. Made from the controller's table and from what the gate knows of replicas; pure, and
// the same for the same input.
//
// A service has the id TENANT:NAME, a version's backend TENANT:NAME:VERSION, a replica's server
// jJOB.ATTEMPT. None of these words has a colon.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/proto/gate.h"

namespace gantry::gate {

inline constexpr std::uint32_t kFullWeight =
    128;                              // full weight of a server; HAProxy allows up to 256
inline constexpr int kBuckets = 100;  // parts of a service's requests

// What the gate knows of a replica.
struct ReplicaState {
  proto::ReplicaHealth health = proto::ReplicaHealth::starting;
  std::uint32_t weight = kFullWeight;
};
using ReplicaStates = std::map<proto::AttemptKey, ReplicaState>;

// ready: gets requests. drain: answers what it has. maint: gets nothing.
enum class ServerState : std::uint8_t { ready, drain, maint };

struct Server {
  std::string address;  // HOST:PORT
  std::uint32_t id = 0;
  std::uint32_t weight = kFullWeight;
  std::uint32_t most = 0;  // requests at a time; 0 = no limit
  ServerState state = ServerState::maint;
  friend bool operator==(const Server&, const Server&) = default;
};

struct Backend {
  const proto::GateService* service = nullptr;
  std::string version;
  std::map<std::string, Server> servers;
};

// Tables that HAProxy looks into (its maps), by name: key to value.
using Tables = std::map<std::string, std::map<std::string, std::string>>;
namespace table {
inline constexpr const char* kRoutes = "routes";    // HOST/PATH/ -> service
inline constexpr const char* kAccess = "access";    // service -> tenant, tokens or open
inline constexpr const char* kCallers = "callers";  // service:TENANT -> yes
inline constexpr const char* kDoors = "doors";      // service -> password
inline constexpr const char* kWhole = "whole";      // service -> backend that gets all
inline constexpr const char* kParts = "parts";      // service:0 to service:99 -> backend
inline constexpr const char* kHolds = "holds";      // service -> milliseconds
inline constexpr const char* kQueues = "queues";    // service -> requests that may wait
inline constexpr const char* kCalls = "calls";      // service -> requests a second of a caller
inline constexpr const char* kTenants = "tenants";  // tenant -> requests a second of all
}  // namespace table

struct Layout {
  std::map<std::string, Backend> backends;
  Tables tables;
};

std::string service_id(const proto::GateService& service);
std::string backend_name(const proto::GateService& service, const std::string& version);
std::string server_name(const proto::AttemptKey& key);
// The attempt of a server's name; a key of job 0 if it is no such name.
proto::AttemptKey key_of_server(const std::string& name);

// The layout points into `table`.
Layout lay_out(const proto::GateTable& table, const ReplicaStates& states);

// How many of kBuckets each gets, by weight: at least one for a weight above 0; all 0 if all are.
std::vector<int> shares(const std::vector<std::uint32_t>& weights);

// How long a request waits for a place in a replica; 0 = as long as the client does.
Duration wait_of(const proto::GateService& service);

// A word that may stand in HAProxy's configuration and commands as it is.
bool is_plain(std::string_view word);

// Reads what a process of HAProxy reports about itself: `show stat` and `show servers state`; pure.
struct SeenServer {
  std::string address;  // HOST:PORT
  std::uint32_t weight = 0;
  std::uint32_t most = 0;
  ServerState state = ServerState::maint;
  std::uint32_t running = 0;  // requests in it
};

struct SeenBackend {
  std::map<std::string, SeenServer> servers;
  std::uint32_t waiting = 0;  // requests that wait for a server
};

using Seen = std::map<std::string, SeenBackend>;  // by the backend's name

// `show stat -1 6 -1`, which is CSV with a line of names.
Seen read_stat(std::string_view csv);

// Output of `show held` of the Lua program: a service and a number in each line.
std::map<std::string, std::uint32_t> read_held(std::string_view text);

// `show map FILE`: a pointer, a key and a value in each line.
std::map<std::string, std::string> read_table(std::string_view text);

// The commands that bring a process of HAProxy from what it has to what it is to have, without a
// reload; pure. A command that fails (a server that still has connections cannot be deleted) is
// made again at the next look.

// Servers: added, changed, drained, removed. Backends that the process does not have are left out,
// and what is in backends that are not wanted is removed. Tables are changed between the two parts,
// so that no request is sent to a backend that has no server yet, or none any more.
struct ServerCommands {
  std::vector<std::string> before, after;
};
ServerCommands server_commands(const Layout& wanted, const Seen& seen);

// Tables. `has` is what the process has; rows are added and changed before others go.
// `file_of` of a table's name is its name in commands.
std::vector<std::string> table_commands(const Tables& wanted, const Tables& has,
                                        const std::string& directory);

// The part of the tables that a process with only these backends can have: it sends the share of a
// version that it does not know to another version of the service, and has no service without a
// known version.
Tables tables_for(const Tables& tables, const std::set<std::string>& backends);

// The names of all tables.
const std::vector<std::string>& table_names();

}  // namespace gantry::gate
