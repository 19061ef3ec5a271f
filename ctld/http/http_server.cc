#include "ctld/http/http_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/core.h>

#include "common/assert.h"

namespace gantry::http {
namespace {

constexpr std::chrono::seconds kRequestTime{3};
constexpr std::chrono::seconds kResponseTime{10};
constexpr std::chrono::hours kForever{1};

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

// The head of a request; an answer where it is none of ours.
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
  wake_write_.close();
  thread_.join();
}

void Server::run() {
  while (!stopping_) {
    if (!wait_readable(listening_, wake_read_.get(), std::chrono::steady_clock::now() + kForever))
      continue;
    const Fd connection(
        ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection) serve(connection);
  }
}

void Server::serve(const Fd& connection) {
  const Deadline deadline = std::chrono::steady_clock::now() + kRequestTime;
  std::string text;
  std::size_t end = std::string::npos;
  while ((end = text.find("\r\n\r\n")) == std::string::npos) {
    if (text.size() > kMostRequest) break;
    if (stopping_ || !read_some(connection, text, deadline)) return;
  }
  Request request;
  Response response{431, "text/plain; charset=utf-8", "the request is too long\n"};
  if (end != std::string::npos && end <= kMostRequest) {
    auto refused = parse(std::string_view(text).substr(0, end + 2), request);
    response = refused ? std::move(*refused) : answer_(request, stopping_);
  }
  if (!write_all(connection, text_of(response), std::chrono::steady_clock::now() + kResponseTime))
    return;
  ::shutdown(connection.get(), SHUT_WR);
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
