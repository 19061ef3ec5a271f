#include "ctld/http/webhook.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include <fmt/core.h>

#include "common/http/socket.h"

namespace gantry::http {
namespace {

constexpr std::chrono::seconds kPostTime{10};
constexpr std::chrono::seconds kFirstPause{1};  // pause after the first failure; then it doubles
constexpr std::chrono::seconds kLastPause{60};
constexpr std::chrono::seconds kLookAgain{5};

// How far the file was delivered; 0 if that is not known.
std::uint64_t read_mark(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[32];
  const ssize_t n = fd ? ::read(fd.get(), text, sizeof text) : 0;
  std::uint64_t at = 0;
  if (n > 0) std::from_chars(text, text + n, at);
  return at;
}

// The mark is durable before the next batch is sent. After a restart only the last batch may
// therefore be sent twice.
Result<void> write_mark(const std::string& path, std::uint64_t at) {
  const std::string fresh = path + ".new";
  const std::string text = std::to_string(at) + "\n";
  Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const bool done =
      fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fdatasync(fd.get()) == 0 && ::rename(fresh.c_str(), path.c_str()) == 0;
  if (done) return {};
  return fail(ErrorCode::io_error, fmt::format("{}: {}", path, std::strerror(errno)));
}

}  // namespace

Result<Url> parse_url(const std::string& text) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" {}; use http://HOST:PORT/PATH", text, why));
  };
  constexpr std::string_view kHttp = "http://";
  if (text.starts_with("https://"))
    return wrong("is https, which a proxy on this machine has to speak");
  if (!text.starts_with(kHttp)) return wrong("is no URL of http");
  const std::size_t slash = std::min(text.find('/', kHttp.size()), text.size());
  const std::string place = text.substr(kHttp.size(), slash - kHttp.size());
  Url url;
  url.path = slash < text.size() ? text.substr(slash) : "/";
  const std::size_t colon = place.rfind(':');
  url.host = place.substr(0, colon);
  if (colon != std::string::npos) {
    const char* begin = place.data() + colon + 1;
    const char* end = place.data() + place.size();
    const auto [at, error] = std::from_chars(begin, end, url.port);
    if (error != std::errc() || at != end || url.port == 0) return wrong("has no port");
  }
  if (url.host.empty() || url.path.find_first_of(" \r\n") != std::string::npos)
    return wrong("has no host, or a blank");
  return url;
}

Webhook::Webhook(Url url, std::string lines, std::string mark, Note note)
    : url_(std::move(url)),
      lines_(std::move(lines)),
      mark_(std::move(mark)),
      note_(std::move(note)),
      thread_([this] { run(); }) {}

Webhook::~Webhook() {
  {
    std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Webhook::wake() {
  {
    std::lock_guard guard(mutex_);
    more_ = true;
  }
  wake_.notify_one();
}

void Webhook::run() {
  std::uint64_t at = read_mark(mark_);
  std::chrono::seconds pause = kFirstPause;
  bool told = false;
  while (!stopping_) {
    const auto sent = send_some(at);
    std::unique_lock guard(mutex_);
    if (sent && *sent > 0) {
      at += *sent;
      if (told) note_("usage_webhook: it is answered again");
      told = false;
      pause = kFirstPause;
      continue;
    }
    if (sent) {
      more_ = false;
      wake_.wait_for(guard, kLookAgain, [&] { return stopping_ || more_; });
      continue;
    }
    if (!told) note_("usage_webhook: " + sent.error().message + "; tried again until it works");
    told = true;
    wake_.wait_for(guard, pause, [&] { return stopping_.load(); });
    pause = std::min(pause * 2, kLastPause);
  }
}

Result<std::uint64_t> Webhook::send_some(std::uint64_t from) {
  const Fd fd(::open(lines_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::uint64_t{0};  // the file does not exist yet: nothing to send
  if (const off_t size = ::lseek(fd.get(), 0, SEEK_END);
      size >= 0 && static_cast<std::uint64_t>(size) < from)
    return fail(ErrorCode::wrong_state,
                fmt::format("{} is shorter than what was sent of it: {} says how far that went",
                            lines_, mark_));
  std::string body(kMostBatch, '\0');
  std::size_t have = 0, whole = 0;
  while (whole == 0) {
    if (have == body.size()) body.resize(body.size() * 2);  // a single long line
    const ssize_t n =
        ::pread(fd.get(), body.data() + have, body.size() - have, static_cast<off_t>(from + have));
    if (n < 0)
      return fail(ErrorCode::io_error, fmt::format("{}: {}", lines_, std::strerror(errno)));
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
    const std::size_t end = body.rfind('\n', have - 1);
    whole = end == std::string::npos ? 0 : end + 1;
  }
  if (whole == 0) return std::uint64_t{0};
  body.resize(whole);
  TRY(post(body));
  TRY(write_mark(mark_, from + whole));
  return std::uint64_t{whole};
}

Result<void> Webhook::post(const std::string& body) const {
  const Deadline deadline = std::chrono::steady_clock::now() + kPostTime;
  ASSIGN(fd, connect_to(url_.host, url_.port, deadline));
  const std::string head = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}:{}\r\nContent-Type: application/x-ndjson\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n",
      url_.path, url_.host, url_.port, body.size());
  std::string answer;
  if (write_all(*fd, head, deadline) && write_all(*fd, body, deadline))
    while (answer.find("\r\n") == std::string::npos && read_some(*fd, answer, deadline)) continue;
  if (answer.starts_with("HTTP/1.") && answer.size() > 9 && answer[9] == '2') return {};
  const std::string line = answer.substr(0, std::min(answer.find("\r\n"), answer.size()));
  return fail(ErrorCode::unavailable,
              fmt::format("{}:{} answers \"{}\"", url_.host, url_.port, line.substr(0, 80)));
}

}  // namespace gantry::http
