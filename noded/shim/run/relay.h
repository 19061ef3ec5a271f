// The mode `relay`: copies the streams of steps between the node's network and a reader in a job.
//
// A program in a job never gets an internet socket of the host. Such a socket stays in the host's
// network; the program could disconnect it and connect it to anything, or make it listen. So the
// reader gets one end of a pair of unix sockets, and this process has the other end and the
// connection.
#pragma once

#include <cstddef>

namespace gantry::runtime {

inline constexpr std::size_t kMostRelayed = 4'096;  // streams of one relay; further ones are closed

// Descriptor 3 is noded's socket (SEQPACKET). Each message on it has two descriptors: the
// connection, and the end of the pair. The call returns when noded has closed its end or is gone,
// and all streams have ended. The relay keeps no bytes: what is not taken yet waits in the kernel's
// buffers.
int serve_as_relay();

}  // namespace gantry::runtime
