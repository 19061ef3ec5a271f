#include "noded/runtime/runtime.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "noded/machine/cgroup.h"
#include "noded/runtime/job_dir.h"
#include "noded/runtime/runtime_state.h"
#include "noded/runtime/secret_files.h"

namespace gantry::runtime {
namespace {
// The time asleep is the difference of two clocks that are not read at the same moment. A shorter
// difference than this comes from the delay between the readings.
constexpr Duration kShortestSleep = seconds(1);
}  // namespace

Runtime::Runtime(std::unique_ptr<State> state) : state_(std::move(state)) {}
// A node without jobs leaves no cgroup. rmdir() refuses a cgroup in use, for example by another
// node with the same root.
Runtime::~Runtime() {
  for (const auto& [key, job] : state_->jobs)
    if (!job.ended) return;
  const auto remove = [](const std::string& path) {
    ::rmdir(path.c_str());
    ::rmdir(path.substr(0, path.rfind('/')).c_str());
  };
  unmount_secrets(state_->setup.state_dir);
  for (const auto& mount : state_->setup.cgroups.mounts) remove(mount.path);
  for (const auto& other : state_->setup.cgroups.others) remove(other);
}

const ProbeReport& Runtime::probe() const {
  return state_->probe;
}
int Runtime::fd() const {
  return state_->epoll.get();
}
std::string Runtime::run_dir(const AttemptKey& key) const {
  return state_->dir(key) + "/run";
}

std::string Runtime::State::dir(const AttemptKey& key) const {
  return job_dir(setup.state_dir, key);
}

std::optional<ExitRecord> Runtime::State::exit_record(const std::string& dir) const {
  const auto bytes = read_file(dir + "/" + kExitFile);
  if (!bytes) return std::nullopt;
  auto record = codec::decode<ExitRecord>(*bytes);
  // After a crash of the machine it is incomplete: treated as missing.
  if (!record) return std::nullopt;
  return std::move(*record);
}

std::optional<RunningRecord> Runtime::State::running_record(const AttemptKey& key) const {
  const auto bytes = read_file(dir(key) + "/" + kRunningFile);
  if (!bytes) return std::nullopt;
  auto record = codec::decode<RunningRecord>(*bytes);
  if (!record) return std::nullopt;
  return *record;
}

void Runtime::State::watch(const AttemptKey& key, std::optional<StepId> step,
                           const ShimProcess& shim) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = next_tag;
  if (!shim.pidfd || ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, shim.pidfd.get(), &event) != 0) return;
  watched[next_tag++] = {key, step};
}

std::vector<proto::AttemptSleep> Runtime::asleep() const {
  std::vector<proto::AttemptSleep> out;
  const Duration now = uptime().asleep;
  for (const auto& [key, job] : state_->jobs)
    if (!job.ended && job.asleep_before && now - *job.asleep_before >= kShortestSleep)
      out.push_back({key, now - *job.asleep_before});
  return out;
}

std::string Runtime::trouble() const {
  return state_->trouble();
}

// The path may now have no directory, another directory, or one that is mounted over the original.
std::string Runtime::State::trouble() const {
  const std::string& path = setup.state_dir;
  struct stat top {
  }, jobs_now{};
  if (::stat(path.c_str(), &top) != 0 || top.st_ino != home.inode || top.st_dev != home.device ||
      ::stat(jobs_dir(path).c_str(), &jobs_now) != 0 || jobs_now.st_ino != home.jobs_inode)
    return "the node daemon's state directory " + path +
           " is gone or another one; restart the daemon, then resume the node";
  struct statvfs fs {};
  if (::statvfs(path.c_str(), &fs) == 0 && (fs.f_flag & ST_RDONLY) != 0)
    return "the node daemon's state directory " + path + " can only be read";
  return {};
}

void Runtime::State::remember_home() {
  struct stat st {};
  if (::stat(setup.state_dir.c_str(), &st) == 0) home = {st.st_dev, st.st_ino, 0};
  if (::stat(jobs_dir(setup.state_dir).c_str(), &st) == 0) home.jobs_inode = st.st_ino;
}

namespace {

Result<void> make_job_dir(const std::string& dir, const LaunchRequest& request) {
  if (::mkdir(dir.c_str(), 0700) != 0) {
    const auto code = errno == EEXIST   ? ErrorCode::already_exists
                      : errno == ENOSPC ? ErrorCode::out_of_space
                                        : ErrorCode::io_error;
    return fail_errno(code, dir);
  }
  const Fd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::mkdirat(fd.get(), "run", 0755) != 0) return fail_errno(ErrorCode::io_error, dir);
  if (request.kind == LaunchKind::batch) {
    const Fd run(::openat(fd.get(), "run", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    TRY(write_small(run.get(), "script", request.script, 0500));
    if (::geteuid() == 0 && ::fchownat(run.get(), "script", request.owner.uid.value(),
                                       request.owner.gid.value(), AT_SYMLINK_NOFOLLOW) != 0)
      return fail_errno(ErrorCode::io_error, dir + "/run/script");
  }
  LaunchRequest stored = request;
  stored.script.clear();  // the script is in run/script
  return write_small(fd.get(), kLaunchFile, codec::encode(stored));
}

}  // namespace

std::size_t most_steps(const LaunchRequest& request) {
  constexpr std::size_t kAnyJob = 256, kEachCpu = 4;
  return kAnyJob + kEachCpu * request.cpus.size();
}

RunningJob facts_of(const LaunchRequest& request) {
  RunningJob out;
  out.key = request.key;
  out.cgroup = job_cgroup(request.key);
  out.cpus = request.cpus;
  std::ranges::sort(out.cpus);
  out.memory = request.memory;
  out.network_sys = request.network_sys;
  if (request.parts) out.network_rate = request.parts->bits_per_second;
  out.io_rate = request.io_rate;
  out.tenant = request.tenant;
  out.user = request.owner.user;
  return out;
}

namespace {
OneJob new_job(const LaunchRequest& request) {
  OneJob job;
  job.owner = request.owner;
  job.has_network = request.parts.has_value();
  job.facts = facts_of(request);
  job.kind = request.kind;
  job.most_steps = most_steps(request);
  return job;
}
}  // namespace

Result<void> Runtime::State::start_job(const AttemptKey& key, OneJob job) {
  ASSIGN(shim, shims.start_shim(dir(key), {"job", setup.state_dir, job_name(key)}));
  job.shim = std::move(*shim);
  watch(key, std::nullopt, job.shim);
  jobs.insert_or_assign(key, std::move(job));
  return {};
}

Result<void> Runtime::begin(const LaunchRequest& request) {
  auto& s = *state_;
  if (s.jobs.contains(request.key))
    return fail(ErrorCode::already_exists,
                "attempt " + job_name(request.key) + " is known already");
  if (const auto why = s.trouble(); !why.empty())
    return fail(ErrorCode::io_error, "node " + s.setup.node + ": " + why);
  const std::string dir = s.dir(request.key);
  auto made = make_job_dir(dir, request);
  if (made) made = s.start_job(request.key, new_job(request));
  if (!made && made.error().code != ErrorCode::already_exists) remove_tree(dir);
  if (!made) return fail(made.error().code, "node " + s.setup.node + ": " + made.error().message);
  return {};
}

Result<void> Runtime::resume(const AttemptKey& key) {
  auto& s = *state_;
  if (s.jobs.contains(key))
    return fail(ErrorCode::already_exists, "attempt " + job_name(key) + " was started already");
  ASSIGN(bytes, read_file(s.dir(key) + "/" + kLaunchFile));
  ASSIGN(request, codec::decode<LaunchRequest>(*bytes));
  return s.start_job(key, new_job(*request));
}

Result<void> Runtime::begin_step(const StepRequest& request) {
  auto& s = *state_;
  const auto job = s.jobs.find(request.key);
  if (job == s.jobs.end() || job->second.ended || job->second.burying)
    return fail(ErrorCode::not_found,
                "job " + job_name(request.key) + " does not run on node " + s.setup.node);
  if (job->second.steps.size() >= job->second.most_steps)
    return fail(ErrorCode::too_many, "job " + job_name(request.key) + " runs " +
                                         std::to_string(job->second.steps.size()) +
                                         " steps on node " + s.setup.node +
                                         ", and no more at once");
  if (job->second.cancelled.contains(request.step))
    return fail(ErrorCode::wrong_state, "the step was cancelled before it began");
  const std::string dir = step_dir(s.setup.state_dir, request.key, request.step);
  ::mkdir((s.dir(request.key) + "/steps").c_str(), 0700);
  if (::mkdir(dir.c_str(), 0700) != 0)
    return fail_errno(errno == EEXIST ? ErrorCode::already_exists : ErrorCode::io_error, dir);
  const Fd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto started = write_whole(fd.get(), kLaunchFile, codec::encode(request), Durability::none);
  if (!started) return started;
  if (started = write_early_limit(fd.get(), job->second, request.step); !started) return started;
  auto shim = s.shims.start_shim(dir, {"step", s.setup.state_dir, job_name(request.key),
                                       std::to_string(request.step.value())});
  if (!shim) {
    remove_tree(dir);
    return tl::unexpected(shim.error());
  }
  s.watch(request.key, request.step, *shim);
  OneStep one{std::move(*shim), false, {}};
  if (const auto early = job->second.early.find(request.step); early != job->second.early.end()) {
    one.early = std::move(early->second);
    job->second.early.erase(early);
  }
  job->second.steps.insert_or_assign(request.step, std::move(one));
  return {};
}

void Runtime::forget(const AttemptKey& key) {
  auto& s = *state_;
  const std::string dir = s.dir(key);
  const std::string gone = gone_dir(s.setup.state_dir) + "/" + job_name(key);
  if (::rename(dir.c_str(), gone.c_str()) != 0)
    remove_tree(dir);  // from now on the attempt is forgotten
  const auto it = s.jobs.find(key);
  if (it == s.jobs.end()) return remove_tree(gone);
  for (auto& [step, one] : it->second.steps) s.let_go(std::move(one.shim));
  auto shim = std::move(it->second.shim);
  s.jobs.erase(it);
  if (!shim.pidfd)
    for (auto& one : s.leaving)  // noded has seen its end already
      if (one.shim.pid == shim.pid && one.remove.empty()) {
        one.remove = gone;
        return;
      }
  s.let_go(std::move(shim), gone);
}

std::optional<Owner> Runtime::owner_of(const AttemptKey& key) const {
  const auto it = state_->jobs.find(key);
  if (it == state_->jobs.end()) return std::nullopt;
  return it->second.owner;
}

bool Runtime::has_network(const AttemptKey& key) const {
  const auto it = state_->jobs.find(key);
  return it != state_->jobs.end() && it->second.has_network;
}

Result<Usage> Runtime::usage(const AttemptKey& key) const {
  if (state_->setup.cgroups.version == 0)
    return fail(ErrorCode::unsupported,
                "usage is not known: no cgroup may be written on this node");
  return read_usage(state_->setup.cgroups, job_cgroup(key));
}

std::vector<RunningJob> Runtime::running() const {
  std::vector<RunningJob> out;
  for (const auto& [key, job] : state_->jobs)
    if (!job.ended && job.said_running) out.push_back(job.facts);
  return out;
}

const CgroupLayout& Runtime::cgroups() const {
  return state_->setup.cgroups;
}

std::vector<proto::AttemptUsage> Runtime::usage() const {
  const auto& s = *state_;
  std::vector<proto::AttemptUsage> out;
  if (s.setup.cgroups.version == 0) return out;
  for (const auto& [key, job] : s.jobs) {
    if (job.ended || !job.said_running) continue;
    proto::AttemptUsage& one = out.emplace_back();
    one.key = key;
    one.usage = read_usage(s.setup.cgroups, job_cgroup(key));
    for (const auto& [step, ignored] : job.steps) {
      const std::string cgroup = step_cgroup(key, step);
      Usage usage = read_usage(s.setup.cgroups, cgroup);
      if (!counts_memory(s.setup.cgroups, cgroup))
        usage.memory_peak_bytes = resident_bytes(s.setup.cgroups, cgroup);
      one.steps.push_back({step, std::move(usage)});
    }
  }
  return out;
}

// ---- events

void Runtime::State::look(const AttemptKey& key, OneJob& job, std::vector<RuntimeEvent>& events) {
  if (job.ended) return;
  if (const auto running = running_record(key)) {
    if (running->held && !job.said_held) {
      job.said_held = true;
      events.push_back({EventKind::held, key, {}, {}, {}});
    }
    if (!running->held && !job.said_running) {
      job.said_running = true;
      job.asleep_before = running->asleep;
      events.push_back({EventKind::running, key, {}, running->started, {}});
    }
  }
  if (auto record = exit_record(dir(key))) {
    job.ended = true;
    events.push_back({EventKind::ended, key, {}, {}, std::move(*record)});
  }
}

void Runtime::State::take_notes(std::vector<RuntimeEvent>& events) {
  char buffer[1024];
  for (;;) {
    const ssize_t n = ::recv(notes.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;
    const auto note = codec::decode<ShimNote>({buffer, static_cast<std::size_t>(n)});
    if (!note) continue;
    const auto job = jobs.find(note->key);
    if (job == jobs.end()) continue;
    if (note->step && note->kind == NoteKind::running)
      step_runs(note->key, job->second, *note->step);
    if (note->step)
      look_at_step(note->key, job->second, *note->step, false, events);
    else
      look(note->key, job->second, events);
  }
}

void Runtime::State::step_runs(const AttemptKey& key, OneJob& job, StepId step) {
  const auto it = job.steps.find(step);
  if (it == job.steps.end()) return;
  it->second.running = true;
  for (const int number : std::exchange(it->second.early, {})) signal_tasks(key, step, number);
}

void Runtime::State::look_at_step(const AttemptKey& key, OneJob& job, StepId step, bool gone,
                                  std::vector<RuntimeEvent>& events) {
  const auto it = job.steps.find(step);
  if (it == job.steps.end()) return;
  auto record = exit_record(step_dir(setup.state_dir, key, step));
  if (!record && !gone) return;
  if (!record) {
    kill_cgroup(setup.cgroups, step_cgroup(key, step), milliseconds(20));
    record = lost_record(key);
    record->message = "step " + std::to_string(step.value()) + ": " + record->message;
  }
  events.push_back({EventKind::step_ended, key, step, {}, std::move(*record)});
  let_go(std::move(it->second.shim));
  job.steps.erase(it);
}

void Runtime::State::shim_exited(const AttemptKey& key, std::optional<StepId> step,
                                 std::vector<RuntimeEvent>& events) {
  const auto it = jobs.find(key);
  if (it == jobs.end()) return;
  if (step) return look_at_step(key, it->second, *step, true, events);
  let_go(std::move(it->second.shim));
  look(key, it->second, events);
  if (it->second.ended) return;
  it->second.burying = true;
  arm_timer();
  bury(events);
}

ExitRecord Runtime::State::lost_record(const AttemptKey& key) const {
  ExitRecord record;
  record.key = key;
  record.cause = rebooted ? ExitCause::node_rebooted : ExitCause::shim_lost;
  record.exit = {0, 9};
  record.message = rebooted ? "node " + setup.node + " was rebooted"
                            : "shim of job " + std::to_string(key.job.value()) + " on node " +
                                  setup.node + " was killed";
  record.ended = wall_clock();
  const auto running = running_record(key);
  if (!running || running->started.us == 0) return record;
  record.started = running->started;
  // The time of its end is not known; it has ended by now. Clocks from before a reboot cannot give
  // its length.
  if (!rebooted && running->awake)
    record.ran = std::max(Duration{}, uptime().awake - *running->awake);
  return record;
}

bool Runtime::State::end_remains(const AttemptKey& key) {
  const auto name = job_cgroup(key);
  // Without a cgroup, this ends the job. PID 1 also ends by itself when its shim's socket closes.
  if (const auto running = running_record(key);
      running && running->init_pid > 0 && start_time_of(running->init_pid) == running->init_start)
    ::kill(running->init_pid, 9);
  return kill_cgroup(setup.cgroups, name, Duration{}) &&
         remove_cgroup(setup.cgroups, name, Duration{});
}

void Runtime::State::bury(std::vector<RuntimeEvent>& events) {
  bool left = false;
  for (auto& [key, job] : jobs) {
    if (!job.burying || job.ended) continue;
    const auto usage = read_usage(setup.cgroups, job_cgroup(key));
    if (!end_remains(key) || !epilog_over(key, job)) {
      left = true;
      continue;
    }
    remove_lost_scratch(key);
    auto record = lost_record(key);
    record.usage = usage;
    const Fd fd(::open(dir(key).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // The state directory is gone, so the end is reported but stored nowhere.
    const bool lost = !fd && errno == ENOENT;
    if (lost) record.message += "; " + trouble();
    if (!lost &&
        (!fd || !write_whole(fd.get(), kExitFile, codec::encode(record), Durability::durable))) {
      left = true;  // the disk is full: try again later
      continue;
    }
    job.ended = true;
    job.burying = false;
    events.push_back({EventKind::ended, key, {}, {}, std::move(record)});
  }
  if (left) arm_timer();
}

// A child process (rm) removes the directory, because it may be large.
void Runtime::State::remove_lost_scratch(const AttemptKey& key) {
  const std::string path = scratch_path(setup, key);
  if (setup.scratch_dir.empty() || ::access(path.c_str(), F_OK) != 0) return;
  if (auto rm = start_process({"/bin/rm", "-rf", "--one-file-system", path}, -1, -1))
    let_go(std::move(*rm));
}

void Runtime::State::arm_timer() {
  itimerspec soon{};
  soon.it_value.tv_nsec = 20'000'000;
  ::timerfd_settime(timer.get(), 0, &soon, nullptr);
}

void Runtime::State::let_go(ShimProcess shim, std::string remove) {
  leaving.push_back({std::move(shim), std::move(remove)});
  reap_leaving();
}

void Runtime::State::reap_leaving() {
  std::erase_if(leaving, [](const Leaving& one) {
    if (!reap_shim(one.shim)) return false;
    if (!one.remove.empty()) remove_tree(one.remove);
    return true;
  });
}

std::vector<RuntimeEvent> Runtime::poll() {
  auto& s = *state_;
  std::vector<RuntimeEvent> events;
  epoll_event ready[64];
  const int n = ::epoll_wait(s.epoll.get(), ready, 64, 0);
  for (int i = 0; i < n; ++i) {
    const auto tag = ready[i].data.u64;
    if (tag == kNotesTag) {
      s.take_notes(events);
    } else if (tag == kTimerTag) {
      std::uint64_t count = 0;
      (void)!::read(s.timer.get(), &count, sizeof count);
      s.bury(events);
    } else if (const auto it = s.watched.find(tag); it != s.watched.end()) {
      const auto [key, step] = it->second;
      s.watched.erase(it);
      s.shim_exited(key, step, events);
    }
  }
  s.reap_leaving();
  s.shims.look();
  return events;
}

}  // namespace gantry::runtime
