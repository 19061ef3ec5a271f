// The network of a job's parts: where its nodes are, so that each of them can let its part talk to
// the others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "node", s.node);
    v(2, "number", s.number);
    v(3, "job", s.job);
    v(4, "slot", s.slot);
    v(5, "address", s.address);
    v(22, "group", s.group);
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
  }
};

struct JobNetwork {
  NetworkPart own;
  std::vector<NetworkPart> peers;     // all other parts of the job
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

}  // namespace gantry::proto
