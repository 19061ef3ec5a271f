// Messages between gantry-gate, which passes requests on to replicas of services, and the
// controller, which decides how many replicas there are.
//
// A gate sends SyncGate several times a second. The answer is GateTable with all services, or with
// none if the gate has this revision already.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/proto/attempt.h"
#include "common/tenancy/tenancy_service.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::proto {

// Upper ends of the buckets in which gates count response times, in microseconds: a factor of about
// 1.26 from each to the next (ten per factor of ten), so that a percentile read from them is at
// most 26 % too high. What took longer than the last is counted in one bucket more.
inline constexpr std::array<std::uint64_t, 51> kLatencyBuckets = {
    1000,     1259,     1585,     1995,     2512,     3162,     3981,     5012,     6310,
    7943,     10000,    12589,    15849,    19953,    25119,    31623,    39811,    50119,
    63096,    79433,    100000,   125893,   158489,   199526,   251189,   316228,   398107,
    501187,   630957,   794328,   1000000,  1258925,  1584893,  1995262,  2511886,  3162278,
    3981072,  5011872,  6309573,  7943282,  10000000, 12589254, 15848932, 19952623, 25118864,
    31622777, 39810717, 50118723, 63095734, 79432823, 100000000};

struct GateReplica {
  AttemptKey key;
  std::string version;
  std::string address;  // address of its node
  std::uint16_t port = 0;
  // The node's door passes a connection on to the job only if its header has this password: the
  // gate sends it as the unique id in the header of the PROXY protocol, version 2.
  std::string password;
  bool draining = false;  // it gets no new requests, and ends when it has answered the present ones
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, version), FIELD(3, address), FIELD(4, port),
                FIELD(5, password), FIELD(6, draining))
};

struct GateVersion {
  std::string name;
  std::uint32_t weight = 0;  // its part of the requests, among the versions
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, weight))
};

struct GateService {
  std::string tenant;
  tenancy::ServiceRoute route;
  std::string name;   // name of the service within the tenant
  Duration target{};  // target of the response time, at the percentile of the service's class
  Duration drain{};   // how long a replica that leaves may answer what it has
  Duration hold{};    // how long a request waits for the first replica to be ready
  std::vector<GateVersion> versions;
  std::vector<GateReplica> replicas;
  GANTRY_FIELDS(FIELD(1, tenant), FIELD(2, route), FIELD(3, name), FIELD(4, target),
                FIELD(5, drain), FIELD(6, hold), FIELD(7, versions), FIELD(8, replicas))
};

struct GateTenant {
  std::string name;
  std::uint32_t requests =
      0;  // requests per second, over all its services at this gate; 0 = no limit
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, requests))
};

struct GateTable {
  std::uint64_t revision = 0;
  bool unchanged = false;  // the gate has this revision: the lists are empty
  std::vector<GateService> services;
  std::vector<GateTenant> tenants;
  std::string issuer;  // issuer of tokens
  std::string keys;    // the public keys of identity tokens, as a JSON Web Key Set
  // Gates that pass requests on now: each takes its part of what a replica answers at a time.
  std::uint32_t gates = 1;
  GANTRY_FIELDS(FIELD(1, revision), FIELD(2, unchanged), FIELD(3, services), FIELD(4, tenants),
                FIELD(5, issuer), FIELD(6, keys), FIELD(7, gates))
};

// A sample counts the requests for one version of a service at a gate since the previous sample.
struct GateSample {
  std::string tenant;
  std::string service;
  std::string version;  // "" = what reached no replica: refused, given up, held
  Duration span{};      // length of the sample
  std::uint64_t requests = 0;
  std::uint64_t errors = 0;   // answered with 5xx by a replica, or lost with it
  std::uint64_t refused = 0;  // answered with 429 and 503 by the gate itself
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::uint32_t running = 0;  // requests in replicas at the end of the sample
  std::uint32_t waiting =
      0;  // and requests waiting in the gate: for a free replica, or for the first one
  // Requests in replicas and in the gate, on average over the span, in thousandths.
  std::uint64_t concurrency = 0;
  std::vector<std::uint64_t> times;  // response times, by kLatencyBuckets, and one more
  GANTRY_FIELDS(FIELD(1, tenant), FIELD(2, service), FIELD(3, version), FIELD(4, span),
                FIELD(5, requests), FIELD(6, errors), FIELD(7, refused), FIELD(8, bytes_in),
                FIELD(9, bytes_out), FIELD(10, running), FIELD(11, waiting), FIELD(12, concurrency),
                FIELD(13, times))
};

enum class ReplicaHealth : std::uint8_t {
  starting = 1,  // its readiness probe has not succeeded yet
  ready = 2,
  unready = 3,  // it was ready, and now its probe fails
  dead = 4,     // its liveness probe failed as often as the service allows
};
GANTRY_NAMES(ReplicaHealth, {starting, "starting"}, {ready, "ready"}, {unready, "unready"},
             {dead, "dead"})

struct ReplicaReport {
  AttemptKey key;
  ReplicaHealth health = ReplicaHealth::starting;
  std::uint32_t running = 0;  // requests in it; a draining one may end when none is left
  Duration response{};        // the mean of the last seconds; 0 = none was answered
  std::uint32_t weight = 0;   // weight set by the balance policy, of 256
  std::string why;            // reason of the last failed probe, for people
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, health), FIELD(3, running), FIELD(4, response),
                FIELD(5, weight), FIELD(6, why))
};

struct SyncGate {
  std::string gate;            // name of the gate, unique in the cluster
  std::string address;         // address for clients, for people: "http://10.0.0.5:8080"
  std::uint64_t revision = 0;  // revision of the table in force at the gate; 0 = none
  std::vector<GateSample> samples;
  std::vector<ReplicaReport> replicas;  // all replicas in its table
  GANTRY_FIELDS(FIELD(1, gate), FIELD(2, address), FIELD(3, revision), FIELD(4, samples),
                FIELD(5, replicas))
};

// ---- to nodes

// The door of a replica: where its node takes connections for it. The node listens there, looks for
// the password in the header of the PROXY protocol, and passes the bytes on to `inside` in the job.
struct JobDoor {
  std::uint16_t port = 0;    // port on the node's address
  std::uint16_t inside = 0;  // port on 127.0.0.1 inside the job
  std::string password;
  GANTRY_FIELDS(FIELD(1, port), FIELD(2, inside), FIELD(3, password))
};

}  // namespace gantry::proto
