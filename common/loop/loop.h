// The one event loop of a daemon. It serves queues (ZeroMQ), descriptors, timers, signals, child
// processes, work from other threads, and the end of every turn. Boost.Asio is inside loop.cc only.
//
// In a turn every queue gives up to kQueueBudget messages to its handler, then everything else that
// is ready runs, then the end-of-turn handlers (commit, then send). The loop sleeps only if the
// queues are empty after that. Handlers run on the thread of run(), one at a time, and must not
// block.
//
// Everything that is registered is a Watch. When a Watch is destroyed, its handler is never called
// again, even if the handler itself destroys it. Watches must not outlive the Loop.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>

#include "common/job/job_state.h"
#include "common/loop/queue_source.h"
#include "common/result.h"
#include "common/time/time.h"

namespace gantry::loop {

inline constexpr int kQueueBudget = 1024;  // messages of one queue in one turn

struct Registration;  // inside loop.cc

class [[nodiscard]] Watch {
 public:
  Watch() = default;
  explicit Watch(std::shared_ptr<Registration> registration);
  Watch(Watch&&) noexcept = default;
  Watch& operator=(Watch&& other) noexcept;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() { cancel(); }
  void cancel();
  [[nodiscard]] explicit operator bool() const { return registration_ != nullptr; }

 private:
  std::shared_ptr<Registration> registration_;
};

// How a watched process ended. Only the parent of a process learns its status; others only learn
// that it is gone.
struct ProcessEnd {
  std::optional<ExitStatus> status;
};

class Loop {
 public:
  using Handler = std::function<void()>;

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Calls `receive_one` while it returns true, at most kQueueBudget times in a turn. `receive_one`
  // takes one message and handles it, or returns false if there is none. The source must outlive
  // the Watch.
  Watch add_queue(QueueSource& source, std::function<bool()> receive_one);

  // Calls the handler once in each turn in which `fd` is ready (or closed by the other end);
  // level-triggered. The caller keeps ownership of `fd`, and must destroy the Watch before closing
  // it.
  Watch on_readable(int fd, Handler handler);
  Watch on_writable(int fd, Handler handler);

  // Calls the handler once, `delay` from now by the monotonic clock. A negative delay counts as
  // zero.
  Watch after(Duration delay, Handler handler);
  // Calls the handler again and again, every `period` > 0. Calls that were missed are not made up
  // for.
  Watch every(Duration period, Handler handler);

  Watch on_signal(int signal, Handler handler);

  // Calls the handler once, when process `pid` ends; a child is reaped. The error not_found means
  // that there is no such process.
  Result<Watch> on_process_end(pid_t pid, std::function<void(ProcessEnd)> handler);

  // Calls the handler at the end of every turn in which something happened; handlers run in the
  // order in which they were registered.
  Watch at_end_of_turn(Handler handler);

  // Runs `handler` in a later turn. Any thread may call this; all other functions (but stop) belong
  // to the loop's thread.
  void post(Handler handler);

  void run();   // runs turns until stop()
  void stop();  // ends run() after the present turn; any thread may call it

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::loop
