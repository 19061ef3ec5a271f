// Signals and deadlines end or interrupt a running step, and the user is told. The texts of srun
// are Slurm's, because people and tests search for them.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "cli/step/step_streams.h"
#include "common/proto/job_text.h"

namespace gantry::cli {
namespace {

constexpr std::int64_t kSecond = 1'000'000;             // microseconds
constexpr std::int64_t kStreamPatience = 15 * kSecond;  // for a node's shim to connect
constexpr std::int64_t kNewsTime = 2;  // seconds for the report of the tasks' end to arrive

}  // namespace

std::int64_t monotonic_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000;
}

std::string StepStreams::step_name() const {
  return fmt::format("StepId={}.{}", permission_.key.job.value(), permission_.step.value());
}

// When the remaining tasks are ended; if attached, when nodes without a stream are given up.
std::optional<std::int64_t> StepStreams::deadline_us() const {
  if (attached())
    return std::find(heard_.begin(), heard_.end(), false) == heard_.end()
               ? std::nullopt
               : std::optional(begun_us_ + kStreamPatience);
  if (killing_) return std::nullopt;
  std::optional<std::int64_t> out;
  if (first_end_us_ != 0 && options_.patience_s > 0)
    out = first_end_us_ + std::int64_t{options_.patience_s} * kSecond;
  if (terminated_us_ != 0) {
    const std::int64_t end = terminated_us_ + permission_.kill_wait.us;
    out = std::min(out.value_or(end), end);
  }
  return out;
}

int StepStreams::milliseconds_left() const {
  const auto end = deadline_us();
  if (!end) return -1;
  return static_cast<int>(
      std::clamp<std::int64_t>((*end - monotonic_us() + 999) / 1'000, 0, 60'000));
}

void StepStreams::end_in_time() {
  if (terminated_us_ != 0 && monotonic_us() >= terminated_us_ + permission_.kill_wait.us)
    return end_all();
  end_for_lateness();
}

void StepStreams::say_aborted() {
  if (aborting_ || options_.manner != Manner::slurm) return;
  aborting_ = true;
  say(fmt::format("{}: Job step aborted: Waiting up to {} seconds for job step to finish.",
                  program_, permission_.kill_wait.us / kSecond + kNewsTime));
}

void StepStreams::force_end() {
  const std::int64_t now = monotonic_us();
  if (!killing_) {
    say(fmt::format("{}: forcing job termination", program_));
    say_aborted();
  } else if (now - abort_said_us_ >= kSecond) {
    say(fmt::format("{}: job abort in progress", program_));
  }
  abort_said_us_ = now;
  killing_ = true;
  signal_tasks(SIGKILL);
}

void StepStreams::say_status() {
  constexpr std::array<std::pair<TaskState, std::string_view>, 5> kWords{
      {{TaskState::failed, "failed to start"},
       {TaskState::running, "running"},
       {TaskState::abnormal, "exited abnormally"},
       {TaskState::exited, "exited"},
       {TaskState::unknown, "unknown"}}};
  for (const auto& [state, word] : kWords) {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < tasks_.size(); ++rank)
      if (tasks_[rank] == state) ranks.push_back(rank);
    if (!ranks.empty())
      say(fmt::format("{}: {} task{} {}: {}", program_, step_name(), ranks.size() == 1 ? "" : "s",
                      format_index_ranges(compress_indexes(ranks)), word));
  }
}

void StepStreams::on_interrupt() {
  const std::int64_t now = monotonic_us();
  const bool again = interrupted_us_ != 0 && now - interrupted_us_ < kSecond;
  const bool slurm = options_.manner == Manner::slurm;
  interrupted_us_ = now;
  if (again || options_.quit_on_interrupt) {
    if (slurm) {
      say(fmt::format("{}: sending Ctrl-C to {}", program_, step_name()));
      signal_tasks(SIGINT);
      return force_end();
    }
    say(fmt::format("{}: ending the step", program_));
    killing_ = true;
    return signal_tasks(SIGKILL);
  }
  if (slurm && !options_.disable_status) {
    if (killing_) return;
    say(fmt::format("{}: interrupt (one more within 1 sec to abort)", program_));
    return say_status();
  }
  say(slurm ? fmt::format("{}: sending Ctrl-C to {}", program_, step_name())
            : fmt::format("{}: interrupt (one more within 1 sec to end the step)", program_));
  signal_tasks(SIGINT);
}

// SIGTERM and similar signals reach the tasks, which then have kill_wait to end.
void StepStreams::on_signal(int signal) {
  if (signal == SIGWINCH) return send_window();
  if (attached()) {
    detached_ = signal;
    return;
  }
  if (signal == SIGINT) return on_interrupt();
  const bool ends = signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
  if (ends && options_.manner == Manner::slurm && terminated_us_ == 0) {
    if (signal == SIGQUIT) say(fmt::format("{}: Quit", program_));
    say(fmt::format("{}: forcing job termination", program_));
    say_aborted();
    terminated_us_ = monotonic_us();
  }
  signal_tasks(signal);
}

void StepStreams::signal_tasks(int signal) {
  for (const auto& stream : streams_)
    if (!stream->node.empty() && !stream->done) send(*stream, {proto::StepSignal{signal}});
}

// The standard input of a step: what is read here goes to the first task, to one or to all of them.
namespace {

constexpr std::size_t kMaxPendingInput = 1 << 20;  // bytes queued for one node

}  // namespace

bool StepStreams::reads_input(const Stream& stream) const {
  if (stream.node.empty()) return false;
  bool one = false;
  switch (options_.input) {
    case StepInput::all_tasks: return true;
    case StepInput::one_task:
      for_tasks(stream, [&](std::uint32_t rank) { one = one || rank == options_.input_rank; });
      return one;
    case StepInput::first_task:
    case StepInput::none: break;
  }
  return stream.first_rank == 0;
}

// Nothing is read before all readers are connected: each of them gets all of it.
bool StepStreams::wants_input() const {
  if (!input_open_ || (options_.input == StepInput::all_tasks && !all_here())) return false;
  bool read = false;
  for (const auto& stream : streams_) {
    if (stream->closed || !reads_input(*stream)) continue;
    if (stream->crypt.output().size() >= kMaxPendingInput) return false;
    read = true;
  }
  return read;
}

void StepStreams::read_input() {
  char buffer[proto::kMaxTaskData];
  const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  proto::TaskInput input;
  if (n > 0) input.data.assign(buffer, static_cast<std::size_t>(n));
  input.end = n <= 0;
  if (input.end) input_open_ = false;
  if (input.end && attached()) return;
  for (const auto& stream : streams_)
    if (!stream->closed && reads_input(*stream)) send(*stream, {input});
}

// New connections of a step: each is a stranger until it has sent a hello with the step's key.
namespace {

constexpr std::size_t kMostStrangers = 64;  // in addition to one connection of each node

}  // namespace

Result<void> StepStreams::accept(StreamSource& source) {
  const auto fd = source.take();
  if (!fd && fd.error().code == ErrorCode::limit_exceeded && drop_oldest_stranger()) return {};
  if (!fd) return tl::unexpected(fd.error());
  if (!*fd) return {};
  ::fcntl(**fd, F_SETFL, ::fcntl(**fd, F_GETFL) | O_NONBLOCK);
  auto crypt = net::SecureStream::create(net::StreamRole::listener, key_);
  if (!crypt) {
    ::close(**fd);
    return tl::unexpected(crypt.error());
  }
  streams_.push_back(std::unique_ptr<Stream>(new Stream{"", **fd, std::move(*crypt)}));
  write(*streams_.back());
  const auto strangers = std::count_if(streams_.begin(), streams_.end(),
                                       [](const auto& stream) { return stream->is_strange(); });
  if (static_cast<std::size_t>(strangers) > kMostStrangers + permission_.nodes.size())
    drop_oldest_stranger();
  return {};
}

// A shim sends its hello as soon as it is connected, so the connection that has been silent longest
// is not a shim's.
bool StepStreams::drop_oldest_stranger() {
  const auto oldest = std::find_if(streams_.begin(), streams_.end(),
                                   [](const auto& stream) { return stream->is_strange(); });
  if (oldest == streams_.end()) return false;
  lost(**oldest, "others wait");
  return true;
}

void StepStreams::forget_strangers() {
  std::erase_if(streams_,
                [](const auto& stream) { return stream->closed && stream->node.empty(); });
}

}  // namespace gantry::cli
