// A thread for calls of the driver, so that a hanging call delays nobody else: NVML has no
// timeouts, and a failing GPU may hold a call for minutes. Tasks run one after the other, in the
// order in which they were posted.
//
// A thread whose call does not return cannot be ended; it is abandoned. So each task must own what
// it needs (shared_ptr), and must report through an Outlet, which is then shut.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "common/loop/loop.h"
#include "common/time/time.h"

namespace gantry::gpu {

// Longest time that a call may take when the daemon ends.
inline constexpr Duration kLastCall = seconds(2);

class DriverThread {
 public:
  DriverThread();
  ~DriverThread();  // drops tasks that have not begun; waits kLastCall for a running one
  DriverThread(const DriverThread&) = delete;
  DriverThread& operator=(const DriverThread&) = delete;

  // May be called from any thread.
  void post(std::function<void()> work);
  // How long the present task has run, by the monotonic clock; nullopt if none runs.
  [[nodiscard]] std::optional<Duration> busy_for() const;

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);
  std::shared_ptr<State> state_;
  std::thread thread_;
};

// The way to the loop from threads that may outlive it. After shut() it drops what is posted.
class Outlet {
 public:
  explicit Outlet(loop::Loop& loop) : loop_(&loop) {}
  void post(std::function<void()> handler);
  void shut();

 private:
  std::mutex mutex_;
  loop::Loop* loop_;
};

}  // namespace gantry::gpu
