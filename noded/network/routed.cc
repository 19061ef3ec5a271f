#include "noded/network/routed.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "noded/network/netlink.h"
#include "noded/network/nodes_link.h"
#include "noded/network/space.h"

namespace gantry::network {
namespace {

constexpr std::string_view kRoutedLinks = "gantryr";
constexpr Mac kRoutedMachineMac{0x02, 'g', 'n', 'r', 0, 1},
    kRoutedNodeMac{0x02, 'g', 'n', 'r', 0, 2};
constexpr Ip6 kNodeEnd{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};
// Routes to other nodes have this metric plus the number of the link, so that each daemon on a
// machine has its own metric and never removes another's routes.
constexpr std::uint32_t kFirstMetric = 10'000;
constexpr std::uint32_t kLeastMtu = 1280, kMostMtu = 9000;

std::string routed_table(std::uint32_t number) {
  return fmt::format("inet gantry_routed{}", number);
}

std::vector<std::uint8_t> octets_of(const sockaddr* address) {
  if (address == nullptr) return {};
  const std::uint8_t* from = nullptr;
  std::size_t size = 0;
  if (address->sa_family == AF_INET) {
    from = reinterpret_cast<const std::uint8_t*>(
        &reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
    size = 4;
  } else if (address->sa_family == AF_INET6) {
    from = reinterpret_cast<const std::uint8_t*>(
        &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
    size = 16;
  }
  return {from, from + size};
}

std::vector<std::uint8_t> octets_of(const std::string& address) {
  std::vector<std::uint8_t> four(4), six(16);
  if (::inet_pton(AF_INET, address.c_str(), four.data()) == 1) return four;
  if (::inet_pton(AF_INET6, address.c_str(), six.data()) == 1) return six;
  return {};
}

bool contains(const Nearby& network, const std::vector<std::uint8_t>& address) {
  if (network.address.size() != address.size()) return false;
  for (std::size_t i = 0; i < address.size(); ++i)
    if (((network.address[i] ^ address[i]) & network.mask[i]) != 0) return false;
  return true;
}

bool is_link_local(const std::vector<std::uint8_t>& address) {
  return address.size() == 16 && address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

// The links of this thread's namespace that are up.
struct Here {
  std::vector<Nearby> networks;
  std::map<std::string, Ip6> link_local;
  std::map<std::string, Mac> macs;
  [[nodiscard]] const Nearby* owner_of(const std::vector<std::uint8_t>& address) const {
    for (const Nearby& one : networks)
      if (one.address == address) return &one;
    return nullptr;
  }
};

Result<Here> look_here() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0)
    return fail(ErrorCode::unavailable,
                fmt::format("the machine's addresses cannot be listed: {}", std::strerror(errno)));
  Here out;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    if (one->ifa_addr->sa_family == AF_PACKET) {
      const auto* link = reinterpret_cast<const sockaddr_ll*>(one->ifa_addr);
      if (link->sll_halen == 6) std::copy_n(link->sll_addr, 6, out.macs[one->ifa_name].begin());
      continue;
    }
    const auto address = octets_of(one->ifa_addr);
    if (is_link_local(address))
      std::copy_n(address.begin(), 16, out.link_local[one->ifa_name].bytes.begin());
    else if (!address.empty() && octets_of(one->ifa_netmask).size() == address.size())
      out.networks.push_back({one->ifa_name, address, octets_of(one->ifa_netmask)});
  }
  ::freeifaddrs(all);
  return out;
}

std::uint32_t mtu_of(const std::string& link) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, link.c_str(), sizeof request.ifr_name - 1);
  const bool known = socket && ::ioctl(socket.get(), SIOCGIFMTU, &request) == 0;
  return std::clamp(known ? static_cast<std::uint32_t>(request.ifr_mtu) : 1500, kLeastMtu,
                    kMostMtu);
}

Result<const Nearby*> own_network(const Here& here, const std::string& address) {
  if (const Nearby* own = here.owner_of(octets_of(address))) return own;
  return fail(
      ErrorCode::unavailable,
      fmt::format("no link of this machine has the address {}, by which other nodes know it",
                  address));
}

// What neighbour_text() returned on another machine.
struct Neighbour {
  Ip6 gateway;
  std::string mac;
};
std::optional<Neighbour> read_neighbour(const std::string& text) {
  Neighbour out;
  const auto space = text.find(' ');
  if (space == std::string::npos ||
      ::inet_pton(AF_INET6, text.substr(0, space).c_str(), out.gateway.bytes.data()) != 1 ||
      !is_link_local({out.gateway.bytes.begin(), out.gateway.bytes.end()}))
    return std::nullopt;
  out.mac = text.substr(space + 1);
  const bool plain =
      out.mac.size() == 17 && out.mac.find_first_not_of("0123456789abcdef:") == std::string::npos;
  if (!plain) return std::nullopt;
  return out;
}

// Packets of a node in one of the machine's networks must have its MAC address; for other nodes
// only the link is checked.
constexpr std::string_view kRoutedRules = R"(table {table}
delete table {table}
table {table} {{
  set macs6 {{ type ipv6_addr . ether_addr; flags interval; }}
  set macs4 {{ type ipv4_addr . ether_addr; flags interval; }}
  set near6 {{ type ipv6_addr; flags interval; }}
  set near4 {{ type ipv4_addr; flags interval; }}
  counter spoofed {{ }}
  chain enter {{
    ip6 saddr {own6} counter name spoofed drop
    ip saddr {own4} counter name spoofed drop
    fib saddr . iif oif missing counter name spoofed drop
    ip6 saddr . ether saddr @macs6 accept
    ip saddr . ether saddr @macs4 accept
    ip6 saddr @near6 counter name spoofed drop
    ip saddr @near4 counter name spoofed drop
    ip6 saddr {all6} accept
    ip saddr {all4} accept
    counter name spoofed drop
  }}
  chain leave {{
    ip6 saddr {own6} ip6 daddr {all6} accept
    ip saddr {own4} ip daddr {all4} accept
    counter name spoofed drop
  }}
  chain forward {{
    type filter hook forward priority filter; policy accept;
    iifname "{link}" goto leave
    oifname "{link}" goto enter
  }}
  chain input {{
    type filter hook input priority filter; policy accept;
    iifname "{link}" drop
  }}
  chain output {{
    type filter hook output priority filter; policy accept;
    oifname "{link}" drop
  }}
}}
)";

std::string prefix_text(const Blocks& blocks, std::uint32_t node) {
  return fmt::format("{}/{}", text_of(node_prefix(blocks, node)), kNodePrefixBits);
}
std::string block_text(const Blocks& blocks, std::uint32_t node) {
  const auto block = node_block(blocks, node);
  // A node without IPv4 addresses has none that others could take.
  return block ? fmt::format("{}/{}", text_of(*block), kNodeBlockBits) : "0.0.0.0/32";
}

std::string routed_rules(std::uint32_t number, const Routed::Options& options) {
  return fmt::format(
      kRoutedRules, fmt::arg("table", routed_table(number)),
      fmt::arg("link", machine_link(kRoutedLinks, number)),
      fmt::arg("own6", prefix_text(options.blocks, options.node)),
      fmt::arg("own4", block_text(options.blocks, options.node)),
      fmt::arg("all6", fmt::format("{}/{}", text_of(options.blocks.prefix), kPrefixBits)),
      fmt::arg("all4", fmt::format("{}/{}", text_of(options.blocks.block), kBlockBits)));
}

// The link is removed last, because it marks whose routes and table these are.
Result<void> remove_routed(Netlink& machine, std::uint32_t number) {
  TRY(machine.set_down(machine_link(kRoutedLinks, number)));
  TRY(machine.remove_routes(kFirstMetric + number));
  ASSIGN(filter, Filter::open());
  if (auto r = filter->run(fmt::format("table {0}\ndelete table {0}\n", routed_table(number))); !r)
    return r;
  return machine.remove_link(machine_link(kRoutedLinks, number));
}

}  // namespace

Result<Routed> Routed::open(Options options, const Fd& node_space, Netlink& node_links) {
  Routed out(std::move(options));
  ASSIGN(machine, Netlink::open());
  out.machine_ = std::make_unique<Netlink>(std::move(*machine));
  ASSIGN(filter, Filter::open());
  out.filter_ = std::make_unique<Filter>(std::move(*filter));
  ASSIGN(here, look_here());
  ASSIGN(own, own_network(*here, out.options_.underlay.address));
  out.mtu_ = mtu_of((*own)->link);
  out.nearby_ = std::move(here->networks);
  if (auto r = out.settle(node_space, node_links); !r) {
    (void)remove(out.options_.owner);
    return tl::unexpected(r.error());
  }
  return out;
}

// The table is set before the link carries packets.
Result<void> Routed::settle(const Fd& node_space, Netlink& node_links) {
  const MachineLink wanted{kRoutedLinks,      options_.owner, kNodesLink,
                           kRoutedMachineMac, kRoutedNodeMac, mtu_};
  const auto number =
      have_machine_link(*machine_, wanted, node_space, node_links,
                        [&](std::uint32_t n) { return remove_routed(*machine_, n); });
  if (!number) return tl::unexpected(number.error());
  number_ = *number;
  const std::string link = machine_link(kRoutedLinks, number_);
  TRY(filter_->run(routed_rules(number_, options_)));
  TRY(machine_->remove_routes(kFirstMetric + number_));
  TRY(machine_->set_up(link));
  TRY(node_links.set_up(kNodesLink));
  TRY(machine_->add_neighbour(link, kNodeEnd, kRoutedNodeMac));
  if (auto r = machine_->add_route(link, node_prefix(options_.blocks, options_.node),
                                   kNodePrefixBits, kNodeEnd);
      !r)
    return r;
  if (const auto block = node_block(options_.blocks, options_.node))
    TRY(machine_->add_route(link, *block, kNodeBlockBits, kNodeEnd));
  TRY(node_links.add_address(kNodesLink, kNodeEnd));
  TRY(node_links.add_neighbour(kNodesLink, kRoutedGateway, kRoutedMachineMac));
  return machine_->wait_until_up(link);
}

Result<void> Routed::remove(const std::string& owner) {
  ASSIGN(machine, Netlink::open());
  const auto mine = find_machine_link(*machine, kRoutedLinks, owner);
  return mine ? remove_routed(*machine, *mine) : Result<void>{};
}

Result<void> Routed::set_way(std::uint32_t node, const Underlay& at) {
  const auto address = octets_of(at.address);
  if (address.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is not a numeric address", at.address));
  // A node on this machine has a route already, made by its own daemon.
  for (const Nearby& one : nearby_)
    if (one.address == address) return {};
  const auto network =
      std::ranges::find_if(nearby_, [&](const Nearby& one) { return contains(one, address); });
  if (network == nearby_.end()) return {};  // it is behind a router, which knows the route
  const auto neighbour = read_neighbour(at.key);
  if (!neighbour)
    return fail(ErrorCode::invalid_argument,
                fmt::format("the node at {} does not say at which address of its link packets can "
                            "be handed to it: \"{:.64}\"",
                            at.address, at.key));
  const std::string six = prefix_text(options_.blocks, node);
  const std::string four = block_text(options_.blocks, node);
  const std::string table = routed_table(number_);
  const auto block = node_block(options_.blocks, node);
  const auto change = [&](std::string_view verb, std::string_view mac) {
    std::string out = fmt::format("{0} element {1} macs6 {{ {2} . {3} }}\n", verb, table, six, mac);
    out += fmt::format("{0} element {1} near6 {{ {2} }}\n", verb, table, six);
    if (!block) return out;
    out += fmt::format("{0} element {1} macs4 {{ {2} . {3} }}\n", verb, table, four, mac);
    return out + fmt::format("{0} element {1} near4 {{ {2} }}\n", verb, table, four);
  };
  const auto before = macs_.find(node);
  std::string rules = before == macs_.end() ? std::string() : change("delete", before->second);
  rules += change("add", neighbour->mac);
  TRY(filter_->run(rules));
  macs_.insert_or_assign(node, neighbour->mac);
  const std::uint32_t metric = kFirstMetric + number_;
  TRY(machine_->add_route(network->link, node_prefix(options_.blocks, node), kNodePrefixBits,
                          neighbour->gateway, metric));
  return block ? machine_->add_route(network->link, *block, kNodeBlockBits, neighbour->gateway,
                                     metric)
               : Result<void>{};
}

Result<std::string> neighbour_text(const std::string& address) {
  ASSIGN(here, look_here());
  ASSIGN(own, own_network(*here, address));
  const std::string& link = (*own)->link;
  if (link == "lo") return std::string("lo");
  const auto local = here->link_local.find(link);
  const auto mac = here->macs.find(link);
  if (local == here->link_local.end() || mac == here->macs.end())
    return fail(
        ErrorCode::unavailable,
        fmt::format("the link {} has no {}, by which other nodes could hand packets to it", link,
                    mac == here->macs.end() ? "MAC address" : "link-local IPv6 address"));
  std::string text;
  for (const std::uint8_t byte : mac->second)
    text += fmt::format("{}{:02x}", text.empty() ? "" : ":", byte);
  return text_of(local->second) + " " + text;
}

}  // namespace gantry::network
