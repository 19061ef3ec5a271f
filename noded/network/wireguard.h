// WireGuard links of one network namespace, by generic netlink. A link has a secret key and a port;
// each peer has its public key, its address, and the addresses that its packets may have: what it
// sends with another one is dropped by the kernel, and so is what a stranger sends.
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

NodeKey new_key();  // secret
NodeKey public_key(const NodeKey& secret);
std::string text_of_key(const NodeKey& key);  // base64, as `wg show` has it
Result<NodeKey> key_of_text(const std::string& text);

class WireGuard {
 public:
  // Of the namespace in which the thread is now. The error says that the kernel has none.
  static Result<WireGuard> open();

  Result<void> set_own(const std::string& link, const NodeKey& secret, std::uint16_t port);
  struct Peer {
    NodeKey key{};  // public
    Underlay at;
    Ip6 prefix;  // of kNodePrefixBits
    std::optional<Ip4> block;
  };
  // A peer of this key that is there already is changed.
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

// Whether this machine can make networks for jobs: its kernel may lack the transport, nftables or
// IPv6, or forbid namespaces, and a machine whose packets are routed has to forward them. Asked
// before the first job needs one.

// Makes a network of one job and removes it again, in a namespace that stands for a machine, so
// nothing of this machine changes, and in a thread with mounts of its own, so nothing is left of a
// daemon that is killed meanwhile but the directory. It is made, and is gone afterwards. Root only;
// takes some milliseconds. The error says what could not be made.
Result<void> try_networks(const std::string& directory, Transport transport = Transport::vxlan);

}  // namespace gantry::network
