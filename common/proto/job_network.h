// The network of a job's parts: where its nodes are, so that each of them can let its part talk to
// the others, and what it reaches besides. And questions about it: ProbeNetwork is a client's
// question and NetworkProbed its answer; ProbeAttempt and AttemptProbed carry them to the node and
// back.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/proto/attempt.h"
#include "common/proto/job_ref.h"
#include "common/types.h"

namespace gantry::proto {

// One job on one node. A component of a heterogeneous job is a job of its own.
struct NetworkPart {
  std::string node;          // name
  std::uint32_t number = 0;  // of the node; stays with its name
  JobId job{};
  std::optional<std::uint32_t> slot;  // the job's place among the node's IPv4 addresses
  std::string address;                // host:port of the node's daemon
  std::uint32_t group = 0;            // the tenant's number in the addresses; 0 = of no tenant
  std::string transport;              // as in NodeRegister
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "node", s.node);
    v(2, "number", s.number);
    v(3, "job", s.job);
    v(4, "slot", s.slot);
    v(5, "address", s.address);
    v(22, "group", s.group);
    v(6, "transport", s.transport);
  }
};

// Jobs of one tenant, which this job may connect to or be connected to from.
struct NetworkGroup {
  std::uint32_t group = 0;
  std::string ports;  // "tcp/8080-8090"; "" = all
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "group", s.group);
    v(2, "ports", s.ports);
  }
};

// What the job may reach beside its own parts: its profile, as its tenant's documents say it at the
// moment of the launch.
struct NetworkReach {
  std::string profile;
  // Whether a node that has no way out does not start the job; otherwise it starts without one.
  bool required = false;
  bool resolvers = false, internet = false;
  std::vector<std::string> ranges;  // "10.1.0.0/16 tcp/443", see common/text/network_range.h
  std::vector<NetworkGroup> to, from;
  std::string proxy;  // for the variable http_proxy and its kin: "http://10.1.0.9:3128"; "" = none
  [[nodiscard]] bool leaves() const { return resolvers || internet || !ranges.empty(); }
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "profile", s.profile);
    v(2, "required", s.required);
    v(3, "resolvers", s.resolvers);
    v(4, "internet", s.internet);
    v(5, "ranges", s.ranges);
    v(6, "to", s.to);
    v(7, "from", s.from);
    v(8, "proxy", s.proxy);
  }
};

struct JobNetwork {
  NetworkPart own;
  std::vector<NetworkPart> peers;  // all other parts of the job
  NetworkReach reach{};
  std::uint64_t bits_per_second = 0;  // each way; 0 = no limit
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "own", s.own);
    v(2, "peers", s.peers);
    v(19, "reach", s.reach);
    v(20, "bits_per_second", s.bits_per_second);
  }
};

// The beginning of the line in layers_off on a node that makes no networks for jobs; why follows.
inline constexpr std::string_view kNoJobNetworks = "networks of jobs: ";

enum class ProbeResult : std::uint8_t { none = 0, open = 1, refused = 2, silent = 3, failed = 4 };
constexpr auto enum_names(ProbeResult) {
  using enum ProbeResult;
  return std::array<std::pair<ProbeResult, std::string_view>, 5>{{{none, "none"},
                                                                  {open, "open"},
                                                                  {refused, "refused"},
                                                                  {silent, "silent"},
                                                                  {failed, "failed"}}};
}

struct ProbeNetwork {
  JobRef job;
  std::string node;    // of the job; "" = its first
  std::string target;  // "HOST:PORT", an address or a node of the job; "" = nothing is tried
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "node", s.node);
    v(3, "target", s.target);
  }
};

// One attempt's network on one node. Packets and bytes are counted at its link.
struct AttemptNetwork {
  std::vector<std::string> addresses;
  NetworkReach reach;
  std::vector<std::string> resolvers;  // that it may ask
  std::string no_way_out;              // why it has none although its profile has one; "" = it has
  std::uint64_t sent_packets = 0, sent_bytes = 0, received_packets = 0, received_bytes = 0;
  std::uint64_t denied_packets = 0;  // that it sent and that were refused or dropped
  ProbeResult result = ProbeResult::none;
  std::string why;                          // of refused, failed
  std::vector<std::string> site_addresses;  // "10.1.0.7/24": what the site's CNI plugins gave it
  std::string site_trouble;                 // what they find wrong with it now; "" = nothing
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "addresses", s.addresses);
    v(2, "reach", s.reach);
    v(3, "resolvers", s.resolvers);
    v(4, "no_way_out", s.no_way_out);
    v(5, "sent_packets", s.sent_packets);
    v(6, "sent_bytes", s.sent_bytes);
    v(7, "received_packets", s.received_packets);
    v(8, "received_bytes", s.received_bytes);
    v(9, "denied_packets", s.denied_packets);
    v(10, "result", s.result);
    v(11, "why", s.why);
    v(12, "site_addresses", s.site_addresses);
    v(13, "site_trouble", s.site_trouble);
  }
};

struct NetworkProbed {
  JobId job{};
  std::string node;
  AttemptNetwork network;
  // Of the reach's groups, in their order; "" = a tenant that is not known any more.
  std::vector<std::string> to_tenants, from_tenants;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "node", s.node);
    v(3, "network", s.network);
    v(4, "to_tenants", s.to_tenants);
    v(5, "from_tenants", s.from_tenants);
  }
};

struct ProbeAttempt {
  std::uint64_t ticket = 0;
  AttemptKey key;
  std::string target;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "ticket", s.ticket);
    v(2, "key", s.key);
    v(3, "target", s.target);
  }
};

struct AttemptProbed {
  std::uint64_t ticket = 0;
  std::string error;  // "" = fine
  AttemptNetwork network;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "ticket", s.ticket);
    v(2, "error", s.error);
    v(3, "network", s.network);
  }
};

}  // namespace gantry::proto
