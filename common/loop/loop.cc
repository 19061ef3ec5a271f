#include "common/loop/loop.h"

// <utility> must come first: Boost 1.74's Asio does not include it in C++20.
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/descriptor_base.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <vector>

#include "common/assert.h"

namespace gantry::loop {

namespace asio = boost::asio;
using boost::system::error_code;

// The object behind a Watch. Handlers run while a shared_ptr owns it, so a handler may destroy its
// own Watch.
struct Registration : std::enable_shared_from_this<Registration> {
  virtual ~Registration() = default;
  virtual void cancel() {}
  bool live = true;
};

Watch::Watch(std::shared_ptr<Registration> registration) : registration_(std::move(registration)) {}

Watch& Watch::operator=(Watch&& other) noexcept {
  if (this == &other) return *this;
  cancel();
  registration_ = std::move(other.registration_);
  return *this;
}

void Watch::cancel() {
  if (!registration_) return;
  const std::shared_ptr<Registration> registration = std::move(registration_);
  registration_.reset();
  registration->live = false;
  registration->cancel();
}

namespace {

struct DescriptorWatch;
using Rearm = std::vector<std::shared_ptr<DescriptorWatch>>;

// Waits on a duplicate of the descriptor, because Asio wants to own what it watches, and a
// descriptor may be watched for reading and for writing at once. After each event the wait starts
// again only in the next turn; otherwise a descriptor that is always ready would keep the turn from
// ending.
struct DescriptorWatch final : Registration {
  DescriptorWatch(asio::io_context& io, Rearm& r, int duplicate,
                  asio::posix::descriptor_base::wait_type w, Loop::Handler h)
      : rearm(r), descriptor(io, duplicate), what(w), handler(std::move(h)) {}

  void wait() {
    descriptor.async_wait(what, [self = keep()](const error_code& error) {
      if (error || !self->live) return;
      self->handler();
      if (self->live) self->rearm.push_back(self);
    });
  }
  std::shared_ptr<DescriptorWatch> keep() {
    return std::static_pointer_cast<DescriptorWatch>(shared_from_this());
  }
  void cancel() override {
    error_code ignored;
    descriptor.close(ignored);
  }

  Rearm& rearm;
  asio::posix::stream_descriptor descriptor;
  asio::posix::descriptor_base::wait_type what;
  Loop::Handler handler;
};

struct TimerWatch final : Registration {
  TimerWatch(asio::io_context& io, Loop::Handler h) : timer(io), handler(std::move(h)) {}

  void start(std::chrono::microseconds delay) {
    timer.expires_after(delay);
    timer.async_wait([self = keep()](const error_code& error) {
      if (error || !self->live) return;
      if (self->period.us > 0) self->start(std::chrono::microseconds(self->period.us));
      self->handler();
    });
  }
  std::shared_ptr<TimerWatch> keep() {
    return std::static_pointer_cast<TimerWatch>(shared_from_this());
  }
  void cancel() override { timer.cancel(); }

  asio::steady_timer timer;
  Duration period{};  // 0 = once
  Loop::Handler handler;
};

struct SignalWatch final : Registration {
  SignalWatch(asio::io_context& io, int signal, Loop::Handler h)
      : signals(io, signal), handler(std::move(h)) {}

  void wait() {
    signals.async_wait([self = keep()](const error_code& error, int) {
      if (error || !self->live) return;
      self->wait();
      self->handler();
    });
  }
  std::shared_ptr<SignalWatch> keep() {
    return std::static_pointer_cast<SignalWatch>(shared_from_this());
  }
  void cancel() override {
    error_code ignored;
    signals.cancel(ignored);
    signals.clear(ignored);
  }

  asio::signal_set signals;
  Loop::Handler handler;
};

struct QueueWatch final : Registration {
  QueueWatch(asio::io_context& io, QueueSource& s, int duplicate, std::function<bool()> r)
      : source(s), descriptor(io, duplicate), receive_one(std::move(r)) {}

  void drain() {
    int taken = 0;
    while (live && taken < kQueueBudget && receive_one()) ++taken;
  }
  // Wakes the loop when the descriptor becomes ready; the next turn then empties the queue.
  void arm() {
    if (armed) return;
    armed = true;
    descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                          [self = keep()](const error_code&) { self->armed = false; });
  }
  std::shared_ptr<QueueWatch> keep() {
    return std::static_pointer_cast<QueueWatch>(shared_from_this());
  }
  void cancel() override {
    error_code ignored;
    descriptor.close(ignored);
  }

  QueueSource& source;
  asio::posix::stream_descriptor descriptor;
  std::function<bool()> receive_one;
  bool armed = false;
};

struct EndOfTurnWatch final : Registration {
  explicit EndOfTurnWatch(Loop::Handler h) : handler(std::move(h)) {}
  Loop::Handler handler;
};

int duplicate(int fd) {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  GANTRY_ASSERT(copy >= 0, std::strerror(errno));
  return copy;
}

// Returns how a process ended. A child is reaped; for other processes there is no status.
ProcessEnd reap(pid_t pid) {
  siginfo_t info = {};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) != 0)
    if (errno != EINTR) return {};
  if (info.si_pid != pid) return {};
  if (info.si_code == CLD_EXITED) return {ExitStatus{.code = info.si_status, .signal = 0}};
  return {ExitStatus{.code = 0, .signal = info.si_status}};
}

// Removes watches that were cancelled.
template <class T>
void sweep(std::vector<std::shared_ptr<T>>& list) {
  std::erase_if(list, [](const auto& entry) { return !entry->live; });
}

}  // namespace

struct Loop::Impl {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
  Rearm rearm;
  std::vector<std::shared_ptr<QueueWatch>> queues;
  std::vector<std::shared_ptr<EndOfTurnWatch>> ends;
  std::atomic<bool> stopping = false;
  std::mutex posted_mutex;
  // Guarded by posted_mutex; everything else belongs to the loop's thread.
  std::vector<Handler> posted;

  void add_posted(Handler handler) {
    {
      const std::lock_guard lock(posted_mutex);
      posted.push_back(std::move(handler));
    }
    asio::post(io, [] {});  // wakes the loop
  }
  void run_posted() {
    std::vector<Handler> now;
    {
      const std::lock_guard lock(posted_mutex);
      now.swap(posted);
    }
    for (const Handler& handler : now) handler();
  }
  bool nothing_posted() {
    const std::lock_guard lock(posted_mutex);
    return posted.empty();
  }

  void wait_again() {
    Rearm now;
    now.swap(rearm);
    for (const auto& watch : now)
      if (watch->live) watch->wait();
  }

  void drain_queues() {
    for (std::size_t i = 0; i < queues.size(); ++i) {  // a handler may add one
      const std::shared_ptr<QueueWatch> queue = queues[i];
      if (queue->live) queue->drain();
    }
  }

  void end_turn() {
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::shared_ptr<EndOfTurnWatch> end = ends[i];
      if (end->live) end->handler();
    }
    sweep(queues);
    sweep(ends);
  }

  bool queues_empty() {
    for (const auto& queue : queues)
      if (queue->live && queue->source.readable()) return false;
    return true;
  }

  // The end of a turn may send messages, and while sending ZeroMQ may notice messages that arrived;
  // its descriptor then stays quiet. So the queues are checked once more after the descriptors are
  // armed.
  void sleep_until_something() {
    for (const auto& queue : queues)
      if (queue->live) queue->arm();
    if (queues_empty() && nothing_posted() && !stopping) io.run_one();
  }

  void turn() {
    drain_queues();
    run_posted();
    io.poll();
    end_turn();
    wait_again();
  }
};

Loop::Loop() : impl_(std::make_unique<Impl>()) {}
Loop::~Loop() = default;

void Loop::run() {
  while (true) {  // after stop() the present turn is still finished
    impl_->turn();
    if (impl_->stopping) break;
    if (impl_->queues_empty()) impl_->sleep_until_something();
  }
  impl_->stopping = false;
}

void Loop::stop() {
  impl_->stopping = true;
  asio::post(impl_->io, [] {});  // wakes the loop
}

void Loop::post(Handler handler) {
  impl_->add_posted(std::move(handler));
}

Watch Loop::add_queue(QueueSource& source, std::function<bool()> receive_one) {
  auto queue = std::make_shared<QueueWatch>(impl_->io, source, duplicate(source.descriptor()),
                                            std::move(receive_one));
  impl_->queues.push_back(queue);
  return Watch(std::move(queue));
}

Watch Loop::on_readable(int fd, Handler handler) {
  auto watch = std::make_shared<DescriptorWatch>(impl_->io, impl_->rearm, duplicate(fd),
                                                 asio::posix::descriptor_base::wait_read,
                                                 std::move(handler));
  watch->wait();
  return Watch(std::move(watch));
}

Watch Loop::on_writable(int fd, Handler handler) {
  auto watch = std::make_shared<DescriptorWatch>(impl_->io, impl_->rearm, duplicate(fd),
                                                 asio::posix::descriptor_base::wait_write,
                                                 std::move(handler));
  watch->wait();
  return Watch(std::move(watch));
}

Watch Loop::after(Duration delay, Handler handler) {
  auto watch = std::make_shared<TimerWatch>(impl_->io, std::move(handler));
  watch->start(std::chrono::microseconds(std::max<std::int64_t>(delay.us, 0)));
  return Watch(std::move(watch));
}

Watch Loop::every(Duration period, Handler handler) {
  GANTRY_ASSERT(period.us > 0, "a period of nothing");
  auto watch = std::make_shared<TimerWatch>(impl_->io, std::move(handler));
  watch->period = period;
  watch->start(std::chrono::microseconds(period.us));
  return Watch(std::move(watch));
}

Watch Loop::on_signal(int signal, Handler handler) {
  auto watch = std::make_shared<SignalWatch>(impl_->io, signal, std::move(handler));
  watch->wait();
  return Watch(std::move(watch));
}

Result<Watch> Loop::on_process_end(pid_t pid, std::function<void(ProcessEnd)> handler) {
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0)
    return fail(errno == ESRCH ? ErrorCode::not_found : ErrorCode::io_error,
                fmt::format("cannot watch process {}: {}", pid, std::strerror(errno)));
  auto watch = std::make_shared<DescriptorWatch>(impl_->io, impl_->rearm, pidfd,
                                                 asio::posix::descriptor_base::wait_read, nullptr);
  watch->handler = [self = watch.get(), pid, handler = std::move(handler)] {
    const auto tell = handler;  // a copy: the call may destroy the Watch, and this function with it
    self->live = false;
    self->cancel();
    tell(reap(pid));
  };
  watch->wait();
  return Watch(std::move(watch));
}

Watch Loop::at_end_of_turn(Handler handler) {
  auto end = std::make_shared<EndOfTurnWatch>(std::move(handler));
  impl_->ends.push_back(end);
  return Watch(std::move(end));
}

}  // namespace gantry::loop
