// The PMIx or PMI server of a step on this node: gantry-pmix or gantry-pmi2, programs of their own
// that run beside the tasks, in their container and cgroup and as their user. It says what its
// clients need in their environment, and speaks with its kind on the step's other nodes by way of
// grun (StepPeer). The tasks reach gantry-pmix over a socket that it makes, and gantry-pmi2 over
// one that each is started with.
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

inline constexpr Duration kMpiPatience = seconds(60);  // until it serves
// Bytes of its peers that it has not taken yet. It runs as the job's user, with libraries that the
// user may choose; what waits for it waits in the shim, which no limit of the job holds.
inline constexpr std::size_t kMostMpiBacklog = 64u << 20;

class MpiServer {
 public:
  // Waits until tasks may start. unsupported: this build or the container has none.
  static Result<std::unique_ptr<MpiServer>> start(const Shim& shim, const StepRequest& request,
                                                  const TaskPlace& place, Signals& signals);

  // "NAME=value" for the task of this number on this node.
  [[nodiscard]] const std::vector<std::string>& environment(std::uint32_t task) const {
    return environments_[task];
  }
  // Descriptors that this task is to have (TaskSpec::more), until all have theirs.
  [[nodiscard]] std::vector<int> sockets(std::uint32_t task) const;
  void let_go_of_sockets() { task_sockets_.clear(); }
  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] short events() const;
  void from_peer(std::uint32_t node, std::string_view bytes);
  // Without blocking. Where the server breaks the rules of its frames, or takes too little of what
  // its peers say, the step is told that it cannot go on.
  void serve(StepIo& io);
  void end(StepIo& io);  // the tasks have ended: it may tidy up, within seconds

 private:
  MpiServer(Fd socket, std::size_t tasks) : socket_(std::move(socket)), environments_(tasks) {}
  Result<void> await_ready(Signals& signals, const std::string& needs);
  void pass_on(StepIo& io);
  bool read();  // false: it has gone
  void write();
  void give_up(StepIo& io);  // when there is a fault

  Fd socket_;
  const char* fault_ = nullptr;
  std::string in_, out_;
  std::size_t out_at_ = 0;
  std::vector<std::vector<std::string>> environments_;
  std::vector<Fd> task_sockets_;
};

}  // namespace gantry::runtime
