// ZMTP 3.1 with CURVE (RFC 37 and RFC 26), server side, as a state machine without I/O: what
// arrives goes into feed(), what output() has is to be written, whole messages come out of next().
//
// It acts as a ROUTER, and the other side has to be a DEALER. What the peer says about itself,
// above all its routing id, is ignored: a peer is its connection and the key that it has proved. A
// peer that has not finished the handshake may only send frames of kMaxHandshakeFrame bytes. Pings
// are answered as long as the peer reads the answers. Any error is final.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/net/keys.h"
#include "common/net/zmtp_wire.h"
#include "common/result.h"
#include "common/types.h"

namespace gantry::net {

class ZmtpServer {
 public:
  static constexpr std::size_t kMaxHandshakeFrame = 2048;                       // bytes
  static constexpr std::size_t kMaxMessageBytes = kMaxFrameBytes + (64 << 10);  // all its frames

  explicit ZmtpServer(const KeyPair& own);

  Result<void> feed(std::string_view bytes);
  [[nodiscard]] bool ready() const { return state_ == State::ready; }
  // The peer's key; it is proved once ready().
  [[nodiscard]] const PublicKey& peer_key() const { return peer_; }
  // Bytes of frames and messages that are not complete yet.
  [[nodiscard]] std::size_t held_bytes() const { return input_.size() + parts_.bytes(); }

  // Call it only when ready().
  void send(std::span<const std::string_view> frames);
  std::optional<std::vector<Bytes>> next();

  [[nodiscard]] std::string_view output() const { return output_.view(); }
  void written(std::size_t bytes) { output_.written(bytes); }

 private:
  enum class State : std::uint8_t { greeting, hello, initiate, ready, failed };
  // State that only the handshake needs.
  struct Handshake {
    PublicKey client_session;  // C'
    KeyPair server_session;    // S', s'
    std::string cookie;
  };

  // Consumes one greeting or frame if it is complete; used = 0 if not.
  Result<void> consume(std::size_t& used);
  Result<void> on_greeting(std::string_view greeting);
  Result<void> on_hello(std::string_view body);
  Result<void> on_initiate(std::string_view body);
  Result<void> on_metadata(std::string_view metadata);
  Result<void> on_message(std::string_view body);
  Result<void> on_command(std::string_view body);
  void send_ready();
  void send_box(std::uint8_t inner_flags, std::string_view content);
  Result<void> broken(std::string why);

  KeyPair own_;
  PublicKey peer_;
  std::optional<Handshake> handshake_;
  zmtp::SharedKey session_{};
  State state_ = State::greeting;
  std::uint64_t nonce_ = 0;
  std::uint64_t peer_nonce_ = 0;
  std::string input_;
  zmtp::OutputBytes output_;
  zmtp::MessageParts parts_{kMaxMessageBytes};
  std::deque<std::vector<Bytes>> messages_;
};

}  // namespace gantry::net
