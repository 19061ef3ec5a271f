// The attacks of the other files where a layer is missing: without the rules of the node packets
// get to whom they should not, and without a rate one job takes a link from another. So the others
// are known to bite.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "noded/network/rules.h"
#include "tests/network/probes.h"

using namespace gantry;
using namespace gantry::network;
using namespace gantry::network::test;

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLongEnough{1500};

// Removes every rule of the node, as if the daemon had made none.
void without_rules(Hosts& hosts, std::uint32_t node, const std::vector<Inside>& jobs) {
  const auto flush = []() -> Result<void> { return Filter::open()->run("flush ruleset"); };
  REQUIRE(inside(*open_space(hosts[node].directory + "/node/net"), flush));
  for (const Inside& job : jobs) REQUIRE(inside(job.space, flush));
}

// Sends one datagram in the name of another, which root can do and a job cannot.
void lie(const Inside& liar, const std::string& name, const std::string& to) {
  REQUIRE(inside(liar.space, [&]() -> Result<void> {
    const Address source = address_of(name, 6000), target = address_of(to, kPort);
    const Fd socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    REQUIRE(::setsockopt(socket.get(), SOL_IPV6, IPV6_TRANSPARENT, &on, sizeof on) == 0);
    REQUIRE(::bind(socket.get(), source.get(), source.size) == 0);
    (void)::sendto(socket.get(), "lie", 3, 0, target.get(), target.size);
    return {};
  }));
}

// A process in the job that sends datagrams as fast as it can, until it is killed.
pid_t flood(const Inside& from, const std::string& to) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  (void)inside(from.space, [&]() -> Result<void> {
    const Fd socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const Address target = address_of(to, kPort);
    const std::vector<char> bytes(1300);
    while (true)
      (void)::sendto(socket.get(), bytes.data(), bytes.size(), 0, target.get(), target.size);
  });
  ::_exit(1);
}

// Bits per second of one TCP connection over two seconds, the first half second left out.
double rate(const Inside& from, const Inside& to) {
  Fd sender;
  REQUIRE(inside(from.space, [&]() -> Result<void> {
    sender.reset(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const Address at = address_of(to.six, kPort);
    REQUIRE(::fcntl(sender.get(), F_SETFL, O_NONBLOCK) == 0);
    (void)::connect(sender.get(), at.get(), at.size);
    return {};
  }));
  Fd receiver;
  std::vector<char> bytes(1 << 16);
  std::int64_t counted = 0;
  const auto began = Clock::now();
  for (auto now = began; now - began < std::chrono::milliseconds(2500); now = Clock::now()) {
    pollfd both[]{{sender.get(), POLLOUT, 0},
                  {receiver ? receiver.get() : to.tcp6.get(), POLLIN, 0}};
    (void)::poll(both, 2, 50);
    if (!receiver)
      receiver.reset(::accept4(to.tcp6.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if ((both[0].revents & POLLOUT) != 0)
      (void)::send(sender.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    const ssize_t n = receiver ? ::recv(receiver.get(), bytes.data(), bytes.size(), 0) : 0;
    if (n > 0 && now - began > std::chrono::milliseconds(500)) counted += n;
  }
  return 8 * static_cast<double>(counted) / 2;
}

}  // namespace

TEST_CASE("without the rules of its node a job reaches others, its node, and lies") {
  if (!is_able()) return;
  Hosts hosts(1);
  hosts.open(hosts[1], {});
  std::vector<Inside> jobs;
  for (const std::uint64_t id : {1U, 2U, 3U}) {
    REQUIRE(hosts[1].fabric->attach(hosts.job(id, {1}, 1)));
    jobs.push_back(look_inside(hosts, hosts.job(id, {1}, 1)));
  }
  const std::string node = text_of(node_address6(hosts.blocks(), 1));
  Fd on_node;
  REQUIRE(inside(*open_space(hosts[1].directory + "/node/net"), [&]() -> Result<void> {
    on_node = listener("::", SOCK_STREAM);
    return {};
  }));
  // A service of the machine at the address at which clouds have theirs for what a machine is.
  const std::string metadata = "169.254.169.254";
  REQUIRE(run_in(hosts[1].directory + "/node/net", "ip address add " + metadata + "/32 dev lo"));
  const std::vector<std::string> targets{jobs[1].six, jobs[1].four, node, metadata};
  CHECK(reached(jobs[0].space, targets, kLongEnough).empty());
  lie(jobs[0], jobs[2].six, jobs[1].six);
  std::set<std::string> heard;
  receive(jobs[1].udp6, heard, 1);
  CHECK(heard.empty());

  without_rules(hosts, 1, jobs);
  CHECK(reached(jobs[0].space, targets, kLongEnough) ==
        std::set<std::string>(targets.begin(), targets.end()));
  lie(jobs[0], jobs[2].six, jobs[1].six);
  receive(jobs[1].udp6, heard, 1);
  CHECK(heard == std::set<std::string>{"lie"});
}

TEST_CASE("without a rate one job's flood takes the link from another, with one it does not") {
  if (!is_able()) return;
  constexpr double kLink = 100e6, kOfFlood = 20e6;  // bits per second
  Hosts hosts(2);
  for (const std::uint32_t n : {1U, 2U}) hosts.open(hosts[n], {});
  std::vector<Inside> parts;
  for (const std::uint64_t id : {1U, 2U})
    for (const std::uint32_t n : {1U, 2U}) {
      REQUIRE(hosts[n].fabric->attach(hosts.job(id, {1, 2}, n)));
      parts.push_back(look_inside(hosts, hosts.job(id, {1, 2}, n)));
    }
  const Inside &victim = parts[0], &far = parts[1], &loud = parts[2], &deaf = parts[3];
  REQUIRE(run_in(hosts.top() + "/host1",
                 "tc qdisc add dev cable root tbf rate 100mbit burst 64kb limit 256kb"));
  // A busy machine gives lower figures, so the best of a few is used.
  const auto best = [](double enough, const std::function<double()>& measured) {
    double out = 0;
    for (int i = 0; i < 5 && out <= enough; ++i) out = std::max(out, measured());
    return out;
  };
  const double alone = best(0.8 * kLink, [&] { return rate(victim, far); });
  const auto beside_flood = [&] {
    const pid_t child = flood(loud, deaf.six);
    const double bits = rate(victim, far);
    ::kill(child, SIGKILL);
    (void)::waitpid(child, nullptr, 0);
    return bits;
  };
  const double without = beside_flood();
  using Way = Fabric::Way;
  REQUIRE(
      hosts[1].fabric->limit(loud.network.key, Way::sends, static_cast<std::uint64_t>(kOfFlood)));
  const double least = 0.8 * (kLink - kOfFlood) * 0.9;
  const double within = best(least, beside_flood);
  MESSAGE(fmt::format("{:.0f} Mbit/s alone, {:.0f} beside a flood, {:.0f} beside one with a rate",
                      alone / 1e6, without / 1e6, within / 1e6));
  CHECK(alone > 0.8 * kLink);
  CHECK(without < 0.3 * alone);
  CHECK(within > least);
}
