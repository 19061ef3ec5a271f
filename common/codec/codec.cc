// Definitions that the codecs of all types share.
#include <fmt/core.h>

#include "common/codec/define.h"

namespace gantry::codec {

Error oversize(std::size_t bytes) {
  return {ErrorCode::malformed,
          fmt::format("a message of {} bytes, at most {} are allowed", bytes, kMaxMessageBytes)};
}

Error trailing() {
  return {ErrorCode::malformed, "bytes behind the end of the message"};
}

}  // namespace gantry::codec
