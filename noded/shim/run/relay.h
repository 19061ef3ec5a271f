// The mode `relay`: copies the streams of steps between the node's network and a reader in a job.
//
// A program in a job never has an internet socket of the host: such a socket belongs to the host's
// network for good, may be disconnected and connected again to anything, or be made to listen. The
// reader has one end of a pair of unix sockets; this process has the other one and the connection.
#pragma once

#include <cstddef>

namespace gantry::runtime {

inline constexpr std::size_t kMostRelayed = 4'096;  // streams of one relay; further ones are closed

// Descriptor 3 is noded's socket (SEQPACKET); each message has two descriptors, the connection and
// the end of the pair. Returns when noded has closed its end, or has gone, and all streams have
// ended. Nothing is held here: what is not taken yet waits in the kernel's buffers.
int serve_as_relay();

}  // namespace gantry::runtime
