// SecureStream over a descriptor, with calls that block.
#include <array>

#include "common/net/secure_stream.h"
#include "common/net/socket.h"

namespace gantry::net {

Result<void> write_all(int fd, SecureStream& stream, Duration timeout) {
  const Deadline deadline(timeout);
  while (!stream.output().empty()) {
    ASSIGN(n, write_some(fd, stream.output()));
    stream.written(*n);
    if (*n > 0) continue;
    if (const auto ok = wait_for(fd, Wait::write, deadline); !ok) return ok;
  }
  return {};
}

Result<std::optional<Bytes>> read_frame(int fd, SecureStream& stream, Duration timeout) {
  const Deadline deadline(timeout);
  std::array<char, 16 << 10> buffer;
  while (true) {
    if (auto frame = stream.next()) return frame;
    if (stream.finished()) return std::optional<Bytes>();
    ASSIGN(n, read_some(fd, buffer.data(), buffer.size()));
    if (*n > 0) {
      TRY(stream.feed({buffer.data(), *n}));
      // The other end's hello may have arrived, and frames that waited for it can be sent now.
      if (stream.output().empty()) continue;
      TRY(write_all(fd, stream, timeout));
      continue;
    }
    if (!stream.output().empty()) {
      TRY(write_all(fd, stream, timeout));
    }
    TRY(wait_for(fd, Wait::read, deadline));
  }
}

}  // namespace gantry::net
