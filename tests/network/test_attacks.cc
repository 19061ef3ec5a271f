// What a job may try against its neighbours and its node: packets that only root can make, from
// inside of the job's namespace, and daemons that are killed at any moment.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/network/probes.h"

using namespace gantry;
using namespace gantry::network;
using namespace gantry::network::test;

namespace {

// GANTRY_LONG=1 makes 1,000.
int times(int few) {
  const char* all = std::getenv("GANTRY_LONG");
  return all != nullptr && all[0] == '1' ? 1000 : few;
}

// Sends frames as they are by the job's link, which needs what no job has.
class Frames {
 public:
  explicit Frames(const Fd& space) {
    REQUIRE(inside(space, [&]() -> Result<void> {
      socket_.reset(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
      link_ = ::if_nametoindex("eth0");
      return {};
    }));
    REQUIRE(static_cast<bool>(socket_));
  }
  void send(const std::vector<std::uint8_t>& frame) const {
    sockaddr_ll to{};
    to.sll_family = AF_PACKET;
    to.sll_ifindex = static_cast<int>(link_);
    to.sll_halen = 6;
    (void)::sendto(socket_.get(), frame.data(), frame.size(), MSG_DONTWAIT,
                   reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }

 private:
  Fd socket_;
  unsigned link_ = 0;
};

std::vector<std::uint8_t> head(std::uint16_t protocol, std::uint8_t from) {
  std::vector<std::uint8_t> out(14, 0xff);
  const std::array<std::uint8_t, 6> source{2, 'e', 'v', 'i', 'l', from};
  std::copy(source.begin(), source.end(), out.begin() + 6);
  out[12] = static_cast<std::uint8_t>(protocol >> 8);
  out[13] = static_cast<std::uint8_t>(protocol);
  return out;
}

// "A.B.C.D is at ...", in the name of another.
std::vector<std::uint8_t> arp(std::uint32_t address, std::uint8_t from) {
  auto out = head(ETH_P_ARP, from);
  const std::array<std::uint8_t, 8> fixed{0, 1, 8, 0, 6, 4, 0, 2};
  out.insert(out.end(), fixed.begin(), fixed.end());
  for (int twice = 0; twice < 2; ++twice) {
    out.insert(out.end(), {2, 'e', 'v', 'i', 'l', from});
    for (int i = 3; i >= 0; --i) out.push_back(static_cast<std::uint8_t>(address >> (8 * i)));
  }
  return out;
}

// An ICMPv6 message to all nodes of the link, with a right checksum.
std::vector<std::uint8_t> icmp6(const std::string& source, std::vector<std::uint8_t> message,
                                std::uint8_t from) {
  std::array<std::uint8_t, 32> addresses{};
  REQUIRE(::inet_pton(AF_INET6, source.c_str(), addresses.data()) == 1);
  REQUIRE(::inet_pton(AF_INET6, "ff02::1", addresses.data() + 16) == 1);
  std::uint32_t sum = static_cast<std::uint32_t>(message.size()) + IPPROTO_ICMPV6;
  const auto add = [&](const std::uint8_t* data, std::size_t size) {
    for (std::size_t i = 0; i + 1 < size; i += 2)
      sum += static_cast<std::uint32_t>(data[i]) << 8 | data[i + 1];
  };
  add(addresses.data(), addresses.size());
  add(message.data(), message.size());
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  message[2] = static_cast<std::uint8_t>(~sum >> 8);
  message[3] = static_cast<std::uint8_t>(~sum);
  auto out = head(ETH_P_IPV6, from);
  out.insert(out.end(),
             {0x60, 0, 0, 0, 0, static_cast<std::uint8_t>(message.size()), IPPROTO_ICMPV6, 255});
  out.insert(out.end(), addresses.begin(), addresses.end());
  out.insert(out.end(), message.begin(), message.end());
  return out;
}

// A router that promises the default route and a prefix.
std::vector<std::uint8_t> advertisement() {
  std::vector<std::uint8_t> out{134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0};
  out.insert(out.end(), {3, 4, 64, 0xc0, 0, 0, 0x70, 8, 0, 0, 0x70, 8, 0, 0, 0, 0});
  out.insert(out.end(), {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  return out;
}

// "I am this address": a neighbour that overrides what is known.
std::vector<std::uint8_t> neighbour(const std::string& address, std::uint8_t from) {
  std::vector<std::uint8_t> out{136, 0, 0, 0, 0x20, 0, 0, 0};
  std::array<std::uint8_t, 16> bytes{};
  REQUIRE(::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1);
  out.insert(out.end(), bytes.begin(), bytes.end());
  out.insert(out.end(), {2, 1, 2, 'e', 'v', 'i', 'l', from});
  return out;
}

}  // namespace

TEST_CASE("router advertisements and floods of ARP and neighbours change nothing") {
  if (!is_able()) return;
  Hosts hosts(2);
  std::vector<Inside> parts;
  for (std::uint32_t n : {1U, 2U}) {
    hosts.open(hosts[n], {});
    REQUIRE(hosts[n].fabric->attach(hosts.job(1, {1, 2}, n)));
    parts.push_back(look_inside(hosts, hosts.job(1, {1, 2}, n)));
  }
  JobNetwork own = hosts.job(2, {1}, 1);
  REQUIRE(hosts[1].fabric->attach(own));
  const Inside attacker = look_inside(hosts, own);
  const std::string node = hosts[1].directory + "/node/net";
  const std::string victim = hosts[1].directory + "/1.1/net";
  const auto seen = [&] {
    std::string out;
    for (const std::string& file : {node, victim})
      out += output_in(file,
                       "sh -c 'ip -6 route; ip route; ip -6 neigh; ip neigh; ip -o -6 "
                       "address | sed \"s/valid_lft.*//; s/ tentative//\"'");
    return out;
  };
  const std::string before = seen();
  const Frames frames(attacker.space);
  std::size_t sent = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto from = static_cast<std::uint8_t>(i);
    frames.send(arp(0x64400401U + static_cast<std::uint32_t>(i % 1024), from));
    frames.send(icmp6("fe80::1", advertisement(), from));
    frames.send(icmp6("fe80::bad", neighbour(parts[0].six, from), from));
    frames.send(icmp6(parts[0].six, neighbour("fe80::1", from), from));
    sent += 4;
  }
  // tidy-allow(sleep): what must not happen cannot be waited for
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(seen() == before);
  CHECK(reached(parts[0].space, {parts[1].six, parts[1].four}, std::chrono::seconds(2)).size() ==
        2);
  CHECK(counter(hosts[1], "spoofed") > 0);
  MESSAGE(sent << " frames");
}

TEST_CASE("a question to a name server leaves no job whose profile has none") {
  if (!is_able()) return;
  Hosts hosts(1);
  const std::string wire = hosts.top() + "/wire";
  REQUIRE(run_in(wire, "ip address add 10.9.0.100/24 dev switch"));
  REQUIRE(
      inside(hosts[1].space, []() -> Result<void> { return set_sysctl("ipv4/ip_forward", "1"); }));
  hosts.resolvers = {*parse_network_range("10.9.0.100")};
  hosts.open(hosts[1], {});
  Fd server;
  REQUIRE(inside(hosts.wire(), [&]() -> Result<void> {
    server = listener("10.9.0.100", SOCK_DGRAM, 53);
    return {};
  }));
  const auto asks = [&](const Inside& job, const char* name) {
    REQUIRE(inside(job.space, [&]() -> Result<void> {
      const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      const Address to = address_of("10.9.0.100", 53);
      for (int i = 0; i < 20; ++i)
        (void)::sendto(socket.get(), name, std::strlen(name), 0, to.get(), to.size);
      return {};
    }));
  };
  std::vector<Inside> jobs;
  for (std::uint64_t id : {1U, 2U, 3U}) {
    JobNetwork job = hosts.job(id, {1}, 1);
    if (id == 2) job.reach.ranges = {"10.9.0.0/24 tcp"};
    if (id == 3) job.reach.resolvers = true;
    REQUIRE(inside(hosts[1].space, [&] { return hosts[1].fabric->attach(job); }));
    jobs.push_back(look_inside(hosts, job));
  }
  asks(jobs[0], "own");
  asks(jobs[1], "range");
  asks(jobs[2], "resolvers");
  std::set<std::string> heard;
  receive(server, heard, 1);
  CHECK(heard == std::set<std::string>{"resolvers"});
  const auto denied = hosts[1].fabric->look({JobId(1), Attempt(1)});
  REQUIRE_MESSAGE(denied, (denied ? "" : denied.error().message));
  CHECK(denied->denied_packets == 20);
  CHECK(denied->sent_packets >= 20);
  CHECK(hosts[1].fabric->look({JobId(3), Attempt(1)})->denied_packets == 0);
}

TEST_CASE("a job that connects as soon as it is there reaches its part, and never another job") {
  if (!is_able()) return;
  const int kTimes = times(200);
  Hosts hosts(2);
  for (std::uint32_t n : {1U, 2U}) hosts.open(hosts[n], {});
  REQUIRE(hosts[2].fabric->attach(hosts.job(5000, {2}, 2)));
  const Inside other = look_inside(hosts, hosts.job(5000, {2}, 2));
  int wrong = 0;
  for (int i = 1; i <= kTimes; ++i) {
    const auto id = static_cast<std::uint64_t>(i);
    const JobNetwork far = hosts.job(id, {1, 2}, 2), near = hosts.job(id, {1, 2}, 1);
    REQUIRE(hosts[2].fabric->attach(far));
    const Inside there = look_inside(hosts, far);
    REQUIRE(hosts[1].fabric->attach(near));
    const auto space = open_space(hosts[1].fabric->space_file(near.key));
    const auto got =
        reached(*space, {i % 2 == 0 ? there.six : there.four, i % 2 == 0 ? other.six : other.four},
                std::chrono::milliseconds(2000));
    const bool own = got.contains(i % 2 == 0 ? there.six : there.four);
    if (!own || got.size() != 1) ++wrong;
    REQUIRE(hosts[1].fabric->detach(near.key));
    REQUIRE(hosts[2].fabric->detach(far.key));
  }
  CHECK(wrong == 0);
}

TEST_CASE("of a daemon that is killed at any moment no link, rule or namespace is left") {
  if (!is_able()) return;
  const int kTimes = times(50);
  Hosts hosts(1);
  Host& host = hosts[1];
  REQUIRE(inside(host.space, []() -> Result<void> { return set_sysctl("ipv4/ip_forward", "1"); }));
  const std::string machine = hosts.top() + "/host1";
  std::mt19937 random(7);
  for (int i = 0; i < kTimes; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      (void)inside(host.space, [&]() -> Result<void> {
        auto fabric = Fabric::open({host.directory,
                                    hosts.blocks(),
                                    1,
                                    host.underlay,
                                    77,
                                    {},
                                    {},
                                    hosts.transport(),
                                    host.secret},
                                   {});
        if (!fabric) fmt::print(stderr, "{}\n", fabric.error().message);
        for (std::uint64_t id = 1; fabric; ++id) {
          JobNetwork job = hosts.job(id, {1}, 1);
          job.reach.ranges = {"10.9.0.0/24"};
          if (id % 2 == 0) (void)(*fabric)->make_ready();
          (void)(*fabric)->attach(job);
          if (id % 3 == 0) (void)(*fabric)->detach(hosts.job(id - 1, {1}, 1).key);
        }
        return {};
      });
      ::_exit(1);
    }
    // tidy-allow(sleep): the kill comes at any moment
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    // The next daemon has nothing to adopt, and ends.
    if (i % 2 == 0) {
      hosts.open(host, {});
      CHECK(host.fabric->attempts() == 0);
      host.fabric.reset();
    }
    const auto removed = inside(host.space, [&] { return Fabric::remove(host.directory); });
    REQUIRE_MESSAGE(removed, (removed ? "" : removed.error().message));
    REQUIRE(std::filesystem::is_empty(host.directory));
  }
  CHECK(output_in(machine, "nft list tables").empty());
  CHECK(run_in(machine, "sh -c 'test $(ip -o link | grep -c -e gantry -e vxlan -e nodes) = 0'"));
}
