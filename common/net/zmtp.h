// ZMTP 3.1 with CURVE (RFC 37 and RFC 26), client side, as a state machine without I/O: what
// arrives goes into feed(), what output() has is to be written, whole messages come out of next().
//
//   greeting, HELLO  ->          (sent together: the mechanism is not up for negotiation)
//                    <- greeting, WELCOME
//   INITIATE         ->
//                    <- READY, or ERROR with a reason
//   MESSAGE          <->         (every frame of a message is one MESSAGE command's box)
//
// It is a DEALER to the other side. Pings are answered. Any error is final.
#pragma once

#include <array>
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

class ZmtpClient {
 public:
  static constexpr std::size_t kMaxMessageBytes = 64u << 20;  // all frames of one message

  ZmtpClient(const PublicKey& server, const KeyPair& own);

  Result<void> feed(std::string_view bytes);
  [[nodiscard]] bool ready() const { return state_ == State::ready; }
  [[nodiscard]] const PublicKey& session_key() const { return own_.public_key; }

  // Call it only when ready().
  void send(std::span<const std::string_view> frames);
  std::optional<std::vector<Bytes>> next();

  [[nodiscard]] std::string_view output() const { return output_.view(); }
  void written(std::size_t bytes) { output_.written(bytes); }

 private:
  enum class State : std::uint8_t { greeting, welcome, ready_awaited, ready, failed };

  // Consumes one greeting or frame if it is complete; used = 0 if not.
  Result<void> consume(std::size_t& used);
  Result<void> on_greeting(std::string_view greeting);
  Result<void> on_frame(std::uint8_t flags, std::string_view body);
  Result<void> on_welcome(std::string_view body);
  Result<void> on_ready(std::string_view body);
  Result<void> on_message(std::string_view body);
  Result<void> on_command(std::string_view body);
  void send_hello();
  void send_initiate(std::string_view cookie);
  void send_box(std::uint8_t inner_flags, std::string_view content);
  Result<void> broken(std::string why);

  PublicKey server_;
  KeyPair own_;
  zmtp::SharedKey with_server_{};  // from our key and the server's permanent key
  zmtp::SharedKey session_{};      // from our key and the server's key of this connection
  State state_ = State::greeting;
  std::uint64_t nonce_ = 0;
  std::uint64_t peer_nonce_ = 0;
  std::string input_;
  zmtp::OutputBytes output_;
  zmtp::MessageParts parts_;  // of the message that is arriving
  std::deque<std::vector<Bytes>> messages_;
};

}  // namespace gantry::net
