// Tests the HTTP server (one GET per connection, everything else is refused), its tokens, and the
// webhook, which sends each line at least once and continues after a failure where it stopped.
#include <doctest/doctest.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "common/http/http_server.h"
#include "common/http/tokens.h"
#include "ctld/http/webhook.h"

using namespace gantry;
using namespace gantry::http;

namespace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "gantry-http.XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void write(const std::string& path, const std::string& text, mode_t mode = 0600) {
  std::ofstream(path) << text;
  REQUIRE(::chmod(path.c_str(), mode) == 0);
}

Deadline soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(60);
}

std::string said_to(std::uint16_t port, const std::string& text) {
  const auto fd = connect_to("127.0.0.1", port, soon());
  REQUIRE_MESSAGE(fd, fd.error().message);
  write_all(*fd, text, soon());
  std::string answer;
  while (read_some(*fd, answer, soon())) continue;
  return answer;
}

Server echo() {
  auto listening = listen_on("127.0.0.1", 0);
  REQUIRE(listening);
  return Server(std::move(*listening), [](const Request& r, const std::atomic<bool>&) {
    return Response{200, "text/plain", r.path + "|" + r.query + "|" + r.token};
  });
}

}  // namespace

TEST_CASE("a GET is answered with its path, query and token") {
  Server server = echo();
  const std::string answer =
      said_to(server.port(),
              "GET /metrics?a=1&b=2 HTTP/1.1\r\nHost: x\r\nauthorization:  Bearer  abc \r\n\r\n");
  CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(answer.find("Content-Length: 20\r\n") != std::string::npos);
  CHECK(answer.ends_with("\r\n\r\n/metrics|a=1&b=2|abc"));
  CHECK(parameter("after=7&limit=10", "limit") == "10");
  CHECK(parameter("after=7&limit=10", "lim").empty());
}

TEST_CASE(
    "what is not a GET of HTTP/1 is refused, and no client can make the server wait or grow") {
  Server server = echo();
  CHECK(said_to(server.port(), "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
  CHECK(said_to(server.port(), "GET /\r\n\r\n").starts_with("HTTP/1.1 400 "));
  CHECK(said_to(server.port(), "\r\n\r\n").starts_with("HTTP/1.1 400 "));
  CHECK(said_to(server.port(), "GET / SPDY/3\r\n\r\n").starts_with("HTTP/1.1 400 "));
  const std::string flood = "GET / HTTP/1.1\r\nX: " + std::string(3 * kMostRequest, 'x');
  CHECK(said_to(server.port(), flood).starts_with("HTTP/1.1 431 "));
  // A request that never ends is dropped, and the next one is answered.
  const auto slow = connect_to("127.0.0.1", server.port(), soon());
  REQUIRE(slow);
  CHECK(write_all(*slow, "GET / HT", soon()));
  CHECK(said_to(server.port(), "GET /next HTTP/1.1\r\n\r\n").ends_with("/next||"));
}

TEST_CASE("a hundred silent clients and one endless request do not delay other clients") {
  Server server = echo();
  std::vector<Fd> idle;
  for (std::size_t i = 0; i < kMostConnections + 20; ++i) {
    auto fd = connect_to("127.0.0.1", server.port(), soon());
    REQUIRE_MESSAGE(fd, fd.error().message);
    if (i % 3 == 0) write_all(*fd, "GET / HT", soon());
    idle.push_back(std::move(*fd));
  }
  std::atomic<bool> done = false;
  std::thread loris([&] {
    const auto fd = connect_to("127.0.0.1", server.port(), soon());
    while (fd && !done && write_all(*fd, "X", soon()))
      // tidy-allow(sleep): a slow client pauses between its bytes
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i)
    CHECK(said_to(server.port(), "GET /next HTTP/1.1\r\n\r\n").ends_with("/next||"));
  // Each silent client is given kRequestTime. If they were served one after the other, this would
  // take five minutes.
  CHECK(std::chrono::steady_clock::now() - start < 10 * kRequestTime);
  done = true;
  loris.join();
}

TEST_CASE("a client that does not read its answer delays nobody") {
  auto listening = listen_on("127.0.0.1", 0);
  REQUIRE(listening);
  Server server(std::move(*listening), [](const Request& r, const std::atomic<bool>&) {
    return Response{200, "text/plain", std::string(r.path == "/big" ? 20u << 20 : 1, 'x')};
  });
  std::vector<Fd> lazy;
  for (int i = 0; i < 6; ++i) {
    auto fd = connect_to("127.0.0.1", server.port(), soon());
    REQUIRE(fd);
    CHECK(write_all(*fd, "GET /big HTTP/1.1\r\n\r\n", soon()));
    lazy.push_back(std::move(*fd));
  }
  for (int i = 0; i < 5; ++i)
    CHECK(said_to(server.port(), "GET / HTTP/1.1\r\n\r\n").ends_with("\r\n\r\nx"));
}

TEST_CASE("a token gives access to its tenant only, and the file of tokens has to be private") {
  Folder folder;
  const std::string path = folder.file("tokens");
  Tokens tokens(path);
  CHECK(tokens.scope_of("x").error().message.find("No such file") != std::string::npos);
  write(path, "# who may ask\nfraud 0123456789abcdef\n* fedcba9876543210\n");
  CHECK((*tokens.scope_of("0123456789abcdef"))->tenant == "fraud");
  CHECK(tokens.scope_of("fedcba9876543210")->has_value());
  CHECK(!(*tokens.scope_of("fedcba9876543210"))->tenant);
  for (const char* nobody : {"", "0123456789abcde", "0123456789abcdeg", "fraud"})
    CHECK(!tokens.scope_of(nobody)->has_value());
  write(path, "fraud other-token-of-16\n");
  CHECK(!tokens.scope_of("0123456789abcdef")->has_value());
  write(path, "fraud short\n");
  CHECK(tokens.scope_of("short").error().message.find(":1: a line is TENANT TOKEN") !=
        std::string::npos);
  write(path, "fraud other-token-of-16 more\n", 0644);
  CHECK(tokens.scope_of("x").error().message.find("others may read it") != std::string::npos);
}

TEST_CASE("webhook URLs are split into host, port and path, and others are refused") {
  const auto url = parse_url("http://billing.example:8080/usage?site=1");
  REQUIRE(url);
  CHECK(url->host == "billing.example");
  CHECK(url->port == 8080);
  CHECK(url->path == "/usage?site=1");
  CHECK(parse_url("http://h")->path == "/");
  CHECK(parse_url("http://h")->port == 80);
  CHECK(parse_url("https://h/").error().message.find("a proxy") != std::string::npos);
  for (const char* bad : {"", "h:80/x", "ftp://h/", "http://", "http://h:x/", "http://h:0/",
                          "http://h:70000/", "http://h/a b"})
    CHECK_MESSAGE(!parse_url(bad), bad);
}

namespace {

// An HTTP server that takes POSTs; it answers the first `refused` of them with status 500.
class Hook {
 public:
  explicit Hook(int refused = 0) : refused_(refused) {
    auto listening = listen_on("127.0.0.1", 0);
    REQUIRE(listening);
    listening_ = std::move(*listening);
    thread_ = std::thread([this] { run(); });
  }
  ~Hook() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] Url url() const { return {"127.0.0.1", port_of(listening_), "/usage"}; }
  std::string got() {
    std::lock_guard guard(mutex_);
    return got_;
  }

 private:
  void run();
  void take(const Fd& fd);

  Fd listening_;
  int refused_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::string got_;
  std::thread thread_;
};

}  // namespace

void Hook::take(const Fd& fd) {
  std::string text;
  std::size_t head = std::string::npos, length = 0;
  while (head == std::string::npos || text.size() < head + 4 + length) {
    if (!read_some(fd, text, soon())) return;
    head = text.find("\r\n\r\n");
    if (const std::size_t at = text.find("Content-Length: "); at != std::string::npos)
      length = std::stoul(text.substr(at + 16));
  }
  const bool refuse = refused_-- > 0;
  {
    std::lock_guard guard(mutex_);
    if (!refuse) got_ += text.substr(head + 4);
  }
  write_all(fd, refuse ? "HTTP/1.1 500 No\r\n\r\n" : "HTTP/1.1 204 Done\r\n\r\n", soon());
}

void Hook::run() {
  while (!stop_) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    if (!wait_readable(listening_, -1, until)) continue;
    const Fd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) take(fd);
  }
}

namespace {

void wait_until_got(Hook& hook, const std::string& text) {
  for (const Deadline end = soon(); hook.got() != text && std::chrono::steady_clock::now() < end;)
    std::this_thread::yield();
  CHECK(hook.got() == text);
}

}  // namespace

TEST_CASE("a webhook gets every line, also after refusals, and continues where it stopped") {
  Folder folder;
  const std::string lines = folder.file("usage"), mark = folder.file("usage.sent");
  Hook hook(1);
  const auto none = [](const std::string&) {};
  {
    Webhook webhook(hook.url(), lines, mark, none);  // the file of events does not exist yet
    write(lines, "one\ntwo\nhal");
    webhook.wake();
    wait_until_got(hook, "one\ntwo\n");
    std::ofstream(lines, std::ios::app) << "f\n";
    webhook.wake();
    wait_until_got(hook, "one\ntwo\nhalf\n");
  }
  std::ofstream(lines, std::ios::app) << "three\n" << std::string(2 * kMostBatch, 'x') << "\n";
  Webhook again(hook.url(), lines, mark, none);
  wait_until_got(hook, "one\ntwo\nhalf\nthree\n" + std::string(2 * kMostBatch, 'x') + "\n");
}
