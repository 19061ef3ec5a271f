// The one event loop of a daemon: queues (ZeroMQ), descriptors, timers, signals, child processes,
// work from other threads, and the end of every turn. Boost.Asio is inside loop.cc only.
//
// A turn: every queue gives up to kQueueBudget messages to its handler, then whatever else is ready
// runs, then the end-of-turn handlers (commit, then send). The loop sleeps only when the queues are
// empty after that. Handlers run on the thread of run(), one at a time, and must not block.
//
// Everything that is registered is a Watch: destroy it and its handler is never called again, also
// when that happens inside of the handler. Watches must not outlive the Loop.
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

// How a watched process ended. Only a parent learns the status; anyone learns that it is gone.
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

  // Calls `receive_one` while it returns true, at most kQueueBudget times a turn; it takes one
  // message and handles it, or returns false when there is none. The source must outlive the Watch.
  Watch add_queue(QueueSource& source, std::function<bool()> receive_one);

  // Level-triggered: called once a turn for as long as `fd` is ready (or closed by the other end).
  // The caller keeps ownership of `fd`, and destroys the Watch before closing it.
  Watch on_readable(int fd, Handler handler);
  Watch on_writable(int fd, Handler handler);

  // Once, `delay` from now by the monotonic clock; negative delays count as zero.
  Watch after(Duration delay, Handler handler);
  // Again and again, `period` > 0 apart. Turns that were missed are not made up for.
  Watch every(Duration period, Handler handler);

  Watch on_signal(int signal, Handler handler);

  // Once, when process `pid` ends; a child is reaped. not_found if there is no such process.
  Result<Watch> on_process_end(pid_t pid, std::function<void(ProcessEnd)> handler);

  // At the end of every turn in which something happened, in order of registration.
  Watch at_end_of_turn(Handler handler);

  // Runs `handler` in a later turn. May be called from any thread; all others may not.
  void post(Handler handler);

  void run();   // until stop()
  void stop();  // ends run() after the present turn; from any thread

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::loop
