// Sends real packets to where network profiles lead, and to where they do not: a machine beside the
// hosts has addresses of every kind, and exactly the jobs whose profile allows it must get an
// answer.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <thread>

#include "tests/network/probes.h"

using namespace gantry;
using namespace gantry::network;
using namespace gantry::network::test;

namespace {

constexpr std::chrono::milliseconds kPatience{1500};

// Addresses of the machine beside the hosts, which answers at each of them at 53, 5000 and 5001.
constexpr std::array kOutside{"10.9.0.100",    "192.168.7.7",    "1.2.3.4",   "169.254.169.254",
                              "168.63.129.16", "fd99::100",      "2a00:1::1", "fd00:ec2::254",
                              "2001:db8::1",   "64:ff9b::a09:64"};
constexpr std::array<std::uint16_t, 3> kPorts{53, kPort, 5001};

std::vector<NetworkRange> ranges(const std::vector<std::string>& texts) {
  std::vector<NetworkRange> out;
  for (const std::string& text : texts) out.push_back(*parse_network_range(text));
  return out;
}

// Hosts whose machines forward, and the machine beside them.
struct World {
  explicit World(std::uint32_t count) : hosts(count) {
    const std::string wire = hosts.top() + "/wire";
    for (const std::string address : kOutside)
      REQUIRE(run_in(wire, fmt::format("ip address add {} dev switch{}",
                                       address == "10.9.0.100"  ? "10.9.0.100/24"
                                       : address == "fd99::100" ? "fd99::100/64"
                                                                : address,
                                       address.find(':') == std::string::npos ? "" : " nodad")));
    REQUIRE(inside(hosts.wire(), [&]() -> Result<void> {
      for (const char* address : kOutside)
        for (const std::uint16_t port : kPorts)
          listening.push_back(listener(address, SOCK_STREAM, port));
      return {};
    }));
    hosts.guarded = ranges({"10.9.0.2/32", "fd99::2/128"});
    hosts.resolvers = ranges({"10.9.0.100/32", "fd99::100/128"});
    for (std::uint32_t n = 1; n <= count; ++n) {
      const std::string file = fmt::format("{}/host{}", hosts.top(), n);
      REQUIRE(run_in(file, fmt::format("ip address add fd99::{}/64 dev cable nodad", n)));
      REQUIRE(inside(hosts[n].space, [&]() -> Result<void> {
        for (const char* name : {"ipv4/ip_forward", "ipv6/conf/all/forwarding"})
          REQUIRE(set_sysctl(name, "1"));
        listening.push_back(listener("::", SOCK_STREAM));
        return {};
      }));
      REQUIRE(run_in(file, "ip route add default via 10.9.0.100"));
      REQUIRE(run_in(file, "ip route add default via fd99::100"));
      hosts.open(hosts[n], {});
    }
  }

  // Attaches the job on one host; the outside addresses that it then reaches, as "ADDRESS PORT".
  Inside attach(JobNetwork job) {
    Host& host = hosts[job.part.node];
    const auto attached = inside(host.space, [&] { return host.fabric->attach(job); });
    REQUIRE_MESSAGE(attached, (attached ? "" : attached.error().message));
    return look_inside(hosts, job);
  }
  std::set<std::string> outside_of(const Inside& job) {
    std::set<std::string> out;
    for (const std::uint16_t port : kPorts)
      for (const std::string& address :
           reached(job.space, {kOutside.begin(), kOutside.end()}, kPatience, nullptr, port))
        out.insert(fmt::format("{} {}", address, port));
    return out;
  }

  Hosts hosts;
  std::vector<Fd> listening;
};

std::set<std::string> all_ports(const std::vector<std::string>& addresses) {
  std::set<std::string> out;
  for (const std::string& address : addresses)
    for (const std::uint16_t port : kPorts) out.insert(fmt::format("{} {}", address, port));
  return out;
}

}  // namespace

TEST_CASE("a profile leads to what it names and nowhere else, by IPv4 and IPv6") {
  if (!is_able()) return;
  World world(2);
  struct Row {
    std::string name;
    proto::NetworkReach reach;
    std::set<std::string> wanted;
  };
  proto::NetworkReach own, dns, range, wide, internet;
  dns.resolvers = true;
  range.ranges = {"10.9.0.100/32 tcp/5000", "fd99::/64 tcp/5001", "192.168.0.0/16 udp/5000"};
  wide.ranges = {"0.0.0.0/0", "::/0"};
  internet.internet = true;
  const std::vector<Row> rows{{"own", own, {}},
                              {"dns", dns, {"10.9.0.100 53", "fd99::100 53"}},
                              {"range", range, {"10.9.0.100 5000", "fd99::100 5001"}},
                              {"wide", wide,
                               all_ports({"10.9.0.100", "192.168.7.7", "1.2.3.4", "fd99::100",
                                          "2a00:1::1", "2001:db8::1"})},
                              {"internet", internet, all_ports({"1.2.3.4", "2a00:1::1"})}};
  std::uint64_t id = 0;
  std::size_t probes = 0, wrong = 0;
  for (const Row& row : rows) {
    JobNetwork job = world.hosts.job(++id, {1}, 1);
    job.reach = row.reach;
    const Inside one = world.attach(job);
    probes += kOutside.size() * kPorts.size();
    const auto got = world.outside_of(one);
    if (got != row.wanted) {
      ++wrong;
      std::string text;
      for (const auto& target : got) text += target + "; ";
      MESSAGE(row.name << " reaches " << text);
    }
    // No job reaches the machines: its own at any address, nor others of the cluster.
    CHECK(reached(one.space,
                  {"10.9.0.1", "10.9.0.2", "fd99::1", "fd99::2", "169.254.64.1",
                   text_of(node_address6(world.hosts.blocks(), 1)), "fe80::1"},
                  std::chrono::milliseconds(700), "eth0")
              .empty());
  }
  CHECK(wrong == 0);
  MESSAGE(probes << " targets by TCP");
}

TEST_CASE("jobs of one tenant reach each other where both profiles say so") {
  if (!is_able()) return;
  World world(2);
  struct Job {
    std::uint64_t id;
    std::uint32_t node, group;
    bool open;
  };
  constexpr std::uint32_t kOne = 65536, kTwo = 70000;
  const std::vector<Job> jobs{{1, 1, kOne, true},  {2, 1, kOne, true}, {3, 2, kOne, true},
                              {4, 1, kTwo, true},  {5, 2, kTwo, true}, {6, 1, kOne, false},
                              {7, 2, kOne, false}, {8, 1, 0, false}};
  std::vector<Inside> inside_of;
  for (const Job& one : jobs) {
    JobNetwork job = world.hosts.job(one.id, {one.node}, one.node, one.group);
    if (one.open) job.reach.to = job.reach.from = {{one.group, ""}};
    // Nodes find each other by the parts of jobs; here both have one of job 100 + id.
    job.peers.push_back(
        {{3 - one.node, JobId(100 + one.id), std::nullopt}, world.hosts[3 - one.node].underlay});
    inside_of.push_back(world.attach(job));
  }
  std::size_t wrong = 0;
  for (std::size_t from = 0; from < jobs.size(); ++from) {
    std::vector<std::string> targets;
    for (const Inside& to : inside_of) targets.push_back(to.six);
    const auto got = reached(inside_of[from].space, targets, kPatience);
    for (std::size_t to = 0; to < jobs.size(); ++to) {
      const bool may =
          from == to || (jobs[from].open && jobs[to].open && jobs[from].group == jobs[to].group);
      if (got.contains(targets[to]) == may) continue;
      ++wrong;
      MESSAGE(jobs[from].id << (may ? " does not reach " : " reaches ") << jobs[to].id);
    }
    std::vector<std::string> fours;
    for (std::size_t to = 0; to < jobs.size(); ++to)
      if (to != from) fours.push_back(inside_of[to].four);
    CHECK(reached(inside_of[from].space, fours, std::chrono::milliseconds(300)).empty());
  }
  CHECK(wrong == 0);
}

TEST_CASE("a tenant's service takes connections of another tenant at its port alone") {
  if (!is_able()) return;
  World world(2);
  constexpr std::uint32_t kClient = 65540, kServer = 65541, kOther = 65542;
  const auto attach = [&](std::uint64_t id, std::uint32_t node, std::uint32_t group,
                          std::uint32_t to, std::uint32_t from) {
    JobNetwork job = world.hosts.job(id, {node}, node, group);
    if (to != 0) job.reach.to = {{to, "tcp/5000"}};
    if (from != 0) job.reach.from = {{from, "tcp/5000"}};
    job.peers.push_back(
        {{3 - node, JobId(100 + id), std::nullopt}, world.hosts[3 - node].underlay});
    return world.attach(job);
  };
  const Inside client = attach(1, 1, kClient, kServer, 0);
  const Inside server = attach(2, 2, kServer, 0, kClient);
  const Inside near = attach(3, 1, kServer, 0, kClient);
  const Inside other = attach(4, 1, kOther, kServer, 0);
  Fd second;
  REQUIRE(inside(server.space, [&]() -> Result<void> {
    second = listener(server.six, SOCK_STREAM, 5001);
    return {};
  }));
  CHECK(reached(client.space, {server.six, near.six}, kPatience).size() == 2);
  CHECK(reached(client.space, {server.six}, kPatience, nullptr, 5001).empty());
  CHECK(reached(other.space, {server.six, near.six}, kPatience).empty());
  CHECK(reached(server.space, {client.six, near.six}, kPatience).empty());
}

TEST_CASE("an address of IPv4 that is given again brings no connection of the job before") {
  if (!is_able()) return;
  World world(1);
  JobNetwork first = world.hosts.job(1, {1}, 1);
  first.reach.ranges = {"10.9.0.100/32"};
  const Inside before = world.attach(first);
  Fd client, server;
  REQUIRE(inside(before.space, [&]() -> Result<void> {
    client.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const Address own = address_of(before.four, 7000), to = address_of("10.9.0.100", 7000);
    REQUIRE(::bind(client.get(), own.get(), own.size) == 0);
    REQUIRE(::connect(client.get(), to.get(), to.size) == 0);
    return {};
  }));
  REQUIRE(inside(world.hosts.wire(), [&]() -> Result<void> {
    server = listener("10.9.0.100", SOCK_DGRAM, 7000);
    return {};
  }));
  const timeval patience{5, 0};
  REQUIRE(::fcntl(server.get(), F_SETFL, 0) == 0);
  ::setsockopt(server.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::array<char, 16> text{};
  sockaddr_storage who{};
  socklen_t size = sizeof who;
  REQUIRE(::send(client.get(), "hello", 5, 0) == 5);
  REQUIRE(::recvfrom(server.get(), text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&who),
                     &size) == 5);
  const auto answered = [&](const Fd& socket, int seconds) {
    const timeval wait{seconds, 0};
    REQUIRE(::fcntl(socket.get(), F_SETFL, 0) == 0);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    (void)::sendto(server.get(), "answer", 6, 0, reinterpret_cast<const sockaddr*>(&who), size);
    return ::recv(socket.get(), text.data(), text.size(), 0) == 6;
  };
  CHECK(answered(client, 5));
  REQUIRE(world.hosts[1].fabric->detach(first.key));
  // 1 and 1,025 have the same place among the node's addresses.
  JobNetwork second = world.hosts.job(1 + kMostSlots, {1}, 1);
  second.reach.ranges = {"10.9.0.100/32"};
  const Inside after = world.attach(second);
  REQUIRE(after.four == before.four);
  Fd heir;
  REQUIRE(inside(after.space, [&]() -> Result<void> {
    heir = listener(after.four, SOCK_DGRAM, 7000);
    return {};
  }));
  CHECK_FALSE(answered(heir, 1));
}

TEST_CASE("the first answer to a job is not lost on a machine that makes and removes links") {
  if (!is_able()) return;
  World world(1);
  Fd server;
  REQUIRE(inside(world.hosts.wire(), [&]() -> Result<void> {
    server = listener("10.9.0.100", SOCK_DGRAM, 7000);
    return {};
  }));
  const timeval patience{1, 0};
  const auto waits = [&](const Fd& socket) {
    REQUIRE(::fcntl(socket.get(), F_SETFL, 0) == 0);
    REQUIRE(::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
  };
  waits(server);
  // The namespace that this thread leaves is taken apart by the kernel, which holds up its work on
  // links for that time.
  const std::jthread others([](const std::stop_token& stop) {
    while (!stop.stop_requested()) (void)::unshare(CLONE_NEWNET);
  });
  Host& host = world.hosts[1];
  int lost = 0;
  for (std::uint64_t id = 1; id <= 60; ++id) {
    JobNetwork job = world.hosts.job(id, {1}, 1);
    job.reach.ranges = {"10.9.0.100/32"};
    REQUIRE(inside(host.space, [&] { return host.fabric->attach(job); }));
    const auto space = open_space(fmt::format("{}/{}.1/net", host.directory, id));
    REQUIRE(space);
    Fd client;
    REQUIRE(inside(*space, [&]() -> Result<void> {
      client.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      return {};
    }));
    waits(client);
    const Address to = address_of("10.9.0.100", 7000);
    std::array<char, 16> text{};
    sockaddr_storage who{};
    socklen_t size = sizeof who;
    REQUIRE(::sendto(client.get(), "hello", 5, 0, to.get(), to.size) == 5);
    if (::recvfrom(server.get(), text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&who),
                   &size) == 5)
      (void)::sendto(server.get(), "answer", 6, 0, reinterpret_cast<const sockaddr*>(&who), size);
    lost += ::recv(client.get(), text.data(), text.size(), 0) != 6;
    REQUIRE(host.fabric->detach(job.key));
  }
  CHECK(lost == 0);
}

TEST_CASE("without forwarding a job that needs a way out is refused, and others start without") {
  if (!is_able()) return;
  World world(1);
  REQUIRE(inside(world.hosts[1].space, []() -> Result<void> {
    for (const char* name : {"ipv4/ip_forward", "ipv6/conf/all/forwarding"})
      REQUIRE(set_sysctl(name, "0"));
    return {};
  }));
  JobNetwork job = world.hosts.job(1, {1}, 1);
  job.reach.resolvers = true;
  REQUIRE(inside(world.hosts[1].space, [&] { return world.hosts[1].fabric->attach(job); }));
  CHECK(world.hosts[1].fabric->resolvers_of(job.key).empty());
  job = world.hosts.job(2, {1}, 1);
  job.reach.internet = job.reach.required = true;
  const auto refused =
      inside(world.hosts[1].space, [&] { return world.hosts[1].fabric->attach(job); });
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("net.ipv4.ip_forward") != std::string::npos);
  CHECK_FALSE(open_space(world.hosts[1].directory + "/2.1/net"));
}

TEST_CASE("a way out stays over a restart of the daemon, and nothing of it is left at the end") {
  if (!is_able()) return;
  World world(1);
  JobNetwork job = world.hosts.job(1, {1}, 1);
  job.reach.ranges = {"10.9.0.100/32 tcp"};
  const std::string machine = world.hosts.top() + "/host1";
  const Inside one = world.attach(job);
  CHECK(reached(one.space, {"10.9.0.100"}, kPatience).size() == 1);
  for (int i = 0; i < 50; ++i) world.hosts.open(world.hosts[1], {job});
  CHECK(reached(one.space, {"10.9.0.100"}, kPatience).size() == 1);
  CHECK(run_in(machine, "sh -c 'test $(nft list tables | grep -c gantry_way) = 1'"));
  CHECK(run_in(machine, "sh -c 'test $(ip -o link | grep -c gantry[0-9]) = 1'"));
  // A daemon that was killed in the middle left a link without its other end, or a table.
  REQUIRE(world.hosts[1].fabric->detach(job.key));
  world.hosts[1].fabric.reset();
  REQUIRE(inside(world.hosts[1].space, [&] { return Fabric::remove(world.hosts[1].directory); }));
  CHECK(run_in(machine, "sh -c 'test $(nft list tables | wc -l) = 0'"));
  CHECK(run_in(machine, "sh -c 'test $(ip -o link | grep -c gantry) = 0'"));
  CHECK(run_in(machine, "sh -c '! ip route | grep -q 169.254'"));
  CHECK(std::filesystem::is_empty(world.hosts[1].directory));
}
