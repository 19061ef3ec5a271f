// Sends real packets between jobs on eight hosts, each a network namespace: whatever is not between
// parts of one job must not arrive.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "noded/network/wireguard.h"
#include "tests/network/probes.h"

using namespace gantry;
using namespace gantry::network;
using namespace gantry::network::test;

namespace {

using Clock = std::chrono::steady_clock;

// Sends "FROM TO" as a datagram to each target.
void send_all(const Inside& from, const std::vector<std::string>& targets) {
  REQUIRE(inside(from.space, [&]() -> Result<void> {
    for (const std::string& target : targets) {
      const Address at = address_of(target, kPort);
      const Fd socket(::socket(at.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      const std::string text = from.six + " " + target;
      (void)::sendto(socket.get(), text.data(), text.size(), MSG_DONTWAIT, at.get(), at.size);
    }
    return {};
  }));
}

}  // namespace

TEST_CASE("whether a machine can make networks is tried without a trace") {
  if (!is_able()) return;
  Hosts hosts(1);
  const std::string directory = hosts.top() + "/trial";
  for (int i = 0; i < 3; ++i) {
    const auto tried = inside(hosts[1].space, [&] { return try_networks(directory); });
    REQUIRE_MESSAGE(tried, (tried ? "" : tried.error().message));
    CHECK_FALSE(std::filesystem::exists(directory));
  }
  CHECK(run_in(hosts.top() + "/host1", "sh -c 'test $(ip -o link | wc -l) = 2'"));
  CHECK(run_in(hosts.top() + "/host1", "sh -c 'test -z \"$(nft list tables)\"'"));
  // A file where a directory should be: the error tells the reason.
  std::ofstream(directory) << "in the way";
  const auto refused = inside(hosts[1].space, [&] { return try_networks(directory + "/trial"); });
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find(directory) != std::string::npos);
}

TEST_CASE("of 40 jobs on eight hosts each reaches its own parts and nothing else") {
  if (!is_able()) return;
  Hosts hosts(8);
  for (std::uint32_t n = 1; n <= hosts.size(); ++n) hosts.open(hosts[n], {});
  std::vector<Inside> parts;
  std::vector<std::string> all;
  std::map<std::string, std::uint64_t> job_at;
  for (std::uint64_t id = 1; id <= 40; ++id) {
    std::vector<std::uint32_t> nodes;
    for (std::uint64_t i = 0; i <= id % 4; ++i)
      nodes.push_back(static_cast<std::uint32_t>((id + i * (1 + id % 3)) % 8 + 1));
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    for (const std::uint32_t node : nodes) {
      const JobNetwork job = hosts.job(id, nodes, node);
      const auto attached = hosts[node].fabric->attach(job);
      REQUIRE_MESSAGE(attached, (attached ? "" : attached.error().message));
      parts.push_back(look_inside(hosts, job));
      for (const std::string& address : {parts.back().six, parts.back().four}) {
        job_at[address] = id;
        all.push_back(address);
      }
    }
  }
  std::size_t wrong = 0, probes = 0;
  for (const Inside& from : parts) {
    const std::set<std::string> got = reached(from.space, all, std::chrono::milliseconds(1500));
    for (const std::string& target : all) {
      const bool own = job_at[target] == from.network.key.job.value();
      ++probes;
      if (got.contains(target) != own) {
        ++wrong;
        MESSAGE(from.six << (own ? " does not reach " : " reaches ") << target);
      }
    }
    send_all(from, all);
  }
  for (const Inside& to : parts) {
    const auto own_parts =
        static_cast<std::size_t>(std::count_if(parts.begin(), parts.end(), [&](const Inside& from) {
          return from.network.key.job == to.network.key.job;
        }));
    for (const auto& [socket, address] : {std::pair{&to.udp6, &to.six}, {&to.udp4, &to.four}}) {
      std::set<std::string> got;
      receive(*socket, got, own_parts);
      for (const Inside& from : parts) {
        const bool own = from.network.key.job == to.network.key.job;
        ++probes;
        if (got.contains(from.six + " " + *address) != own) {
          ++wrong;
          MESSAGE(from.six << (own ? " sends nothing to " : " sends to ") << *address);
        }
      }
    }
  }
  MESSAGE(probes << " pairs of addresses by TCP and UDP");
  CHECK(wrong == 0);
}

TEST_CASE("a job reaches no machine, no daemon, no metadata and no neighbour on the link") {
  if (!is_able()) return;
  Hosts hosts(2);
  for (std::uint32_t n : {1U, 2U}) {
    hosts.open(hosts[n], {});
    REQUIRE(hosts[n].fabric->attach(hosts.job(1, {1, 2}, n)));
  }
  const Inside one = look_inside(hosts, hosts.job(1, {1, 2}, 1));
  std::vector<Fd> listening;  // on everything of both machines and of the nodes' namespaces
  for (std::uint32_t n : {1U, 2U})
    for (const std::string& file :
         {fmt::format("{}/host{}", hosts.top(), n), hosts[n].directory + "/node/net"}) {
      const auto space = open_space(file);
      REQUIRE(inside(*space, [&]() -> Result<void> {
        listening.push_back(listener("::", SOCK_STREAM));
        return {};
      }));
    }
  CHECK(reached(one.space,
                {"10.9.0.1", "10.9.0.2", "169.254.169.254", "8.8.8.8", "2001:db8::1", "fe80::1:0:2",
                 "fe80::1", text_of(node_address6(hosts.blocks(), 1)),
                 text_of(node_address6(hosts.blocks(), 2))},
                std::chrono::milliseconds(800), "eth0")
            .empty());
  CHECK(counter(hosts[1], "denied") > 0);
  CHECK(counter(hosts[1], "to_node") > 0);
}

TEST_CASE("a packet with another's source address does not leave its job's link") {
  if (!is_able()) return;
  Hosts hosts(2);
  std::vector<Inside> parts;
  for (std::uint32_t n : {1U, 2U}) hosts.open(hosts[n], {});
  for (const auto& [id, n] : {std::pair{1U, 1U}, {1U, 2U}, {2U, 1U}}) {
    const std::vector<std::uint32_t> nodes =
        id == 1 ? std::vector<std::uint32_t>{1, 2} : std::vector<std::uint32_t>{1};
    REQUIRE(hosts[n].fabric->attach(hosts.job(id, nodes, n)));
    parts.push_back(look_inside(hosts, hosts.job(id, nodes, n)));
  }
  const Inside &victim = parts[0], &far = parts[1], &liar = parts[2];
  REQUIRE(inside(liar.space, [&]() -> Result<void> {
    for (const auto& [own, to] : {std::pair{&victim.six, &far.six}, {&victim.four, &far.four}}) {
      const Address source = address_of(*own, 6000), target = address_of(*to, kPort);
      const Fd socket(::socket(source.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      const int on = 1;
      const bool six = source.get()->sa_family == AF_INET6;
      // Root may do what a job may not: use an address that is not its own.
      REQUIRE(::setsockopt(socket.get(), six ? SOL_IPV6 : SOL_IP,
                           six ? IPV6_TRANSPARENT : IP_TRANSPARENT, &on, sizeof on) == 0);
      REQUIRE(::bind(socket.get(), source.get(), source.size) == 0);
      (void)::sendto(socket.get(), "lie", 3, 0, target.get(), target.size);
    }
    return {};
  }));
  // The packets pass the rules before sendto() returns, so they are counted, or they are on their
  // way to the other host together with one that may go there.
  CHECK(counter(hosts[1], "spoofed") == 2);
  send_all(victim, {far.six, far.four});
  for (const Fd* socket : {&far.udp6, &far.udp4}) {
    std::set<std::string> got;
    receive(*socket, got, 1);
    CHECK(got.size() == 1);
    CHECK_FALSE(got.contains("lie"));
  }
}

TEST_CASE("a daemon that was killed adopts its jobs, and leaves nothing of those that ended") {
  if (!is_able()) return;
  Hosts hosts(2);
  for (std::uint32_t n : {1U, 2U}) {
    hosts.open(hosts[n], {});
    for (const std::uint64_t id : {1, 2})
      REQUIRE(hosts[n].fabric->attach(hosts.job(id, {1, 2}, n)));
  }
  const Inside one = look_inside(hosts, hosts.job(1, {1, 2}, 1));
  const Inside far = look_inside(hosts, hosts.job(1, {1, 2}, 2));
  hosts.open(hosts[1], {hosts.job(1, {1, 2}, 1)});
  CHECK(reached(one.space, {far.six, far.four}, std::chrono::seconds(3)).size() == 2);
  CHECK_FALSE(open_space(hosts[1].directory + "/2.1/net"));
  CHECK(run_in(hosts[1].directory + "/node/net", "ip -o link show j1 | grep -q 'alias 1.1'"));
  CHECK_FALSE(run_in(hosts[1].directory + "/node/net", "ip -o link show j2 > /dev/null 2>&1"));
  REQUIRE(hosts[1].fabric->detach({JobId(1), Attempt(1)}));
  CHECK_FALSE(open_space(hosts[1].directory + "/1.1/net"));
  CHECK(reached(one.space, {far.six, far.four}, std::chrono::milliseconds(300)).empty());
  REQUIRE(hosts[1].fabric->detach({JobId(1), Attempt(1)}));
}

TEST_CASE("a job that could not be attached leaves nothing, and may be attached again") {
  if (!is_able()) return;
  Hosts hosts(1);
  hosts.open(hosts[1], {});
  JobNetwork job = hosts.job(1, {1}, 1);
  job.peers.push_back({{2, JobId(1), 1}, {"not an address", 1}});
  CHECK_FALSE(hosts[1].fabric->attach(job));
  CHECK_FALSE(open_space(hosts[1].directory + "/1.1/net"));
  job.peers.clear();
  CHECK(hosts[1].fabric->attach(job));
}

TEST_CASE("a job sends and receives at most at its rate, and nearly at it") {
  if (!is_able()) return;
  constexpr std::uint64_t kRate = 100'000'000;  // bits per second
  Hosts hosts(2);
  for (std::uint32_t n : {1U, 2U}) hosts.open(hosts[n], {});
  JobNetwork slow = hosts.job(1, {1, 2}, 1);
  slow.bits_per_second = kRate;
  REQUIRE(hosts[1].fabric->attach(slow));
  REQUIRE(hosts[2].fabric->attach(hosts.job(1, {1, 2}, 2)));
  const Inside one = look_inside(hosts, slow), far = look_inside(hosts, hosts.job(1, {1, 2}, 2));
  // The bits per second of what arrives, between one and four seconds after the first byte.
  const auto rate = [](const Inside& from, const Inside& to) {
    Fd sender;
    REQUIRE(inside(from.space, [&]() -> Result<void> {
      sender.reset(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const Address at = address_of(to.six, kPort);
      REQUIRE(::connect(sender.get(), at.get(), at.size) == 0);
      return {};
    }));
    pollfd waits{to.tcp6.get(), POLLIN, 0};
    REQUIRE(::poll(&waits, 1, 2000) == 1);
    const Fd receiver(::accept4(to.tcp6.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    REQUIRE(static_cast<bool>(receiver));
    REQUIRE(::fcntl(sender.get(), F_SETFL, O_NONBLOCK) == 0);
    std::vector<char> bytes(1 << 16);
    const auto began = Clock::now();
    double counted = 0;
    Clock::time_point first{}, last{};
    for (auto now = began; now - began < std::chrono::seconds(4); now = Clock::now()) {
      pollfd both[]{{sender.get(), POLLOUT, 0}, {receiver.get(), POLLIN, 0}};
      (void)::poll(both, 2, 100);
      if (both[0].revents != 0)
        (void)::send(sender.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      const ssize_t n = ::recv(receiver.get(), bytes.data(), bytes.size(), 0);
      if (n <= 0 || Clock::now() - began < std::chrono::seconds(1)) continue;
      last = Clock::now();
      if (first == Clock::time_point{})
        first = last;  // earlier packets are not counted
      else
        counted += static_cast<double>(n);
    }
    return 8 * counted / std::chrono::duration<double>(last - first).count();
  };
  // A busy machine gives lower figures, so the best of a few is used.
  const auto best = [&](const Inside& from, const Inside& to, double enough) {
    double out = 0;
    for (int i = 0; i < 5 && out <= enough; ++i) out = std::max(out, rate(from, to));
    return out;
  };
  for (const auto& [from, to, name] : {std::tuple{&one, &far, std::string("sent")},
                                       std::tuple{&far, &one, std::string("received")}}) {
    const double bits = best(*from, *to, 0.95 * kRate);
    MESSAGE(name << " " << bits / 1e6 << " Mbit/s");
    CHECK(bits > 0.95 * kRate);
    CHECK(bits < 1.05 * kRate);
  }
  // Throttled for the sake of others for a while, in one direction only.
  using Way = Fabric::Way;
  REQUIRE(hosts[1].fabric->limit(slow.key, Way::sends, kRate / 4));
  CHECK(rate(one, far) < 1.1 * kRate / 4);
  CHECK(best(far, one, 0.9 * kRate) > 0.9 * kRate);
  REQUIRE(hosts[1].fabric->limit(slow.key, Way::sends, kRate));
  CHECK(best(one, far, 0.9 * kRate) > 0.9 * kRate);
  REQUIRE(hosts[1].fabric->limit(slow.key, Way::sends, 0));
  REQUIRE(hosts[1].fabric->limit(slow.key, Way::sends, 0));  // it has no limit any more
  CHECK(best(one, far, 1.1 * kRate) > 1.1 * kRate);
  CHECK_FALSE(hosts[1].fabric->limit({JobId(9), Attempt(1)}, Way::receives, kRate));
}
