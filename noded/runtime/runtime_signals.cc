// Signals, notices and kills for running jobs and steps. noded itself sends signals to the
// processes that the cgroup lists, so a stopped shim is no obstacle.
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "common/codec/codec.h"
#include "noded/machine/cgroup.h"
#include "noded/runtime/job_dir.h"
#include "noded/runtime/runtime_state.h"

namespace gantry::runtime {
namespace {

constexpr int kPatientKills = 3;
constexpr std::size_t kMostEarly = 64;  // signals kept for a step that does not run yet

tl::unexpected<Error> not_here(const AttemptKey& key, const NodeSetup& setup) {
  return fail(ErrorCode::not_found, "job " + job_name(key) + " does not run on node " + setup.node);
}

std::string pid_namespace(int pid) {
  std::array<char, 64> text{};
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/pid";
  const ssize_t n = ::readlink(path.c_str(), text.data(), text.size() - 1);
  return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : std::string();
}

// Sends the signal only if this is the intended process. The check comes after the pidfd is open:
// from then on the number cannot refer to another process.
template <class IsMeant>
void signal_if(int pid, int number, IsMeant&& is_meant) {
  const Fd held(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (held && is_meant(pid)) ::syscall(SYS_pidfd_send_signal, held.get(), number, nullptr, 0);
}

// The method without cgroups: signals all processes in the PID namespace of the container or,
// without a container, in the session in which the job was started.
void signal_namespace(int init_pid, int number, int spared) {
  const auto wanted = pid_namespace(init_pid);
  if (wanted.empty()) return;
  const bool contained = wanted != pid_namespace(::getpid());
  for (const auto& name : list_dir("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const int pid = std::stoi(name);
    if (pid != spared)
      signal_if(pid, number, [&](int one) {
        return contained ? pid_namespace(one) == wanted : ::getsid(one) == init_pid;
      });
  }
}

// Each task of a step leads a session.
bool leads_session(int pid) {
  return ::getsid(pid) == pid;
}

}  // namespace

void Runtime::State::signal_tasks(const AttemptKey& key, StepId step, int number) const {
  if (is_for_tasks(number))
    signal_cgroup(setup.cgroups, step_cgroup(key, step), number, leads_session);
  else
    signal_cgroup(setup.cgroups, step_cgroup(key, step), number);
}

// Of the processes of steps, only tasks get the signal; of all others, all except `spared`.
void Runtime::State::signal_all(const AttemptKey& key, int number, int spared) const {
  std::set<int> within;
  if (is_for_tasks(number))
    for (const StepId step : steps_on_disk(key))
      for (const int pid : cgroup_processes(setup.cgroups, step_cgroup(key, step)))
        within.insert(pid);
  signal_cgroup(setup.cgroups, job_cgroup(key), number, [&](int pid) {
    return pid != spared && (!within.contains(pid) || leads_session(pid));
  });
}

Result<void> Runtime::release(const AttemptKey& key) {
  const auto it = state_->jobs.find(key);
  if (it == state_->jobs.end() || it->second.ended) return not_here(key, state_->setup);
  signal_shim(it->second.shim, SIGUSR1);
  return {};
}

Result<void> Runtime::notice(const AttemptKey& key, const std::string& text) {
  auto& s = *state_;
  const auto it = s.jobs.find(key);
  if (it == s.jobs.end() || it->second.ended) return not_here(key, s.setup);
  const Fd fd(::open(s.dir(key).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  TRY(write_whole(fd.get(), kNoticeFile, text + "\n", Durability::none));
  signal_shim(it->second.shim, SIGUSR2);
  // An allocation has no output of its own: its user sees the output of steps.
  if (it->second.kind == LaunchKind::holder)
    for (const auto& [step, one] : it->second.steps) s.tell_step(key, step, one, text);
  return {};
}

bool Runtime::State::keep_if_early(const AttemptKey& key, StepId step, OneStep& one, int number) {
  if (one.running || one.early.size() >= kMostEarly) return false;
  if (!cgroup_processes(setup.cgroups, step_cgroup(key, step)).empty()) return false;
  one.early.push_back(number);
  return true;
}

void Runtime::State::tell_step(const AttemptKey& key, StepId step, const OneStep& one,
                               const std::string& text) {
  const Fd fd(
      ::open(step_dir(setup.state_dir, key, step).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string name =
      kStepNoticePrefix + std::to_string(::getpid()) + "." + std::to_string(++attachments);
  if (fd && write_whole(fd.get(), name.c_str(), text, Durability::none))
    signal_shim(one.shim, kAttachSignal);
}

Result<void> Runtime::signal(const AttemptKey& key, int number, proto::SignalScope scope) {
  auto& s = *state_;
  const auto it = s.jobs.find(key);
  if (it == s.jobs.end() || it->second.ended) return not_here(key, s.setup);
  if (number <= 0 || number > SIGRTMAX)
    return fail(ErrorCode::invalid_argument,
                "signal " + std::to_string(number) + " does not exist");
  const auto running = s.running_record(key);
  if (!running) return fail(ErrorCode::wrong_state, "job " + job_name(key) + " does not run yet");
  // Compares the start time, because the record outlives the processes, and their numbers may have
  // been reused.
  const bool there = start_time_of(running->init_pid) == running->init_start;
  // PID 1 is skipped if there is a batch shell, to which it would pass the signal a second time.
  // Without a shell PID 1 itself must get it.
  const bool init_hears = it->second.kind == LaunchKind::holder || running->held ||
                          s.setup.runtime == RuntimeKind::process;
  const int spared = init_hears ? 0 : running->init_pid;
  if (running->own_kernel && scope != proto::SignalScope::steps) {
    const Fd fd(::open(s.dir(key).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::string name =
        kSignalPrefix + std::to_string(::getpid()) + "." + std::to_string(++s.attachments);
    TRY(write_whole(fd.get(), name.c_str(), std::to_string(number), Durability::none));
    signal_shim(it->second.shim, kAttachSignal);
    return {};
  }
  switch (scope) {
    case proto::SignalScope::batch_shell:
      if (there && running->child_pid > 0 && running->child_pid != spared)
        signal_if(running->child_pid, number,
                  [&](int pid) { return pid_namespace(pid) == pid_namespace(running->init_pid); });
      break;
    case proto::SignalScope::steps:
      for (const StepId step : s.steps_on_disk(key)) s.signal_tasks(key, step, number);
      for (auto& [step, one] : it->second.steps) s.keep_if_early(key, step, one, number);
      break;
    case proto::SignalScope::full:
      if (s.setup.cgroups.version != 0)
        s.signal_all(key, number, spared);
      else if (there)
        signal_namespace(running->init_pid, number, spared);
      break;
  }
  return {};
}

// Without a freezer, signals stop the processes; a process can notice that.
Result<void> Runtime::freeze(const AttemptKey& key, bool frozen) {
  auto& s = *state_;
  const auto it = s.jobs.find(key);
  if (it == s.jobs.end() || it->second.ended) return not_here(key, s.setup);
  const auto done = freeze_cgroup(s.setup.cgroups, job_cgroup(key), frozen);
  if (done || done.error().code != ErrorCode::wrong_state) return done;
  return signal(key, frozen ? SIGSTOP : SIGCONT, proto::SignalScope::full);
}

Result<void> Runtime::kill(const AttemptKey& key) {
  auto& s = *state_;
  const auto it = s.jobs.find(key);
  if (it == s.jobs.end() || it->second.ended) return not_here(key, s.setup);
  kill_cgroup(s.setup.cgroups, job_cgroup(key), Duration{});
  // The signal makes the shim give up preparing, or kill PID 1. A shim that hangs (on a dead file
  // server) gets SIGKILL after a few kills, and a stopped shim at once: it would never write the
  // record, and its job would never end.
  const bool hangs = ++it->second.kills > kPatientKills || is_stopped(it->second.shim);
  signal_shim(it->second.shim, hangs ? SIGKILL : SIGTERM);
  return {};
}

Result<void> Runtime::signal_step(const AttemptKey& key, StepId step, int number) {
  auto& s = *state_;
  const auto it = s.jobs.find(key);
  if (it == s.jobs.end() || it->second.ended) return not_here(key, s.setup);
  const auto one = it->second.steps.find(step);
  // The controller sends signals only to steps that have not ended: srun may be about to launch
  // this step here.
  if (one == it->second.steps.end()) {
    auto& early = it->second.early[step];
    if (early.size() < kMostEarly) early.push_back(number);
    return {};
  }
  if (!s.keep_if_early(key, step, one->second, number)) s.signal_tasks(key, step, number);
  return {};
}

namespace {

Result<void> write_time_limit(int step_dir, Duration time_limit) {
  return write_whole(step_dir, kTimeLimitFile, std::to_string(time_limit.us), Durability::none);
}

}  // namespace

Result<void> write_early_limit(int step_dir, OneJob& job, StepId step) {
  const auto limit = job.early_limits.find(step);
  if (limit == job.early_limits.end()) return {};
  auto written = write_time_limit(step_dir, limit->second);
  job.early_limits.erase(limit);
  return written;
}

Result<void> Runtime::limit_step(const AttemptKey& key, StepId step, Duration time_limit) {
  auto& s = *state_;
  const auto job = s.jobs.find(key);
  if (job == s.jobs.end() || job->second.ended) return not_here(key, s.setup);
  const auto one = job->second.steps.find(step);
  // The controller changes limits only of steps that have not ended: srun may be about to launch
  // this step here.
  if (one == job->second.steps.end()) {
    if (job->second.early_limits.size() < kMostEarly) job->second.early_limits[step] = time_limit;
    return {};
  }
  const std::string dir = step_dir(s.setup.state_dir, key, step);
  const Fd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno(ErrorCode::io_error, dir);
  auto written = write_time_limit(fd.get(), time_limit);
  if (written) signal_shim(one->second.shim, kAttachSignal);
  return written;
}

Result<void> Runtime::attach_step(const StepAttachment& attachment) {
  auto& s = *state_;
  const auto job = s.jobs.find(attachment.key);
  if (job == s.jobs.end()) return not_here(attachment.key, s.setup);
  const auto step = job->second.steps.find(attachment.step);
  if (step == job->second.steps.end())
    return fail(ErrorCode::not_found, "no task of the step runs on node " + s.setup.node);
  const std::string dir = step_dir(s.setup.state_dir, attachment.key, attachment.step);
  const Fd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno(ErrorCode::io_error, dir);
  // Differs from the file names of an earlier noded, which the shim may not have read yet.
  const std::string name =
      kAttachPrefix + std::to_string(::getpid()) + "." + std::to_string(++s.attachments);
  auto written = write_whole(fd.get(), name.c_str(), codec::encode(attachment), Durability::none);
  if (written) signal_shim(step->second.shim, kAttachSignal);
  return written;
}

Result<void> Runtime::kill_step(const AttemptKey& key, StepId step) {
  auto& s = *state_;
  const auto it = s.jobs.find(key);
  if (it == s.jobs.end()) return not_here(key, s.setup);
  const auto found = it->second.steps.find(step);
  if (found == it->second.steps.end()) {  // srun may be about to launch this step here
    it->second.cancelled.insert(step);
    return {};
  }
  // Tells the shim first, so that it can report why the tasks end.
  signal_shim(found->second.shim, is_stopped(found->second.shim) ? SIGKILL : SIGTERM);
  kill_cgroup(s.setup.cgroups, step_cgroup(key, step), Duration{});
  return {};
}

}  // namespace gantry::runtime
