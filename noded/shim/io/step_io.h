// The way of the standard files of a step's tasks to their reader. It is the seam between the step
// shim, which has the tasks and their pipes, and the connection to grun.
//
// The step shim polls fd() for events() beside its own descriptors and calls ready(). Everything is
// non-blocking, in one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "common/job/job_state.h"
#include "common/result.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

// The requests that a StepIo may make of the shim, from within ready().
class StepControl {
 public:
  virtual ~StepControl() = default;
  virtual void input(std::string_view bytes) = 0;  // to task 0 of the step, if it runs here
  virtual void close_input() = 0;
  virtual void signal(int number) = 0;                       // to all tasks here
  virtual void window(const proto::TerminalSize& size) = 0;  // new size of task 0's terminal
  // Bytes from the PMI server of another node of the step, for the one here.
  virtual void peer(std::uint32_t node, std::string_view bytes) = 0;
  [[nodiscard]] virtual bool input_full() const = 0;  // true: do not read more input for now
};

class StepIo {
 public:
  virtual ~StepIo() = default;
  virtual void started(std::uint32_t tasks) = 0;
  // stream 1 = stdout, 2 = stderr; `task` counts from 0 on this node.
  virtual void output(std::uint32_t task, int stream, std::string_view bytes) = 0;
  virtual void closed(std::uint32_t task, int stream) = 0;
  virtual void exited(std::uint32_t task, ExitStatus status, std::string_view message) = 0;
  // peer() sends bytes of this node's PMI server to the one of another node, or to all others.
  // aborted() says that a task called MPI_Abort, or, without a status, that the task is at fault.
  virtual void peer(std::uint32_t node, std::string_view bytes) = 0;
  virtual void aborted(std::uint32_t rank, std::optional<std::int32_t> status,
                       std::string_view message) = 0;
  // A line for the user: somebody's message, which gets the client's name in front; a word of the
  // shim; or the shim's word that the tasks are being ended.
  enum class Notice : std::uint8_t { message, word, end };
  virtual void notice(std::string_view text, Notice kind) = 0;
  // Is so much queued already that the shim must stop reading from the tasks, so that they wait?
  [[nodiscard]] virtual bool full() const = 0;
  [[nodiscard]] virtual int fd() const = 0;  // -1 = nothing to poll
  [[nodiscard]] virtual short events() const = 0;
  virtual void ready(short events, StepControl& control) = 0;
  virtual void look_at_input(const StepControl& control) = 0;  // before each events()
  // Is the other side gone for good? Then the shim kills the tasks.
  [[nodiscard]] virtual bool lost() const = 0;
  // Sends what is queued and then the end, within a few seconds.
  virtual void finish(const ExitRecord& record) = 0;
};

// Chooses by request.io_address; "" means that nobody reads (the tasks' standard files are files or
// /dev/null).
Result<std::unique_ptr<StepIo>> make_step_io(const Shim& shim, const StepRequest& request);

}  // namespace gantry::runtime
