// What a decoder accepts, at most. Hit any of these and the message is refused as malformed; the
// sender is at fault, never the process that reads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gantry::codec {

inline constexpr std::size_t kMaxMessageBytes = 16u << 20;  // one encoded message, one JSON text
inline constexpr int kMaxDepth = 24;                        // nested maps and arrays
inline constexpr std::uint32_t kMaxItems = 1u << 21;        // elements of one array or map
// Memory that the elements of a message's lists may take once decoded (their own size, without
// their strings, which are bounded by the message): stops 16 MiB from becoming gigabytes.
inline constexpr std::size_t kMaxDecodedBytes = 256u << 20;

}  // namespace gantry::codec
