// The PMIx or PMI server of a step on this node: gantry-pmix or gantry-pmi2. These are separate
// programs, which run beside the tasks, in their container and cgroup and as their user. The server
// sends the variables that its clients need in their environment, and exchanges data with the
// servers on the step's other nodes through grun (StepPeer). gantry-pmix makes a socket, over which
// the tasks reach it; for gantry-pmi2 each task is started with a socket of its own.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "noded/shim/io/step_io.h"
#include "noded/shim/shim.h"
#include "noded/shim/task.h"

namespace gantry::runtime {

inline constexpr Duration kMpiPatience = seconds(60);  // time until it must serve
// Bytes from other nodes' servers that this server has not taken yet. The server runs as the job's
// user, with libraries that the user may choose; waiting bytes are in the shim, whose memory is not
// limited by the job's limits.
inline constexpr std::size_t kMostMpiBacklog = 64u << 20;

class MpiServer {
 public:
  // Waits until tasks may start. Error unsupported: this build or the container lacks the server.
  static Result<std::unique_ptr<MpiServer>> start(const Shim& shim, const StepRequest& request,
                                                  const TaskPlace& place, Signals& signals);

  // Returns "NAME=value" for the task with this number on this node.
  [[nodiscard]] const std::vector<std::string>& environment(std::uint32_t task) const {
    return environments_[task];
  }
  // Descriptors for this task (TaskSpec::more); valid until let_go_of_sockets(), when all tasks
  // have theirs.
  [[nodiscard]] std::vector<int> sockets(std::uint32_t task) const;
  void let_go_of_sockets() { task_sockets_.clear(); }
  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] short events() const {
    return static_cast<short>(POLLIN | (out_at_ < out_.size() ? POLLOUT : 0));
  }
  void from_peer(std::uint32_t node, std::string_view bytes);
  // Does not block. If the server violates the protocol, or takes too little of what other nodes
  // sent, the step is told that it cannot continue.
  void serve(StepIo& io);
  // Call it when the tasks have ended: the server may clean up, within seconds.
  void end(StepIo& io);

 private:
  MpiServer(Fd socket, std::size_t tasks) : socket_(std::move(socket)), environments_(tasks) {}
  Result<void> await_ready(Signals& signals, const std::string& needs);
  void pass_on(StepIo& io);
  bool read();  // returns false if the server is gone
  void write();
  void give_up(StepIo& io);  // ends the server if it has failed

  Fd socket_;
  const char* fault_ = nullptr;
  std::string in_, out_;
  std::size_t out_at_ = 0;
  std::vector<std::vector<std::string>> environments_;
  std::vector<Fd> task_sockets_;
};

}  // namespace gantry::runtime
