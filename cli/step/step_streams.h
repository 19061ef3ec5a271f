// The streams of a running step: the output of all tasks goes to our own output, our input to the
// first task, and signals to all tasks, until every node has reported that it is done.
//
// The output of one task keeps its order. It is written in whole lines, with labels as "RANK:
// line"; if there is only one task, its bytes are passed on as they come. A node whose stream is
// cut counts as a failure of its tasks. An attached process only sends input, and the step does not
// depend on it; only the launcher sends the end of input, signals and the size of the terminal.
// Messages between the PMI servers of the nodes are passed on from stream to stream.
//
// Everybody in the network may connect. A peer that has not sent a hello with the step's key is a
// stranger: their number is limited, a new one replaces the oldest, and once every node is
// connected no more are accepted.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/step/raw_terminal.h"
#include "cli/step/step_files.h"
#include "cli/step/step_options.h"
#include "cli/step/step_run.h"
#include "common/net/secure_stream.h"
#include "common/proto/step_io.h"
#include "common/proto/steps.h"
#include "common/result.h"

namespace gantry::cli {

// The source of the streams of the step's nodes. Each stream arrives as a connected socket.
class StreamSource {
 public:
  virtual ~StreamSource() = default;
  [[nodiscard]] virtual std::string address() const = 0;  // LaunchStep::io_address
  [[nodiscard]] virtual Bytes ticket() const = 0;         // LaunchStep::io_ticket
  [[nodiscard]] virtual int descriptor() const = 0;  // readable when take() may return a connection
  // Returns a new connection, which the caller has to close. Error limit_exceeded: no descriptors
  // are left.
  virtual Result<std::optional<int>> take() = 0;
};

std::int64_t monotonic_us();  // a clock that nobody can set

// How the tasks of one node, or of several nodes, have ended.
struct StepEnd {
  ExitStatus largest;  // as in shells: a signal is 128 + its number
  Usage usage;
  bool timed_out = false;  // the step's own time limit has ended them
  void add(const StepEnd& other);
};

struct StepResult {
  int exit_status = 0;         // of the whole command: the largest of the tasks'
  std::vector<StepEnd> nodes;  // in the order of the permission
};

// `permission` may stand for several steps, one for each component of a heterogeneous job. It then
// has all of their nodes, and ranks count through all of them.
class StepStreams {
 public:
  // `files`: the destinations of output that goes to files here; nullptr: all output goes to this
  // process's own.
  StepStreams(std::string program, const proto::StepPermission& permission, Bytes key,
              const StepOptions& options, const StepFiles* files = nullptr);
  ~StepStreams();
  StepStreams(const StepStreams&) = delete;
  StepStreams& operator=(const StepStreams&) = delete;

  // For an attached process, before run(): the step does not run any more on this node.
  void leave_out(std::size_t node);

  // Runs until all nodes are done. An attached process also returns when a signal arrives;
  // exit_status is then 128 + the signal. SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2
  // stay blocked and are forwarded to the tasks; a second SIGINT within a second ends the step.
  Result<StepResult> run(StreamSource& source);

 private:
  struct Stream {
    std::string node;  // "" until its StepHello has come
    int fd = -1;
    net::SecureStream crypt;
    std::uint32_t first_rank = 0, tasks = 0;
    std::uint32_t index = 0;  // index of the node in the permission
    bool done = false;        // StepNodeDone has come
    bool closed = false;
    [[nodiscard]] bool is_strange() const { return node.empty() && !closed; }
  };
  struct Line {  // unfinished line of one task and stream
    std::string text;
  };
  enum class TaskState : std::uint8_t { unknown, failed, running, abnormal, exited };

  // step_signals.cc
  void on_signal(int signal);
  void on_interrupt();
  void signal_tasks(int signal);
  void force_end();    // ends the step and reports it
  void say_aborted();  // prints once that the end of the step is awaited
  void say_status();   // prints which tasks run and which have ended
  [[nodiscard]] std::string step_name() const;
  [[nodiscard]] std::optional<std::int64_t> deadline_us() const;
  [[nodiscard]] int milliseconds_left() const;
  void end_in_time();  // call it when the deadline has come

  // step_input.cc
  void read_input();
  [[nodiscard]] bool reads_input(const Stream& stream) const;  // whether tasks there read it
  [[nodiscard]] bool wants_input() const;

  // step_strangers.cc
  Result<void> accept(StreamSource& source);
  bool drop_oldest_stranger();  // returns false if there is none
  void forget_strangers();      // strangers who have disconnected

  void read(Stream& stream);
  void write(Stream& stream);
  void lost(Stream& stream, const std::string& why);
  void handle(Stream& stream, const proto::StepFrame& frame);
  void greet(Stream& stream, const proto::StepHello& hello);
  void pass_on(const Stream& from, const proto::StepPeer& peer);
  void tell_peer(std::uint32_t node, const proto::StepFrame& frame);
  void aborted(const Stream& stream, const proto::StepAbort& abort);
  void tell_ended(const Stream& gone);
  void end_all();
  void send_window();
  void say(const std::string& line) const;  // prints on standard error
  void output(const proto::TaskOutput& output);
  void say_endings();
  void task_exit(const Stream& stream, const proto::TaskExit& exit);
  [[nodiscard]] int fd_of(std::uint32_t rank, bool std_err) const;
  template <class What>
  void for_tasks(const Stream& stream, What&& what) const {
    const proto::StepNode& node = permission_.nodes[stream.index];
    for (std::uint32_t i = 0; i < node.tasks; ++i) what(node.rank(i));
  }
  [[nodiscard]] bool attached() const { return options_.role == StepRole::attached; }
  void end_for_lateness();
  void give_up_absent();
  void flush_lines();
  [[nodiscard]] std::string labelled(std::uint32_t rank, std::string_view line) const;
  void send(Stream& stream, const proto::StepFrame& frame);
  void worst(const Stream& stream, ExitStatus status);
  [[nodiscard]] bool finished() const;
  [[nodiscard]] bool all_here() const;  // true when each node's stream has come

  std::string program_;
  const proto::StepPermission& permission_;
  Bytes key_;
  const StepOptions& options_;
  const StepFiles* files_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::map<std::pair<std::uint32_t, bool>, Line> lines_;
  StepEndings endings_;
  // Frames for nodes whose streams have not come yet.
  std::map<std::uint32_t, std::vector<proto::StepFrame>> early_;
  std::optional<RawTerminal> raw_;
  std::size_t nodes_done_ = 0;
  bool input_open_ = true;
  bool killing_ = false;
  bool aborting_ = false;           // the user was told that the end is awaited
  std::int64_t terminated_us_ = 0;  // when SIGTERM has come; 0 = not yet
  std::vector<TaskState> tasks_;    // by rank
  std::int64_t abort_said_us_ = 0;  // when the user was last told that the end is awaited
  std::int64_t interrupted_us_ = 0;
  std::int64_t first_end_us_ = 0;  // time of a task's first end; 0 = none yet
  std::int64_t begun_us_ = 0;      // time when run() began
  std::vector<bool> heard_;        // by node: its stream has come, or none will
  std::optional<int> detached_;    // signal that ended an attached run
  StepResult result_;
};

}  // namespace gantry::cli
