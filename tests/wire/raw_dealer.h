// A peer that makes a proper handshake, and then claims any routing id and metadata that a test
// wants. It works over one socket and blocks.
#pragma once

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "common/net/keys.h"
#include "common/net/socket.h"
#include "common/net/zmtp_wire.h"

namespace gantry::test {

class RawDealer {
 public:
  RawDealer(const std::string& address, const net::PublicKey& server, std::string routing_id,
            const net::KeyPair& keys = net::generate_key_pair())
      : keys_(keys), server_(server), routing_id_(std::move(routing_id)) {
    auto socket = net::connect_to(address, net::Deadline(kPatience));
    REQUIRE_MESSAGE(socket, socket.error().message);
    socket_ = std::move(*socket);
    shake_hands();
  }
  // False if the other side has ended the connection.
  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] const net::PublicKey& key() const { return keys_.public_key; }
  [[nodiscard]] int fd() const { return socket_.fd(); }

  bool send(std::string_view header, std::string_view body) {
    std::string out;
    net::zmtp::append_message(out, session_, "CurveZMQMESSAGEC", ++nonce_, net::zmtp::kFlagMore,
                              header);
    net::zmtp::append_message(out, session_, "CurveZMQMESSAGEC", ++nonce_, 0, body);
    return write(out);
  }
  // Sends the first `some` bytes of a message of `whole` bytes.
  bool send_part(std::size_t whole, std::size_t some) {
    std::string out;
    net::zmtp::append_message(out, session_, "CurveZMQMESSAGEC", ++nonce_, 0,
                              std::string(whole, 'x'));
    return write(std::string_view(out).substr(0, some));
  }
  // Returns the next message, or nothing if the connection has ended or no message came in time.
  std::optional<std::vector<Bytes>> receive(Duration patience = kPatience) {
    std::vector<Bytes> frames;
    while (true) {
      const auto frame = take(net::zmtp::kMaxWireFrame, patience);
      if (!frame) return std::nullopt;
      auto opened = net::zmtp::open_message(*frame, session_, "CurveZMQMESSAGES", peer_nonce_);
      REQUIRE_MESSAGE(opened, opened.error().message);
      frames.push_back(std::move(opened->content));
      if ((opened->flags & net::zmtp::kFlagMore) == 0) return frames;
    }
  }
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = net::write_some(socket_.fd(), bytes);
      if (!n) return connected_ = false;
      bytes.remove_prefix(*n);
      if (*n == 0 && !net::wait_for(socket_.fd(), net::Wait::write, net::Deadline(kPatience)))
        return false;
    }
    return true;
  }

 private:
  static constexpr Duration kPatience = seconds(30);

  void shake_hands() {
    using namespace net::zmtp;
    const auto with_server = shared_key(server_, keys_.secret_key);
    REQUIRE(with_server);
    std::string hello("\x05HELLO\x01\0", 8);
    hello += std::string(72, '\0');
    hello += keys_.public_key.view();
    hello += eight(++nonce_);
    hello += seal(std::string(64, '\0'), nonce_of("CurveZMQHELLO---", nonce_), *with_server);
    std::string out = greeting(false);
    append_frame(out, true, hello);
    if (!write(out) || !fill(kGreetingBytes, kPatience)) return;
    input_.erase(0, kGreetingBytes);
    const auto welcome = take(1000, kPatience);
    if (!welcome) return;
    const auto content =
        unseal(std::string_view(*welcome).substr(24),
               nonce_of("WELCOME-", std::string_view(*welcome).substr(8, 16)), *with_server);
    REQUIRE(content);
    const auto session = shared_key(
        *net::public_key_from_bytes(std::string_view(*content).substr(0, net::kKeyBytes)),
        keys_.secret_key);
    REQUIRE(session);
    session_ = *session;
    if (!write(initiate(std::string_view(*content).substr(net::kKeyBytes)))) return;
    const auto ready = take(1000, kPatience);
    if (!ready) return;
    peer_nonce_ = get_u64(std::string_view(*ready).substr(6));
    connected_ = true;
  }

  std::string initiate(std::string_view cookie) {
    using namespace net::zmtp;
    const std::string random = random_bytes(16);
    std::string inner(keys_.public_key.view());
    inner += random;
    inner += seal(std::string(keys_.public_key.view()).append(server_.view()),
                  nonce_of("VOUCH---", random), session_);
    append_property(inner, "Socket-Type", "DEALER");
    append_property(inner, "Identity", routing_id_);
    std::string body = "\x08INITIATE";
    body += cookie;
    body += eight(++nonce_);
    body += seal(inner, nonce_of("CurveZMQINITIATE", nonce_), session_);
    std::string out;
    append_frame(out, true, body);
    return out;
  }

  bool fill(std::size_t size, Duration patience) {
    const net::Deadline deadline(patience);
    char buffer[65536];
    while (input_.size() < size) {
      const auto n = net::read_some(socket_.fd(), buffer, sizeof buffer);
      if (!n) return connected_ = false;
      input_.append(buffer, *n);
      if (*n == 0 && !net::wait_for(socket_.fd(), net::Wait::read, deadline)) return false;
    }
    return true;
  }
  std::optional<std::string> take(std::size_t largest, Duration patience) {
    while (true) {
      const auto frame = net::zmtp::take_frame(input_, largest);
      REQUIRE_MESSAGE(frame, frame.error().message);
      if (*frame) {
        std::string body((*frame)->body);
        input_.erase(0, (*frame)->size);
        return body;
      }
      if (!fill(input_.size() + 1, patience)) return std::nullopt;
    }
  }

  net::KeyPair keys_;
  net::PublicKey server_;
  std::string routing_id_;
  net::Socket socket_;
  net::zmtp::SharedKey session_{};
  std::uint64_t nonce_ = 0, peer_nonce_ = 0;
  std::string input_;
  bool connected_ = false;
};

}  // namespace gantry::test
