// WireGuard links of one network namespace, by generic netlink. A link has a secret key and a port;
// each peer has its public key, its address, and the addresses that its packets may have: what it
// sends with another one is dropped by the kernel, and so is what a stranger sends.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

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

}  // namespace gantry::network
