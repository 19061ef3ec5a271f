// The way from a node's namespace to what its machine reaches: a link to the machine's own
// namespace, and address translation on both sides. It is made when the first job whose profile
// leads out begins, and goes when the daemon ends without jobs.
//
//   node's namespace                            machine's namespace
//   rules.h ── way ──────────────────────────── gantryN ── the machine's routes
//   translated to the address of `way`          table `inet gantry_wayN`: translated once more
//
// On the machine there is this link with two routes to one address each, and this table. The
// machine's forwarding is the site's to switch on; a family that the machine does not forward has
// no way out. From the link nothing reaches the machine itself but the resolvers, and nobody begins
// a connection into it.
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
    std::string owner;  // says whose link it is: a path, the same after a restart
    std::vector<NetworkRange> resolvers;
    std::uint32_t mtu = 0;
  };
  // Which families the machine of this thread's namespace forwards.
  struct Families {
    bool four = false, six = false;
  };
  static Families forwarded();

  // Makes the way, or makes anew what is there of it. The error says what the machine lacks.
  static Result<Families> open(const Options& options, const Fd& node_space, Netlink& node_links);
  // Removes what is on the machine of the owner's way; there may be nothing.
  static Result<void> remove(const std::string& owner);
};

}  // namespace gantry::network
