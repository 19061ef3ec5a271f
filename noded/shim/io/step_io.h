// Carries the standard files of a step's tasks to their reader. It is the interface between the
// step shim, which has the tasks and their pipes, and the connection to grun.
//
// The step shim polls fd() for events() together with its own descriptors and calls ready().
// Everything is non-blocking, in one thread.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  [[nodiscard]] virtual bool input_full() const = 0;  // true: no more input should be read for now
};

class StepIo {
 public:
  virtual ~StepIo() = default;
  virtual void started(std::uint32_t tasks) = 0;
  // stream 1 = stdout, 2 = stderr; `task` counts from 0 on this node.
  virtual void output(std::uint32_t task, int stream, std::string_view bytes) = 0;
  virtual void closed(std::uint32_t task, int stream) = 0;
  virtual void exited(std::uint32_t task, ExitStatus status, std::string_view message) = 0;
  // peer() sends bytes of this node's PMI server to that of another node, or to all others.
  // aborted() reports that a task called MPI_Abort or, without a status, that the task has failed.
  virtual void peer(std::uint32_t node, std::string_view bytes) = 0;
  virtual void aborted(std::uint32_t rank, std::optional<std::int32_t> status,
                       std::string_view message) = 0;
  // A line for the user: a message of a user, to which the client's name is added; a report of the
  // shim; or the report that the tasks are being ended.
  enum class Notice : std::uint8_t { message, word, end };
  virtual void notice(std::string_view text, Notice kind) = 0;
  // Whether so much is queued that the shim must stop reading from the tasks, so that they wait.
  [[nodiscard]] virtual bool full() const = 0;
  [[nodiscard]] virtual int fd() const = 0;  // -1 = nothing to poll
  [[nodiscard]] virtual short events() const = 0;
  virtual void ready(short events, StepControl& control) = 0;
  virtual void look_at_input(const StepControl& control) = 0;  // called before each events()
  // Whether the other side is gone permanently. Then the shim kills the tasks.
  [[nodiscard]] virtual bool lost() const = 0;
  // Sends what is queued and then the end of the streams, within a few seconds.
  virtual void finish(const ExitRecord& record) = 0;
};

// Chooses the kind by request.io_address; "" means that nobody reads (the tasks' standard files are
// files or /dev/null).
Result<std::unique_ptr<StepIo>> make_step_io(const Shim& shim, const StepRequest& request);

// Carries the standard files of a step's tasks to grun. It implements step_io.h over an encrypted
// stream (common/net/secure_stream.h) that the shim connects, with the frames of
// common/proto/step_io.h.

// Bytes queued before tasks have to wait.
inline constexpr std::size_t kMaxStreamBacklog = 1u << 20;

// The same limit for an attached reader, who loses the bytes beyond it.
inline constexpr std::size_t kMaxAttachedBacklog = 4u << 20;

// Connects to request.io_address, for at most 10 s. Error unavailable: nobody answers there.
Result<std::unique_ptr<StepIo>> dial_step_stream(const std::string& node,
                                                 const StepRequest& request);
// Does not wait for the connection; if nobody answers, lost() becomes true later. finish() does not
// wait either: queued bytes are sent by ready().
Result<std::unique_ptr<StepIo>> dial_attached(const std::string& node, const StepRequest& request,
                                              const StepAttachment& attachment);

// All readers of a running step's output: grun, which started it, and others that are attached.
//
// All of them get what the tasks write; a later reader first gets the last kRecentBytes of the
// output, as in Slurm. Only grun makes the tasks wait when it does not read, and only the loss of
// grun ends them; attached readers may come and go. An attachment is a file that noded puts into
// the step's directory (noded/runtime/job_dir.h).
class StepAudience final : public StepIo {
 public:
  static constexpr std::size_t kMostAttached = 16;       // readers at a time, on one node
  static constexpr std::size_t kRecentBytes = 64 << 10;  // bytes kept, of all tasks here together

  // `dir` is the step's directory. All arguments outlive this object.
  StepAudience(const Shim& shim, const StepRequest& request, std::string dir,
               std::unique_ptr<StepIo> grun)
      : shim_(shim), request_(request), dir_(std::move(dir)), grun_(std::move(grun)) {}

  void look_for_attachments();
  // For attached readers: the descriptors to poll, and the results of poll(), in the same order.
  void add_watched(std::vector<pollfd>& watched) const {
    for (const auto& one : attached_) watched.push_back({one->fd(), one->events(), 0});
  }
  void serve(const pollfd* watched, StepControl& control);
  // Call it after finish(). It waits until attached readers have read to the end, or their time has
  // passed.
  void let_go(StepControl& control);

  void started(std::uint32_t tasks) override { grun_->started(tasks); }
  void output(std::uint32_t task, int stream, std::string_view bytes) override;
  void closed(std::uint32_t task, int stream) override { grun_->closed(task, stream); }
  void exited(std::uint32_t task, ExitStatus status, std::string_view message) override;
  void peer(std::uint32_t node, std::string_view bytes) override { grun_->peer(node, bytes); }
  void aborted(std::uint32_t rank, std::optional<std::int32_t> status,
               std::string_view message) override {
    grun_->aborted(rank, status, message);
  }
  void notice(std::string_view text, Notice kind) override { grun_->notice(text, kind); }
  [[nodiscard]] bool full() const override { return grun_->full(); }
  [[nodiscard]] int fd() const override { return grun_->fd(); }
  [[nodiscard]] short events() const override { return grun_->events(); }
  void ready(short events, StepControl& control) override { grun_->ready(events, control); }
  void look_at_input(const StepControl& control) override;
  [[nodiscard]] bool lost() const override { return grun_->lost(); }
  void finish(const ExitRecord& record) override;

 private:
  void pass_notice(std::string_view text);
  struct Piece {
    std::uint32_t task = 0;
    int stream = 0;
    std::string bytes;
  };
  struct Exit {
    ExitStatus status;
    std::string message;
  };

  const Shim& shim_;
  const StepRequest& request_;
  std::string dir_;
  std::unique_ptr<StepIo> grun_;
  std::vector<std::unique_ptr<StepIo>> attached_;
  std::map<std::uint32_t, Exit> exits_;  // exits by task, for readers who attach later
  std::deque<Piece> recent_;             // output for the same purpose, the oldest first
  std::size_t recent_bytes_ = 0;
};

}  // namespace gantry::runtime
