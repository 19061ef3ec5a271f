// The 12 bytes in front of every message: first of its two frames (the second is the msgpack body).
//
//   bytes 0..1   protocol version of the sender     little endian throughout
//   bytes 2..3   message number (proto/messages.def)
//   bytes 4..11  request id, chosen by the asker; a reply carries it back
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "common/result.h"

namespace gantry::net {

inline constexpr std::size_t kHeaderBytes = 12;
inline constexpr std::size_t kFrames = 2;                 // header and body
inline constexpr std::int64_t kMaxFrameBytes = 16 << 20;  // bytes of one frame, in either direction

struct MessageHeader {
  std::uint16_t protocol = 0;
  std::uint16_t type = 0;
  std::uint64_t request = 0;
  friend bool operator==(const MessageHeader&, const MessageHeader&) = default;
};

class HeaderBytes {
 public:
  explicit HeaderBytes(const MessageHeader& header);
  [[nodiscard]] std::string_view view() const { return {bytes_.data(), bytes_.size()}; }

 private:
  std::array<char, kHeaderBytes> bytes_;
};

// Any 12 bytes are a header; any other length is malformed. The caller has to check the version.
Result<MessageHeader> decode_header(std::string_view frame);

}  // namespace gantry::net
