// Open descriptors on their way to another process of this machine.
#pragma once

#include <span>

namespace gantry::net {

// Sends one byte and with it these descriptors, at most 8, to the other end of a Unix socket.
// `flags` as for sendmsg(2). False: nothing was sent.
bool pass_descriptors(int socket, std::span<const int> fds, int flags);

}  // namespace gantry::net
