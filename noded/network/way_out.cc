#include "noded/network/way_out.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "noded/network/netlink.h"
#include "noded/network/rules.h"
#include "noded/network/space.h"

namespace gantry::network {
namespace {

constexpr std::uint32_t kBase4 = 0xA9FE4000U;  // 169.254.64.0, four addresses for each number
constexpr std::string_view kWayLinks = "gantry";

constexpr Mac kMachineMac{0x02, 'g', 'n', 'w', 0, 1}, kWayMac{0x02, 'g', 'n', 'w', 0, 2};
constexpr Ip6 kWayGateway{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

std::string way_link(std::uint32_t number) {
  return machine_link(kWayLinks, number);
}
std::string way_table(std::uint32_t number) {
  return fmt::format("inet gantry_way{}", number);
}
Ip4 address4_of(std::uint32_t number) {
  return {kBase4 + 4 * number + 2};
}
// fd67:616e:7473::N, outside of the addresses of jobs.
Ip6 address6_of(std::uint32_t number) {
  Ip6 out{{0xfd, 0x67, 0x61, 0x6e, 0x74, 0x73}};
  out.bytes[14] = static_cast<std::uint8_t>(number >> 8);
  out.bytes[15] = static_cast<std::uint8_t>(number);
  return out;
}

bool is_on(const char* path) {
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  char text = '0';
  return file && ::read(file.get(), &text, 1) == 1 && text != '0';
}

std::string rules_of(std::uint32_t number, const WayOut::Options& options) {
  const std::string link = way_link(number), table = way_table(number);
  std::string resolvers;
  for (const NetworkRange& r : options.resolvers)
    for (const char* protocol : {"tcp", "udp"})
      resolvers += fmt::format("    {} daddr {} {} dport {} accept\n", r.six ? "ip6" : "ip",
                               address_text(r), protocol, kResolverPort);
  return fmt::format(
      R"(table {table}
delete table {table}
table {table} {{
  chain input {{
    type filter hook input priority filter; policy accept;
    iifname != "{link}" accept
{resolvers}    meta l4proto tcp reject with tcp reset
    reject with icmpx admin-prohibited
  }}
  chain forward {{
    type filter hook forward priority filter; policy accept;
    oifname "{link}" ct state new,invalid drop
    iifname "{link}" ip saddr != {four} drop
    iifname "{link}" ip6 saddr != {six} drop
    iifname "{link}" ct state invalid drop
  }}
  chain leave {{
    type nat hook postrouting priority srcnat; policy accept;
    oifname != "{link}" ip saddr {four} masquerade
    oifname != "{link}" ip6 saddr {six} masquerade
  }}
}}
)",
      fmt::arg("table", table), fmt::arg("link", link), fmt::arg("resolvers", resolvers),
      fmt::arg("four", text_of(address4_of(number))),
      fmt::arg("six", text_of(address6_of(number))));
}

constexpr std::string_view kNodeTable = R"(table inet gantry_way
delete table inet gantry_way
table inet gantry_way {
  chain leave {
    type nat hook postrouting priority srcnat; policy accept;
    oifname "way" masquerade
  }
}
)";

Result<void> settle_machine(Netlink& machine, std::uint32_t number) {
  const std::string link = way_link(number);
  TRY(machine.set_up(link));
  TRY(machine.add_neighbour(link, address6_of(number), kWayMac));
  TRY(machine.add_route(link, address6_of(number), 128, std::nullopt));
  // The node has one address of each family on its link; the machine finds it by the IPv6 one.
  return machine.add_route(link, address4_of(number), 32, address6_of(number));
}

// The node's default routes lead to the machine; they replace those that only lead to the rules.
Result<void> settle_node(Netlink& node, std::uint32_t number, const WayOut::Families& families) {
  const std::string link(kWayLink);
  TRY(node.add_address(link, address6_of(number)));
  TRY(node.add_address(link, address4_of(number)));
  TRY(node.add_neighbour(link, kWayGateway, kMachineMac));
  if (families.six)
    if (auto r = node.add_route(link, Ip6{}, 0, kWayGateway); !r) return r;
  if (families.four) return node.add_route(link, Ip4{}, 0, kWayGateway);
  return {};
}

// The link is removed last, because it marks whose table it is; while it is down nothing passes.
Result<void> remove_place(Netlink& machine, std::uint32_t number) {
  TRY(machine.set_down(way_link(number)));
  ASSIGN(filter, Filter::open());
  if (auto r = filter->run(fmt::format("table {0}\ndelete table {0}\n", way_table(number))); !r)
    return r;
  return machine.remove_link(way_link(number));
}

Result<void> translate(std::uint32_t number, const WayOut::Options& options, const Fd& node_space) {
  ASSIGN(machine, Filter::open());
  TRY(machine->run(rules_of(number, options)));
  return inside(node_space, [&]() -> Result<void> {
    ASSIGN(node, Filter::open());
    return node->run(std::string(kNodeTable));
  });
}

}  // namespace

WayOut::Families WayOut::forwarded() {
  return {is_on("/proc/sys/net/ipv4/ip_forward"), is_on("/proc/sys/net/ipv6/conf/all/forwarding")};
}

Result<WayOut::Families> WayOut::open(const Options& options, const Fd& node_space,
                                      Netlink& node_links) {
  const Families families = forwarded();
  if (!families.four && !families.six)
    return fail(ErrorCode::unavailable,
                "the machine forwards no packets (net.ipv4.ip_forward and "
                "net.ipv6.conf.all.forwarding are 0)");
  ASSIGN(machine, Netlink::open());
  const MachineLink link{kWayLinks, options.owner, kWayLink, kMachineMac, kWayMac, options.mtu};
  ASSIGN(number, have_machine_link(*machine, link, node_space, node_links,
                                   [&](std::uint32_t n) { return remove_place(*machine, n); }));
  auto settled = translate(*number, options, node_space);
  if (settled) settled = settle_machine(*machine, *number);
  if (settled) settled = node_links.set_up(std::string(kWayLink));
  if (settled) settled = settle_node(node_links, *number, families);
  if (settled) settled = machine->wait_until_up(way_link(*number));
  if (!settled) {
    (void)remove_place(*machine, *number);
    return tl::unexpected(settled.error());
  }
  return families;
}

Result<void> WayOut::remove(const std::string& owner) {
  ASSIGN(machine, Netlink::open());
  const auto mine = find_machine_link(*machine, kWayLinks, owner);
  return mine ? remove_place(*machine, *mine) : Result<void>{};
}

}  // namespace gantry::network
