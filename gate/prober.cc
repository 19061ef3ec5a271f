#include "gate/prober.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "common/net/proxy_header.h"

namespace gantry::gate {
namespace {

struct Place {
  sockaddr_storage address{};
  socklen_t size = 0;
};

bool find_place(const Question& question, Place& place) {
  auto* four = reinterpret_cast<sockaddr_in*>(&place.address);
  auto* six = reinterpret_cast<sockaddr_in6*>(&place.address);
  if (::inet_pton(AF_INET, question.address.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(question.port);
    place.size = sizeof *four;
  } else if (::inet_pton(AF_INET6, question.address.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(question.port);
    place.size = sizeof *six;
  }
  return place.size > 0;
}

std::string request_of(const Question& question) {
  const bool asks_only = question.path.empty();
  std::string out = net::proxy_header(
      asks_only ? net::ProxyCommand::local : net::ProxyCommand::proxy, question.password);
  if (!asks_only)
    out += fmt::format(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: gantry-gate\r\nConnection: close\r\n\r\n",
        question.path, question.host);
  return out;
}

}  // namespace

void Prober::ask(const std::string& id, const Question& question, OnAnswer on_answer) {
  auto& probe = running_[id];
  probe = std::make_unique<Probe>();
  probe->on_answer = std::move(on_answer);
  probe->to_send = request_of(question);
  probe->asks_only = question.path.empty();
  const auto later = [&](const std::string& why) {
    probe->limit = loop_.after({}, [this, id, why] { end(id, {false, why}); });
  };
  Place place;
  if (!find_place(question, place))
    return later(fmt::format("\"{}\" is no numeric address", question.address));
  probe->fd.reset(::socket(place.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe->fd) return later(std::strerror(errno));
  const int done =
      ::connect(probe->fd.get(), reinterpret_cast<const sockaddr*>(&place.address), place.size);
  if (done != 0 && errno != EINPROGRESS)
    return later(fmt::format("its node refuses a connection: {}", std::strerror(errno)));
  probe->limit = loop_.after(question.timeout, [this, id, timeout = question.timeout] {
    end(id, {false, fmt::format("no answer within {} ms", timeout.us / 1000)});
  });
  probe->io = loop_.on_writable(probe->fd.get(), [this, id] { go_on(id); });
}

void Prober::go_on(const std::string& id) {
  Probe& probe = *running_.at(id);
  if (!probe.to_send.empty()) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(probe.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0)
      return end(id,
                 {false, fmt::format("its node refuses a connection: {}", std::strerror(error))});
    const ssize_t n =
        ::send(probe.fd.get(), probe.to_send.data(), probe.to_send.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN)
      return end(id, {false, fmt::format("the connection ended: {}", std::strerror(errno))});
    probe.to_send.erase(0, n > 0 ? static_cast<std::size_t>(n) : 0);
    if (probe.to_send.empty())
      probe.io = loop_.on_readable(probe.fd.get(), [this, id] { go_on(id); });
    return;
  }
  std::array<char, 1024> piece;
  const ssize_t n = ::recv(probe.fd.get(), piece.data(), piece.size(), 0);
  if (n < 0 && errno == EAGAIN) return;
  if (probe.asks_only)
    return end(id, n == 0 ? ProbeAnswer{true, ""} : ProbeAnswer{false, "nobody listens in it yet"});
  if (n <= 0) return end(id, {false, "nobody listens in it, or it ends the connection"});
  probe.head.append(piece.data(), static_cast<std::size_t>(n));
  if (const auto answer = read_answer(probe.head)) end(id, *answer);
}

void Prober::end(const std::string& id, const ProbeAnswer& answer) {
  const auto it = running_.find(id);
  const OnAnswer on_answer = std::move(it->second->on_answer);
  const ProbeAnswer kept = answer;
  running_.erase(it);
  on_answer(kept);
}

}  // namespace gantry::gate
