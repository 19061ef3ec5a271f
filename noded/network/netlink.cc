#include "noded/network/netlink.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "noded/network/netlink_message.h"

namespace gantry::network {
namespace {

// IFLA_VXLAN_LOCALBYPASS of Linux 6.3, which Debian 12's headers lack.
constexpr int kVxlanLocalBypass = 31;

constexpr std::uint32_t kFirstOfBatch =
    0x4000'0000;  // sequence numbers of messages that are sent together

constexpr int kCreate = NLM_F_CREATE | NLM_F_EXCL, kReplace = NLM_F_CREATE | NLM_F_REPLACE;

// The bytes of a numeric address: 4 or 16 of them, in network byte order; empty if it is no
// address.
std::vector<std::uint8_t> bytes_of(const std::string& address) {
  std::vector<std::uint8_t> four(4), six(16);
  if (::inet_pton(AF_INET, address.c_str(), four.data()) == 1) return four;
  if (::inet_pton(AF_INET6, address.c_str(), six.data()) == 1) return six;
  return {};
}

std::vector<std::uint8_t> bytes_of(const Ip6& address) {
  return {address.bytes.begin(), address.bytes.end()};
}
std::vector<std::uint8_t> bytes_of(const Ip4& address) {
  std::vector<std::uint8_t> out;
  for (int shift = 24; shift >= 0; shift -= 8)
    out.push_back(static_cast<std::uint8_t>(address.value >> shift));
  return out;
}

tcmsg queue_of(std::uint32_t index) {
  tcmsg header{};
  header.tcm_family = AF_UNSPEC;
  header.tcm_ifindex = static_cast<int>(index);
  header.tcm_parent = TC_H_ROOT;
  return header;
}

}  // namespace

void Netlink::CloseSocket::operator()(nl_sock* socket) const {
  ::nl_socket_free(socket);
}

Result<void> Netlink::connect(std::unique_ptr<nl_sock, CloseSocket>& socket) {
  socket.reset(::nl_socket_alloc());
  if (socket == nullptr) return fail(ErrorCode::internal, "no memory for a netlink socket");
  if (const int error = ::nl_connect(socket.get(), NETLINK_ROUTE); error < 0)
    return fail(ErrorCode::unavailable,
                fmt::format("no netlink socket could be opened: {}", ::nl_geterror(error)));
  return {};
}

Result<Netlink> Netlink::open(For what) {
  Netlink out;
  TRY(connect(out.socket_));
  if (what == For::changes_and_waiting) TRY(connect(out.events_));
  return out;
}

Result<void> Netlink::together(const std::function<Result<void>()>& work) {
  batch_.emplace();
  auto done = work();
  Batch batch = std::move(*batch_);
  batch_.reset();
  if (!done || batch.whats.empty()) return done;
  return send_all(batch);
}

// Every message has a sequence number set here, so that libnl's own counter, which is for messages
// answered one by one, does not change.
Result<void> Netlink::send_all(Batch& batch) {
  nl_sock* s = socket_.get();
  const auto failed = [](const std::string& what, const char* why) {
    return fail(ErrorCode::unavailable, fmt::format("{}: {}", what, why));
  };
  if (const int error = ::nl_sendto(s, batch.bytes.data(), batch.bytes.size()); error < 0)
    return failed(batch.whats.front(), ::nl_geterror(error));
  Result<void> out;
  std::array<char, 16384> buffer{};
  for (std::size_t answered = 0; answered < batch.whats.size();) {
    const ssize_t got = ::recv(::nl_socket_get_fd(s), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(batch.whats[answered], std::strerror(errno));
    int left = static_cast<int>(got);
    for (auto* header = reinterpret_cast<nlmsghdr*>(buffer.data());
         ::nlmsg_ok(header, left) != 0 && answered < batch.whats.size();
         header = ::nlmsg_next(header, &left)) {
      if (header->nlmsg_type != NLMSG_ERROR) continue;
      const int error = static_cast<const nlmsgerr*>(::nlmsg_data(header))->error;
      if (error != 0 && out) out = failed(batch.whats[answered], std::strerror(-error));
      ++answered;
    }
  }
  return out;
}

Result<std::uint32_t> Netlink::index_for(const std::string& link) {
  if (!batch_) return index_of(link);
  if (const auto known = batch_->indexes.find(link); known != batch_->indexes.end())
    return known->second;
  const auto index = index_of(link);
  if (index) batch_->indexes.emplace(link, *index);
  return index;
}

Result<void> Netlink::send(nl_msg* message, const std::string& what) {
  if (batch_) {
    nlmsghdr* header = ::nlmsg_hdr(message);
    header->nlmsg_seq = kFirstOfBatch + static_cast<std::uint32_t>(batch_->whats.size());
    ::nl_complete_msg(socket_.get(), message);
    batch_->bytes.resize(NLMSG_ALIGN(batch_->bytes.size()) + header->nlmsg_len);
    std::memcpy(batch_->bytes.data() + batch_->bytes.size() - header->nlmsg_len, header,
                header->nlmsg_len);
    batch_->whats.push_back(what);
    ::nlmsg_free(message);
    return {};
  }
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
  return name(veth.name, veth.alias);  // the kernel ignores an alias when it makes a link
}

Result<void> Netlink::name(const std::string& link, const std::string& alias) {
  ASSIGN(index, index_for(link));
  nl_msg* m = message(RTM_NEWLINK, 0, link_header(*index));
  put(m, IFLA_IFALIAS, alias);
  return send(m, fmt::format("the link {} could not be named", link));
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
    // Otherwise a packet for a node on this machine is delivered locally with its route attached,
    // and so it is sent out again until its time to live ends.
    ::nla_put_u8(m, kVxlanLocalBypass, 0);
  }
  return send(m, fmt::format("the link {} by VXLAN could not be made", vxlan.name));
}

Result<void> Netlink::make_wireguard(const std::string& name, int space, std::uint32_t mtu) {
  nl_msg* m = message(RTM_NEWLINK, kCreate, link_header());
  put(m, IFLA_IFNAME, name);
  ::nla_put_u32(m, IFLA_MTU, mtu);
  ::nla_put_u32(m, IFLA_NET_NS_FD, static_cast<std::uint32_t>(space));
  {
    const Nest info(m, IFLA_LINKINFO);
    put(m, IFLA_INFO_KIND, "wireguard");
  }
  return send(m, fmt::format("the link {} by WireGuard could not be made", name));
}

Result<void> Netlink::add_remote(const std::string& link, const Mac& mac, const Underlay& node) {
  ASSIGN(index, index_for(link));
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
  ASSIGN(index, index_of(link));
  return send(message(RTM_DELLINK, 0, link_header(*index)),
              fmt::format("the link {} could not be removed", link));
}

Result<void> Netlink::set_up(const std::string& link) {
  ASSIGN(index, index_for(link));
  return send(message(RTM_NEWLINK, 0, link_header(*index, IFF_UP)),
              fmt::format("the link {} could not be started", link));
}

Result<void> Netlink::set_down(const std::string& link) {
  ASSIGN(index, index_for(link));
  ifinfomsg header = link_header(*index);
  header.ifi_change = IFF_UP;
  return send(message(RTM_NEWLINK, 0, header),
              fmt::format("the link {} could not be stopped", link));
}

Result<void> Netlink::add_address(const std::string& link, int family, const void* address,
                                  std::size_t bytes, const std::string& what) {
  ASSIGN(index, index_for(link));
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

Result<void> Netlink::add_address(const std::string& link, const Ip4& address) {
  const std::uint32_t value = htonl(address.value);
  return add_address(link, AF_INET, &value, sizeof value, text_of(address));
}

Result<void> Netlink::add_neighbour(const std::string& link, const Ip6& address, const Mac& mac) {
  ASSIGN(index, index_for(link));
  ndmsg header{};
  header.ndm_family = AF_INET6;
  header.ndm_ifindex = static_cast<int>(*index);
  header.ndm_state = NUD_PERMANENT;
  nl_msg* m = message(RTM_NEWNEIGH, kReplace, header);
  put(m, NDA_DST, address);
  put(m, NDA_LLADDR, mac);
  return send(m, fmt::format("the neighbour {} could not be set", text_of(address)));
}

Result<void> Netlink::add_route(const std::string& link, const Route& route,
                                const std::string& what) {
  ASSIGN(index, index_for(link));
  rtmsg header{};
  header.rtm_family = static_cast<std::uint8_t>(route.family);
  header.rtm_dst_len = static_cast<std::uint8_t>(route.bits);
  header.rtm_table = RT_TABLE_MAIN;
  header.rtm_protocol = route.metric == 0 ? RTPROT_STATIC : kOwnRoutes;
  header.rtm_scope = route.via ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
  header.rtm_type = RTN_UNICAST;
  header.rtm_flags = route.via ? RTNH_F_ONLINK : 0;
  nl_msg* m = message(RTM_NEWROUTE, kReplace, header);
  if (route.bits > 0) put(m, RTA_DST, route.to.data(), route.to.size());
  ::nla_put_u32(m, RTA_OIF, *index);
  if (route.metric != 0) ::nla_put_u32(m, RTA_PRIORITY, route.metric);
  if (route.via && route.family == AF_INET6) put(m, RTA_GATEWAY, *route.via);
  if (route.via && route.family == AF_INET) {
    std::array<std::uint8_t, 18> gateway{};  // rtvia: the family in two bytes, then the address
    const std::uint16_t six = AF_INET6;
    std::copy_n(reinterpret_cast<const std::uint8_t*>(&six), 2, gateway.begin());
    std::ranges::copy(route.via->bytes, gateway.begin() + 2);
    put(m, RTA_VIA, gateway.data(), gateway.size());
  }
  return send(m, fmt::format("the route to {}/{} could not be set", what, route.bits));
}

Result<void> Netlink::add_route(const std::string& link, const Ip6& to, int bits,
                                const std::optional<Ip6>& via, std::uint32_t metric) {
  return add_route(link, {AF_INET6, bytes_of(to), bits, via, metric}, text_of(to));
}

Result<void> Netlink::add_route(const std::string& link, const Ip4& to, int bits,
                                const std::optional<Ip6>& via, std::uint32_t metric) {
  return add_route(link, {AF_INET, bytes_of(to), bits, via, metric}, text_of(to));
}

// tc-tbf(8): a packet leaves when the bucket has a token for each of its bytes. The bucket holds
// the amount for 10 ms, and never less than the largest packet of a link (64 KiB); packets that
// would wait longer than 50 ms are dropped.
Result<void> Netlink::limit_rate(const std::string& link, std::uint64_t bits_per_second) {
  ASSIGN(index, index_for(link));
  // The bucket counts headers too. With 3 % added for them, both a flood of frames and TCP's
  // payload (94 % of a bucket, measured) are within 5 % of the requested rate.
  const std::uint64_t rate = std::max<std::uint64_t>(bits_per_second / 8 * 103 / 100, 1'000);
  const std::uint64_t burst = std::max<std::uint64_t>(rate / 100, 128 << 10);
  const tcmsg header = queue_of(*index);
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

Result<void> Netlink::unlimit_rate(const std::string& link) {
  ASSIGN(index, index_of(link));
  const tcmsg header = queue_of(*index);
  // Then the link has the kernel's default queue, which cannot be removed: that is no error here.
  (void)send(message(RTM_DELQDISC, 0, header), "");
  return {};
}

}  // namespace gantry::network
