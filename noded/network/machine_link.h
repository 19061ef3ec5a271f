// Links of a node's namespace to the machine's own namespace, for way_out.h and routed.h. Their
// names are a prefix and a number, and the alias of each says whose it is; so the daemon after one
// that was killed finds its own, and several nodes of one machine do not meet.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/fd.h"
#include "noded/network/netlink.h"

namespace gantry::network {

struct MachineLink {
  std::string_view prefix;    // of the name on the machine; a number below 4,096 follows
  std::string owner;          // a path, the same after a restart
  std::string_view node_end;  // the name in the node's namespace
  Mac machine_mac{}, node_mac{};
  std::uint32_t mtu = 0;
};

std::string machine_link(std::string_view prefix, std::uint32_t number);

// The number of the owner's link; none if it has none.
std::optional<std::uint32_t> find_machine_link(Netlink& machine, std::string_view prefix,
                                               const std::string& owner);

// The link is there, or is made; nothing has a route by it yet. What is left of one whose other end
// is not in the node's namespace any more is removed by `remove`.
Result<std::uint32_t> have_machine_link(Netlink& machine, const MachineLink& link,
                                        const Fd& node_space, Netlink& node_links,
                                        const std::function<Result<void>(std::uint32_t)>& remove);

}  // namespace gantry::network
