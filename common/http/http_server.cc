#include "common/http/http_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <vector>

#include <fmt/core.h>

#include "common/assert.h"

namespace gantry::http {
namespace {

constexpr int kAcceptsPerTurn = 16;
constexpr std::chrono::milliseconds kTick{500};  // how often deadlines are checked

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Error";
  }
}

std::string text_of(const Response& r) {
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n"
      "Cache-Control: no-store\r\n",
      r.status, reason_of(r.status), r.type, r.body.size());
  if (r.status == 401) head += "WWW-Authenticate: Bearer\r\n";
  return head + "\r\n" + r.body;
}

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) ==
                  std::tolower(static_cast<unsigned char>(y));
         });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Parses the head of a request. Returns an answer if the request cannot be served.
std::optional<Response> parse(std::string_view head, Request& out) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || last <= first ||
      !line.substr(last + 1).starts_with("HTTP/1."))
    return Response{400, "text/plain; charset=utf-8", "this is no HTTP/1.1 request\n"};
  if (line.substr(0, first) != "GET")
    return Response{405, "text/plain; charset=utf-8", "only GET is answered\n"};
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::size_t question = std::min(target.find('?'), target.size());
  out.path = target.substr(0, question);
  if (question < target.size()) out.query = target.substr(question + 1);
  head.remove_prefix(std::min(line.size() + 2, head.size()));
  while (!head.empty()) {
    const std::size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view field = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const std::size_t colon = field.find(':');
    if (colon == std::string_view::npos || !same_word(field.substr(0, colon), "authorization"))
      continue;
    const std::string_view value = trimmed(field.substr(colon + 1));
    if (value.size() > 7 && same_word(value.substr(0, 7), "bearer "))
      out.token = trimmed(value.substr(7));
  }
  return std::nullopt;
}

}  // namespace

struct Server::Connection {
  Fd fd;
  Deadline until;           // time limit for receiving the request, and for sending the answer
  std::string in;           // received part of the request
  std::string out;          // the answer
  std::size_t written = 0;  // octets of the answer that are written
  bool ready = false;       // poll() has reported it
  [[nodiscard]] bool answered() const { return !out.empty(); }
};

Server::Server(Fd listening, Answer answer)
    : listening_(std::move(listening)), port_(port_of(listening_)), answer_(std::move(answer)) {
  std::array<int, 2> ends{};
  const int rc = ::pipe2(ends.data(), O_CLOEXEC);
  GANTRY_ASSERT(rc == 0, "a pipe can be made");
  wake_read_ = Fd(ends[0]);
  wake_write_ = Fd(ends[1]);
  thread_ = std::thread([this] { run(); });
}

Server::~Server() {
  stopping_ = true;
  wake_write_.reset();
  thread_.join();
}

void Server::run() {
  while (!stopping_) {
    wait();
    if (stopping_) break;
    const auto now = std::chrono::steady_clock::now();
    for (auto it = connections_.begin(); it != connections_.end() && !stopping_;)
      it = (it->ready && !serve(*it)) || now > it->until ? connections_.erase(it) : std::next(it);
    accept_some();
  }
  connections_.clear();
}

void Server::wait() {
  std::vector<pollfd> all{{wake_read_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
  for (const Connection& c : connections_)
    all.push_back({c.fd.get(), static_cast<short>(c.answered() ? POLLOUT : POLLIN), 0});
  (void)::poll(all.data(), all.size(), static_cast<int>(kTick.count()));
  std::size_t i = 2;
  for (Connection& c : connections_) c.ready = all[i++].revents != 0;
}

void Server::accept_some() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    Fd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      // No descriptor is left. The oldest connection is closed, because poll() would otherwise
      // report the waiting one again and again.
      if ((errno == EMFILE || errno == ENFILE) && !connections_.empty()) connections_.pop_front();
      return;
    }
    make_room();
    connections_.push_back(
        {std::move(fd), std::chrono::steady_clock::now() + kRequestTime, {}, {}, 0, false});
  }
}

// Closes the oldest connection that has not sent its request yet; if all have, the oldest one.
void Server::make_room() {
  std::size_t unread = 0;
  for (const Connection& c : connections_) unread += c.out.size();
  if (connections_.size() < kMostConnections && unread < kMostUnread) return;
  auto victim = std::find_if(connections_.begin(), connections_.end(), [&](const Connection& c) {
    return unread < kMostUnread ? !c.answered() : c.answered();
  });
  connections_.erase(victim == connections_.end() ? connections_.begin() : victim);
}

bool Server::serve(Connection& c) {
  return c.answered() ? write(c) : read(c);
}

bool Server::read(Connection& c) {
  std::array<char, 4 * 1024> buffer{};
  const ssize_t n = ::recv(c.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  c.in.append(buffer.data(), static_cast<std::size_t>(n));
  const std::size_t end = c.in.find("\r\n\r\n");
  if (end == std::string::npos && c.in.size() <= kMostRequest) return true;
  answer(c, end);
  return write(c);
}

void Server::answer(Connection& c, std::size_t end) {
  Request request;
  Response response{431, "text/plain; charset=utf-8", "the request is too long\n"};
  if (end != std::string::npos && end <= kMostRequest) {
    auto refused = parse(std::string_view(c.in).substr(0, end + 2), request);
    response = refused ? std::move(*refused) : answer_(request, stopping_);
  }
  c.out = text_of(response);
  c.in = {};
  c.until = std::chrono::steady_clock::now() + kResponseTime;
}

bool Server::write(Connection& c) {
  const std::string_view rest = std::string_view(c.out).substr(c.written);
  const ssize_t n = ::send(c.fd.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  c.written += static_cast<std::size_t>(n);
  if (c.written < c.out.size()) return true;
  ::shutdown(c.fd.get(), SHUT_WR);
  return false;
}

std::string parameter(const std::string& query, std::string_view name) {
  std::string_view rest(query);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=')
      return std::string(one.substr(name.size() + 1));
  }
  return {};
}

}  // namespace gantry::http
