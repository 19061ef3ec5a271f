// A recording of writes is a sequence of entries, each one a Recorded followed by `size` bytes.
#pragma once

#include <cstdint>

namespace gantry::store {

// Writing eight bytes here acknowledges an event: they are the number of the last durable event.
inline constexpr int kAckFd = 200;

enum class RecordedOp : std::uint8_t {
  write = 1,         // not durable before the next sync
  synced_write = 2,  // durable itself when it returns (O_DSYNC), but not the writes before it
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
