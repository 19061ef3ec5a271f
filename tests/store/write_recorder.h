// Form of a recording of writes: a Recorded, followed by `size` octets, again and again.
#pragma once

#include <cstdint>

namespace gantry::store {

// What is written here counts as an acknowledgement: eight octets, the last durable event.
inline constexpr int kAckFd = 200;

enum class RecordedOp : std::uint8_t {
  write = 1,         // not durable before the next sync
  synced_write = 2,  // durable when it returns (O_DSYNC), and only itself
  sync = 3,          // all writes before it are durable
  ack = 4,
};

struct Recorded {
  RecordedOp op;
  std::uint8_t unused[3];
  std::uint32_t size;
  std::uint64_t offset;
};

}  // namespace gantry::store
