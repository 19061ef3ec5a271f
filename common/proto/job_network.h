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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "node", s.node);
    v(2, "number", s.number);
    v(3, "job", s.job);
    v(4, "slot", s.slot);
    v(5, "address", s.address);
  }
};

struct JobNetwork {
  NetworkPart own;
  std::vector<NetworkPart> peers;  // all other parts of the job
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "own", s.own);
    v(2, "peers", s.peers);
  }
};

}  // namespace gantry::proto
