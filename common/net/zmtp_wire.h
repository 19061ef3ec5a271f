// The parts of ZMTP 3.1 with CURVE (RFC 37 and RFC 26) that both sides share: greeting, frames,
// nonces, boxes, and joining the frames of a message. There is no I/O and no state of a connection.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/net/header.h"
#include "common/net/keys.h"
#include "common/result.h"
#include "common/types.h"

namespace gantry::net::zmtp {

inline constexpr std::size_t kGreetingBytes = 64;
inline constexpr std::size_t kCookieBytes = 96;
inline constexpr std::size_t kNonceBytes = 24;
inline constexpr std::size_t kMacBytes = 16;
inline constexpr std::size_t kWelcomeBytes = 8 + 16 + kMacBytes + kKeyBytes + kCookieBytes;
// Bytes that a MESSAGE frame adds to its content: name, nonce, box, flags.
inline constexpr std::size_t kMaxWireFrame = static_cast<std::size_t>(kMaxFrameBytes) + 64;
inline constexpr std::size_t kMaxMessageFrames = 64;

inline constexpr std::uint8_t kFlagMore = 1;     // flag of a box's content
inline constexpr std::uint8_t kFlagCommand = 2;  // flag of a box's content
inline constexpr std::uint8_t kWireLong = 2;     // flag of a frame
inline constexpr std::uint8_t kWireCommand = 4;  // flag of a frame

using Nonce = std::array<unsigned char, kNonceBytes>;
using SharedKey = std::array<std::uint8_t, kKeyBytes>;  // shared by two key pairs

// A greeting has 64 octets: version 3.1, mechanism CURVE.
std::string greeting(bool as_server);
// The error is unavailable, unless the peer speaks this version and mechanism.
Result<void> check_greeting(std::string_view greeting);

// A nonce is 16 octets of name and a counter, or 8 of name and 16 random ones.
Nonce nonce_of(std::string_view name, std::uint64_t counter);
Nonce nonce_of(std::string_view name, std::string_view random);
std::string random_bytes(std::size_t count);
std::string eight(std::uint64_t value);  // big endian
std::uint64_t get_u64(std::string_view bytes);

// Returns nullopt if the public key is of small order, which nobody may use.
std::optional<SharedKey> shared_key(const PublicKey& theirs, const SecretKey& ours);
std::string seal(std::string_view content, const Nonce& nonce, const SharedKey& key);
std::optional<std::string> unseal(std::string_view box, const Nonce& nonce, const SharedKey& key);

void append_property(std::string& metadata, std::string_view name, std::string_view value);
// The value of a property; "" if there is none, nullopt if the text is no metadata.
std::optional<std::string_view> find_property(std::string_view metadata, std::string_view name);

void append_frame(std::string& out, bool command, std::string_view body);
// Appends a MESSAGE. `nonce_name` says which side sends it; `nonce` must not be used for anything
// else.
void append_message(std::string& out, const SharedKey& key, std::string_view nonce_name,
                    std::uint64_t nonce, std::uint8_t flags, std::string_view content);

// The frame at the start of `bytes`, with a body of at most `largest`; nullopt if more bytes are
// needed. The error malformed means that it announces a larger body.
struct Frame {
  std::uint8_t flags = 0;
  std::string_view body;
  std::size_t size = 0;  // bytes on the wire
};
Result<std::optional<Frame>> take_frame(std::string_view bytes, std::size_t largest);

// The content of a MESSAGE. Its nonce has to be greater than the one of the message before.
struct Opened {
  std::uint8_t flags = 0;
  Bytes content;
};
Result<Opened> open_message(std::string_view body, const SharedKey& key,
                            std::string_view nonce_name, std::uint64_t& last_nonce);

// The context of a PING, which PONG returns; nullopt if it is another command.
Result<std::optional<std::string_view>> ping_context(std::string_view command);

// Collects the frames of one message.
class MessageParts {
 public:
  explicit MessageParts(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  // Returns the message if this was its last frame. The error malformed means that it is beyond the
  // limits.
  Result<std::optional<std::vector<Bytes>>> add(Opened&& part);
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t most_bytes_;
  std::vector<Bytes> parts_;
  std::size_t bytes_ = 0;
};

// Bytes that wait to be written. Those that were written are removed from time to time.
class OutputBytes {
 public:
  std::string& tail() { return bytes_; }  // the caller appends to it
  [[nodiscard]] std::string_view view() const { return std::string_view(bytes_).substr(at_); }
  void written(std::size_t count);

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

}  // namespace gantry::net::zmtp
