#include "tests/network/hosts.h"

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace gantry::network::test {

bool run_in(const std::string& file, const std::string& command) {
  return std::system(("nsenter --net=" + file + " " + command).c_str()) == 0;
}

std::string output_in(const std::string& file, const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(("nsenter --net=" + file + " " + command).c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> text{};
  for (std::size_t n = 0; (n = std::fread(text.data(), 1, text.size(), pipe)) > 0;)
    out.append(text.data(), n);
  ::pclose(pipe);
  return out;
}

namespace {

Transport transport_asked_for() {
  const char* asked = std::getenv("GANTRY_TRANSPORT");
  for (const Transport one : {Transport::wireguard, Transport::routed})
    if (asked != nullptr && name_of(one) == asked) return one;
  return Transport::vxlan;
}

}  // namespace

// What the host reports to the others. A machine whose packets are routed forwards them.
void Hosts::introduce(Host& host) {
  const std::string key_file = fmt::format("{}/key{}", top_, host.node);
  const auto said = inside(host.space, [&]() -> Result<void> {
    if (transport_ == Transport::routed)
      for (const char* name : {"ipv4/ip_forward", "ipv6/conf/all/forwarding"})
        REQUIRE(set_sysctl(name, "1"));
    ASSIGN(text, introduction(transport_, key_file, host.underlay.address));
    host.underlay.key = *introduced(transport_, "n", *text);
    return {};
  });
  REQUIRE_MESSAGE(said, (said ? "" : said.error().message));
  if (transport_ == Transport::wireguard) host.secret = *load_key(key_file);
}

Hosts::Hosts(std::uint32_t count, std::optional<Transport> transport)
    : top_("/tmp/gantry-network.XXXXXX"), transport_(transport.value_or(transport_asked_for())) {
  REQUIRE(::mkdtemp(top_.data()) != nullptr);
  blocks_ = *read_blocks("fd00:9:9::/48", "100.64.0.0/10");
  const std::string wire = top_ + "/wire";
  auto made = make_space(wire);
  REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
  wire_ = std::move(*made);
  REQUIRE(run_in(wire, "ip link add switch type bridge"));
  REQUIRE(run_in(wire, "ip link set switch up"));
  for (std::uint32_t n = 1; n <= count; ++n) {
    Host host;
    host.node = n;
    host.directory = fmt::format("{}/node{}", top_, n);
    host.underlay = {fmt::format("10.9.0.{}", n), 4791};
    REQUIRE(std::filesystem::create_directory(host.directory));
    const std::string file = fmt::format("{}/host{}", top_, n);
    host.space = std::move(*make_space(file));
    // A machine has its link-local address for long when its daemon starts.
    REQUIRE(inside(host.space, []() -> Result<void> {
      for (const char* name : {"ipv6/conf/all/accept_dad", "ipv6/conf/default/accept_dad"})
        REQUIRE(set_sysctl(name, "0"));
      return {};
    }));
    Netlink::Veth cable;
    cable.name = "cable";
    cable.peer_name = fmt::format("port{}", n);
    cable.mac = {2, 'c', 0, 0, 0, static_cast<std::uint8_t>(n)};
    cable.peer_mac = {2, 'p', 0, 0, 0, static_cast<std::uint8_t>(n)};
    cable.peer_space = wire_.get();
    cable.mtu = 1500;
    REQUIRE(
        inside(host.space, [&]() -> Result<void> { return Netlink::open()->make_veth(cable); }));
    REQUIRE(run_in(wire, fmt::format("ip link set port{} up master switch", n)));
    REQUIRE(run_in(file, fmt::format("ip address add {}/24 dev cable", host.underlay.address)));
    introduce(host);
    hosts_.push_back(std::move(host));
  }
}

Hosts::~Hosts() {
  for (Host& host : hosts_) {
    host.fabric.reset();
    (void)Fabric::remove(host.directory);
  }
  for (Host& host : hosts_) (void)release_space(fmt::format("{}/host{}", top_, host.node));
  (void)release_space(top_ + "/wire");
  std::filesystem::remove_all(top_);
}

void Hosts::open(Host& host, const std::vector<JobNetwork>& attempts) {
  host.fabric.reset();
  const auto opened = inside(host.space, [&]() -> Result<void> {
    ASSIGN(fabric, Fabric::open({host.directory, blocks_, host.node, host.underlay, 77, guarded,
                                 resolvers, transport_, host.secret},
                                attempts));
    host.fabric = std::move(*fabric);
    return {};
  });
  REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
}

JobNetwork Hosts::job(std::uint64_t id, const std::vector<std::uint32_t>& nodes, std::uint32_t here,
                      std::uint32_t group) const {
  JobNetwork out;
  out.key = {JobId(id), Attempt(1)};
  for (const std::uint32_t node : nodes) {
    const Part part{node, JobId(id), static_cast<std::uint32_t>(id % kMostSlots), group};
    if (node == here)
      out.part = part;
    else
      out.peers.push_back({part, hosts_[node - 1].underlay});
  }
  return out;
}

}  // namespace gantry::network::test
