// The way from a node's namespace to what its machine reaches: a link to the machine's own
// namespace, and address translation on both sides. It is made when the first job whose profile
// allows outside traffic begins, and is removed when the daemon ends without jobs.
//
//   node's namespace                            machine's namespace
//   rules.h ── way ──────────────────────────── gantryN ── the machine's routes
//   translated to the address of `way`          table `inet gantry_wayN`: translated once more
//
// The machine gets this link with two routes to one address each, and this table. The site has to
// switch on the machine's forwarding; an address family that the machine does not forward has no
// way out. From the link only the machine's resolvers can be reached, and no connection into it can
// be opened.
#pragma once

#include <string>
#include <vector>

#include "common/fd.h"
#include "common/text/network_range.h"
#include "noded/network/netlink.h"

namespace gantry::network {

class WayOut {
 public:
  struct Options {
    std::string owner;  // alias that marks the link's owner: a path, the same after a restart
    std::vector<NetworkRange> resolvers;
    std::uint32_t mtu = 0;
  };
  // Which families the machine of this thread's namespace forwards.
  struct Families {
    bool four = false, six = false;
  };
  static Families forwarded();

  // Makes the way out, or replaces an existing one. The error tells what the machine lacks.
  static Result<Families> open(const Options& options, const Fd& node_space, Netlink& node_links);
  // Removes what exists on the machine for the owner's way out; there may be nothing.
  static Result<void> remove(const std::string& owner);
};

}  // namespace gantry::network
