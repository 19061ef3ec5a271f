// The network of a job's parts: where its nodes are, so that each of them can connect its part to
// the others, and what the job reaches besides. And queries about it: ProbeNetwork is a client's
// query and NetworkProbed its answer; ProbeAttempt and AttemptProbed carry them to the node and
// back.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/proto/attempt.h"
#include "common/proto/job_ref.h"
#include "common/special_members.h"
#include "common/types.h"

namespace gantry::proto {

// The part of a job on one node. A component of a heterogeneous job is a separate job.
struct NetworkPart {
  std::string node;          // name
  std::uint32_t number = 0;  // number of the node, which stays with its name
  JobId job{};
  std::optional<std::uint32_t> slot;  // the job's place among the node's IPv4 addresses
  std::string address;                // host:port of the node's daemon
  std::uint32_t group = 0;            // the tenant's number in the addresses; 0 = of no tenant
  std::string transport;              // as in NodeRegister
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, number), FIELD(3, job), FIELD(4, slot), FIELD(5, address),
                FIELD(22, group), FIELD(6, transport))
};

// Jobs of one tenant, which this job may connect to or be connected to from.
struct NetworkGroup {
  std::uint32_t group = 0;
  std::string ports;  // "tcp/8080-8090"; "" = all
  GANTRY_FIELDS(FIELD(1, group), FIELD(2, ports))
};

// What the job may reach besides its own parts: its profile from its tenant's documents at the time
// of the launch.
struct NetworkReach {
  std::string profile;
  // Whether a node that has no way out does not start the job; otherwise it starts without one.
  bool required = false;
  bool resolvers = false, internet = false;
  std::vector<std::string> ranges;  // "10.1.0.0/16 tcp/443", see common/text/network_range.h
  std::vector<NetworkGroup> to, from;
  std::string
      proxy;  // value of http_proxy and similar variables: "http://10.1.0.9:3128"; "" = none
  [[nodiscard]] bool leaves() const { return resolvers || internet || !ranges.empty(); }
  GANTRY_FIELDS(FIELD(1, profile), FIELD(2, required), FIELD(3, resolvers), FIELD(4, internet),
                FIELD(5, ranges), FIELD(6, to), FIELD(7, from), FIELD(8, proxy))
};

struct JobNetwork {
  GANTRY_SPECIAL_MEMBERS(JobNetwork)
  NetworkPart own;
  std::vector<NetworkPart> peers;  // all other parts of the job
  NetworkReach reach{};
  std::uint64_t bits_per_second = 0;  // each way; 0 = no limit
  GANTRY_FIELDS(FIELD(1, own), FIELD(2, peers), FIELD(19, reach), FIELD(20, bits_per_second))
};

// The beginning of the line in layers_off on a node that makes no networks for jobs; why follows.
inline constexpr std::string_view kNoJobNetworks = "networks of jobs: ";

enum class ProbeResult : std::uint8_t { none = 0, open = 1, refused = 2, silent = 3, failed = 4 };
GANTRY_NAMES(ProbeResult, {none, "none"}, {open, "open"}, {refused, "refused"}, {silent, "silent"},
             {failed, "failed"})

struct ProbeNetwork {
  JobRef job;
  std::string node;    // a node of the job; "" = its first
  std::string target;  // "HOST:PORT", an address or a node of the job; "" = nothing is tried
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, node), FIELD(3, target))
};

// One attempt's network on one node. Packets and bytes are counted at its link.
struct AttemptNetwork {
  std::vector<std::string> addresses;
  NetworkReach reach;
  std::vector<std::string> resolvers;  // name servers that it may use
  std::string no_way_out;              // why it has none although its profile has one; "" = it has
  std::uint64_t sent_packets = 0, sent_bytes = 0, received_packets = 0, received_bytes = 0;
  std::uint64_t denied_packets = 0;  // packets from it that were refused or dropped
  ProbeResult result = ProbeResult::none;
  std::string why;                          // reason if refused or failed
  std::vector<std::string> site_addresses;  // "10.1.0.7/24": what the site's CNI plugins gave it
  std::string site_trouble;  // what the site's plugins find wrong with it now; "" = nothing
  GANTRY_FIELDS(FIELD(1, addresses), FIELD(2, reach), FIELD(3, resolvers), FIELD(4, no_way_out),
                FIELD(5, sent_packets), FIELD(6, sent_bytes), FIELD(7, received_packets),
                FIELD(8, received_bytes), FIELD(9, denied_packets), FIELD(10, result),
                FIELD(11, why), FIELD(12, site_addresses), FIELD(13, site_trouble))
};

struct NetworkProbed {
  JobId job{};
  std::string node;
  AttemptNetwork network;
  // Tenants of the reach's groups, in their order; "" = a tenant that is not known any more.
  std::vector<std::string> to_tenants, from_tenants;
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, node), FIELD(3, network), FIELD(4, to_tenants),
                FIELD(5, from_tenants))
};

struct ProbeAttempt {
  std::uint64_t ticket = 0;
  AttemptKey key;
  std::string target;
  GANTRY_FIELDS(FIELD(1, ticket), FIELD(2, key), FIELD(3, target))
};

struct AttemptProbed {
  std::uint64_t ticket = 0;
  std::string error;  // "" = fine
  AttemptNetwork network;
  GANTRY_FIELDS(FIELD(1, ticket), FIELD(2, error), FIELD(3, network))
};

}  // namespace gantry::proto
