// Links, addresses, routes and neighbours of one network namespace, by rtnetlink (libnl). A Netlink
// belongs to the namespace in which its thread was when it was opened, even if the thread moves
// later.
//
// Every call waits for the kernel's answer. An error names the intended change.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "noded/network/address.h"

struct nl_sock;
struct nl_msg;

namespace gantry::network {

using Mac = std::array<std::uint8_t, 6>;

// An address of the network that carries the packets between nodes.
struct Underlay {
  std::string address;  // numeric, IPv4 or IPv6
  std::uint16_t port = 0;
  std::string key{};  // what the node reports about its transport: nodes_link.h
  friend bool operator==(const Underlay&, const Underlay&) = default;
};

class Netlink {
 public:
  // With `changes` alone, wait_until_up() cannot be used.
  enum class For { changes, changes_and_waiting };
  static Result<Netlink> open(For what = For::changes_and_waiting);

  // Sends the changes made by `work` to the kernel together, in their order, when `work` is done:
  // one request for each link and one for all changes. Returns the first error; the changes after
  // it were tried as well. If `work` fails, nothing is sent.
  Result<void> together(const std::function<Result<void>()>& work);

  // Makes one end of the pair here, and the other in the namespace of the descriptor.
  struct Veth {
    std::string name, peer_name;
    Mac mac{}, peer_mac{};
    int peer_space = -1;
    std::uint32_t mtu = 0;
    std::string alias;
  };
  Result<void> make_veth(const Veth& veth);

  // The link is made in the namespace of the descriptor; its packets leave from here, where its UDP
  // port is. It learns no addresses: it sends where add_remote() tells it.
  struct Vxlan {
    std::string name;
    std::uint32_t vni = 0;
    Underlay local;
    Mac mac{};
    int space = -1;
    std::uint32_t mtu = 0;
  };
  Result<void> make_vxlan(const Vxlan& vxlan);
  // Packets to this MAC address are sent to that node.
  Result<void> add_remote(const std::string& link, const Mac& mac, const Underlay& node);

  // As with make_vxlan() the link is in the namespace of the descriptor, and its port is here.
  // wireguard.h sets its keys.
  Result<void> make_wireguard(const std::string& name, int space, std::uint32_t mtu);

  Result<void> remove_link(const std::string& link);
  struct Link {
    std::string name, alias;
  };
  [[nodiscard]] Result<std::vector<Link>> links() const;
  [[nodiscard]] Result<std::uint32_t> index_of(const std::string& link) const;
  // The alias written by make_veth() or name(); "" if none. Error not_found: there is no such link.
  [[nodiscard]] Result<std::string> alias_of(const std::string& link) const;
  // Writes the link's alias, which tells what it is for.
  Result<void> name(const std::string& link, const std::string& alias);
  struct Traffic {
    std::uint64_t sent_packets = 0, sent_bytes = 0, received_packets = 0, received_bytes = 0;
  };
  [[nodiscard]] Result<Traffic> traffic_of(const std::string& link) const;
  [[nodiscard]] Result<std::map<std::string, Traffic>> traffic() const;  // of all links
  Result<void> set_up(const std::string& link);
  // Waits until a link that is set up, as the other end of its pair is, carries packets. The kernel
  // joins the end that was set up first to its queue in its own time, a few milliseconds later when
  // links of others are made or removed, and until then packets sent there are lost without an
  // error. Error unavailable after two seconds.
  Result<void> wait_until_up(const std::string& link) const;
  Result<void> set_down(const std::string& link);

  // Adds addresses of one host, without duplicate address detection.
  Result<void> add_address(const std::string& link, const Ip6& address) {
    return add_address(link, AF_INET6, address.bytes.data(), address.bytes.size(),
                       text_of(address));
  }
  Result<void> add_address(const std::string& link, const Ip4& address);
  // The neighbour entry is permanent, so nobody asks for it and nobody can answer.
  Result<void> add_neighbour(const std::string& link, const Ip6& address, const Mac& mac);

  // A route by this link. Without `via` the destination is at the link itself. A gateway's address
  // is taken as it is, on the link; an IPv4 route has an IPv6 gateway too (RFC 5549). A metric says
  // of a route in a namespace that is not ours alone whose it is; remove_routes() removes all of
  // them that have this metric.
  Result<void> add_route(const std::string& link, const Ip6& to, int bits,
                         const std::optional<Ip6>& via, std::uint32_t metric = 0);
  Result<void> add_route(const std::string& link, const Ip4& to, int bits,
                         const std::optional<Ip6>& via, std::uint32_t metric = 0);
  Result<void> remove_routes(std::uint32_t metric);

  // Limits what is sent over the link to this rate in bits per second, within 5 %, by a token
  // bucket.
  Result<void> limit_rate(const std::string& link, std::uint64_t bits_per_second);
  // Removes the limit; there may be none.
  Result<void> unlimit_rate(const std::string& link);

 private:
  struct CloseSocket {
    void operator()(nl_sock* socket) const;
  };
  Netlink() = default;
  static Result<void> connect(std::unique_ptr<nl_sock, CloseSocket>& socket);
  // Requests all objects that the message names, and frees it; calls `note` with each answer.
  [[nodiscard]] Result<void> dump(nl_msg* m, int (*note)(nl_msg*, void*), void* out,
                                  const char* what) const;
  [[nodiscard]] Result<void> list(int (*note)(nl_msg*, void*), void* out) const;
  // Requests one link; calls `note` with the answer.
  [[nodiscard]] bool ask(const std::string& link, int (*note)(nl_msg*, void*), void* out) const;
  // The index of a link that will be changed.
  Result<std::uint32_t> index_for(const std::string& link);
  Result<void> send(nl_msg* message, const std::string& what);
  struct Batch {
    std::vector<char> bytes;         // the messages, concatenated
    std::vector<std::string> whats;  // description of each
    std::map<std::string, std::uint32_t> indexes;
  };
  Result<void> send_all(Batch& batch);
  struct Route {
    int family = 0;
    std::vector<std::uint8_t> to;
    int bits = 0;
    std::optional<Ip6> via;
    std::uint32_t metric = 0;  // 0 = the kernel's
  };
  Result<void> add_route(const std::string& link, const Route& route, const std::string& what);
  Result<void> add_address(const std::string& link, int family, const void* address,
                           std::size_t bytes, const std::string& what);

  std::unique_ptr<nl_sock, CloseSocket> socket_;
  std::unique_ptr<nl_sock, CloseSocket>
      events_;                  // receives events of links while wait_until_up() runs
  std::optional<Batch> batch_;  // set while together() runs
};

// Links of a node's namespace to the machine's own namespace, for way_out.h and routed.h. Their
// names are a prefix and a number, and the alias of each names its owner; so the daemon after a
// killed one finds its own links, and several nodes on one machine do not conflict.
struct MachineLink {
  std::string_view prefix;    // prefix of the name on the machine; a number below 4,096 follows
  std::string owner;          // a path, the same after a restart
  std::string_view node_end;  // the name in the node's namespace
  Mac machine_mac{}, node_mac{};
  std::uint32_t mtu = 0;
};

std::string machine_link(std::string_view prefix, std::uint32_t number);

// The number of the owner's link; nullopt if it has none.
std::optional<std::uint32_t> find_machine_link(Netlink& machine, std::string_view prefix,
                                               const std::string& owner);

// Finds or makes the link; nothing has a route through it yet. A leftover whose other end is not in
// the node's namespace any more is removed with `remove`.
Result<std::uint32_t> have_machine_link(Netlink& machine, const MachineLink& link,
                                        const Fd& node_space, Netlink& node_links,
                                        const std::function<Result<void>(std::uint32_t)>& remove);

}  // namespace gantry::network
