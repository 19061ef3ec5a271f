// What a door does: it accepts connections, checks the password in the header of the PROXY
// protocol, and copies bytes between those that have it and the server in the job.
//
// A connection without the password is closed when its first octets are wrong, or after
// kStrangerTime. A header with the command LOCAL asks whether a server listens in the job: the
// answer is an orderly end of the connection, or a reset.
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
inline constexpr std::size_t kMostStrangers =
    128;  // connections without it; one more replaces the oldest
inline constexpr Duration kStrangerTime = seconds(2);
inline constexpr std::size_t kDoorPiece = 64u << 10;

struct DoorPlan {
  int listening = -1;        // descriptor
  std::uint16_t inside = 0;  // the port on 127.0.0.1, in this process's network
  std::string password;
};

// Serves until the listening socket fails or the process is killed. Returns an exit status.
int serve_door(const DoorPlan& plan);

// How many descriptors serve_door() needs at most.
inline constexpr std::size_t kDoorFiles = 2 * kMostVisitors + kMostStrangers + 64;

// The system calls that a door may make once it serves. Any other call ends it.

// Returns false if the kernel refuses the filter. The process must have no_new_privs.
bool keep_only_calls_of_a_door();

}  // namespace gantry::runtime
