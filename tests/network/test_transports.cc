// The guarantees of each transport between nodes besides connectivity: who can send with which
// addresses, what can be read on the wire, and what is left on the machine.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "noded/network/wireguard.h"
#include "tests/network/probes.h"

using namespace gantry;
using namespace gantry::network;
using namespace gantry::network::test;

namespace {

// The transports that this kernel has.
std::vector<Transport> transports() {
  std::vector<Transport> out{Transport::vxlan, Transport::routed};
  const auto space = new_space();
  REQUIRE(space);
  const auto made = inside(*space, [&]() -> Result<void> {
    return Netlink::open()->make_wireguard("wg", space->get(), 1400);
  });
  if (made)
    out.push_back(Transport::wireguard);
  else
    MESSAGE("this kernel has no WireGuard");
  return out;
}

// A datagram with these addresses and kPort, as a packet of IPv6.
std::vector<std::uint8_t> datagram(const std::string& from, const std::string& to,
                                   const std::string& text) {
  const auto size = static_cast<std::uint16_t>(8 + text.size());
  std::vector<std::uint8_t> out{0x60, 0, 0, 0, 0, static_cast<std::uint8_t>(size), IPPROTO_UDP, 60};
  for (const std::string& address : {from, to}) {
    std::array<std::uint8_t, 16> bytes{};
    REQUIRE(::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  const auto put = [&](std::uint32_t value) {
    out.push_back(static_cast<std::uint8_t>(value >> 8));
    out.push_back(static_cast<std::uint8_t>(value));
  };
  for (const std::uint32_t value :
       {std::uint32_t{kPort}, std::uint32_t{kPort}, std::uint32_t{size}, std::uint32_t{0}})
    put(value);
  out.insert(out.end(), text.begin(), text.end());
  std::uint32_t sum = size + IPPROTO_UDP;
  for (std::size_t i = 8; i < out.size(); ++i)
    sum += i % 2 == 0 ? static_cast<std::uint32_t>(out[i]) << 8 : out[i];
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  out[46] = static_cast<std::uint8_t>(~sum >> 8);
  out[47] = static_cast<std::uint8_t>(~sum);
  return out;
}

// Sends a packet by a link of the namespace to the MAC address there, past all rules.
void send_raw(const Fd& space, const std::string& link, const Mac& mac,
              const std::vector<std::uint8_t>& packet) {
  REQUIRE(inside(space, [&]() -> Result<void> {
    const Fd socket(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IPV6)));
    sockaddr_ll to{};
    to.sll_family = AF_PACKET;
    to.sll_protocol = htons(ETH_P_IPV6);
    to.sll_ifindex = static_cast<int>(::if_nametoindex(link.c_str()));
    to.sll_halen = 6;
    std::copy(mac.begin(), mac.end(), to.sll_addr);
    CHECK(::sendto(socket.get(), packet.data(), packet.size(), 0,
                   reinterpret_cast<const sockaddr*>(&to),
                   sizeof to) == static_cast<ssize_t>(packet.size()));
    return {};
  }));
}

// Three hosts with the job 1 on the second and third one, and the job 2 on all of them.
struct Three {
  explicit Three(Transport transport) : hosts(3, transport) {
    for (std::uint32_t n = 1; n <= 3; ++n) {
      hosts.open(hosts[n], {});
      attach(2, {1, 2, 3}, n);
      if (n > 1) attach(1, {2, 3}, n);
    }
  }
  void attach(std::uint64_t id, const std::vector<std::uint32_t>& nodes, std::uint32_t here) {
    const JobNetwork job = hosts.job(id, nodes, here);
    const auto attached =
        inside(hosts[here].space, [&] { return hosts[here].fabric->attach(job); });
    REQUIRE_MESSAGE(attached, (attached ? "" : attached.error().message));
    parts[{id, here}] = look_inside(hosts, job);
  }
  Inside& part(std::uint64_t id, std::uint32_t node) { return parts.at({id, node}); }
  Hosts hosts;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Inside> parts;
};

// As a compromised node sends it: bypassing its own rules, into the link to the other nodes.
void send_as_node_1(Three& three, const std::vector<std::uint8_t>& packet) {
  if (three.hosts.transport() == Transport::routed)
    return send_raw(three.hosts[1].space, "cable", {2, 'c', 0, 0, 0, 2}, packet);
  const auto space = open_space(three.hosts[1].directory + "/node/net");
  REQUIRE(space);
  send_raw(*space, "nodes", {2, 'n', 0, 0, 0, 2}, packet);
}

std::size_t mtu_of(Transport transport) {
  switch (transport) {
    case Transport::vxlan: return 1500 - 70;
    case Transport::wireguard: return 1500 - 80;
    case Transport::routed: return 1500;
  }
  return 0;
}

// Whether a packet of this size comes from the first host to the second one in one piece.
bool arrives_whole(Three& three, std::size_t size) {
  const std::string text(size - 48, 'x');
  REQUIRE(inside(three.part(2, 1).space, [&]() -> Result<void> {
    const Fd socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int whole = IPV6_PMTUDISC_DO;
    REQUIRE(::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, &whole, sizeof whole) == 0);
    const Address to = address_of(three.part(2, 2).six, kPort);
    (void)::sendto(socket.get(), text.data(), text.size(), 0, to.get(), to.size);
    return {};
  }));
  pollfd watched{three.part(2, 2).udp6.get(), POLLIN, 0};
  (void)::poll(&watched, 1, 1500);
  std::array<char, 4096> got{};
  return ::recv(watched.fd, got.data(), got.size(), MSG_DONTWAIT) ==
         static_cast<ssize_t>(text.size());
}

}  // namespace

TEST_CASE("parts of a job reach each other by each transport, with packets of full size") {
  if (!is_able()) return;
  for (const Transport transport : transports()) {
    CAPTURE(name_of(transport));
    Three three(transport);
    for (const std::uint32_t from : {1U, 2U, 3U}) {
      std::vector<std::string> own, others;
      for (const auto& [key, part] : three.parts)
        for (const std::string& address : {part.six, part.four})
          (key.first == 2 ? own : others).push_back(address);
      CHECK(reached(three.part(2, from).space, own, std::chrono::seconds(3)).size() == 6);
      CHECK(reached(three.part(2, from).space, others, std::chrono::milliseconds(500)).empty());
    }
    CHECK(arrives_whole(three, mtu_of(transport)));
    CHECK_FALSE(arrives_whole(three, mtu_of(transport) + 1));
  }
}

TEST_CASE("a node sends in the name of its own jobs alone, where the transport can tell") {
  if (!is_able()) return;
  for (const Transport transport : transports()) {
    CAPTURE(name_of(transport));
    Three three(transport);
    const std::string victim = three.part(1, 2).six;
    // Each knows the others' ways: WireGuard has shaken hands.
    REQUIRE(
        reached(three.part(2, 1).space, {three.part(2, 2).six}, std::chrono::seconds(3)).size() ==
        1);
    // From the address of its own job, which has no part there; of another node's job; and of the
    // victim's.
    send_as_node_1(three, datagram(three.part(2, 1).six, victim, "own"));
    send_as_node_1(three, datagram(three.part(1, 3).six, victim, "other"));
    send_as_node_1(three, datagram(three.part(2, 2).six, victim, "here"));
    send_as_node_1(three, datagram(three.part(2, 1).six, three.part(2, 2).six, "right"));
    std::set<std::string> good, got;
    receive(three.part(2, 2).udp6, good, 1);
    CHECK(good == std::set<std::string>{"right"});
    receive(three.part(1, 2).udp6, got);
    // VXLAN believes each node: docs/network.md.
    CHECK(got == (transport == Transport::vxlan ? std::set<std::string>{"other"}
                                                : std::set<std::string>{}));
  }
}

TEST_CASE("what jobs say to each other is read on the wire, unless it is encrypted") {
  if (!is_able()) return;
  for (const Transport transport : transports()) {
    CAPTURE(name_of(transport));
    Three three(transport);
    Fd tap;
    REQUIRE(inside(three.hosts.wire(), [&]() -> Result<void> {
      tap.reset(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL)));
      return {};
    }));
    REQUIRE(
        reached(three.part(1, 2).space, {three.part(1, 3).six}, std::chrono::seconds(3)).size() ==
        1);
    REQUIRE(inside(three.part(1, 2).space, [&]() -> Result<void> {
      const Fd socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      const Address to = address_of(three.part(1, 3).six, kPort);
      CHECK(::sendto(socket.get(), "weights of a model", 18, 0, to.get(), to.size) == 18);
      return {};
    }));
    std::set<std::string> got;
    receive(three.part(1, 3).udp6, got, 1);
    CHECK(got == std::set<std::string>{"weights of a model"});
    std::string seen;
    std::array<char, 2048> frame{};
    for (ssize_t n = 0; (n = ::recv(tap.get(), frame.data(), frame.size(), 0)) > 0;)
      seen.append(frame.data(), static_cast<std::size_t>(n));
    CHECK(seen.size() > 100);
    CHECK((seen.find("weights of a model") == std::string::npos) ==
          (transport == Transport::wireguard));
  }
}

TEST_CASE("jobs go on after a daemon was killed, and nothing is left on the machine at the end") {
  if (!is_able()) return;
  for (const Transport transport : transports()) {
    CAPTURE(name_of(transport));
    Three three(transport);
    const std::string machine = three.hosts.top() + "/host2";
    for (int i = 0; i < 20; ++i)
      three.hosts.open(three.hosts[2],
                       {three.hosts.job(1, {2, 3}, 2), three.hosts.job(2, {1, 2, 3}, 2)});
    CHECK(reached(three.part(2, 1).space, {three.part(2, 2).six, three.part(2, 2).four},
                  std::chrono::seconds(8))
              .size() == 2);
    CHECK(reached(three.part(2, 2).space, {three.part(2, 3).six, three.part(2, 3).four},
                  std::chrono::seconds(8))
              .size() == 2);
    if (transport == Transport::routed) {
      CHECK(run_in(machine, "sh -c 'test $(ip -o link | grep -c gantryr) = 1'"));
      CHECK(run_in(machine, "sh -c 'test $(ip -6 route | grep -c fd00:9:9:) = 3'"));
      CHECK(run_in(machine, "sh -c 'test $(ip route | grep -c 100.64) = 3'"));
    }
    // Another daemon of the machine has routes of its own, which stay.
    three.hosts[2].fabric.reset();
    REQUIRE(inside(three.hosts[2].space, [&] { return Fabric::remove(three.hosts[2].directory); }));
    CHECK(run_in(machine, "sh -c 'test $(ip -6 route | grep -c fd00:9:9:) = 0'"));
    CHECK(run_in(machine, "sh -c 'test $(ip route | grep -c 100.64) = 0'"));
    CHECK(run_in(machine, "sh -c 'test -z \"$(nft list tables)\"'"));
    CHECK(run_in(machine, "sh -c 'test $(ip -o link | wc -l) = 2'"));
  }
}

TEST_CASE("routed: the machine itself and strangers on its network reach no job") {
  if (!is_able()) return;
  Three three(Transport::routed);
  const std::string victim = three.part(1, 2).six;
  CHECK(
      reached(three.hosts[2].space, {victim, three.part(1, 2).four}, std::chrono::milliseconds(700))
          .empty());
  // A stranger that knows the way, with an address of its own, and one that takes a part's address
  // and has no node's MAC address.
  const std::string wire = three.hosts.top() + "/wire";
  REQUIRE(run_in(wire, "ip address add 10.9.0.99/24 dev switch"));
  REQUIRE(run_in(wire, "ip route add 100.64.0.0/10 via 10.9.0.2"));
  CHECK(
      reached(three.hosts.wire(), {three.part(1, 2).four}, std::chrono::milliseconds(700)).empty());
  send_raw(three.hosts.wire(), "switch", {2, 'c', 0, 0, 0, 2},
           datagram(three.part(1, 3).six, victim, "stranger"));
  std::set<std::string> got;
  receive(three.part(1, 2).udp6, got);
  CHECK(got.empty());
  CHECK(output_in(three.hosts.top() + "/host2", "nft list ruleset").find("packets 0") ==
        std::string::npos);
}

TEST_CASE("a node says what others need to know of it, and who has another transport is refused") {
  const std::string dir = fmt::format("/tmp/gantry-key.{}", ::getpid());
  std::filesystem::create_directory(dir);
  const auto said = introduction(Transport::wireguard, dir + "/key", "");
  REQUIRE(said);
  CHECK(said->starts_with("wireguard "));
  CHECK(said->size() == 54);
  CHECK(*introduction(Transport::wireguard, dir + "/key", "") == *said);  // the key stays the same
  struct stat about {};
  REQUIRE(::stat((dir + "/key").c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
  const auto key = key_of_text(*introduced(Transport::wireguard, "n2", *said));
  REQUIRE(key);
  CHECK(*key == public_key(*load_key(dir + "/key")));
  CHECK_FALSE(key_of_text("AAAA"));
  CHECK(introduced(Transport::vxlan, "n2", "")->empty());
  CHECK(introduced(Transport::wireguard, "n2", "").error().message ==
        "n2 takes packets of other nodes by vxlan, and this node sends them by wireguard; both "
        "need the same controller.job_network_transport");
  std::ofstream(dir + "/short") << "abc";
  CHECK(introduction(Transport::wireguard, dir + "/short", "").error().message.find("32 bytes") !=
        std::string::npos);
  CHECK(*introduction(Transport::routed, "", "127.0.0.1") == "routed lo");
  CHECK(introduction(Transport::routed, "", "192.0.2.77").error().message ==
        "no link of this machine has the address 192.0.2.77, by which other nodes know it");
  std::filesystem::remove_all(dir);
}

TEST_CASE("a machine that cannot carry packets between nodes is found out before it has a job") {
  if (!is_able()) return;
  Hosts hosts(1, Transport::vxlan);
  const auto tried = [&](Transport transport) {
    return inside(hosts[1].space, [&] { return try_networks(hosts.top() + "/trial", transport); });
  };
  REQUIRE(inside(hosts[1].space, []() -> Result<void> {
    REQUIRE(set_sysctl("ipv4/ip_forward", "1"));
    return set_sysctl("ipv6/conf/all/forwarding", "0");
  }));
  const auto refused = tried(Transport::routed);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "packets between nodes are routed, and the machine forwards none: "
        "net.ipv6.conf.all.forwarding is 0");
  REQUIRE(inside(hosts[1].space,
                 []() -> Result<void> { return set_sysctl("ipv6/conf/all/forwarding", "1"); }));
  const auto routed = tried(Transport::routed);
  CHECK_MESSAGE(routed, (routed ? "" : routed.error().message));
  const auto guarded = tried(Transport::wireguard);
  const bool has = transports().size() == 3;
  CHECK(guarded.has_value() == has);
  if (!has)
    CHECK(guarded.error().message.find("by WireGuard could not be made") != std::string::npos);
}
