#include "tests/network/probes.h"
#include "tests/skip.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <net/if.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace gantry::network::test {

using Clock = std::chrono::steady_clock;

Address address_of(const std::string& text, std::uint16_t port, const char* link) {
  Address out;
  if (text.find(':') != std::string::npos) {
    auto& six = reinterpret_cast<sockaddr_in6&>(out.bytes);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    if (link != nullptr) six.sin6_scope_id = ::if_nametoindex(link);
    REQUIRE(::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1);
    out.size = sizeof six;
  } else {
    auto& four = reinterpret_cast<sockaddr_in&>(out.bytes);
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    REQUIRE(::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1);
    out.size = sizeof four;
  }
  return out;
}

Fd listener(const std::string& address, int type, std::uint16_t port) {
  const Address at = address_of(address, port);
  Fd out(::socket(at.get()->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  REQUIRE(::bind(out.get(), at.get(), at.size) == 0);
  if (type == SOCK_STREAM) REQUIRE(::listen(out.get(), 512) == 0);
  return out;
}

Inside look_inside(Hosts& hosts, const JobNetwork& job) {
  Inside out;
  out.network = job;
  out.six = text_of(address6(hosts.blocks(), job.part));
  out.four = text_of(*address4(hosts.blocks(), job.part));
  auto space = open_space(hosts[job.part.node].fabric->space_file(job.key));
  REQUIRE(space);
  out.space = std::move(*space);
  REQUIRE(inside(out.space, [&]() -> Result<void> {
    out.tcp6 = listener(out.six, SOCK_STREAM);
    out.tcp4 = listener(out.four, SOCK_STREAM);
    out.udp6 = listener(out.six, SOCK_DGRAM);
    out.udp4 = listener(out.four, SOCK_DGRAM);
    return {};
  }));
  return out;
}

std::set<std::string> reached(const Fd& space, const std::vector<std::string>& targets,
                              std::chrono::milliseconds patience, const char* link,
                              std::uint16_t port) {
  std::set<std::string> out;
  std::vector<Fd> sockets;
  std::vector<pollfd> watched;
  REQUIRE(inside(space, [&]() -> Result<void> {
    for (const std::string& target : targets) {
      const Address at = address_of(target, port, link);
      sockets.emplace_back(
          ::socket(at.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int done = ::connect(sockets.back().get(), at.get(), at.size);
      if (done == 0) out.insert(target);
      const bool waits = done != 0 && errno == EINPROGRESS;
      watched.push_back({waits ? sockets.back().get() : -1, POLLOUT, 0});
    }
    return {};
  }));
  const auto until = Clock::now() + patience;
  const auto open = [&] {
    return std::any_of(watched.begin(), watched.end(), [](const pollfd& p) { return p.fd >= 0; });
  };
  while (open() && Clock::now() < until) {
    (void)::poll(watched.data(), watched.size(), 20);
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(watched[i].fd, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error == 0) out.insert(targets[i]);
      watched[i].fd = -1;
    }
  }
  return out;
}

void receive(const Fd& socket, std::set<std::string>& into, std::size_t least) {
  const auto until = Clock::now() + std::chrono::seconds(2);
  std::array<char, 256> text{};
  for (;;) {
    const ssize_t n = ::recv(socket.get(), text.data(), text.size(), MSG_DONTWAIT);
    if (n >= 0) {
      into.emplace(text.data(), static_cast<std::size_t>(n));
      continue;
    }
    if (into.size() >= least || Clock::now() > until) return;
    pollfd watched{socket.get(), POLLIN, 0};
    (void)::poll(&watched, 1, 100);
  }
}

std::uint64_t counter(Host& host, const std::string& name) {
  const auto rules = host.fabric->rules();
  REQUIRE(rules);
  const auto at = rules->find("\"name\": \"" + name + "\"");
  REQUIRE(at != std::string::npos);
  const auto packets = rules->find("\"packets\": ", at);
  return std::strtoull(rules->c_str() + packets + 11, nullptr, 10);
}

bool is_able() {
  const bool root = ::geteuid() == 0;
  if (root && std::system("unshare -n ip link add v type vxlan id 1 dstport 4791") == 0)
    return true;
  gantry::test::pass_over("this needs root, and a kernel with VXLAN");
  return false;
}

}  // namespace gantry::network::test
