// SecureStream over a descriptor, with calls that block.
#include <array>

#include "common/net/secure_stream.h"
#include "common/net/socket.h"

namespace gantry::net {

Result<void> write_all(int fd, SecureStream& stream, Duration timeout) {
  const Deadline deadline(timeout);
  while (!stream.output().empty()) {
    const auto n = write_some(fd, stream.output());
    if (!n) return tl::unexpected(n.error());
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
    const auto n = read_some(fd, buffer.data(), buffer.size());
    if (!n) return tl::unexpected(n.error());
    if (*n > 0) {
      if (const auto ok = stream.feed({buffer.data(), *n}); !ok) return tl::unexpected(ok.error());
      // The other end's hello may have arrived, and frames that waited for it can be sent now.
      if (stream.output().empty()) continue;
      if (const auto ok = write_all(fd, stream, timeout); !ok) return tl::unexpected(ok.error());
      continue;
    }
    if (!stream.output().empty()) {
      if (const auto ok = write_all(fd, stream, timeout); !ok) return tl::unexpected(ok.error());
    }
    if (const auto ok = wait_for(fd, Wait::read, deadline); !ok) return tl::unexpected(ok.error());
  }
}

}  // namespace gantry::net
