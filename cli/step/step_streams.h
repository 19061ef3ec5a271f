// The streams of a running step: output of all tasks to our own, our input to the first task,
// signals to all, until every node has said that it is done.
//
// Output keeps its order within a task. Whole lines are written, with labels "RANK: line"; a single
// task's bytes are passed on as they come. A node whose stream is cut counts as a failure of its
// tasks. One who is attached sends input only, and whether it stays or goes means nothing to the
// step; an end of input, signals and a size of the terminal are the launcher's to send.
// What the PMI servers of the nodes say to each other is passed on among the streams.
//
// Everybody in the network may connect. Who has not said hello under the step's key is a stranger:
// there are so many at a time, the oldest makes room, and once each node is here none is let in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/step/raw_terminal.h"
#include "cli/step/step_endings.h"
#include "cli/step/step_options.h"
#include "common/net/secure_stream.h"
#include "common/proto/step_io.h"
#include "common/proto/steps.h"
#include "common/result.h"

namespace gantry::cli {

// Where the streams of the step's nodes come from; each arrives as a connected socket.
class StreamSource {
 public:
  virtual ~StreamSource() = default;
  [[nodiscard]] virtual std::string address() const = 0;  // LaunchStep::io_address
  [[nodiscard]] virtual Bytes ticket() const = 0;         // LaunchStep::io_ticket
  [[nodiscard]] virtual int descriptor() const = 0;       // readable: take() may have one
  // A new connection, for the caller to close. limit_exceeded: there are no descriptors left.
  virtual Result<std::optional<int>> take() = 0;
};

// Of a node's tasks, or of several nodes'.
struct StepEnd {
  ExitStatus largest;  // as shells count: 128 + signal
  Usage usage;
  void add(const StepEnd& other);
};

struct StepResult {
  int exit_status = 0;         // as a command's: largest of the tasks; 128 + signal
  std::vector<StepEnd> nodes;  // in the permission's order
};

// `permission` may stand for several steps, of components of a heterogeneous job: all of their
// nodes, with ranks that go through all of them.
class StepStreams {
 public:
  StepStreams(std::string program, const proto::StepPermission& permission, Bytes key,
              const StepOptions& options);
  ~StepStreams();
  StepStreams(const StepStreams&) = delete;
  StepStreams& operator=(const StepStreams&) = delete;

  // Attached, before run(): nothing of the step runs on this node any more.
  void leave_out(std::size_t node);

  // Until all nodes are done; attached, also until a signal comes: exit_status is 128 + it then.
  // Blocks SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 for good
  // and forwards them; a second SIGINT within a second ends the step.
  Result<StepResult> run(StreamSource& source);

 private:
  struct Stream {
    std::string node;  // "" until its StepHello
    int fd = -1;
    net::SecureStream crypt;
    std::uint32_t first_rank = 0, tasks = 0;
    std::uint32_t index = 0;  // of the node in the permission
    bool done = false;        // StepNodeDone has come
    bool closed = false;
    [[nodiscard]] bool is_strange() const { return node.empty() && !closed; }
  };
  struct Line {  // a line in the making, of one task and stream
    std::string text;
  };

  // step_strangers.cc
  Result<void> accept(StreamSource& source);
  bool drop_oldest_stranger();  // false: there is none
  void forget_strangers();      // who have gone

  void read(Stream& stream);
  void write(Stream& stream);
  void lost(Stream& stream, const std::string& why);
  void handle(Stream& stream, const proto::StepFrame& frame);
  void greet(Stream& stream, const proto::StepHello& hello);
  void pass_on(const Stream& from, const proto::StepPeer& peer);
  void tell_peer(std::uint32_t node, const proto::StepFrame& frame);
  void aborted(const Stream& stream, const proto::StepAbort& abort);
  void wait_in_vain(const Stream& gone);
  void end_all();
  void send_window();
  void say(const std::string& line) const;  // on standard error
  void output(const proto::TaskOutput& output);
  void say_endings();
  void task_exit(const Stream& stream, const proto::TaskExit& exit);
  void read_input();
  [[nodiscard]] bool attached() const { return options_.role == StepRole::attached; }
  [[nodiscard]] std::optional<std::int64_t> deadline_us() const;
  [[nodiscard]] int milliseconds_left() const;
  void end_for_lateness();
  void give_up_absent();
  void signal_tasks(int signal);
  void on_signal(int signal);
  void flush_lines();
  [[nodiscard]] std::string labelled(std::uint32_t rank, std::string_view line) const;
  void send(Stream& stream, const proto::StepFrame& frame);
  void worst(const Stream& stream, ExitStatus status);
  [[nodiscard]] bool finished() const;
  [[nodiscard]] bool all_here() const;  // a stream from each node has come

  std::string program_;
  const proto::StepPermission& permission_;
  Bytes key_;
  const StepOptions& options_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::map<std::pair<std::uint32_t, bool>, Line> lines_;
  StepEndings endings_;
  std::map<std::uint32_t, std::vector<proto::StepFrame>> early_;  // for nodes that are not here yet
  std::optional<RawTerminal> raw_;
  std::size_t nodes_done_ = 0;
  bool input_open_ = true;
  bool killing_ = false;
  bool aborting_ = false;  // SIGTERM has come
  std::int64_t interrupted_us_ = 0;
  std::int64_t first_end_us_ = 0;  // of a task; 0 = none yet
  std::int64_t begun_us_ = 0;      // run()
  std::vector<bool> heard_;        // by node: its stream came, or none will
  std::optional<int> detached_;    // by this signal
  StepResult result_;
};

}  // namespace gantry::cli
