#include "noded/network_orders.h"

#include <fmt/core.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>

#include "common/assert.h"
#include "common/proto/meeting_point.h"
#include "common/text/hash.h"
#include "common/text/text.h"
#include "noded/image/store.h"

namespace gantry::node {

namespace {

network::Transport transport_of(NodeTransport named) {
  switch (named) {
    case NodeTransport::vxlan: return network::Transport::vxlan;
    case NodeTransport::wireguard: return network::Transport::wireguard;
    case NodeTransport::routed: return network::Transport::routed;
  }
  return network::Transport::vxlan;
}

}  // namespace

JobNetworks::Options network_options(const NodeSettings& s) {
  const ControllerConfig& controller = s.config.controller;
  JobNetworks::Options o;
  o.directory = s.config.noded.run_dir + "/network";
  o.cluster = s.config.cluster;
  const auto blocks =
      network::read_blocks(controller.job_network_prefix, controller.job_network_block);
  GANTRY_ASSERT(blocks.has_value(), "blocks that were checked when the configuration was read");
  o.blocks = *blocks;
  o.transport = transport_of(controller.job_network_transport);
  o.key_file = s.config.noded.state_dir + "/wireguard.key";
  o.cni = {s.config.noded.cni, s.config.noded.cni_dirs, s.config.noded.state_dir + "/cni",
           s.node.name};
  o.machines = {fmt::format("{}:{}", controller.host, controller.port)};
  for (const NodeConfig& node : s.config.nodes)
    if (!node.address.empty()) o.machines.push_back(node.address);
  o.resolvers = s.config.noded.resolvers;
  o.ready = s.config.noded.ready_networks;
  return o;
}

// The VXLAN network identifier (VNI) of a cluster: 24 bits, made from the cluster's name.
std::uint32_t vni_of(const std::string& cluster) {
  const std::uint32_t hash = fnv1a(cluster);
  return (hash ^ hash >> 24) & 0xff'ffff;
}

network::Part part_of(const proto::NetworkPart& part) {
  return {part.number, part.job, part.slot, part.group};
}

Result<network::Underlay> underlay_of(const proto::NetworkPart& part) {
  const auto colon = part.address.rfind(':');
  const std::string host = host_of(part.address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0 || colon == std::string::npos)
    return fail(ErrorCode::unavailable,
                fmt::format("the address \"{}\" of {} is not known: {}", part.address, part.node,
                            ::gai_strerror(error)));
  std::array<char, NI_MAXHOST> text{};
  ::getnameinfo(found->ai_addr, found->ai_addrlen, text.data(), text.size(), nullptr, 0,
                NI_NUMERICHOST);
  ::freeaddrinfo(found);
  return network::Underlay{text.data(), static_cast<std::uint16_t>(std::strtoul(
                                            part.address.c_str() + colon + 1, nullptr, 10))};
}

std::vector<NetworkRange> addresses_of(const std::vector<std::string>& machines) {
  std::vector<NetworkRange> out;
  for (const std::string& machine : machines) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host_of(machine).c_str(), nullptr, &hints, &found) != 0) continue;
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      std::array<char, NI_MAXHOST> text{};
      ::getnameinfo(one->ai_addr, one->ai_addrlen, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST);
      if (const auto range = parse_network_range(text.data())) out.push_back(*range);
    }
    ::freeaddrinfo(found);
  }
  return out;
}

Result<network::JobNetwork> job_of(const proto::AttemptKey& key, const proto::JobNetwork& given,
                                   network::Transport transport) {
  network::JobNetwork out;
  out.key = key;
  out.part = part_of(given.own);
  out.reach = given.reach;
  out.bits_per_second = given.bits_per_second;
  for (const proto::NetworkPart& peer : given.peers) {
    network::Peer& one = out.peers.emplace_back();
    one.part = part_of(peer);
    if (peer.number == given.own.number) continue;
    ASSIGN(underlay, underlay_of(peer));
    one.underlay = std::move(*underlay);
    ASSIGN(said, network::introduced(transport, peer.node, peer.transport));
    one.underlay.key = std::move(*said);
  }
  return out;
}

namespace {

runtime::ImageStore store_of(const NodedConfig& config) {
  return {config.image_cache_dir, {config.image_cache_size, config.image_size, config.image_files}};
}

}  // namespace

void tidy_images(const NodedConfig& config) {
  store_of(config).tidy_up();
}

std::string image_table(const NodedConfig& config) {
  constexpr const char* kRow = "{:<14} {:>9} {:>9} {:<19} {:<6} {}\n";
  std::string out = fmt::format(kRow, "IMAGE", "SIZE", "FILES", "LAST_USED", "IN_USE", "SOURCE");
  std::int64_t total = 0;
  const auto images = store_of(config).list();
  for (const auto& one : images) {
    total += one.record.bytes;
    out += fmt::format(kRow, one.key.substr(0, 14), format_memory_rounded(one.record.bytes),
                       one.record.files, format_time(one.used), one.in_use ? "yes" : "no",
                       one.record.source);
  }
  out += fmt::format("{} images, {} of {}\n", images.size(), format_memory_rounded(total),
                     format_memory_rounded(config.image_cache_size));
  return out;
}

}  // namespace gantry::node
