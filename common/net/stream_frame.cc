#include "common/net/stream_frame.h"

#include <fmt/core.h>

namespace gantry::net {

namespace {
constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kKeptBytes = 64u << 10;  // bytes of buffer that are kept when it is empty
}  // namespace

void append_frame(Bytes& out, const MessageHeader& header, std::string_view body) {
  const auto length = static_cast<std::uint32_t>(kHeaderBytes + body.size());
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>((length >> (8 * i)) & 0xff));
  out.append(HeaderBytes(header).view());
  out.append(body);
}

Result<std::optional<StreamMessage>> StreamFrames::next() {
  const std::string_view rest = std::string_view(buffer_).substr(start_);
  if (rest.size() < kLengthBytes) return std::optional<StreamMessage>{};
  std::uint32_t length = 0;
  for (int i = 0; i < 4; ++i)
    length |= std::uint32_t{static_cast<std::uint8_t>(rest[static_cast<std::size_t>(i)])}
              << (8 * i);
  if (length < kHeaderBytes || length > largest_)
    return fail(ErrorCode::malformed, fmt::format("a message of {} bytes; {} to {} are allowed",
                                                  length, kHeaderBytes, largest_));
  if (rest.size() < kLengthBytes + length) return std::optional<StreamMessage>{};
  const std::string_view frame = rest.substr(kLengthBytes, length);
  ASSIGN(header, decode_header(frame.substr(0, kHeaderBytes)));
  StreamMessage message{*header, Bytes(frame.substr(kHeaderBytes))};
  start_ += kLengthBytes + length;
  drop_taken();
  return std::optional<StreamMessage>(std::move(message));
}

void StreamFrames::drop_taken() {
  if (start_ == buffer_.size() && buffer_.capacity() > kKeptBytes)
    buffer_ = Bytes();  // frees the memory of a large message
  else if (start_ == buffer_.size() || start_ > (1u << 20))
    buffer_.erase(0, start_);
  else
    return;
  start_ = 0;
}

}  // namespace gantry::net
