// All readers of a running step: grun, which started it, and others who are attached to it.
//
// All of them get what the tasks write, and a reader who comes later what they wrote last, as in
// Slurm: kRecentBytes of it. Only grun makes the tasks wait when it does not read, and
// only its loss ends them; attached readers may come and go. An attachment is a file that noded
// puts into the step's directory (noded/runtime/job_dir.h).
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "noded/shim/io/step_io.h"

namespace gantry::runtime {

class StepAudience final : public StepIo {
 public:
  static constexpr std::size_t kMostAttached = 16;       // at the same time, on one node
  static constexpr std::size_t kRecentBytes = 64 << 10;  // of all tasks here together

  // `dir` is the step's directory. All arguments outlive this object.
  StepAudience(const Shim& shim, const StepRequest& request, std::string dir,
               std::unique_ptr<StepIo> grun)
      : shim_(shim), request_(request), dir_(std::move(dir)), grun_(std::move(grun)) {}

  void look_for_attachments();
  // For attached readers: which descriptors to poll, and what poll() returned, in the same order.
  void add_watched(std::vector<pollfd>& watched) const;
  void serve(const pollfd* watched, StepControl& control);
  // Call it after finish(). It waits until attached readers have read to the end, or their time is
  // over.
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
  std::map<std::uint32_t, Exit> exits_;  // by task: for readers who attach later
  std::deque<Piece> recent_;             // likewise, the oldest first
  std::size_t recent_bytes_ = 0;
};

}  // namespace gantry::runtime
