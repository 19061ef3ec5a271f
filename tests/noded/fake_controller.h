// A scripted controller: a Router in the test's process, to which a gantry-noded connects that the
// test started. Tests wait for messages, never for a fixed time; if a message does not come within
// a limit, the test fails.
#pragma once

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/types.h>

#include <deque>
#include <string>
#include <vector>

#include "common/codec/codec.h"
#include "common/net/header.h"
#include "common/net/router.h"
#include "common/proto/messages.h"
#include "noded/core/core.h"

namespace gantry::test {

inline constexpr Duration kUnhurried = minutes(10);

class FakeController {
 public:
  FakeController();

  // Returns the next message of this type for which `wanted` is true; earlier messages are kept for
  // later calls.
  template <class T, class Wanted>
  T expect(Wanted wanted, Duration limit = seconds(20)) {
    const auto until = now() + limit;
    for (std::size_t i = 0;;) {
      for (; i < seen_.size(); ++i) {
        if (seen_[i].type != static_cast<std::uint16_t>(proto::number_of<T>)) continue;
        auto message = codec::decode<T>(seen_[i].body);
        REQUIRE(message);
        if (!wanted(*message)) continue;
        seen_.erase(seen_.begin() + static_cast<std::ptrdiff_t>(i));
        return std::move(*message);
      }
      if (!receive(until - now())) FAIL("no such message in time");
    }
  }
  template <class T>
  T expect(Duration limit = seconds(20)) {
    return expect<T>([](const T&) { return true; }, limit);
  }
  template <class T>
  void send(const T& message) {
    const net::HeaderBytes header(
        {proto::kProtocolVersion, static_cast<std::uint16_t>(proto::number_of<T>), 0});
    REQUIRE(router_->send(peer_, header.view(), codec::encode(message)));
  }
  // Answers the node's registration, and returns the registration.
  proto::NodeRegister accept(std::vector<proto::AttemptKey> kill = {});
  proto::OrderStamp stamp() { return {Epoch{epoch}, session_, ++seq_}; }
  // Returns true if no message of this type comes within `length`.
  template <class T>
  bool nothing(Duration length) {
    const auto until = now() + length;
    while (now() < until) receive(until - now());
    for (const auto& s : seen_)
      if (s.type == static_cast<std::uint16_t>(proto::number_of<T>)) return false;
    return true;
  }
  void stop() { router_.reset(); }  // its connections end
  void forget_seen() { seen_.clear(); }
  template <class T>
  void forget_seen_of() {
    std::erase_if(seen_, [](const Seen& s) {
      return s.type == static_cast<std::uint16_t>(proto::number_of<T>);
    });
  }

  std::uint64_t epoch = 1;
  // The heartbeat interval that accept() gives the node. A node ends its session after three
  // heartbeats without an answer; a test that may be busy for longer on a slow machine passes
  // kUnhurried.
  static constexpr Duration kHeartbeat = milliseconds(200);
  Duration heartbeat = kHeartbeat;
  std::optional<Duration> fence_after;  // accept() gives this time to the node
  Bytes permission_key;                 // accept() gives this key to the node; "" = none
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] const net::KeyPair& keys() const { return keys_; }
  static Instant now();

 private:
  struct Seen {
    std::uint16_t type = 0;
    Bytes body;
  };
  bool receive(Duration limit);

  net::KeyPair keys_;
  std::optional<net::Router> router_;
  net::PeerId peer_;
  std::deque<Seen> seen_;
  std::uint64_t session_ = 0, seq_ = 0;
};

// A gantry-noded with its own directory, configuration and keys.
class NodeUnderTest {
 public:
  // `login_nodes` is the list of controller.login_nodes: "n1" makes the node one.
  NodeUnderTest(const FakeController& controller, const std::string& runtime,
                const std::string& login_nodes = "");
  ~NodeUnderTest();
  void start();
  void stop(int signal);  // sends the signal and waits for the end
  int wait();             // waits until it ends by itself, and returns its exit status
  // Starts it and returns its exit status, for starts that are refused.
  int run_once(std::vector<std::string> extra);
  [[nodiscard]] const std::string& dir() const { return dir_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string log() const;

 private:
  pid_t spawn(const std::vector<std::string>& extra) const;
  std::string dir_;
  pid_t pid_ = -1;
};

std::string read_text(const std::string& path);

}  // namespace gantry::test
