#include "noded/network/wireguard.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/genetlink.h>
#include <linux/wireguard.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sched.h>
#include <sodium.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "noded/network/fabric.h"
#include "noded/network/netlink_message.h"
#include "noded/network/space.h"

namespace gantry::network {

namespace {

int note_family(nl_msg* m, void* out) {
  std::array<nlattr*, CTRL_ATTR_MAX + 1> attributes{};
  if (::nlmsg_parse(::nlmsg_hdr(m), sizeof(genlmsghdr), attributes.data(), CTRL_ATTR_MAX,
                    nullptr) == 0 &&
      attributes[CTRL_ATTR_FAMILY_ID] != nullptr)
    *static_cast<int*>(out) = ::nla_get_u16(attributes[CTRL_ATTR_FAMILY_ID]);
  return NL_OK;
}

nl_msg* generic(int type, int flags, std::uint8_t command, std::uint8_t version) {
  genlmsghdr header{};
  header.cmd = command;
  header.version = version;
  return gantry::network::message(type, flags, header);
}

// The kernel's number for a family of generic netlink messages; 0 = there is none of this name. The
// kernel loads the module if it exists.
int family_of(nl_sock* socket, const char* name) {
  int out = 0;
  nl_cb* callbacks = ::nl_cb_alloc(NL_CB_DEFAULT);
  ::nl_cb_set(callbacks, NL_CB_VALID, NL_CB_CUSTOM, note_family, &out);
  nl_msg* m = generic(GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, 1);
  put(m, CTRL_ATTR_FAMILY_NAME, std::string(name));
  int error = ::nl_send_auto(socket, m);
  ::nlmsg_free(m);
  if (error >= 0) error = ::nl_recvmsgs(socket, callbacks);
  ::nl_cb_put(callbacks);
  if (error >= 0 && out != 0) error = ::nl_wait_for_ack(socket);
  return error >= 0 ? out : 0;
}

void put_allowed(nl_msg* m, std::uint16_t family, const void* address, std::size_t bytes,
                 int bits) {
  const Nest one(m, NLA_F_NESTED);
  ::nla_put_u16(m, WGALLOWEDIP_A_FAMILY, family);
  put(m, WGALLOWEDIP_A_IPADDR, address, bytes);
  ::nla_put_u8(m, WGALLOWEDIP_A_CIDR_MASK, static_cast<std::uint8_t>(bits));
}

Result<void> put_endpoint(nl_msg* m, const Underlay& at) {
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET, at.address.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(at.port);
    put(m, WGPEER_A_ENDPOINT, &four, sizeof four);
  } else if (::inet_pton(AF_INET6, at.address.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(at.port);
    put(m, WGPEER_A_ENDPOINT, &six, sizeof six);
  } else {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is not a numeric address", at.address));
  }
  return {};
}

constexpr std::uint16_t kPort = 4789;  // on the test's stand-in for the machine

Result<void> make_one(const std::string& directory, Transport transport) {
  ASSIGN(blocks, read_blocks("fd00::/48", "100.64.0.0/10"));
  FabricOptions options{directory, *blocks, 1, {"127.0.0.1", kPort}, 1};
  options.transport = transport;
  options.secret = new_key();
  ASSIGN(fabric, Fabric::open(options, {}));
  JobNetwork job;
  job.key = {JobId(1), Attempt(1)};
  job.part = {1, JobId(1), 0U, 0};
  if (transport == Transport::wireguard)
    job.peers.push_back(
        {{2, JobId(1), 0U, 0}, {"127.0.0.2", kPort, text_of_key(public_key(new_key()))}});
  TRY((*fabric)->attach(job));
  return (*fabric)->detach(job.key);
}

// In a mount namespace of this thread, so that leftovers of a killed daemon disappear with it.
Result<void> try_here(const std::string& directory, Transport transport) {
  namespace fs = std::filesystem;
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return fail(ErrorCode::unavailable,
                fmt::format("no mount namespace can be made: {}", std::strerror(errno)));
  const std::string machine = directory + "/machine", node = directory + "/node";
  std::error_code error;
  fs::remove_all(directory, error);  // left by a daemon that was killed
  fs::create_directories(node, error);
  if (error)
    return fail(ErrorCode::io_error, fmt::format("{} cannot be made: {}", node, error.message()));
  auto space = make_space(machine);
  Result<void> made;
  if (!space)
    made = tl::unexpected(space.error());
  else
    made = inside(*space, [&] { return make_one(node, transport); });
  (void)Fabric::remove(node);
  (void)release_space(machine);
  fs::remove_all(directory, error);
  return made;
}

}  // namespace

NodeKey new_key() {
  NodeKey out{};
  ::randombytes_buf(out.data(), out.size());
  out[0] &= 248;  // clamping for Curve25519: RFC 7748
  out[31] = static_cast<std::uint8_t>((out[31] & 127) | 64);
  return out;
}

NodeKey public_key(const NodeKey& secret) {
  NodeKey out{};
  ::crypto_scalarmult_base(out.data(), secret.data());
  return out;
}

std::string text_of_key(const NodeKey& key) {
  std::array<char, sodium_base64_ENCODED_LEN(32, sodium_base64_VARIANT_ORIGINAL)> text{};
  ::sodium_bin2base64(text.data(), text.size(), key.data(), key.size(),
                      sodium_base64_VARIANT_ORIGINAL);
  return text.data();
}

Result<NodeKey> key_of_text(const std::string& text) {
  NodeKey out{};
  std::size_t size = 0;
  if (::sodium_base642bin(out.data(), out.size(), text.data(), text.size(), nullptr, &size, nullptr,
                          sodium_base64_VARIANT_ORIGINAL) == 0 &&
      size == out.size())
    return out;
  return fail(ErrorCode::invalid_argument,
              fmt::format("\"{:.64}\" is not a public key of WireGuard", text));
}

void WireGuard::CloseSocket::operator()(nl_sock* socket) const {
  ::nl_socket_free(socket);
}

Result<WireGuard> WireGuard::open() {
  WireGuard out;
  out.socket_.reset(::nl_socket_alloc());
  if (out.socket_ == nullptr) return fail(ErrorCode::internal, "no memory for a netlink socket");
  if (const int error = ::nl_connect(out.socket_.get(), NETLINK_GENERIC); error < 0)
    return fail(ErrorCode::unavailable,
                fmt::format("no netlink socket could be opened: {}", ::nl_geterror(error)));
  out.family_ = family_of(out.socket_.get(), WG_GENL_NAME);
  if (out.family_ == 0) return fail(ErrorCode::unavailable, "this kernel has no WireGuard");
  return out;
}

nl_msg* WireGuard::message(const std::string& link) const {
  nl_msg* m = generic(family_, 0, WG_CMD_SET_DEVICE, WG_GENL_VERSION);
  put(m, WGDEVICE_A_IFNAME, link);
  return m;
}

Result<void> WireGuard::send(nl_msg* message, const std::string& what) {
  if (const int error = ::nl_send_sync(socket_.get(), message); error < 0)
    return fail(ErrorCode::unavailable, fmt::format("{}: {}", what, ::nl_geterror(error)));
  return {};
}

Result<void> WireGuard::set_own(const std::string& link, const NodeKey& secret,
                                std::uint16_t port) {
  nl_msg* m = message(link);
  ::nla_put_u32(m, WGDEVICE_A_FLAGS, WGDEVICE_F_REPLACE_PEERS);
  put(m, WGDEVICE_A_PRIVATE_KEY, secret.data(), secret.size());
  ::nla_put_u16(m, WGDEVICE_A_LISTEN_PORT, port);
  return send(m, fmt::format("the link {} could not have its key", link));
}

Result<void> WireGuard::set_peer(const std::string& link, const Peer& peer) {
  nl_msg* m = message(link);
  Result<void> done;
  {
    const Nest peers(m, WGDEVICE_A_PEERS);
    const Nest one(m, NLA_F_NESTED);
    put(m, WGPEER_A_PUBLIC_KEY, peer.key.data(), peer.key.size());
    ::nla_put_u32(m, WGPEER_A_FLAGS, WGPEER_F_REPLACE_ALLOWEDIPS);
    done = put_endpoint(m, peer.at);
    const Nest allowed(m, WGPEER_A_ALLOWEDIPS);
    put_allowed(m, AF_INET6, peer.prefix.bytes.data(), peer.prefix.bytes.size(), kNodePrefixBits);
    if (peer.block) {
      const std::uint32_t value = htonl(peer.block->value);
      put_allowed(m, AF_INET, &value, sizeof value, kNodeBlockBits);
    }
  }
  if (!done) {
    ::nlmsg_free(m);
    return done;
  }
  return send(m, fmt::format("the way to {} could not be set", peer.at.address));
}

Result<void> WireGuard::remove_peer(const std::string& link, const NodeKey& key) {
  nl_msg* m = message(link);
  {
    const Nest peers(m, WGDEVICE_A_PEERS);
    const Nest one(m, NLA_F_NESTED);
    put(m, WGPEER_A_PUBLIC_KEY, key.data(), key.size());
    ::nla_put_u32(m, WGPEER_A_FLAGS, WGPEER_F_REMOVE_ME | WGPEER_F_UPDATE_ONLY);
  }
  return send(m, "a node's earlier key could not be removed");
}

Result<void> try_networks(const std::string& directory, Transport transport) {
  const auto families = WayOut::forwarded();
  if (transport == Transport::routed && (!families.four || !families.six))
    return fail(ErrorCode::unavailable,
                fmt::format("packets between nodes are routed, and the machine forwards none: "
                            "net.{} is 0",
                            families.four ? "ipv6.conf.all.forwarding" : "ipv4.ip_forward"));
  Result<void> out;
  std::thread([&] { out = try_here(directory, transport); }).join();
  if (out || transport == Transport::vxlan) return out;
  return fail(out.error().code, fmt::format("{} ({})", out.error().message, name_of(transport)));
}

}  // namespace gantry::network
