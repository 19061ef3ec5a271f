// Reads the last output of a task. What the task wrote is in its pipe when the task ends, and a
// pipe holds a limited number of bytes. A process that the task left behind may go on writing
// faster than anybody reads, so a reader that waits until the pipe is empty may wait for ever.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <functional>

namespace gantry::runtime {

inline constexpr std::size_t kTerminalRoom = 64 << 10;  // bytes that a terminal may hold

// Calls `read_some` until nothing is there, or until as much was read as the pipe can hold.
// `read_some` returns how many bytes it has read; 0 = nothing more for now, or closed. Works for a
// terminal as well.
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
