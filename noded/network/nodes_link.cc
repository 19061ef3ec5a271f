#include "noded/network/nodes_link.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "noded/network/routed.h"
#include "noded/network/space.h"
#include "noded/network/wireguard.h"

namespace gantry::network {
namespace {

// What a transport adds to a packet over IPv6. An MTU of 1,500 bytes can be assumed; the machine's
// route may allow more, but this is not known here.
constexpr std::uint32_t kUnderlayMtu = 1500, kVxlanBytes = 70, kWireGuardBytes = 80;

Mac mac_of(std::uint32_t node) {
  return {0x02, 'n', 0, 0, static_cast<std::uint8_t>(node >> 8), static_cast<std::uint8_t>(node)};
}

// fe80::1:N is node N on the link of the nodes.
Ip6 link_address(std::uint32_t node) {
  Ip6 out{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  out.bytes[13] = 1;
  out.bytes[14] = static_cast<std::uint8_t>(node >> 8);
  out.bytes[15] = static_cast<std::uint8_t>(node);
  return out;
}

// A link of a node's namespace that was just removed keeps its port until the kernel has taken it
// down.
Result<void> try_often(const std::function<Result<void>()>& make) {
  constexpr int kTries = 50;
  auto made = make();
  for (int i = 0; !made && i < kTries; ++i) {
    // tidy-allow(sleep): the kernel gives no event when the port is free; this is not the loop
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    made = make();
  }
  return made;
}

// Adds routes to the jobs of a node.
Result<void> add_routes(Netlink& links, const Blocks& blocks, std::uint32_t node,
                        const std::optional<Ip6>& via) {
  TRY(links.add_route(kNodesLink, node_prefix(blocks, node), kNodePrefixBits, via));
  const auto block = node_block(blocks, node);
  return block ? links.add_route(kNodesLink, *block, kNodeBlockBits, via) : Result<void>{};
}

class VxlanLink : public NodesLink {
 public:
  VxlanLink(const Options& options, Netlink& links) : options_(options), links_(links) {}

  Result<void> make(const Fd& space) {
    ASSIGN(outside, Netlink::open());
    Netlink::Vxlan vxlan;
    vxlan.name = kNodesLink;
    vxlan.vni = options_.vni;
    vxlan.local = options_.underlay;
    vxlan.mac = mac_of(options_.node);
    vxlan.space = space.get();
    vxlan.mtu = mtu();
    if (auto r = try_often([&] { return outside->make_vxlan(vxlan); }); !r) return r;
    TRY(links_.add_address(kNodesLink, link_address(options_.node)));
    return links_.set_up(kNodesLink);
  }
  Result<void> set_way(std::uint32_t node, const Underlay& at) override {
    TRY(links_.add_remote(kNodesLink, mac_of(node), at));
    TRY(links_.add_neighbour(kNodesLink, link_address(node), mac_of(node)));
    return add_routes(links_, options_.blocks, node, link_address(node));
  }
  [[nodiscard]] std::uint32_t mtu() const override { return kUnderlayMtu - kVxlanBytes; }

 private:
  Options options_;
  Netlink& links_;
};

class WireGuardLink : public NodesLink {
 public:
  WireGuardLink(const Options& options, Netlink& links) : options_(options), links_(links) {}

  Result<void> make(const Fd& space) {
    ASSIGN(outside, Netlink::open());
    // Its socket is where it was made, so the encrypted packets leave from the machine.
    TRY(outside->make_wireguard(kNodesLink, space.get(), mtu()));
    const auto opened = inside(space, [&]() -> Result<void> {
      ASSIGN(guard, WireGuard::open());
      guard_.emplace(std::move(*guard));
      return {};
    });
    if (!opened) return opened;
    const std::uint16_t port = options_.underlay.port;
    TRY(guard_->set_own(kNodesLink, options_.secret, port));
    return try_often([&] { return links_.set_up(kNodesLink); });  // here it binds its port
  }
  Result<void> set_way(std::uint32_t node, const Underlay& at) override {
    ASSIGN(key, key_of_text(at.key));
    // Otherwise a node that reports another node's key would take over that node's addresses here.
    for (const auto& [other, theirs] : keys_)
      if (other != node && theirs == *key)
        return fail(ErrorCode::unavailable,
                    fmt::format("the node at {} says a key of WireGuard that is another node's",
                                at.address));
    const auto before = keys_.find(node);
    if (before != keys_.end() && before->second != *key)
      TRY(guard_->remove_peer(kNodesLink, before->second));
    const WireGuard::Peer peer{*key, at, node_prefix(options_.blocks, node),
                               node_block(options_.blocks, node)};
    TRY(guard_->set_peer(kNodesLink, peer));
    keys_.insert_or_assign(node, *key);
    return add_routes(links_, options_.blocks, node, std::nullopt);
  }
  [[nodiscard]] std::uint32_t mtu() const override { return kUnderlayMtu - kWireGuardBytes; }

 private:
  Options options_;
  Netlink& links_;
  std::optional<WireGuard> guard_;
  std::map<std::uint32_t, NodeKey> keys_;
};

class RoutedLink : public NodesLink {
 public:
  RoutedLink(const Options& options, Netlink& links, Routed&& machine)
      : options_(options), links_(links), machine_(std::move(machine)) {}
  Result<void> set_way(std::uint32_t node, const Underlay& at) override {
    TRY(machine_.set_way(node, at));
    return add_routes(links_, options_.blocks, node, kRoutedGateway);
  }
  [[nodiscard]] std::uint32_t mtu() const override { return machine_.mtu(); }

 private:
  Options options_;
  Netlink& links_;
  Routed machine_;
};

template <class Link>
Result<std::unique_ptr<NodesLink>> made(const NodesLink::Options& options, const Fd& space,
                                        Netlink& links) {
  auto out = std::make_unique<Link>(options, links);
  TRY(out->make(space));
  return out;
}

Result<std::unique_ptr<NodesLink>> make(const NodesLink::Options& options, const Fd& space,
                                        Netlink& links) {
  if (options.transport == Transport::vxlan) return made<VxlanLink>(options, space, links);
  if (options.transport == Transport::wireguard) return made<WireGuardLink>(options, space, links);
  auto machine =
      Routed::open({options.owner, options.blocks, options.node, options.underlay}, space, links);
  if (!machine) return tl::unexpected(machine.error());
  return std::make_unique<RoutedLink>(options, links, std::move(*machine));
}

}  // namespace

std::string name_of(Transport transport) {
  switch (transport) {
    case Transport::vxlan: return "vxlan";
    case Transport::wireguard: return "wireguard";
    case Transport::routed: return "routed";
  }
  return {};
}

Result<std::unique_ptr<NodesLink>> NodesLink::open(const Options& options, const Fd& space,
                                                   Netlink& links) {
  TRY(remove(options.owner));
  if (links.index_of(kNodesLink)) TRY(links.remove_link(kNodesLink));
  auto out = make(options, space, links);
  if (!out) return out;
  // Packets without another route go to the rules, which refuse them; without a route the kernel
  // would refuse them, but only once per second, and would not count them.
  TRY(links.add_route(kNodesLink, Ip6{}, 0, std::nullopt));
  TRY(links.add_route(kNodesLink, Ip4{}, 0, std::nullopt));
  return out;
}

Result<void> NodesLink::remove(const std::string& owner) {
  return Routed::remove(owner);
}

Result<NodeKey> load_key(const std::string& key_file) {
  NodeKey key{};
  const auto failed = [&](const char* what) {
    return fail(ErrorCode::io_error,
                fmt::format("{} cannot be {}: {}", key_file, what, std::strerror(errno)));
  };
  const Fd there(::open(key_file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!there && errno != ENOENT) return failed("read");
  if (there) {
    if (::read(there.get(), key.data(), key.size()) == static_cast<ssize_t>(key.size())) return key;
    return fail(ErrorCode::io_error,
                fmt::format("{} does not have the {} bytes of a key; without the file a new key is "
                            "made",
                            key_file, key.size()));
  }
  key = new_key();
  const std::string next = key_file + ".new";
  ::unlink(next.c_str());
  const Fd file(::open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file || ::write(file.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size()) ||
      ::fsync(file.get()) != 0 || ::rename(next.c_str(), key_file.c_str()) != 0)
    return failed("written");
  return key;
}

Result<std::string> introduction(Transport transport, const std::string& key_file,
                                 const std::string& host) {
  const std::string name = name_of(transport);
  if (transport == Transport::vxlan) return name;
  if (transport == Transport::wireguard) {
    ASSIGN(key, load_key(key_file));
    return name + " " + text_of_key(public_key(*key));
  }
  ASSIGN(here, neighbour_text(host));
  return name + " " + *here;
}

Result<std::string> introduced(Transport transport, const std::string& node,
                               const std::string& text) {
  const std::string said = text.empty() ? name_of(Transport::vxlan) : text;
  const auto space = said.find(' ');
  if (said.substr(0, space) == name_of(transport))
    return space == std::string::npos ? std::string() : said.substr(space + 1);
  return fail(ErrorCode::unavailable,
              fmt::format("{} takes packets of other nodes by {}, and this node sends them by {}; "
                          "both need the same controller.job_network_transport",
                          node, said.substr(0, space), name_of(transport)));
}

}  // namespace gantry::network
