// The unix sockets that this daemon listens on: one that is made anew in a directory, and who is at
// the other end of a connection to it, as the kernel says.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "common/net/socket.h"
#include "common/result.h"
#include "common/types.h"

namespace gantry::node {

// Listens on `name` in the directory that is open as `directory`, and replaces a socket of that
// name. Every user of the machine may connect. `whose` is for the error: "a job's socket".
Result<net::Socket> listen_in(int directory, const char* name, const char* whose);

struct UnixPeer {
  Uid uid{};
  pid_t pid = 0;  // 0 = a process of another PID namespace
};
// The process that connected, as it was then.
std::optional<UnixPeer> peer_of(int fd);

// The descriptor of a directory, to find names in it; the error io_error.
Result<net::Socket> open_directory(const std::string& path);

}  // namespace gantry::node
