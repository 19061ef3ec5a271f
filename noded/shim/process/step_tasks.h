// The tasks of one step on this node, and their pipes.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "noded/shim/io/step_io.h"
#include "noded/shim/process/step_mpi.h"
#include "noded/shim/task.h"

struct rusage;

namespace gantry::runtime {

// Reads the last output of a task. What the task wrote is in its pipe when the task ends, and a
// pipe holds a limited number of bytes. A process that the task left running may write faster than
// the reader reads, so waiting until the pipe is empty could take forever.

inline constexpr std::size_t kTerminalRoom = 64 << 10;  // bytes that a terminal may hold

// Calls `read_some` until nothing is left, or until as much was read as the pipe can hold.
// `read_some` returns the number of bytes read; 0 = nothing more for now, or closed. Works for a
// terminal as well.
inline void read_what_is_there(int fd, const std::function<std::size_t()>& read_some) {
  const int room = ::fcntl(fd, F_GETPIPE_SZ);
  std::size_t left = room > 0 ? static_cast<std::size_t>(room) : kTerminalRoom;
  while (left > 0) {
    const std::size_t n = read_some();
    if (n == 0) return;
    left -= std::min(left, n);
  }
}

class StepTasks {
 public:
  StepTasks(const Shim& shim, const StepRequest& request, StepIo& io)
      : shim_(shim), request_(request), io_(io) {}

  Result<void> start(Signals& signals);
  // In each round of its loop the shim calls these: they reap ended tasks (after SIGCHLD), and move
  // output and input.
  void collect_exits();
  void move_output();
  void write_input() {
    for (Task& task : tasks_) write_input(task);
  }

  // true: at least one task has not ended
  [[nodiscard]] bool running() const {
    return std::ranges::any_of(tasks_, [](const Task& t) { return !t.status; });
  }
  void drain();  // reads what ended tasks left in their pipes
  void input(std::string_view bytes);
  void close_input();
  [[nodiscard]] bool input_full() const;
  void signal(int number);
  void window(const proto::TerminalSize& size);
  void peer(std::uint32_t node, std::string_view bytes) {
    if (mpi_) mpi_->from_peer(node, bytes);
  }
  // moves what the PMI server says; does nothing without one
  void serve_mpi() {
    if (mpi_ && !io_.full()) mpi_->serve(io_);
  }
  void end_mpi() {
    if (mpi_) mpi_->end(io_);
  }

  // The descriptors to poll: readable outputs (none while io is full), and the input if bytes
  // wait for it.
  struct Wanted {
    int fd;
    short events;
  };
  [[nodiscard]] std::vector<Wanted> wanted() const;
  [[nodiscard]] std::vector<ExitStatus> statuses() const;
  // What the ended tasks and their children used, from the kernel's counters of processes.
  [[nodiscard]] const Usage& usage() const { return usage_; }

 private:
  static constexpr std::size_t kMaxInput = 256 << 10;

  struct Stream {
    Fd fd;  // read end; empty = the output is a file, or was closed
    int number = 1;
  };
  struct Task {
    int pid = 0;
    std::vector<Stream> streams;
    std::optional<ExitStatus> status;
    std::string error;
    Fd input;  // empty: it reads nothing, or not any more
    std::string pending_input{};
  };

  Result<void> start_in(const TaskPlace& place);
  Result<TaskSpec> prepare(std::uint32_t index, std::vector<Fd>& given);
  Result<void> give_terminal(std::uint32_t index, TaskSpec& spec, std::vector<Fd>& given);
  void take_terminal();
  // The file name that a pattern gives for a task here.
  [[nodiscard]] Result<std::string> file_of(std::uint32_t index, const std::string& pattern) const;
  Result<int> input_of(std::uint32_t index, std::vector<Fd>& given);
  Result<int> output_of(std::uint32_t index, const std::string& pattern, int number, Task& task,
                        std::vector<Fd>& given);
  std::size_t read_stream(std::uint32_t index, Stream& stream);
  // Reads only what the task itself wrote.
  void read_to_end(std::uint32_t index, Stream& stream);
  [[nodiscard]] bool reads_input(std::uint32_t index) const;
  void write_input(Task& task);
  void add_usage(const rusage& used);
  [[nodiscard]] std::vector<std::uint16_t> cpus_of(std::uint32_t index) const;

  const Shim& shim_;
  const StepRequest& request_;
  StepIo& io_;
  std::vector<Task> tasks_;
  std::vector<VisibleGpu> gpus_;  // the step's GPUs, with the tasks' names for them
  std::unique_ptr<MpiServer> mpi_;
  Fd terminal_socket_;  // on which task 0 passes its terminal's other side
  Fd terminal_;  // the other side of the terminal; task 0's input and output are copies of it
  bool close_input_ = false;
  Usage usage_;
};

}  // namespace gantry::runtime
