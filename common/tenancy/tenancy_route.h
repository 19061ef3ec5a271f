// How requests come to a service: what gates need to know of its document.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/time/time.h"

namespace gantry::tenancy {

enum class BalancePolicy : std::uint8_t { round_robin = 1, least_loaded = 2, latency = 3, key = 4 };
constexpr auto enum_names(BalancePolicy) {
  using enum BalancePolicy;
  return std::array<std::pair<BalancePolicy, std::string_view>, 4>{{{round_robin, "round-robin"},
                                                                    {least_loaded, "least-loaded"},
                                                                    {latency, "latency"},
                                                                    {key, "key"}}};
}

// Who may send requests. Whoever may not gets 401 or 403 from the gate, whatever the path is.
enum class ServiceAccess : std::uint8_t { tenant = 1, tokens = 2, open = 3 };
constexpr auto enum_names(ServiceAccess) {
  using enum ServiceAccess;
  return std::array<std::pair<ServiceAccess, std::string_view>, 3>{
      {{tenant, "tenant"}, {tokens, "tokens"}, {open, "open"}}};
}

struct ServiceProbe {
  // Of a GET, which is to be answered with 2xx or 3xx; "" = for readiness a connection is enough,
  // and there is no probe of liveness.
  std::string path;
  Duration interval = seconds(2);  // between two probes
  Duration timeout = seconds(1);   // of one
  std::uint32_t failures = 3;      // in a row, until it counts as failed
  friend bool operator==(const ServiceProbe&, const ServiceProbe&) = default;
  GANTRY_FIELDS(FIELD(1, path), FIELD(2, interval), FIELD(3, timeout), FIELD(4, failures))
};

struct ServiceRoute {
  std::vector<std::string> hosts;  // names in the Host header, in small letters
  std::string path;                // what the request's path begins with; "" = any
  ServiceAccess access = ServiceAccess::tenant;
  std::vector<std::string> callers;  // further tenants whose tokens are taken
  BalancePolicy balance = BalancePolicy::least_loaded;
  std::string key_header;  // of balance `key`: requests with the same value go to one replica
  std::uint32_t concurrency = 0;  // requests in one replica at a time; 0 = no limit
  std::uint32_t queue = 1000;     // requests that may wait in a gate; above: 429
  Duration wait{};                // how long one may wait there until it gets 429; 0 = the target
  std::uint32_t requests = 0;     // a second, by each calling tenant at each gate; 0 = no limit
  bool repeat = false;  // a request that is lost with its replica is sent to another, once
  ServiceProbe ready, live;
  friend bool operator==(const ServiceRoute&, const ServiceRoute&) = default;
  GANTRY_FIELDS(FIELD(1, hosts), FIELD(2, path), FIELD(3, access), FIELD(4, callers),
                FIELD(5, balance), FIELD(6, key_header), FIELD(7, concurrency), FIELD(8, queue),
                FIELD(9, wait), FIELD(10, requests), FIELD(11, repeat), FIELD(12, ready),
                FIELD(13, live))
};

}  // namespace gantry::tenancy
