// Services in documents: replicas of a server behind gantry-gate, and their objectives.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/job/job_access.h"
#include "common/money/money.h"
#include "common/special_members.h"
#include "common/time/time.h"

namespace gantry::tenancy {

// How requests come to a service: what gates need to know of its document.

enum class BalancePolicy : std::uint8_t { round_robin = 1, least_loaded = 2, latency = 3, key = 4 };
GANTRY_NAMES(BalancePolicy, {round_robin, "round-robin"}, {least_loaded, "least-loaded"},
             {latency, "latency"}, {key, "key"})

// Who may send requests. All others get 401 or 403 from the gate, for every path.
enum class ServiceAccess : std::uint8_t { tenant = 1, tokens = 2, open = 3 };
GANTRY_NAMES(ServiceAccess, {tenant, "tenant"}, {tokens, "tokens"}, {open, "open"})

struct ServiceProbe {
  // Path of a GET that must be answered with 2xx or 3xx; "" = for readiness a connection is enough,
  // and there is no liveness probe.
  std::string path;
  Duration interval = seconds(2);  // between two probes
  Duration timeout = seconds(1);   // time limit of one probe
  std::uint32_t failures = 3;      // consecutive failures until it counts as failed
  friend bool operator==(const ServiceProbe&, const ServiceProbe&) = default;
  GANTRY_FIELDS(FIELD(1, path), FIELD(2, interval), FIELD(3, timeout), FIELD(4, failures))
};

struct ServiceRoute {
  std::vector<std::string> hosts;  // names in the Host header, in small letters
  std::string path;                // prefix of the request's path; "" = any
  ServiceAccess access = ServiceAccess::tenant;
  std::vector<std::string> callers;  // further tenants whose tokens are taken
  BalancePolicy balance = BalancePolicy::least_loaded;
  std::string
      key_header;  // header for balance `key`: requests with the same value go to one replica
  std::uint32_t concurrency = 0;  // requests in one replica at a time; 0 = no limit
  std::uint32_t queue = 1000;     // requests that may wait in a gate; more get 429
  Duration wait{};                // how long one may wait there until it gets 429; 0 = the target
  std::uint32_t requests =
      0;                // requests per second, by each calling tenant at each gate; 0 = no limit
  bool repeat = false;  // a request that is lost with its replica is sent to another, once
  ServiceProbe ready, live;
  friend bool operator==(const ServiceRoute&, const ServiceRoute&) = default;
  GANTRY_FIELDS(FIELD(1, hosts), FIELD(2, path), FIELD(3, access), FIELD(4, callers),
                FIELD(5, balance), FIELD(6, key_header), FIELD(7, concurrency), FIELD(8, queue),
                FIELD(9, wait), FIELD(10, requests), FIELD(11, repeat), FIELD(12, ready),
                FIELD(13, live))
};

// The resources of one replica. The shapes of a version are ordered by size: a replica has the
// first one unless the service needs a larger one to meet its objective.
struct ServiceShape {
  std::string name;
  std::uint32_t cpus = 1;               // whole cores
  std::optional<std::int64_t> memory;   // bytes; unset: the partition's default
  std::uint32_t gpus = 0;               // whole ones; with gpu_slice, slices
  std::string gpu_slice;                // MIG profile
  std::uint32_t gpu_share = 0;          // thousandths of one GPU, instead of gpus
  std::vector<std::string> gpu_models;  // allowed; none = any
  // Response time of one request on it when it has nothing else to do; 0 = not known, and measured.
  Duration service_time{};
  friend bool operator==(const ServiceShape&, const ServiceShape&) = default;
  GANTRY_FIELDS(FIELD(1, cpus), FIELD(2, memory), FIELD(3, gpus), FIELD(4, gpu_slice),
                FIELD(5, gpu_share), FIELD(6, gpu_models), FIELD(7, service_time), FIELD(8, name))
};

// One version: what a replica runs, and on what.
struct ServiceVersion {
  GANTRY_SPECIAL_MEMBERS(ServiceVersion)
  std::string name;
  std::uint32_t weight = 100;  // its part of the requests, among the versions; 0 = none
  std::string command;         // for /bin/sh; it may use $PORT
  std::string image;           // image of a container; "" = the host's view
  std::string directory;       // where it starts, absolute
  std::map<std::string, std::string> environment;
  std::vector<std::string> secrets;   // names, each a file of the same name
  std::vector<std::string> datasets;  // names, with ":rw" to write
  std::vector<ServiceShape> shapes;   // at least one
  friend bool operator==(const ServiceVersion&, const ServiceVersion&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, weight), FIELD(3, command), FIELD(4, image),
                FIELD(5, directory), FIELD(6, environment), FIELD(7, secrets), FIELD(8, datasets),
                FIELD(9, shapes))
};

enum class ScaleBy : std::uint8_t { promise = 1, concurrency = 2, rate = 3 };
GANTRY_NAMES(ScaleBy, {promise, "promise"}, {concurrency, "concurrency"}, {rate, "rate"})

// With whom a replica shares its device, if it has only a part of one.
enum class DeviceSharing : std::uint8_t { alone = 1, tenant = 2 };
GANTRY_NAMES(DeviceSharing, {alone, "alone"}, {tenant, "tenant"})

// At these hours there are at least this many replicas, whatever the load is.
struct ScaleHours {
  std::string name;
  std::vector<std::string> days;  // "mon".."sun" on which they begin; none = every day
  std::string from, until;        // "08:00", in the cluster's time zone; they may pass midnight
  std::uint32_t least = 0;        // replicas
  friend bool operator==(const ScaleHours&, const ScaleHours&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, days), FIELD(3, from), FIELD(4, until), FIELD(5, least))
};

struct ServiceScale {
  std::uint32_t least = 1, most = 1;  // replicas
  std::vector<std::string>
      by;  // rules (ScaleBy) of which the largest result counts; empty = promise
  std::uint32_t target_concurrency = 0;  // requests in one replica, for `concurrency`
  std::uint32_t target_rate = 0;         // requests a second in one replica, for `rate`
  Duration idle = minutes(5);  // time without a request until there are no replicas; for least 0
  Duration down_after = seconds(60);  // time for which fewer are needed, until some are removed
  bool forecast = false;              // also uses the load at the same time of earlier days
  bool spare_node = false;            // the objective must be met even if one of its nodes fails
  std::vector<ScaleHours> hours;
  std::optional<Money> budget;  // an hour, at the prices of now; unset = no limit
  friend bool operator==(const ServiceScale&, const ServiceScale&) = default;
  GANTRY_FIELDS(FIELD(1, least), FIELD(2, most), FIELD(3, by), FIELD(4, target_concurrency),
                FIELD(5, target_rate), FIELD(6, idle), FIELD(7, down_after), FIELD(8, forecast),
                FIELD(9, spare_node), FIELD(10, hours), FIELD(11, budget))
};

enum class RolloutKind : std::uint8_t { rolling = 1, canary = 2, blue_green = 3 };
GANTRY_NAMES(RolloutKind, {rolling, "rolling"}, {canary, "canary"}, {blue_green, "blue-green"})

// How a changed version comes in place of the one before it, and when it goes back by itself.
struct ServiceRollout {
  RolloutKind kind = RolloutKind::rolling;
  std::uint32_t step = 10;         // canary: percent of the requests more at each step
  Duration pause = seconds(60);    // canary: between steps; blue-green: until the old ones go
  std::uint32_t most_errors = 10;  // thousandths of the requests that may fail; above: it goes back
  bool watch_target = true;  // rolled back if it misses the objective that the old version meets
  friend bool operator==(const ServiceRollout&, const ServiceRollout&) = default;
  GANTRY_FIELDS(FIELD(1, kind), FIELD(2, step), FIELD(3, pause), FIELD(4, most_errors),
                FIELD(5, watch_target))
};

struct Service {
  GANTRY_SPECIAL_MEMBERS(Service)
  static constexpr std::string_view kName = "Service";
  static constexpr int kKind = 43;
  std::string name;
  std::string description;
  std::string tenant;
  std::string project;         // "" = the tenant itself
  std::string partition;       // "" = the tenant's own queue
  std::string priority_class;  // "" = the tenant's default
  std::uint32_t port = 8000;   // port on which its server listens in the job: $PORT
  Duration target{};  // the objective: this percentage of response times is at most the target
  std::uint32_t percentile = 95;   // 1..99
  Duration startup = seconds(60);  // longest time from the start of a replica to its first answer
  Duration drain = seconds(30);    // what a replica that leaves has to answer what it began
  DeviceSharing sharing = DeviceSharing::tenant;
  ServiceRoute route;
  std::vector<ServiceVersion> versions;
  ServiceScale scale;
  ServiceRollout rollout;
  friend bool operator==(const Service&, const Service&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, description), FIELD(3, tenant), FIELD(4, project),
                FIELD(5, partition), FIELD(6, priority_class), FIELD(7, port), FIELD(8, target),
                FIELD(9, percentile), FIELD(10, startup), FIELD(11, drain), FIELD(12, sharing),
                FIELD(13, route), FIELD(14, versions), FIELD(15, scale), FIELD(16, rollout))
};

// The names under which clients ask for it: "NAME.TENANT" if it gives none.
inline std::vector<std::string> hosts_of(const Service& service) {
  if (!service.route.hosts.empty()) return service.route.hosts;
  return {service.name + "." + service.tenant};
}

}  // namespace gantry::tenancy
