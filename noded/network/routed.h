// What is made on the machine of a node if packets between nodes are routed without encapsulation:
//
//   node's namespace                     machine's namespace
//   rules.h ── nodes ─────────────────── gantryrN ── the machine's routes ── its network
//
// The machine has a route through this link to the addresses of the node's jobs; a route to those
// of each other node in one of the machine's own networks, through that node's link-local address;
// and the table `inet gantry_routedN`. Other nodes are reached by routes that the site's routers or
// its routing daemon give to the machine. The site has to switch on the machine's forwarding.
//
// The table accepts packets that have an address of the cluster's jobs, arrive on the link on which
// they would be answered and, from a node in one of the machine's networks, have that node's MAC
// address. It lets out packets from addresses of the node's own jobs to one of the cluster's jobs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/fd.h"
#include "noded/network/netlink.h"
#include "noded/network/rules.h"

namespace gantry::network {

// The gateway of the node's namespace: its machine.
inline constexpr Ip6 kRoutedGateway{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

// A network of the machine, from one of its links and addresses.
struct Nearby {
  std::string link;
  std::vector<std::uint8_t> address, mask;  // 4 or 16 bytes each
};

class Routed {
 public:
  struct Options {
    std::string owner;
    Blocks blocks;
    std::uint32_t node = 0;
    Underlay underlay;  // where other nodes reach this one
  };
  // Makes the link, or replaces an existing one. The thread is in the machine's namespace.
  static Result<Routed> open(Options options, const Fd& node_space, Netlink& node_links);
  // Removes what exists on the machine for the owner's link; there may be nothing.
  static Result<void> remove(const std::string& owner);

  Result<void> set_way(std::uint32_t node, const Underlay& at);
  [[nodiscard]] std::uint32_t mtu() const { return mtu_; }

 private:
  explicit Routed(Options options) : options_(std::move(options)) {}
  Result<void> settle(const Fd& node_space, Netlink& node_links);

  Options options_;
  std::unique_ptr<Netlink> machine_;
  std::unique_ptr<Filter> filter_;
  std::vector<Nearby> nearby_;
  std::map<std::uint32_t, std::string> macs_;  // other nodes in one of these networks
  std::uint32_t number_ = 0, mtu_ = 0;
};

// What others need to know about the machine with this address: the link-local address and the MAC
// address of its link, "fe80::1 02:00:00:00:00:01"; "lo" if only nodes on the same machine can
// reach it. The error tells what it lacks.
Result<std::string> neighbour_text(const std::string& address);

}  // namespace gantry::network
