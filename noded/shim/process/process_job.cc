#include "noded/shim/process/process_job.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "common/codec/codec.h"
#include "noded/machine/cgroup.h"
#include "noded/shim/environment.h"
#include "noded/shim/fence.h"
#include "noded/shim/process/script_failure.h"
#include "noded/shim/task.h"

namespace gantry::runtime {
namespace {

void say_running(const Shim& shim, int pid, const std::optional<Beginning>& began) {
  RunningRecord record;
  record.init_pid = pid;
  record.init_start = start_time_of(pid);
  record.child_pid = pid;
  record.held = !began;
  if (began) began->into(record);
  (void)write_small(shim.dir_fd.get(), kRunningFile, codec::encode(record));
  notify(shim, !began ? NoteKind::held : NoteKind::running);
}

int await_exit(Shim& shim, int pid, Signals& signals, const StandardFiles& files) {
  for (int status = 0;;) {
    pollfd watched{signals.fd(), POLLIN, 0};
    ::poll(&watched, 1, fence_pause(shim));
    if (fence_is_over(shim)) ::kill(-pid, SIGKILL);
    for (int s = signals.next(); s != 0; s = signals.next()) {
      if (s == SIGTERM) ::kill(-pid, SIGKILL);
      if (s == SIGUSR2)
        if (const auto text = read_file(shim.dir + "/" + kNoticeFile))
          say_in_output(shim.request, files, *text);
    }
    for (int ended = ::waitpid(-1, &status, WNOHANG); ended > 0;
         ended = ::waitpid(-1, &status, WNOHANG))
      if (ended == pid) return status;
  }
}

}  // namespace

Result<void> run_process_job(Shim& shim, Signals& signals, const StandardFiles& files,
                             ExitRecord& record, std::optional<Beginning>& began) {
  const auto& request = shim.request;
  if (!request.container.image.empty() || !request.container.mounts.empty())
    return fail(ErrorCode::unsupported,
                "container images and mounts need a container runtime; this node uses 'process'");
  ASSIGN(env, container_environment(request, {}));
  TaskSpec task;
  task.env = std::move(*env);
  task.cpus = request.cpus;
  task.limits = &request.limits;
  if (request.kind == LaunchKind::holder) {
    task.argv = {"/bin/sleep", "infinity"};
  } else {
    task.argv = {shim.dir + "/run/script"};
    task.argv.insert(task.argv.end(), request.argv.begin(), request.argv.end());
  }
  task.in = files.in.get();
  task.out = files.out.get();
  task.err = files.err_fd();
  const bool held = request.hold && request.kind == LaunchKind::batch;
  if (held) {
    say_running(shim, 0, std::nullopt);
    if (!await_go(shim, signals))
      return fail(ErrorCode::runtime_failed, "ended by order while held");
  }
  const auto cgroup = open_cgroup_entries(shim.setup.cgroups, job_cgroup(request.key));
  TaskPlace place;
  place.cgroup = &cgroup;
  place.owner = &request.owner;
  place.cwd = request.work_dir;
  place.rootless = shim.setup.rootless;
  ASSIGN(started, start_tasks({task}, place));
  const int pid = started->front().pid;
  began = Beginning::now();
  say_running(shim, pid, began);
  const int status = await_exit(shim, pid, signals, files);
  kill_cgroup(shim.setup.cgroups, job_cgroup(request.key), seconds(5));
  constexpr int kNotFound = 127;  // the exit code of a task whose program does not exist
  if (!started->front().error.empty() && WIFEXITED(status) && WEXITSTATUS(status) == kNotFound)
    record.message = script_failure(shim, ENOENT);
  else if (!started->front().error.empty())
    record.message = on_node(shim, "the batch script cannot be run: " + started->front().error);
  record.exit =
      WIFSIGNALED(status) ? ExitStatus{0, WTERMSIG(status)} : ExitStatus{WEXITSTATUS(status), 0};
  return {};
}

}  // namespace gantry::runtime
