// The template's side of noded/runtime/shim_process.h: it waits for noded's orders and forks
// shims.
//
// An order is a message with the words of a shim, each ended by NUL, and the locked shim.lock. The
// answer is the process id and, as a descriptor, the pidfd. The template ends when noded's end of
// the socket closes; the shims live on.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gantry::runtime {

// argv: gantry-shim template STATE_DIR PADDING; the socket is descriptor 3. In each process that it
// forks, the call returns the words of a shim, and that process goes on as if it had been started
// with them. In the template itself it returns nothing, when noded is gone.
std::optional<std::vector<std::string>> serve_as_template(int argc, char** argv);

// The mode `relay`: copies the streams of steps between the node's network and a reader in a job.
//
// A program in a job never gets an internet socket of the host. Such a socket stays in the host's
// network; the program could disconnect it and connect it to anything, or make it listen. So the
// reader gets one end of a pair of unix sockets, and this process has the other end and the
// connection.

inline constexpr std::size_t kMostRelayed = 4'096;  // streams of one relay; further ones are closed

// Descriptor 3 is noded's socket (SEQPACKET). Each message on it has two descriptors: the
// connection, and the end of the pair. The call returns when noded has closed its end or is gone,
// and all streams have ended. The relay keeps no bytes: what is not taken yet waits in the kernel's
// buffers.
int serve_as_relay();

}  // namespace gantry::runtime
