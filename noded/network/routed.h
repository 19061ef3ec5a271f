// What the machine of a node has where packets between nodes are routed as they are:
//
//   node's namespace                     machine's namespace
//   rules.h ── nodes ─────────────────── gantryrN ── the machine's routes ── its network
//
// The machine has a route by this link to the addresses of the node's jobs; a route to those of
// each other node that is in one of the machine's own networks, by that node's link-local address;
// and the table `inet gantry_routedN`. Other nodes are found by the routes that the site's routers
// or its routing daemon give to the machine. The machine's forwarding is the site's to switch on.
//
// The table lets in what has an address of the cluster's jobs, comes by the way on which it would
// be answered and, from a node in one of the machine's networks, with that node's MAC address. It
// lets out what has an address of the node's own jobs and goes to one of the cluster's jobs.
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

// A network of the machine, as one of its links and addresses says it.
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
  // Makes the link, or makes anew what is there of it. The thread is in the machine's namespace.
  static Result<Routed> open(Options options, const Fd& node_space, Netlink& node_links);
  // Removes what is on the machine of the owner's link; there may be nothing.
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
  std::map<std::uint32_t, std::string> macs_;  // of nodes in one of these networks
  std::uint32_t number_ = 0, mtu_ = 0;
};

// What others need to know of the machine that has this address: the link-local address and the
// MAC address of its link, "fe80::1 02:00:00:00:00:01"; "lo" where only nodes of the same machine
// can reach it. The error says what it lacks.
Result<std::string> neighbour_text(const std::string& address);

}  // namespace gantry::network
