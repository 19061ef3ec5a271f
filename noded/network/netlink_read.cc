// The read-only requests of netlink.h.
#include <fmt/core.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <poll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/fd.h"
#include "common/text/hash.h"
#include "noded/network/netlink.h"
#include "noded/network/netlink_message.h"

namespace gantry::network {

namespace {

// IF_OPER_UP of <linux/if.h>, which conflicts with <net/if.h>: RFC 2863.
constexpr std::uint8_t kOperationalUp = 6;

// An attribute of the link that the message is about; nullptr = it says nothing of that.
nlattr* attribute_of(nl_msg* m, int type) {
  return ::nlmsg_find_attr(::nlmsg_hdr(m), sizeof(ifinfomsg), type);
}

int note_link(nl_msg* m, void* out) {
  nlattr* const name = attribute_of(m, IFLA_IFNAME);
  if (::nlmsg_hdr(m)->nlmsg_type != RTM_NEWLINK || name == nullptr) return NL_OK;
  Netlink::Link& link = static_cast<std::vector<Netlink::Link>*>(out)->emplace_back();
  link.name = ::nla_get_string(name);
  if (nlattr* alias = attribute_of(m, IFLA_IFALIAS)) link.alias = ::nla_get_string(alias);
  return NL_OK;
}

int note_state(nl_msg* m, void* out) {
  if (nlattr* state = attribute_of(m, IFLA_OPERSTATE))
    *static_cast<std::uint8_t*>(out) = ::nla_get_u8(state);
  return NL_OK;
}

int note_alias(nl_msg* m, void* out) {
  if (nlattr* alias = attribute_of(m, IFLA_IFALIAS))
    *static_cast<std::string*>(out) = ::nla_get_string(alias);
  return NL_OK;
}

int note_traffic(nl_msg* m, void* out) {
  nlattr* const found = attribute_of(m, IFLA_STATS64);
  if (found == nullptr) return NL_OK;
  rtnl_link_stats64 stats{};
  std::memcpy(&stats, ::nla_data(found),
              std::min(sizeof stats, static_cast<std::size_t>(::nla_len(found))));
  *static_cast<Netlink::Traffic*>(out) = {stats.tx_packets, stats.tx_bytes, stats.rx_packets,
                                          stats.rx_bytes};
  return NL_OK;
}

int note_index(nl_msg* m, void* out) {
  const nlmsghdr* header = ::nlmsg_hdr(m);
  if (header->nlmsg_type == RTM_NEWLINK)
    *static_cast<std::uint32_t*>(out) =
        static_cast<std::uint32_t>(static_cast<const ifinfomsg*>(::nlmsg_data(header))->ifi_index);
  return NL_OK;
}

constexpr std::uint32_t kNumbers = 4096;    // limit of numbers for daemons' links on one machine
constexpr std::uint32_t kNumberTries = 64;  // numbers that are tried for one daemon

std::uint32_t first_link_number(const std::string& owner) {
  return fnv1a(owner) % kNumbers;
}

struct Place {
  std::optional<std::uint32_t> mine, free;
};

// The number whose link has the owner's alias, and the first number that has no link.
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

Result<void> Netlink::dump(nl_msg* m, int (*note)(nl_msg*, void*), void* out,
                           const char* what) const {
  nl_sock* s = socket_.get();
  nl_cb* callbacks = ::nl_cb_alloc(NL_CB_DEFAULT);
  ::nl_cb_set(callbacks, NL_CB_VALID, NL_CB_CUSTOM, note, out);
  int error = ::nl_send_auto(s, m);
  ::nlmsg_free(m);
  if (error >= 0) error = ::nl_recvmsgs(s, callbacks);
  ::nl_cb_put(callbacks);
  if (error < 0)
    return fail(ErrorCode::unavailable,
                fmt::format("the {} could not be listed: {}", what, ::nl_geterror(error)));
  return {};
}

Result<void> Netlink::list(int (*note)(nl_msg*, void*), void* out) const {
  return dump(message(RTM_GETLINK, NLM_F_DUMP, link_header()), note, out, "links");
}

Result<std::vector<Netlink::Link>> Netlink::links() const {
  std::vector<Link> out;
  TRY(list(note_link, &out));
  return out;
}

Result<std::map<std::string, Netlink::Traffic>> Netlink::traffic() const {
  std::map<std::string, Traffic> out;
  const auto note = [](nl_msg* m, void* to) {
    std::vector<Link> name;
    note_link(m, &name);
    if (!name.empty())
      note_traffic(m, &(*static_cast<std::map<std::string, Traffic>*>(to))[name.front().name]);
    return static_cast<int>(NL_OK);
  };
  TRY(list(note, &out));
  return out;
}

bool Netlink::ask(const std::string& link, int (*note)(nl_msg*, void*), void* out) const {
  nl_sock* s = socket_.get();
  bool there = false;
  struct Both {
    int (*note)(nl_msg*, void*);
    void* out;
    bool* there;
  } both{note, out, &there};
  nl_cb* callbacks = ::nl_cb_alloc(NL_CB_DEFAULT);
  ::nl_cb_set(
      callbacks, NL_CB_VALID, NL_CB_CUSTOM,
      [](nl_msg* m, void* to) {
        auto& b = *static_cast<Both*>(to);
        if (::nlmsg_hdr(m)->nlmsg_type == RTM_NEWLINK) *b.there = true;
        return b.note(m, b.out);
      },
      &both);
  nl_msg* m = message(RTM_GETLINK, 0, link_header());
  put(m, IFLA_IFNAME, link);
  int error = ::nl_send_auto(s, m);
  ::nlmsg_free(m);
  if (error >= 0) error = ::nl_recvmsgs(s, callbacks);
  ::nl_cb_put(callbacks);
  if (error >= 0 && there) error = ::nl_wait_for_ack(s);
  return error >= 0 && there;
}

Result<std::uint32_t> Netlink::index_of(const std::string& link) const {
  std::uint32_t index = 0;
  if (ask(link, note_index, &index)) return index;
  return fail(ErrorCode::not_found, fmt::format("there is no link {}", link));
}

Result<std::string> Netlink::alias_of(const std::string& link) const {
  std::string alias;
  if (ask(link, note_alias, &alias)) return alias;
  return fail(ErrorCode::not_found, fmt::format("there is no link {}", link));
}

Result<Netlink::Traffic> Netlink::traffic_of(const std::string& link) const {
  Traffic out;
  if (ask(link, note_traffic, &out)) return out;
  return fail(ErrorCode::not_found, fmt::format("there is no link {}", link));
}

namespace {

struct OwnRoute {
  rtmsg header{};
  std::vector<std::uint8_t> to;
};
struct OwnRoutes {
  std::uint32_t metric = 0;
  std::vector<OwnRoute> found;
};

int note_route(nl_msg* m, void* out) {
  const nlmsghdr* header = ::nlmsg_hdr(m);
  if (header->nlmsg_type != RTM_NEWROUTE) return NL_OK;
  auto& routes = *static_cast<OwnRoutes*>(out);
  std::array<nlattr*, RTA_MAX + 1> attributes{};
  const auto* route = static_cast<const rtmsg*>(::nlmsg_data(header));
  if (route->rtm_protocol != kOwnRoutes ||
      ::nlmsg_parse(const_cast<nlmsghdr*>(header), sizeof(rtmsg), attributes.data(), RTA_MAX,
                    nullptr) != 0 ||
      attributes[RTA_PRIORITY] == nullptr || attributes[RTA_DST] == nullptr ||
      ::nla_get_u32(attributes[RTA_PRIORITY]) != routes.metric)
    return NL_OK;
  const auto* to = static_cast<const std::uint8_t*>(::nla_data(attributes[RTA_DST]));
  routes.found.push_back({*route, {to, to + ::nla_len(attributes[RTA_DST])}});
  return NL_OK;
}

}  // namespace

Result<void> Netlink::remove_routes(std::uint32_t metric) {
  OwnRoutes routes{metric, {}};
  for (const int family : {AF_INET, AF_INET6}) {
    rtmsg header{};
    header.rtm_family = static_cast<std::uint8_t>(family);
    TRY(dump(message(RTM_GETROUTE, NLM_F_DUMP, header), note_route, &routes, "routes"));
  }
  for (const OwnRoute& route : routes.found) {
    rtmsg header = route.header;
    header.rtm_flags = 0;
    nl_msg* m = message(RTM_DELROUTE, 0, header);
    put(m, RTA_DST, route.to.data(), route.to.size());
    ::nla_put_u32(m, RTA_PRIORITY, metric);
    TRY(send(m, "a route could not be removed"));
  }
  return {};
}

namespace {

// Reads and discards what has come. A socket that lost messages has an error, which this clears.
void empty(int socket) {
  std::array<char, 8192> buffer{};
  while (::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT) > 0 || errno == ENOBUFS)
    errno = 0;
}

}  // namespace

Result<void> Netlink::wait_until_up(const std::string& link) const {
  const Fd limit(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  const itimerspec end{{}, {2, 0}};
  if (!limit || ::timerfd_settime(limit.get(), 0, &end, nullptr) != 0)
    return fail(ErrorCode::unavailable, "no timer could be made");
  nl_sock* events = events_.get();
  // Subscribes to changes before the request, so none is missed between the two.
  if (::nl_socket_add_membership(events, RTNLGRP_LINK) < 0)
    return fail(ErrorCode::unavailable, "changes of links could not be heard");
  Result<void> out;
  for (;;) {
    std::uint8_t state = 0;
    if (!ask(link, note_state, &state)) {
      out = fail(ErrorCode::not_found, fmt::format("there is no link {}", link));
      break;
    }
    if (state == kOperationalUp) break;
    std::array<pollfd, 2> ready{
        {{::nl_socket_get_fd(events), POLLIN, 0}, {limit.get(), POLLIN, 0}}};
    (void)::poll(ready.data(), ready.size(), -1);
    if (ready[1].revents != 0) {
      out = fail(ErrorCode::unavailable,
                 fmt::format("the link {} carries no packets 2 s after it was started", link));
      break;
    }
    empty(::nl_socket_get_fd(events));
  }
  (void)::nl_socket_drop_membership(events, RTNLGRP_LINK);
  empty(::nl_socket_get_fd(events));
  return out;
}

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
  // A daemon may have been killed before it had written the alias.
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
