#include "noded/network/netlink.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/fd.h"

namespace gantry::network {
namespace {

// IFLA_VXLAN_LOCALBYPASS of Linux 6.3, which the headers of Debian 12 do not have.
constexpr int kVxlanLocalBypass = 31;

// IF_OPER_UP of <linux/if.h>, which cannot be included beside <net/if.h>: RFC 2863.
constexpr std::uint8_t kOperationalUp = 6;

constexpr int kCreate = NLM_F_CREATE | NLM_F_EXCL, kReplace = NLM_F_CREATE | NLM_F_REPLACE;

// A message of one type with its fixed header; send() frees it.
template <class Header>
nl_msg* message(int type, int flags, const Header& header) {
  nl_msg* out = ::nlmsg_alloc_simple(type, flags);
  ::nlmsg_append(out, const_cast<Header*>(&header), sizeof header, NLMSG_ALIGNTO);
  return out;
}

void put(nl_msg* m, int type, const void* data, std::size_t bytes) {
  ::nla_put(m, type, static_cast<int>(bytes), data);
}
void put(nl_msg* m, int type, const std::string& text) {
  ::nla_put_string(m, type, text.c_str());
}
void put(nl_msg* m, int type, const Mac& mac) {
  put(m, type, mac.data(), mac.size());
}
void put(nl_msg* m, int type, const Ip6& address) {
  put(m, type, address.bytes.data(), address.bytes.size());
}

class Nest {
 public:
  Nest(nl_msg* m, int type) : message_(m), start_(::nla_nest_start(m, type)) {}
  Nest(const Nest&) = delete;
  Nest& operator=(const Nest&) = delete;
  ~Nest() { ::nla_nest_end(message_, start_); }

 private:
  nl_msg* message_;
  nlattr* start_;
};

// The bytes of a numeric address: 4 or 16 of them, in network order; none if it is no address.
std::vector<std::uint8_t> bytes_of(const std::string& address) {
  std::vector<std::uint8_t> four(4), six(16);
  if (::inet_pton(AF_INET, address.c_str(), four.data()) == 1) return four;
  if (::inet_pton(AF_INET6, address.c_str(), six.data()) == 1) return six;
  return {};
}

ifinfomsg link_header(std::uint32_t index = 0, unsigned flags = 0) {
  ifinfomsg out{};
  out.ifi_family = AF_UNSPEC;
  out.ifi_index = static_cast<int>(index);
  out.ifi_flags = flags;
  out.ifi_change = flags;
  return out;
}

}  // namespace

void Netlink::CloseSocket::operator()(nl_sock* socket) const {
  ::nl_socket_free(socket);
}

Result<Netlink> Netlink::open() {
  Netlink out;
  for (auto* socket : {&out.socket_, &out.events_}) {
    socket->reset(::nl_socket_alloc());
    if (*socket == nullptr) return fail(ErrorCode::internal, "no memory for a netlink socket");
    if (const int error = ::nl_connect(socket->get(), NETLINK_ROUTE); error < 0)
      return fail(ErrorCode::unavailable,
                  fmt::format("no netlink socket could be opened: {}", ::nl_geterror(error)));
  }
  return out;
}

Result<void> Netlink::send(nl_msg* message, const std::string& what) {
  const int error = ::nl_send_sync(socket_.get(), message);
  if (error < 0)
    return fail(ErrorCode::unavailable, fmt::format("{}: {}", what, ::nl_geterror(error)));
  return {};
}

Result<void> Netlink::make_veth(const Veth& veth) {
  nl_msg* m = message(RTM_NEWLINK, kCreate, link_header(0, IFF_UP));
  put(m, IFLA_IFNAME, veth.name);
  put(m, IFLA_ADDRESS, veth.mac);
  ::nla_put_u32(m, IFLA_MTU, veth.mtu);
  {
    const Nest info(m, IFLA_LINKINFO);
    put(m, IFLA_INFO_KIND, "veth");
    const Nest data(m, IFLA_INFO_DATA);
    const Nest peer(m, VETH_INFO_PEER);
    ifinfomsg header = link_header();
    ::nlmsg_append(m, &header, sizeof header, NLMSG_ALIGNTO);
    put(m, IFLA_IFNAME, veth.peer_name);
    put(m, IFLA_ADDRESS, veth.peer_mac);
    ::nla_put_u32(m, IFLA_MTU, veth.mtu);
    ::nla_put_u32(m, IFLA_NET_NS_FD, static_cast<std::uint32_t>(veth.peer_space));
  }
  auto made = send(m, fmt::format("the link {} could not be made", veth.name));
  if (!made || veth.alias.empty()) return made;
  // The kernel takes no alias when it makes a link.
  const auto index = index_of(veth.name);
  if (!index) return tl::unexpected(index.error());
  m = message(RTM_NEWLINK, 0, link_header(*index));
  put(m, IFLA_IFALIAS, veth.alias);
  return send(m, fmt::format("the link {} could not be named", veth.name));
}

Result<void> Netlink::make_vxlan(const Vxlan& vxlan) {
  const auto local = bytes_of(vxlan.local.address);
  if (local.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is not a numeric address", vxlan.local.address));
  nl_msg* m = message(RTM_NEWLINK, kCreate, link_header());
  put(m, IFLA_IFNAME, vxlan.name);
  put(m, IFLA_ADDRESS, vxlan.mac);
  ::nla_put_u32(m, IFLA_MTU, vxlan.mtu);
  ::nla_put_u32(m, IFLA_NET_NS_FD, static_cast<std::uint32_t>(vxlan.space));
  {
    const Nest info(m, IFLA_LINKINFO);
    put(m, IFLA_INFO_KIND, "vxlan");
    const Nest data(m, IFLA_INFO_DATA);
    ::nla_put_u32(m, IFLA_VXLAN_ID, vxlan.vni);
    put(m, local.size() == 4 ? IFLA_VXLAN_LOCAL : IFLA_VXLAN_LOCAL6, local.data(), local.size());
    ::nla_put_u16(m, IFLA_VXLAN_PORT, htons(vxlan.local.port));
    ::nla_put_u8(m, IFLA_VXLAN_LEARNING, 0);
    // Otherwise a packet for a node of this machine is handed over as it is, together with the way
    // on which it was sent out, and so it is sent out again until its time to live is over.
    ::nla_put_u8(m, kVxlanLocalBypass, 0);
  }
  return send(m, fmt::format("the link {} by VXLAN could not be made", vxlan.name));
}

Result<void> Netlink::add_remote(const std::string& link, const Mac& mac, const Underlay& node) {
  const auto index = index_of(link);
  if (!index) return tl::unexpected(index.error());
  const auto address = bytes_of(node.address);
  if (address.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is not a numeric address", node.address));
  ndmsg header{};
  header.ndm_family = PF_BRIDGE;
  header.ndm_ifindex = static_cast<int>(*index);
  header.ndm_state = NUD_NOARP | NUD_PERMANENT;
  header.ndm_flags = NTF_SELF;
  nl_msg* m = message(RTM_NEWNEIGH, kReplace, header);
  put(m, NDA_LLADDR, mac);
  put(m, NDA_DST, address.data(), address.size());
  ::nla_put_u16(m, NDA_PORT, htons(node.port));
  return send(m, fmt::format("the way to {} could not be set", node.address));
}

Result<void> Netlink::remove_link(const std::string& link) {
  const auto index = index_of(link);
  if (!index) return tl::unexpected(index.error());
  return send(message(RTM_DELLINK, 0, link_header(*index)),
              fmt::format("the link {} could not be removed", link));
}

namespace {

int note_name(nl_msg* m, void* out) {
  const nlmsghdr* header = ::nlmsg_hdr(m);
  if (header->nlmsg_type != RTM_NEWLINK) return NL_OK;
  std::array<nlattr*, IFLA_MAX + 1> attributes{};
  if (::nlmsg_parse(const_cast<nlmsghdr*>(header), sizeof(ifinfomsg), attributes.data(), IFLA_MAX,
                    nullptr) == 0 &&
      attributes[IFLA_IFNAME] != nullptr)
    static_cast<std::vector<std::string>*>(out)->emplace_back(
        ::nla_get_string(attributes[IFLA_IFNAME]));
  return NL_OK;
}

int note_state(nl_msg* m, void* out) {
  std::array<nlattr*, IFLA_MAX + 1> attributes{};
  if (::nlmsg_parse(::nlmsg_hdr(m), sizeof(ifinfomsg), attributes.data(), IFLA_MAX, nullptr) == 0 &&
      attributes[IFLA_OPERSTATE] != nullptr)
    *static_cast<std::uint8_t*>(out) = ::nla_get_u8(attributes[IFLA_OPERSTATE]);
  return NL_OK;
}

int note_alias(nl_msg* m, void* out) {
  std::array<nlattr*, IFLA_MAX + 1> attributes{};
  if (::nlmsg_parse(::nlmsg_hdr(m), sizeof(ifinfomsg), attributes.data(), IFLA_MAX, nullptr) == 0 &&
      attributes[IFLA_IFALIAS] != nullptr)
    *static_cast<std::string*>(out) = ::nla_get_string(attributes[IFLA_IFALIAS]);
  return NL_OK;
}

int note_traffic(nl_msg* m, void* out) {
  std::array<nlattr*, IFLA_MAX + 1> attributes{};
  if (::nlmsg_parse(::nlmsg_hdr(m), sizeof(ifinfomsg), attributes.data(), IFLA_MAX, nullptr) != 0 ||
      attributes[IFLA_STATS64] == nullptr)
    return NL_OK;
  rtnl_link_stats64 stats{};
  std::memcpy(&stats, ::nla_data(attributes[IFLA_STATS64]),
              std::min<std::size_t>(sizeof stats,
                                    static_cast<std::size_t>(::nla_len(attributes[IFLA_STATS64]))));
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

}  // namespace

Result<std::vector<std::string>> Netlink::links() const {
  std::vector<std::string> out;
  nl_sock* s = socket_.get();
  nl_cb* callbacks = ::nl_cb_alloc(NL_CB_DEFAULT);
  ::nl_cb_set(callbacks, NL_CB_VALID, NL_CB_CUSTOM, note_name, &out);
  nl_msg* m = message(RTM_GETLINK, NLM_F_DUMP, link_header());
  int error = ::nl_send_auto(s, m);
  ::nlmsg_free(m);
  if (error >= 0) error = ::nl_recvmsgs(s, callbacks);
  ::nl_cb_put(callbacks);
  if (error < 0)
    return fail(ErrorCode::unavailable,
                fmt::format("the links could not be listed: {}", ::nl_geterror(error)));
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

Result<void> Netlink::set_up(const std::string& link) {
  const auto index = index_of(link);
  if (!index) return tl::unexpected(index.error());
  return send(message(RTM_NEWLINK, 0, link_header(*index, IFF_UP)),
              fmt::format("the link {} could not be started", link));
}

namespace {

// Reads what has come, whatever it is. A socket that lost some has an error, which goes with it.
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
  // Changes are heard before the question, so none falls between the two.
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

Result<void> Netlink::set_down(const std::string& link) {
  const auto index = index_of(link);
  if (!index) return tl::unexpected(index.error());
  ifinfomsg header = link_header(*index);
  header.ifi_change = IFF_UP;
  return send(message(RTM_NEWLINK, 0, header),
              fmt::format("the link {} could not be stopped", link));
}

Result<void> Netlink::add_address(const std::string& link, int family, const void* address,
                                  std::size_t bytes, const std::string& what) {
  const auto index = index_of(link);
  if (!index) return tl::unexpected(index.error());
  ifaddrmsg header{};
  header.ifa_family = static_cast<std::uint8_t>(family);
  header.ifa_prefixlen = static_cast<std::uint8_t>(bytes * 8);
  header.ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0;
  header.ifa_index = *index;
  nl_msg* m = message(RTM_NEWADDR, kReplace, header);
  put(m, IFA_LOCAL, address, bytes);
  put(m, IFA_ADDRESS, address, bytes);
  return send(m, fmt::format("{} could not have the address {}", link, what));
}

Result<void> Netlink::add_address(const std::string& link, const Ip6& address) {
  return add_address(link, AF_INET6, address.bytes.data(), address.bytes.size(), text_of(address));
}

Result<void> Netlink::add_address(const std::string& link, const Ip4& address) {
  const std::uint32_t value = htonl(address.value);
  return add_address(link, AF_INET, &value, sizeof value, text_of(address));
}

Result<void> Netlink::add_neighbour(const std::string& link, const Ip6& address, const Mac& mac) {
  const auto index = index_of(link);
  if (!index) return tl::unexpected(index.error());
  ndmsg header{};
  header.ndm_family = AF_INET6;
  header.ndm_ifindex = static_cast<int>(*index);
  header.ndm_state = NUD_PERMANENT;
  nl_msg* m = message(RTM_NEWNEIGH, kReplace, header);
  put(m, NDA_DST, address);
  put(m, NDA_LLADDR, mac);
  return send(m, fmt::format("the neighbour {} could not be set", text_of(address)));
}

Result<void> Netlink::add_route(std::uint32_t link, int family, const void* to, std::size_t bytes,
                                int bits, const std::optional<Ip6>& via, const std::string& what) {
  rtmsg header{};
  header.rtm_family = static_cast<std::uint8_t>(family);
  header.rtm_dst_len = static_cast<std::uint8_t>(bits);
  header.rtm_table = RT_TABLE_MAIN;
  header.rtm_protocol = RTPROT_STATIC;
  header.rtm_scope = via ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
  header.rtm_type = RTN_UNICAST;
  header.rtm_flags = via ? RTNH_F_ONLINK : 0;
  nl_msg* m = message(RTM_NEWROUTE, kReplace, header);
  if (bits > 0) put(m, RTA_DST, to, bytes);
  ::nla_put_u32(m, RTA_OIF, link);
  if (via && family == AF_INET6) put(m, RTA_GATEWAY, *via);
  if (via && family == AF_INET) {
    std::array<std::uint8_t, 18> gateway{};  // rtvia: the family in two bytes, then the address
    const std::uint16_t six = AF_INET6;
    std::copy_n(reinterpret_cast<const std::uint8_t*>(&six), 2, gateway.begin());
    std::copy(via->bytes.begin(), via->bytes.end(), gateway.begin() + 2);
    put(m, RTA_VIA, gateway.data(), gateway.size());
  }
  return send(m, fmt::format("the route to {}/{} could not be set", what, bits));
}

Result<void> Netlink::add_route(const std::string& link, const Ip6& to, int bits,
                                const std::optional<Ip6>& via) {
  const auto index = index_of(link);
  if (!index) return tl::unexpected(index.error());
  return add_route(*index, AF_INET6, to.bytes.data(), to.bytes.size(), bits, via, text_of(to));
}

Result<void> Netlink::add_route(const std::string& link, const Ip4& to, int bits,
                                const std::optional<Ip6>& via) {
  const auto index = index_of(link);
  if (!index) return tl::unexpected(index.error());
  const std::uint32_t value = htonl(to.value);
  return add_route(*index, AF_INET, &value, sizeof value, bits, via, text_of(to));
}

// tc-tbf(8): a packet leaves when the bucket has a token for each of its bytes. The bucket holds
// what 10 ms bring, and never less than the largest packet that a link hands on at once (64 KiB);
// what waits longer than 50 ms is dropped.
Result<void> Netlink::limit_rate(const std::string& link, std::uint64_t bits_per_second) {
  const auto index = index_of(link);
  if (!index) return tl::unexpected(index.error());
  // The bucket counts headers too. With 3 % for them both a flood of frames and what TCP carries
  // (94 % of a bucket, measured) are within 5 % of what was asked for.
  const std::uint64_t rate = std::max<std::uint64_t>(bits_per_second / 8 * 103 / 100, 1'000);
  const std::uint64_t burst = std::max<std::uint64_t>(rate / 100, 128 << 10);
  tcmsg header{};
  header.tcm_family = AF_UNSPEC;
  header.tcm_ifindex = static_cast<int>(*index);
  header.tcm_parent = TC_H_ROOT;
  nl_msg* m = message(RTM_NEWQDISC, kReplace, header);
  put(m, TCA_KIND, "tbf");
  tc_tbf_qopt options{};
  options.rate.rate = static_cast<std::uint32_t>(std::min<std::uint64_t>(rate, ~std::uint32_t{0}));
  options.rate.linklayer = TC_LINKLAYER_ETHERNET;
  options.limit = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(rate / 20 + burst, ~std::uint32_t{0} >> 1));
  {
    const Nest nest(m, TCA_OPTIONS);
    put(m, TCA_TBF_PARMS, &options, sizeof options);
    ::nla_put_u32(m, TCA_TBF_BURST, static_cast<std::uint32_t>(burst));
    ::nla_put_u64(m, TCA_TBF_RATE64, rate);
  }
  return send(m, fmt::format("the rate of {} could not be limited", link));
}

}  // namespace gantry::network
