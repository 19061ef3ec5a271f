// What a door does: it takes connections, looks for the password in the header of the PROXY
// protocol, and copies bytes between those that have it and the server in the job.
//
// Who connects without the password gets nothing: the connection is closed when its first octets
// are wrong, or after kStrangerTime. A header with the command LOCAL is the question whether
// anybody listens in the job: the answer is an orderly end of the connection, or a reset.
//
// Of what a slow reader does not take, at most kPiece octets are kept for each direction, and its
// writer waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/time/time.h"

namespace gantry::runtime {

inline constexpr std::size_t kMostVisitors = 4'096;  // connections with the password
inline constexpr std::size_t kMostStrangers = 128;   // without; the oldest goes for one more
inline constexpr Duration kStrangerTime = seconds(2);
inline constexpr std::size_t kDoorPiece = 64u << 10;

struct DoorPlan {
  int listening = -1;        // descriptor
  std::uint16_t inside = 0;  // the port on 127.0.0.1, in the network of this process
  std::string password;
};

// Serves until the listening socket fails; it is ended with its process. Returns an exit status.
int serve_door(const DoorPlan& plan);

// How many descriptors serve_door() needs at most.
inline constexpr std::size_t kDoorFiles = 2 * kMostVisitors + kMostStrangers + 64;

// The system calls that a door makes once it serves. Everything else ends it.

// False: the kernel would not take the filter. The process must have no way to gain privileges.
bool keep_only_calls_of_a_door();

}  // namespace gantry::runtime
