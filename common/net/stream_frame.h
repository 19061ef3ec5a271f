// Messages over a local stream socket: u32 length (little endian), then the 12-byte header and the
// msgpack body together. It is used on the socket of a job. StreamFrames does no I/O.
//
//   length   bytes that follow: kHeaderBytes .. kMaxStreamMessage
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/net/header.h"
#include "common/result.h"
#include "common/types.h"

namespace gantry::net {

inline constexpr std::size_t kMaxStreamMessage = (16u << 20) + kHeaderBytes;

struct StreamMessage {
  MessageHeader header;
  Bytes body;
};

void append_frame(Bytes& out, const MessageHeader& header, std::string_view body);

class StreamFrames {
 public:
  // `largest` is the greatest length that a message may have.
  explicit StreamFrames(std::size_t largest = kMaxStreamMessage) : largest_(largest) {}
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next complete message; nullopt if more bytes are needed. The error malformed is final.
  Result<std::optional<StreamMessage>> next();
  // Bytes that were fed and not taken yet.
  [[nodiscard]] std::size_t held_bytes() const { return buffer_.size() - start_; }

 private:
  void drop_taken();

  std::size_t largest_;
  Bytes buffer_;
  std::size_t start_ = 0;
};

}  // namespace gantry::net
