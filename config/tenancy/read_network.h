// Reads and checks what documents say about networks: ranges of addresses, and tenants with ports.
#pragma once

#include "config/tenancy/kinds.h"
#include "config/tenancy/read.h"

namespace gantry::tenancy {

// The most ranges of a profile or a service, tenants of a profile each way, and services. What a
// profile has with its services is held by each node for each of its jobs.
inline constexpr std::size_t kMostRanges = 200, kMostPeers = 50, kMostServices = 20;

// "fraud tcp/8080", "fraud".
struct Peer {
  std::string tenant, ports;
};
Result<Peer> parse_peer(std::string_view text);

// Tells what is wrong with a range for a profile; "" = nothing. A range may not be entirely within
// addresses that no job ever reaches: loopback, link-local and multicast ranges, with the metadata
// services of clouds.
std::string not_a_range(std::string_view text);

// Reads a list of ranges or of peers, each in the form in which it is kept.
Result<void> read_network_words(const Value& value, Form form, std::vector<std::string>& out);

}  // namespace gantry::tenancy
