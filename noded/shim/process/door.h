// The door of a service replica: a process beside the job, through which gates (gantry-gate) reach
// the server in it.
//
// The shim opens the listening socket in the node's network, before anything of the job runs, so
// that a port that is in use fails the start. Once the container runs, the door's process enters
// its network and its cgroup, becomes the job's user without any capability, gives up access to
// files (Landlock) and most system calls, and serves (door_server.h). It ends with the job, and
// with the shim.
#pragma once

#include "common/result.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

class Door {
 public:
  // Listens, if the job has a door.
  static Result<Door> open(const LaunchRequest& request);
  // Starts the process. `inside` is the process id, in the shim's PID namespace, of a process in
  // the job's network; 0 = the job has the node's network.
  Result<void> start(const Shim& shim, int inside);

  Door() = default;
  Door(Door&&) noexcept = default;
  Door& operator=(Door&& other) noexcept;
  ~Door() { end(); }
  void end();  // returns when the process has ended

 private:
  Fd listening_;
  Fd process_;  // pidfd
};

// The mode `door ADDRESS PORT INSIDE` of gantry-shim: only a door, in the network in which it is
// started, with the password on standard input. For examining one, and for attacking one in tests.
int serve_door_alone(const std::string& address, const std::string& port,
                     const std::string& inside);

}  // namespace gantry::runtime
