// Which name servers the jobs of a node may ask.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/text/network_range.h"

namespace gantry::network {

inline constexpr std::uint16_t kResolverPort = 53;
inline constexpr std::size_t kMostResolvers = 3;  // more are not asked by the C library

// Those that the text of a resolv.conf names and that another machine than this one can be; a
// server on the machine's loopback is none.
std::vector<NetworkRange> resolvers_of(std::string_view resolv_conf);

// The configured ones; or those of /etc/resolv.conf, or else of the file that systemd-resolved
// keeps behind its own server.
std::vector<NetworkRange> resolvers_here(const std::vector<std::string>& configured);

}  // namespace gantry::network
