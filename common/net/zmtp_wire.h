// What both sides of ZMTP 3.1 with CURVE share (RFC 37 and RFC 26): greeting, frames, nonces,
// boxes, and putting the frames of a message together. No I/O and no state of a connection.
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
// A MESSAGE frame around the largest content: name, nonce, box, flags.
inline constexpr std::size_t kMaxWireFrame = static_cast<std::size_t>(kMaxFrameBytes) + 64;
inline constexpr std::size_t kMaxMessageFrames = 64;

inline constexpr std::uint8_t kFlagMore = 1;     // of a box's content
inline constexpr std::uint8_t kFlagCommand = 2;  // of a box's content
inline constexpr std::uint8_t kWireLong = 2;     // of a frame
inline constexpr std::uint8_t kWireCommand = 4;  // of a frame

using Nonce = std::array<unsigned char, kNonceBytes>;
using SharedKey = std::array<std::uint8_t, kKeyBytes>;  // of two key pairs

// 64 octets: version 3.1, mechanism CURVE.
std::string greeting(bool as_server);
// unavailable, unless it is of a peer that speaks this version and mechanism.
Result<void> check_greeting(std::string_view greeting);

// 16 octets of name and a counter, or 8 of name and 16 random ones.
Nonce nonce_of(std::string_view name, std::uint64_t counter);
Nonce nonce_of(std::string_view name, std::string_view random);
std::string random_bytes(std::size_t count);
std::string eight(std::uint64_t value);  // big endian
std::uint64_t get_u64(std::string_view bytes);

// Nothing: the public key is of small order, and no key that one may use.
std::optional<SharedKey> shared_key(const PublicKey& theirs, const SecretKey& ours);
std::string seal(std::string_view content, const Nonce& nonce, const SharedKey& key);
std::optional<std::string> unseal(std::string_view box, const Nonce& nonce, const SharedKey& key);

void append_property(std::string& metadata, std::string_view name, std::string_view value);
// The value of a property; "" if there is none, nothing if this is no metadata.
std::optional<std::string_view> find_property(std::string_view metadata, std::string_view name);

void append_frame(std::string& out, bool command, std::string_view body);
// A MESSAGE: `nonce_name` says who sends it, and `nonce` is used for nothing else.
void append_message(std::string& out, const SharedKey& key, std::string_view nonce_name,
                    std::uint64_t nonce, std::uint8_t flags, std::string_view content);

// One frame at the start of `bytes`, of a body of at most `largest`; nothing if more bytes are
// needed. malformed: it announces a larger one.
struct Frame {
  std::uint8_t flags = 0;
  std::string_view body;
  std::size_t size = 0;  // on the wire
};
Result<std::optional<Frame>> take_frame(std::string_view bytes, std::size_t largest);

// The content of a MESSAGE: its nonce has to be greater than the last one, which it becomes.
struct Opened {
  std::uint8_t flags = 0;
  Bytes content;
};
Result<Opened> open_message(std::string_view body, const SharedKey& key,
                            std::string_view nonce_name, std::uint64_t& last_nonce);

// The context of a PING (what PONG brings back), or nothing: it is another command.
Result<std::optional<std::string_view>> ping_context(std::string_view command);

// Collects the frames of one message.
class MessageParts {
 public:
  explicit MessageParts(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  // The message, if this was its last frame; malformed beyond the limits.
  Result<std::optional<std::vector<Bytes>>> add(Opened&& part);
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t most_bytes_;
  std::vector<Bytes> parts_;
  std::size_t bytes_ = 0;
};

// Bytes that wait to be written; what has been is cut off now and then.
class OutputBytes {
 public:
  std::string& tail() { return bytes_; }  // to append to
  [[nodiscard]] std::string_view view() const { return std::string_view(bytes_).substr(at_); }
  void written(std::size_t count);

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

}  // namespace gantry::net::zmtp
