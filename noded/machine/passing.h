// Messages that carry one descriptor, for example between noded and the shims' template. The socket
// is a SEQPACKET.
#pragma once

#include <string>
#include <string_view>

#include "noded/machine/files.h"

namespace gantry::runtime {

inline constexpr std::size_t kMaxPassedBytes = 4096;

// fd -1: no descriptor is sent. False: the other end is gone, or nothing could be sent.
bool pass(const Fd& socket, std::string_view bytes, int fd);

struct Passed {
  std::string bytes;  // "" = the other end is gone
  Fd fd;
};
Passed take_passed(const Fd& socket);  // waits for a message

}  // namespace gantry::runtime
