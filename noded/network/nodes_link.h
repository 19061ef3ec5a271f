// The link of a node's namespace to the other nodes, which is named `nodes`, by one of three
// transports:
//
//   vxlan       UDP of the machine; neither encrypted nor signed
//   wireguard   UDP of the machine, encrypted; a node's packets have addresses of its own jobs, or
//               the kernel drops them (wireguard.h)
//   routed      packets as they are: a link to the machine, which routes them (routed.h)
//
// With the first two, the only change in the machine's own namespace is the UDP socket.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/fd.h"
#include "noded/network/netlink.h"

namespace gantry::network {

enum class Transport : std::uint8_t { vxlan, wireguard, routed };
std::string name_of(Transport transport);

// The secret key of a node for WireGuard, or its public one.
using NodeKey = std::array<std::uint8_t, 32>;

inline constexpr const char* kNodesLink = "nodes";

class NodesLink {
 public:
  struct Options {
    Transport transport = Transport::vxlan;
    Blocks blocks;
    std::uint32_t node = 0;
    Underlay underlay;      // where other nodes reach this one
    std::uint32_t vni = 0;  // of the cluster, for vxlan
    NodeKey secret{};       // for wireguard
    std::string owner;      // alias of the link on the machine: a path, the same after a restart
  };
  // Makes the link again, because the machine's address may have changed. The thread is in the
  // machine's namespace; `links` and `space` are the node's and must outlive this object.
  static Result<std::unique_ptr<NodesLink>> open(const Options& options, const Fd& space,
                                                 Netlink& links);
  // Removes what exists on the machine for the owner's link; there may be nothing.
  static Result<void> remove(const std::string& owner);

  NodesLink() = default;
  NodesLink(const NodesLink&) = delete;
  NodesLink& operator=(const NodesLink&) = delete;
  virtual ~NodesLink() = default;

  // From now on, packets for that node's jobs are sent there, and packets from there are accepted.
  virtual Result<void> set_way(std::uint32_t node, const Underlay& at) = 0;
  // The largest packet of a job, in bytes, that this link carries without fragmenting.
  [[nodiscard]] virtual std::uint32_t mtu() const = 0;
};

// What a node reports to the others about its transport, after the transport's name; `host` is its
// own numeric address. The file has the secret key of wireguard, and is made if it does not exist.
// The error tells what this machine lacks.
Result<std::string> introduction(Transport transport, const std::string& key_file,
                                 const std::string& host);
Result<NodeKey> load_key(const std::string& key_file);

// Reads another node's report: the words after the transport's name. The error means that it uses
// another transport.
Result<std::string> introduced(Transport transport, const std::string& node,
                               const std::string& text);

}  // namespace gantry::network
