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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "path", s.path);
    v(2, "interval", s.interval);
    v(3, "timeout", s.timeout);
    v(4, "failures", s.failures);
  }
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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "hosts", s.hosts);
    v(2, "path", s.path);
    v(3, "access", s.access);
    v(4, "callers", s.callers);
    v(5, "balance", s.balance);
    v(6, "key_header", s.key_header);
    v(7, "concurrency", s.concurrency);
    v(8, "queue", s.queue);
    v(9, "wait", s.wait);
    v(10, "requests", s.requests);
    v(11, "repeat", s.repeat);
    v(12, "ready", s.ready);
    v(13, "live", s.live);
  }
};

}  // namespace gantry::tenancy
