// WireGuard links of one network namespace, by generic netlink. A link has a secret key and a port;
// each peer has its public key, its address, and the source addresses that its packets may have:
// the kernel drops packets with other addresses, and packets of unknown peers.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "common/result.h"
#include "noded/network/nodes_link.h"

struct nl_sock;
struct nl_msg;

namespace gantry::network {

NodeKey new_key();  // a secret key
NodeKey public_key(const NodeKey& secret);
std::string text_of_key(const NodeKey& key);  // base64, as `wg show` has it
Result<NodeKey> key_of_text(const std::string& text);

class WireGuard {
 public:
  // For the thread's present namespace. An error means that the kernel has no WireGuard.
  static Result<WireGuard> open();

  Result<void> set_own(const std::string& link, const NodeKey& secret, std::uint16_t port);
  struct Peer {
    NodeKey key{};  // public key
    Underlay at;
    Ip6 prefix;  // prefix with kNodePrefixBits
    std::optional<Ip4> block;
  };
  // Changes the peer if one with this key exists.
  Result<void> set_peer(const std::string& link, const Peer& peer);
  Result<void> remove_peer(const std::string& link, const NodeKey& key);

 private:
  struct CloseSocket {
    void operator()(nl_sock* socket) const;
  };
  WireGuard() = default;
  [[nodiscard]] nl_msg* message(const std::string& link) const;
  Result<void> send(nl_msg* message, const std::string& what);

  std::unique_ptr<nl_sock, CloseSocket> socket_;
  int family_ = 0;  // the kernel's number of WireGuard's messages
};

// Tests whether this machine can make networks for jobs: its kernel may lack the transport,
// nftables or IPv6, or forbid namespaces, and with transport routed the machine has to forward
// packets. Runs before the first job needs a network.

// Makes a network of one job and removes it again, in a namespace that stands in for the machine,
// so that nothing on this machine changes, and in a thread with its own mounts, so that a daemon
// killed meanwhile leaves only the directory. `directory` is made and removed. Needs root; takes
// some milliseconds. The error tells what could not be made.
Result<void> try_networks(const std::string& directory, Transport transport = Transport::vxlan);

}  // namespace gantry::network
