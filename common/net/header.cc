#include "common/net/header.h"

#include <fmt/core.h>

namespace gantry::net {

HeaderBytes::HeaderBytes(const MessageHeader& header) {
  std::size_t at = 0;
  const auto put = [&](std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_[at++] = static_cast<char>(value >> (8 * i));
  };
  put(header.protocol, 2);
  put(header.type, 2);
  put(header.request, 8);
}

Result<MessageHeader> decode_header(std::string_view frame) {
  if (frame.size() != kHeaderBytes)
    return fail(ErrorCode::malformed, fmt::format("a message header has {} bytes, this one has {}",
                                                  kHeaderBytes, frame.size()));
  const auto get = [&](std::size_t at, int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(frame[at + static_cast<std::size_t>(i)])}
               << (8 * i);
    return value;
  };
  return MessageHeader{.protocol = static_cast<std::uint16_t>(get(0, 2)),
                       .type = static_cast<std::uint16_t>(get(2, 2)),
                       .request = get(4, 8)};
}

}  // namespace gantry::net
