#include "noded/gpu/driver_thread.h"

#include <chrono>

#include "noded/runtime/job_dir.h"

namespace gantry::gpu {

struct DriverThread::State {
  mutable std::mutex mutex;
  std::condition_variable more, ended;
  std::deque<std::function<void()>> work;
  std::optional<Duration> since;
  bool stop = false;
  bool over = false;
};

DriverThread::DriverThread()
    : state_(std::make_shared<State>()), thread_([state = state_] { run(state); }) {}

void DriverThread::run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (!state->stop) {
    if (state->work.empty()) {
      state->more.wait(lock);
      continue;
    }
    std::function<void()> work = std::move(state->work.front());
    state->work.pop_front();
    state->since = runtime::since_boot();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    state->since.reset();
  }
  state->over = true;
  state->ended.notify_all();
}

DriverThread::~DriverThread() {
  std::deque<std::function<void()>> dropped;
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  dropped.swap(state_->work);
  state_->more.notify_all();
  const bool over = state_->ended.wait_for(lock, std::chrono::microseconds(kLastCall.us),
                                           [&] { return state_->over; });
  lock.unlock();
  if (over)
    thread_.join();
  else
    thread_.detach();
}

void DriverThread::post(std::function<void()> work) {
  const std::scoped_lock lock(state_->mutex);
  state_->work.push_back(std::move(work));
  state_->more.notify_one();
}

std::optional<Duration> DriverThread::busy_for() const {
  const std::scoped_lock lock(state_->mutex);
  if (!state_->since) return std::nullopt;
  return runtime::since_boot() - *state_->since;
}

void Outlet::post(std::function<void()> handler) {
  const std::scoped_lock lock(mutex_);
  if (loop_ != nullptr) loop_->post(std::move(handler));
}

void Outlet::shut() {
  const std::scoped_lock lock(mutex_);
  loop_ = nullptr;
}

}  // namespace gantry::gpu
