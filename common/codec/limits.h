// The most that a decoder accepts. A message beyond any of these limits is refused as malformed:
// the fault is the sender's, and the process that reads is not in danger.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gantry::codec {

inline constexpr std::size_t kMaxMessageBytes = 16u
                                                << 20;  // bytes of one encoded message or JSON text
inline constexpr int kMaxDepth = 24;                    // nested maps and arrays
inline constexpr std::uint32_t kMaxItems = 1u << 21;    // elements of one array or map
// Bytes of memory that the elements of a message's lists may take when decoded (their own size,
// without their strings, which the message itself bounds). This stops 16 MiB from becoming
// gigabytes.
inline constexpr std::size_t kMaxDecodedBytes = 256u << 20;

}  // namespace gantry::codec
