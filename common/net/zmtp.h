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

#include <string_view>

#include "common/net/keys.h"
#include "common/net/zmtp_end.h"

namespace gantry::net {

class ZmtpClient final : public zmtp::End {
 public:
  static constexpr std::size_t kMaxMessageBytes = 64u << 20;  // all frames of one message

  ZmtpClient(const PublicKey& server, const KeyPair& own);

  [[nodiscard]] const PublicKey& session_key() const { return own_.public_key; }

 private:
  Result<void> on_first(std::string_view body) override;   // WELCOME
  Result<void> on_second(std::string_view body) override;  // READY
  void send_hello();
  void send_initiate(std::string_view cookie);

  PublicKey server_;
  zmtp::SharedKey with_server_{};  // from our key and the server's permanent key
};

}  // namespace gantry::net
