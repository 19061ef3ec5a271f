// What a job's network reaches: as it was made on a node, what has passed, and whether one address
// answers. ProbeNetwork is the client's question and NetworkProbed its answer; ProbeAttempt and
// AttemptProbed carry them to the node and back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/proto/attempt.h"
#include "common/proto/job_network.h"
#include "common/proto/job_ref.h"

namespace gantry::proto {

enum class ProbeResult : std::uint8_t { none = 0, open = 1, refused = 2, silent = 3, failed = 4 };
constexpr auto enum_names(ProbeResult) {
  using enum ProbeResult;
  return std::array<std::pair<ProbeResult, std::string_view>, 5>{
      {{none, "none"}, {open, "open"}, {refused, "refused"}, {silent, "silent"},
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
  std::string why;  // of refused, failed
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
