// ZMTP 3.1 with CURVE (RFC 37 and RFC 26), server side, as a state machine without I/O: what
// arrives goes into feed(), what output() has is to be written, whole messages come out of next().
//
// It acts as a ROUTER, and the other side has to be a DEALER. What the peer says about itself,
// above all its routing id, is ignored: a peer is its connection and the key that it has proved. A
// peer that has not finished the handshake may only send frames of kMaxHandshakeFrame bytes. Pings
// are answered as long as the peer reads the answers. Any error is final.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/net/keys.h"
#include "common/net/zmtp_end.h"

namespace gantry::net {

class ZmtpServer final : public zmtp::End {
 public:
  static constexpr std::size_t kMaxHandshakeFrame = 2048;                       // bytes
  static constexpr std::size_t kMaxMessageBytes = kMaxFrameBytes + (64 << 10);  // all its frames

  explicit ZmtpServer(const KeyPair& own);

  // The peer's key; it is proved once ready().
  [[nodiscard]] const PublicKey& peer_key() const { return peer_; }
  // Bytes of frames and messages that are not complete yet.
  [[nodiscard]] std::size_t held_bytes() const { return incomplete(); }

 private:
  // State that only the handshake needs.
  struct Handshake {
    PublicKey client_session;  // C'
    KeyPair server_session;    // S', s'
    std::string cookie;
  };

  Result<void> on_first(std::string_view body) override;   // HELLO
  Result<void> on_second(std::string_view body) override;  // INITIATE
  Result<void> on_metadata(std::string_view metadata);
  void send_ready();

  PublicKey peer_;
  std::optional<Handshake> handshake_;
};

}  // namespace gantry::net
