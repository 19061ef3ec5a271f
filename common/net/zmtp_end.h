// What the client and the server of ZMTP 3.1 with CURVE do alike: taking frames from what arrives,
// and messages after the handshake. zmtp.h and zmtp_server.h add the steps of the handshake.
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

namespace gantry::net::zmtp {

// What the two sides do in different ways.
struct Side {
  bool server = false;
  ErrorCode error{};       // when the other side breaks the protocol
  std::string_view other;  // the other side in the texts of errors
  std::string_view sends;  // names of the nonces of messages
  std::string_view receives;
  std::size_t most_bytes = 0;   // all frames of one message
  std::size_t first_frame = 0;  // of a frame, until the handshake is done
  std::size_t most_pongs = 0;   // bytes of output beyond which pings are not answered
};

class End {
 public:
  Result<void> feed(std::string_view bytes);
  [[nodiscard]] bool ready() const { return state_ == State::ready; }

  // Call it only when ready().
  void send(std::span<const std::string_view> frames);
  std::optional<std::vector<Bytes>> next();

  [[nodiscard]] std::string_view output() const { return output_.view(); }
  void written(std::size_t bytes) { output_.written(bytes); }

 protected:
  // The handshake has two steps: WELCOME and READY for a client, HELLO and INITIATE for a server.
  enum class State : std::uint8_t { greeting, first, second, ready, failed };

  End(const Side& side, const KeyPair& own);
  End(End&&) = default;
  End& operator=(End&&) = default;
  ~End() = default;

  virtual Result<void> on_first(std::string_view body) = 0;
  virtual Result<void> on_second(std::string_view body) = 0;
  Result<void> broken(std::string why);
  // Bytes of frames and messages that are not complete yet.
  [[nodiscard]] std::size_t incomplete() const { return input_.size() + parts_.bytes(); }

  KeyPair own_;
  SharedKey session_{};  // from the keys of this connection
  State state_ = State::greeting;
  std::uint64_t nonce_ = 0;
  std::uint64_t peer_nonce_ = 0;
  OutputBytes output_;

 private:
  // Consumes one greeting or frame if it is complete; used = 0 if not.
  Result<void> consume(std::size_t& used);
  Result<void> on_frame(std::uint8_t flags, std::string_view body);
  Result<void> on_message(std::string_view body);
  void send_box(std::uint8_t inner_flags, std::string_view content);

  const Side* side_;
  std::string input_;
  MessageParts parts_;  // of the message that is arriving
  std::deque<std::vector<Bytes>> messages_;
};

}  // namespace gantry::net::zmtp
