// What a task wrote before it ended is in its pipe when it ends, and the pipe holds so much at
// most. A process that it left behind may go on writing faster than anybody reads, so "until it is
// empty" may never come.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <functional>

namespace gantry::runtime {

inline constexpr std::size_t kTerminalRoom = 64 << 10;  // bytes that a terminal may hold

// Calls `read_some` (the bytes that it has read; 0 = nothing more for now, or closed) until nothing
// is there, or as much was read as the pipe can hold. Works for a terminal as well.
inline void read_what_is_there(int fd, const std::function<std::size_t()>& read_some) {
  const int room = ::fcntl(fd, F_GETPIPE_SZ);
  std::size_t left = room > 0 ? static_cast<std::size_t>(room) : kTerminalRoom;
  while (left > 0) {
    const std::size_t n = read_some();
    if (n == 0) return;
    left -= std::min(left, n);
  }
}

}  // namespace gantry::runtime
