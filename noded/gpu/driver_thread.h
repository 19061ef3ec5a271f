// A thread for calls of the driver, so that one that hangs hangs nobody else: NVML has no timeouts,
// and a GPU that is dying may keep a call for minutes. Work runs one piece after the other, in the
// order in which it was posted.
//
// A thread whose call does not return cannot be ended. Then it is left behind: what its work needs
// must be owned by that work (shared_ptr), and what it tells goes through an Outlet, which is shut.
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

inline constexpr Duration kLastCall = seconds(2);  // that one may take when the daemon ends

class DriverThread {
 public:
  DriverThread();
  ~DriverThread();  // drops what has not begun; waits kLastCall for what has
  DriverThread(const DriverThread&) = delete;
  DriverThread& operator=(const DriverThread&) = delete;

  // From any thread.
  void post(std::function<void()> work);
  // For how long the present piece of work has run by the monotonic clock; nothing: none runs.
  [[nodiscard]] std::optional<Duration> busy_for() const;

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);
  std::shared_ptr<State> state_;
  std::thread thread_;
};

// The way to the loop from threads that may outlive it. Shut: what comes is dropped.
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
