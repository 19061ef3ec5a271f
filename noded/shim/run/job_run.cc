// The life of one attempt on this node: cgroup, prolog, output files, root, container, exit, usage,
// epilog, exit record. If something fails before the container runs, the attempt is a launch
// failure, or a refusal if the job's owner has to correct something. The message names the node and
// the cause.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "common/codec/codec.h"
#include "common/text/text.h"
#include "noded/machine/cgroup.h"
#include "noded/runtime/job_dir.h"
#include "noded/runtime/secret_files.h"
#include "noded/shim/environment.h"
#include "noded/shim/fence.h"
#include "noded/shim/process/container.h"
#include "noded/shim/process/door.h"
#include "noded/shim/process/own_kernel.h"
#include "noded/shim/rootfs/image.h"
#include "noded/shim/rootfs/scratch.h"
#include "noded/shim/rootfs/user_mounts.h"
#include "noded/shim/run/step_bounds.h"
#include "noded/shim/staging.h"

namespace gantry::runtime {
namespace {

constexpr Duration kKillPatience = seconds(10);

CgroupLimits limits_of(const LaunchRequest& request) {
  CgroupLimits limits{request.cpus,     request.mems, request.memory,
                      request.pids_max, {},           request.io_rate};
  for (const LaunchDevice& d : request.devices)
    limits.devices.push_back({d.major, d.minor, d.access});
  return limits;
}

Result<void> check_owner(const NodeSetup& setup, const LaunchRequest& request) {
  if (request.owner.uid.value() == 0 && !setup.allow_root_jobs)
    return fail(ErrorCode::permission_denied,
                "jobs of root are not allowed here (noded.allow_root_jobs)");
  if (setup.rootless && request.owner.uid.value() != ::geteuid())
    return fail(ErrorCode::permission_denied,
                "this node daemon is not root and runs jobs of its own user only");
  return {};
}

// Records no start while the job is held, because it has not started yet.
void record_running(const Shim& shim, const Container& container,
                    const std::optional<Beginning>& began) {
  RunningRecord record;
  record.init_pid = container.init_pid;
  record.init_start = start_time_of(container.init_pid);
  record.child_pid = container.child_pid;
  record.held = !began;
  if (began) began->into(record);
  (void)write_small(shim.dir_fd.get(), kRunningFile, codec::encode(record));
}

void append_notice(const Shim& shim, const StandardFiles& files) {
  const auto text = read_file(shim.dir + "/" + kNoticeFile);
  if (text) say_in_output(shim.request, files, *text);
}

// Watches a job from the start of PID 1 to its end.
class Watch {
 public:
  Watch(Shim& shim, Signals& signals, Container& container, const StandardFiles& files)
      : shim_(shim),
        signals_(signals),
        container_(container),
        files_(files),
        scratch_(shim.setup, shim.request),
        held_(shim.request.hold && shim.request.kind == LaunchKind::batch) {}

  std::optional<Beginning> run() {
    report();
    while (!container_.ended) {
      pollfd watched[2] = {{signals_.fd(), POLLIN, 0}, {container_.socket.get(), POLLIN, 0}};
      ::poll(watched, 2, pause());
      if (fence_is_over(shim_) || scratch_.is_over()) ::kill(container_.init_pid, SIGKILL);
      read_init(container_);
      if (container_.closed && !container_.ended) await_end();
      for (int s = signals_.next(); s != 0; s = signals_.next()) react(s);
      if (!held_ && !shell_recorded_ && container_.child_pid != 0) {
        shell_recorded_ = true;
        record_running(shim_, container_, began_);
      }
    }
    read_init(container_);
    return began_;
  }
  [[nodiscard]] const ScratchLimit& scratch() const { return scratch_; }

 private:
  [[nodiscard]] int pause() const {
    const int fence = fence_pause(shim_), scratch = scratch_.pause();
    return fence < 0 || (scratch >= 0 && scratch < fence) ? scratch : fence;
  }
  // The shell is forked within a millisecond; waiting for it saves a second record and a second
  // note.
  void await_shell() {
    pollfd watched[1] = {{container_.socket.get(), POLLIN, 0}};
    if (container_.child_pid == 0 && ::poll(watched, 1, 50) == 1) read_init(container_);
  }
  void report() {
    if (!held_ && shim_.request.kind == LaunchKind::batch) await_shell();
    if (!held_) began_ = Beginning::now();
    record_running(shim_, container_, began_);
    shell_recorded_ = container_.child_pid != 0;
    notify(shim_, held_ ? NoteKind::held : NoteKind::running);
  }
  void await_end() {  // the socket closed, so PID 1 is ending; its status comes with SIGCHLD
    reap_children(container_);  // its SIGCHLD may have come before the OCI runtime ended
    if (container_.ended) return;
    pollfd watched[1] = {{signals_.fd(), POLLIN, 0}};
    ::poll(watched, 1, 1000);
    reap_children(container_);
  }
  void react(int number) {
    if (number == SIGCHLD) reap_children(container_);
    if (number == SIGUSR2) append_notice(shim_, files_);
    if (number == SIGTERM) ::kill(container_.init_pid, SIGKILL);
    if (number != SIGUSR1 || !held_) return;
    held_ = false;
    say_go(container_);
    report();
  }

  Shim& shim_;
  Signals& signals_;
  Container& container_;
  const StandardFiles& files_;
  ScratchLimit scratch_;
  bool held_;
  bool shell_recorded_ = false;
  std::optional<Beginning> began_;
};

struct Job {
  Shim& shim;
  Signals& signals;
  Fd host_mounts;  // the mount namespace that the shim has left
  Fd host_root;    // the shim's root in that namespace
  StandardFiles files;
  bool prolog_ran = false;
  ExitRecord record;
  std::optional<Beginning> began;
  Door door;
};

Result<void> prepare(Job& job, ImageUse& image) {
  auto& [shim, signals, host_mounts, host_root, files, prolog_ran, record, began, door] = job;
  const auto& request = shim.request;
  TRY(check_owner(shim.setup, request));
  if (auto r = create_cgroup(shim.setup.cgroups, job_cgroup(request.key), limits_of(request)); !r)
    return fail(ErrorCode::runtime_failed, "cgroup " + r.error().message);
  if (!request.prolog.empty()) {
    prolog_ran = true;
    if (auto r = run_hook(shim, "prolog", request.prolog, {}, signals); !r) return r;
  }
  ASSIGN(listening, Door::open(request));
  door = std::move(*listening);
  ASSIGN(opened, open_standard_files(shim.setup, request));
  files = std::move(*opened);
  return fetch_image(shim, image, signals);
}

struct Prepared {
  Root root;
  std::vector<std::string> env;
};

// Makes everything except the container itself.
Result<Prepared> prepare_root(Job& job, ImageUse& image) {
  auto& shim = job.shim;
  RootPlan plan;
  plan.run_dir = shim.dir + "/run";
  plan.secrets_dir = shim.request.secrets_dir;
  ASSIGN(scratch, make_scratch(shim.setup, shim.request));
  plan.scratch_dir = *scratch;
  if (!shim.setup.rootless) {
    job.host_mounts.reset(::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
    job.host_root.reset(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  TRY(enter_private_mounts(shim.setup, shim.request));
  TRY(fence_storage(shim.setup, shim.request));
  TRY(private_binds(shim.setup, shim.request));
  TRY(mount_image(shim, image, job.signals));
  if (image.root) plan.image = &image.root;
  plan.image_cwd = image.config.work_dir;
  TRY(stage_in(shim, job.signals));
  ASSIGN(root, build_root(shim.setup, shim.request, plan));
  ASSIGN(env, container_environment(shim.request, image.config));
  return Prepared{std::move(*root), std::move(*env)};
}

// Writes why the job ended into the record and into the job's own output.
void explain(Job& job, const std::string& why) {
  job.record.message = why;
  const std::string line = "gantry: error: job " +
                           std::to_string(job.shim.request.key.job.value()) + ": " +
                           job.record.message + "\n";
  say_in_output(job.shim.request, job.files, line);
}

void explain_scratch(Job& job, const ScratchLimit& scratch) {
  if (const std::string why = scratch.complaint(); !why.empty())
    explain(job, on_node(job.shim, why));
}

void explain_memory(Job& job) {
  auto& record = job.record;
  if (record.oom_kills == 0) return;
  record.cause = ExitCause::out_of_memory;
  explain(job, on_node(job.shim, "memory limit of " + format_memory(job.shim.request.memory) +
                                     " reached, and " + std::to_string(record.oom_kills) +
                                     (record.oom_kills == 1 ? " process was" : " processes were") +
                                     " ended for it; ask for more with --mem"));
}

// Files are also staged out after a script that failed, because its output may show why; but not
// after a signal, because a job that is cancelled or over its time limit has to end soon.
void bring_out(Job& job) {
  if (!job.began || job.record.exit.signal != 0) return;
  const auto r = stage_out(job.shim, job.signals);
  if (r) return;
  explain(job, on_node(job.shim, r.error().message));
  if (job.record.exit == ExitStatus{}) job.record.exit = {1, 0};
}

Result<void> run_in_container(Job& job, ImageUse& image) {
  auto& shim = job.shim;
  ASSIGN(made, prepare_root(job, image));
  if (has_own_kernel(shim.request.sandbox)) {
    if (shim.request.door)
      return fail(ErrorCode::unsupported,
                  "a replica of a service cannot run in a sandbox with a kernel of its own");
    auto ran =
        run_own_kernel(shim, job.signals, made->root, job.files, made->env, job.record, job.began);
    if (ran) bring_out(job);
    return ran;
  }
  ASSIGN(container, start_container(shim, made->root, job.files, made->env, job.signals));
  if (auto r = job.door.start(shim, container->init_pid); !r) {
    ::kill(container->init_pid, SIGKILL);
    return r;
  }
  keep_only_what_a_shim_needs(shim);
  Watch watch(shim, job.signals, *container, job.files);
  job.began = watch.run();
  job.record.exit = exit_of(*container);
  explain_scratch(job, watch.scratch());
  if (container->exec_error) explain(job, script_failure(shim, *container->exec_error));
  bring_out(job);
  return {};
}

std::uint32_t kills_in_steps(const Shim& shim) {
  const auto marks = read_file(shim.dir + "/" + kOomFile);
  return static_cast<std::uint32_t>(marks.value_or("").size());
}

void clean_up(Job& job) {
  const auto& setup = job.shim.setup;
  const auto name = job_cgroup(job.shim.request.key);
  if (setup.cgroups.version != 0) {
    job.record.usage = read_usage(setup.cgroups, name);
    job.record.oom_kills = read_oom_kills(setup.cgroups, name) + kills_in_steps(job.shim);
    explain_memory(job);
    // This is the common case: no process is left in it.
    if (!remove_cgroup(setup.cgroups, name, Duration{})) {
      kill_cgroup(setup.cgroups, name, kKillPatience);
      remove_cgroup(setup.cgroups, name, kKillPatience);
    }
  }
  remove_scratch(setup, job.shim.request);
  if (!job.shim.request.secrets_dir.empty() || job.shim.request.objects)
    remove_secrets(setup.state_dir, job.shim.request.key);
}

void run_epilog(Job& job) {
  const auto& request = job.shim.request;
  if (request.epilog.empty()) return;
  const auto r = run_hook(job.shim, "epilog", request.epilog,
                          {job.host_mounts.get(), job.host_root.get(), &job.record}, job.signals);
  if (!r && job.record.message.empty()) job.record.message = on_node(job.shim, r.error().message);
}

// Tells whose fault it is that nothing ran. A mistake or missing right of the user would fail again
// on every node; anything else may succeed elsewhere or later. Faults of the node never have these
// codes.
ExitCause cause_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::not_found:
    case ErrorCode::permission_denied: return ExitCause::refused;
    default: return ExitCause::launch_failed;
  }
}

}  // namespace

int run_job(Shim& shim, Signals& signals) {
  Job job{shim, signals, {}, {}, {}, false, {}, {}, {}};
  job.record.key = shim.request.key;
  ImageUse image;
  Result<void> outcome = prepare(job, image);
  if (outcome && fence_is_over(shim))
    outcome = fail(ErrorCode::runtime_failed, "its time without the controller is over");
  if (outcome && shim.setup.runtime == RuntimeKind::process) {
    outcome = job.door.start(shim, 0);
    if (outcome) outcome = run_process_job(shim, signals, job.files, job.record, job.began);
  } else if (outcome) {
    outcome = run_in_container(job, image);
  }
  if (!outcome) {
    job.record.cause = cause_of(outcome.error());
    job.record.exit = {1, 0};
    job.record.message = on_node(shim, outcome.error().message);
  }
  if (job.began) job.record.started = job.began->at;
  job.door.end();
  clean_up(job);
  explain_fence(shim, job.record);
  run_epilog(job);
  job.record.ended = wall_clock();
  if (job.began) job.began->into(job.record);
  write_exit_record(shim, shim.dir_fd.get(), job.record);
  return 0;
}

}  // namespace gantry::runtime
