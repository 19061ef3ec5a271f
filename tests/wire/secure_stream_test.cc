// The encrypted stream of step input and output. Both ends are in memory, byte by byte, or
// connected by a socket.
#include <doctest/doctest.h>

#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "common/net/secure_stream.h"

namespace gantry::net {
namespace {

const std::string kKey(kStreamKeyBytes, 'k');

SecureStream make(StreamRole role, std::string_view key = kKey, std::string_view ticket = {}) {
  auto stream = SecureStream::create(role, key, ticket);
  REQUIRE(stream);
  return std::move(*stream);
}

std::string take_output(SecureStream& stream) {
  std::string bytes(stream.output());
  stream.written(bytes.size());
  return bytes;
}

// Carries bytes both ways until neither end has output, at most `piece` bytes at a time.
Result<void> shuttle(SecureStream& a, SecureStream& b, std::size_t piece = 1 << 20) {
  const auto carry = [piece](SecureStream& from, SecureStream& to) -> Result<void> {
    const std::string bytes = take_output(from);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      if (const auto ok = to.feed(std::string_view(bytes).substr(at, piece)); !ok) return ok;
    return {};
  };
  while (!a.output().empty() || !b.output().empty()) {
    if (const auto ok = carry(a, b); !ok) return ok;
    if (const auto ok = carry(b, a); !ok) return ok;
  }
  return {};
}

TEST_CASE("frames of any size go both ways, also byte by byte, and each end sees the other's end") {
  for (const std::size_t piece : {1u, 7u, 1u << 20}) {
    SecureStream dialler = make(StreamRole::dialler, kKey, "step 3.0 node n1");
    SecureStream listener = make(StreamRole::listener);
    REQUIRE(dialler.send("before the handshake"));
    REQUIRE(shuttle(dialler, listener, piece));
    CHECK(dialler.ready());
    CHECK(listener.ready());
    CHECK(listener.next() == "before the handshake");
    CHECK_FALSE(listener.next());
    for (const std::size_t size : {0u, 1u, 100u, 70'000u}) {
      const std::string frame(size, 'f');
      REQUIRE(listener.send(frame));
      REQUIRE(dialler.send(frame));
      REQUIRE(shuttle(dialler, listener, piece));
      CHECK(dialler.next() == frame);
      CHECK(listener.next() == frame);
    }
    REQUIRE(dialler.send("last"));
    dialler.finish();
    CHECK(dialler.send("more").error().code == ErrorCode::wrong_state);
    REQUIRE(shuttle(dialler, listener, piece));
    CHECK_FALSE(listener.finished());
    CHECK(listener.next() == "last");
    CHECK(listener.finished());
    CHECK_FALSE(dialler.finished());  // The other direction is still open.
    REQUIRE(listener.send("reply"));
    listener.finish();
    REQUIRE(shuttle(dialler, listener, piece));
    CHECK(dialler.next() == "reply");
    CHECK(dialler.finished());
  }
}

TEST_CASE("frames, tickets and keys have limits") {
  SecureStream stream = make(StreamRole::dialler);
  CHECK(stream.send(std::string(kMaxStreamFrame + 1, 'x')).error().code ==
        ErrorCode::invalid_argument);
  CHECK(SecureStream::create(StreamRole::dialler, "short").error().code ==
        ErrorCode::invalid_argument);
  CHECK(SecureStream::create(StreamRole::dialler, kKey, std::string(kMaxTicket + 1, 't'))
            .error()
            .code == ErrorCode::invalid_argument);
  SecureStream other = make(StreamRole::listener);
  REQUIRE(stream.send(std::string(kMaxStreamFrame, 'x')));
  REQUIRE(shuttle(stream, other));
  CHECK(other.next()->size() == kMaxStreamFrame);
}

TEST_CASE("the ticket can be read before anything else") {
  SecureStream dialler = make(StreamRole::dialler, kKey, "17.1 step 4 n3");
  const std::string bytes = take_output(dialler);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const auto early = read_ticket(std::string_view(bytes).substr(0, n));
    REQUIRE(early);
    CHECK_FALSE(early->has_value());
  }
  CHECK(*read_ticket(bytes) == "17.1 step 4 n3");
  CHECK(read_ticket("GET / HTTP/1.1").error().code == ErrorCode::malformed);
  CHECK(read_ticket("\x7f").error().code == ErrorCode::malformed);
  CHECK(read_ticket(std::string("GSS1\xff\xff", 6)).error().code == ErrorCode::malformed);
}

TEST_CASE("a wrong key or a changed ticket is noticed at once") {
  SecureStream dialler = make(StreamRole::dialler);
  SecureStream listener = make(StreamRole::listener, std::string(kStreamKeyBytes, 'z'));
  REQUIRE(dialler.send("secret"));
  const auto result = shuttle(dialler, listener);
  REQUIRE_FALSE(result);
  CHECK(result.error().message == "the other end of the stream does not have its key");
  CHECK_FALSE(dialler.ready());
  CHECK_FALSE(listener.next());

  SecureStream one = make(StreamRole::dialler, kKey, "ticket A");
  SecureStream two = make(StreamRole::listener);
  std::string hello = take_output(one);
  hello.replace(hello.find("ticket A"), 8, "ticket B");
  REQUIRE(two.feed(hello));
  REQUIRE(one.feed(take_output(two)).error().code == ErrorCode::malformed);
}

TEST_CASE("every damaged, repeated or cut byte is noticed") {
  SecureStream dialler = make(StreamRole::dialler);
  SecureStream listener = make(StreamRole::listener);
  REQUIRE(listener.feed(take_output(dialler)));
  REQUIRE(dialler.feed(take_output(listener)));
  REQUIRE(dialler.send("payload"));
  // The bytes hold the start, the confirmation and the frame.
  const std::string bytes = take_output(dialler);
  // Each damaged copy needs a new pair of dialler and listener, since each pair has its own keys.
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    SecureStream d = make(StreamRole::dialler);
    SecureStream l = make(StreamRole::listener);
    REQUIRE(l.feed(take_output(d)));
    REQUIRE(d.feed(take_output(l)));
    REQUIRE(d.send("payload"));
    std::string damaged = take_output(d);
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    const bool delivered = l.feed(damaged) && l.next().has_value();
    CHECK_UNARY(!delivered);
  }
  REQUIRE(listener.feed(bytes));
  CHECK(listener.next() == "payload");
  const std::size_t frame = 4 + 7 + 17;
  // The frame is sent a second time.
  CHECK_FALSE(listener.feed(bytes.substr(bytes.size() - frame)));
  CHECK(listener.feed("x").error().code == ErrorCode::wrong_state);
}

TEST_CASE("a recorded connection cannot be replayed to a new listener") {
  SecureStream dialler = make(StreamRole::dialler);
  SecureStream listener = make(StreamRole::listener);
  std::string recorded = take_output(dialler);
  REQUIRE(listener.feed(recorded));
  REQUIRE(dialler.feed(take_output(listener)));
  REQUIRE(dialler.send("exit 0"));
  recorded += take_output(dialler);
  SecureStream victim = make(StreamRole::listener);
  CHECK_FALSE(victim.feed(recorded));
  CHECK_FALSE(victim.next());
}

TEST_CASE("blocking calls over a socket carry both directions, and see the end and a cut") {
  int fd[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
  constexpr int kFrames = 200;
  std::thread other([&] {
    SecureStream listener = make(StreamRole::listener);
    while (true) {
      const auto frame = read_frame(fd[1], listener, seconds(10));
      if (!frame || !*frame) break;
      (void)listener.send(**frame);
      (void)write_all(fd[1], listener, seconds(10));
    }
    listener.finish();
    (void)write_all(fd[1], listener, seconds(10));
  });
  SecureStream dialler = make(StreamRole::dialler, kKey, "t");
  const std::string content(64 << 10, 'd');
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kFrames; ++i) {
    REQUIRE(dialler.send(content));
    REQUIRE(write_all(fd[0], dialler, seconds(10)));
    const auto back = read_frame(fd[0], dialler, seconds(10));
    REQUIRE(back);
    REQUIRE(*back == content);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  MESSAGE(fmt::format("echo of {} MiB: {:.0f} MiB/s each way", kFrames / 16,
                      kFrames / 16.0 / took.count()));
  dialler.finish();
  REQUIRE(write_all(fd[0], dialler, seconds(10)));
  CHECK_FALSE(read_frame(fd[0], dialler, seconds(10))->has_value());
  other.join();
  close(fd[1]);
  SecureStream cut = make(StreamRole::dialler);
  CHECK(read_frame(fd[0], cut, seconds(1)).error().code == ErrorCode::unavailable);
  close(fd[0]);
}

}  // namespace
}  // namespace gantry::net
