// Links, addresses, routes and neighbours of one network namespace, by rtnetlink (libnl). A Netlink
// belongs to the namespace in which its thread was when it was opened, wherever the thread is
// later.
//
// Every call waits for the kernel's answer. An error's sentence names what was to be done.
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

// An address of the network that carries the nodes' packets.
struct Underlay {
  std::string address;  // numeric, IPv4 or IPv6
  std::uint16_t port = 0;
  std::string key{};  // what the node says of itself for its transport: nodes_link.h
  friend bool operator==(const Underlay&, const Underlay&) = default;
};

class Netlink {
 public:
  // With `changes` alone it cannot wait_until_up().
  enum class For { changes, changes_and_waiting };
  static Result<Netlink> open(For what = For::changes_and_waiting);

  // The changes that `work` asks for go to the kernel together, in their order, when it is done:
  // the kernel is asked once for each link and once for all changes. The first that fails is the
  // error; those behind it were tried all the same. If `work` fails, nothing is sent.
  Result<void> together(const std::function<Result<void>()>& work);

  // One end of the pair is made here, the other one in the namespace of the descriptor.
  struct Veth {
    std::string name, peer_name;
    Mac mac{}, peer_mac{};
    int peer_space = -1;
    std::uint32_t mtu = 0;
    std::string alias;
  };
  Result<void> make_veth(const Veth& veth);

  // The link is made in the namespace of the descriptor; its packets leave from here, where its UDP
  // port is. It learns nothing: it sends where add_remote() says.
  struct Vxlan {
    std::string name;
    std::uint32_t vni = 0;
    Underlay local;
    Mac mac{};
    int space = -1;
    std::uint32_t mtu = 0;
  };
  Result<void> make_vxlan(const Vxlan& vxlan);
  // What is sent to this MAC address leaves for that node.
  Result<void> add_remote(const std::string& link, const Mac& mac, const Underlay& node);

  // As with make_vxlan() the link is in the namespace of the descriptor, and its port is here. It
  // gets its keys by wireguard.h.
  Result<void> make_wireguard(const std::string& name, int space, std::uint32_t mtu);

  Result<void> remove_link(const std::string& link);
  struct Link {
    std::string name, alias;
  };
  [[nodiscard]] Result<std::vector<Link>> links() const;
  [[nodiscard]] Result<std::uint32_t> index_of(const std::string& link) const;
  // What make_veth() or name() wrote there; "" if nothing. The error is not_found if there is no
  // such link.
  [[nodiscard]] Result<std::string> alias_of(const std::string& link) const;
  // Writes down what the link is for.
  Result<void> name(const std::string& link, const std::string& alias);
  struct Traffic {
    std::uint64_t sent_packets = 0, sent_bytes = 0, received_packets = 0, received_bytes = 0;
  };
  [[nodiscard]] Result<Traffic> traffic_of(const std::string& link) const;
  [[nodiscard]] Result<std::map<std::string, Traffic>> traffic() const;  // of all links
  Result<void> set_up(const std::string& link);
  // Waits until a link that is set up, as the other end of its pair is, carries packets. The kernel
  // joins the end that was set up first to its queue in its own time, a few milliseconds later when
  // links of others are made or removed, and until then it loses what is sent there without an
  // error. The error is unavailable after two seconds.
  Result<void> wait_until_up(const std::string& link) const;
  Result<void> set_down(const std::string& link);

  // Addresses of one host. No duplicates are looked for.
  Result<void> add_address(const std::string& link, const Ip6& address) {
    return add_address(link, AF_INET6, address.bytes.data(), address.bytes.size(),
                       text_of(address));
  }
  Result<void> add_address(const std::string& link, const Ip4& address);
  // The neighbour is known for good, so nobody asks for it and nobody can answer.
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

  // Holds what leaves by the link to this rate in bits per second, within 5 %, by a token bucket.
  Result<void> limit_rate(const std::string& link, std::uint64_t bits_per_second);
  // It may have no limit.
  Result<void> unlimit_rate(const std::string& link);

 private:
  struct CloseSocket {
    void operator()(nl_sock* socket) const;
  };
  Netlink() = default;
  static Result<void> connect(std::unique_ptr<nl_sock, CloseSocket>& socket);
  // Asks for all that the message names, and frees it; `note` gets each answer.
  [[nodiscard]] Result<void> dump(nl_msg* m, int (*note)(nl_msg*, void*), void* out,
                                  const char* what) const;
  [[nodiscard]] Result<void> list(int (*note)(nl_msg*, void*), void* out) const;
  // Asks for one link; `note` gets the answer.
  [[nodiscard]] bool ask(const std::string& link, int (*note)(nl_msg*, void*), void* out) const;
  // The number of a link that is to be changed.
  Result<std::uint32_t> index_for(const std::string& link);
  Result<void> send(nl_msg* message, const std::string& what);
  struct Batch {
    std::vector<char> bytes;         // the messages, one behind the other
    std::vector<std::string> whats;  // of each
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
  std::unique_ptr<nl_sock, CloseSocket> events_;  // hears of links while wait_until_up() runs
  std::optional<Batch> batch_;                    // set while together() runs
};

// Links of a node's namespace to the machine's own namespace, for way_out.h and routed.h. Their
// names are a prefix and a number, and the alias of each says whose it is; so the daemon after one
// that was killed finds its own, and several nodes of one machine do not meet.
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
