#include "noded/network/machine_link.h"

#include <fmt/core.h>

#include "common/text/hash.h"

namespace gantry::network {
namespace {

constexpr std::uint32_t kNumbers = 4096;    // that a machine has for its daemons' links
constexpr std::uint32_t kNumberTries = 64;  // numbers that are looked at for one daemon

std::uint32_t first_link_number(const std::string& owner) {
  return fnv1a(owner) % kNumbers;
}

struct Place {
  std::optional<std::uint32_t> mine, free;
};

// The number whose link says that it is the owner's, and the first number that has no link.
Place find_place(Netlink& machine, std::string_view prefix, const std::string& owner) {
  Place out;
  const std::uint32_t first = first_link_number(owner);
  for (std::uint32_t i = 0; i < kNumberTries; ++i) {
    const std::uint32_t number = (first + i) % kNumbers;
    const auto alias = machine.alias_of(machine_link(prefix, number));
    if (!alias && !out.free) out.free = number;
    if (!alias || *alias != owner) continue;
    out.mine = number;
    break;
  }
  return out;
}

}  // namespace

std::string machine_link(std::string_view prefix, std::uint32_t number) {
  return fmt::format("{}{}", prefix, number);
}

std::optional<std::uint32_t> find_machine_link(Netlink& machine, std::string_view prefix,
                                               const std::string& owner) {
  return find_place(machine, prefix, owner).mine;
}

Result<std::uint32_t> have_machine_link(Netlink& machine, const MachineLink& link,
                                        const Fd& node_space, Netlink& node_links,
                                        const std::function<Result<void>(std::uint32_t)>& remove) {
  const Place place = find_place(machine, link.prefix, link.owner);
  if (place.mine && node_links.index_of(std::string(link.node_end))) return *place.mine;
  if (place.mine) TRY(remove(*place.mine));
  // A daemon may have been killed before it had written on the link whose it is.
  const std::string node_end(link.node_end);
  if (node_links.index_of(node_end)) TRY(node_links.remove_link(node_end));
  const auto number = place.mine ? place.mine : place.free;
  if (!number)
    return fail(
        ErrorCode::unavailable,
        fmt::format("the machine has links {} to {} of others already",
                    machine_link(link.prefix, first_link_number(link.owner)),
                    machine_link(link.prefix,
                                 (first_link_number(link.owner) + kNumberTries - 1) % kNumbers)));
  Netlink::Veth veth;
  veth.name = machine_link(link.prefix, *number);
  veth.peer_name = link.node_end;
  veth.mac = link.machine_mac;
  veth.peer_mac = link.node_mac;
  veth.peer_space = node_space.get();
  veth.mtu = link.mtu;
  veth.alias = link.owner;
  TRY(machine.make_veth(veth));
  return *number;
}

}  // namespace gantry::network
