// Tasks of a step in a sandbox that has a kernel of its own. Nothing of the node enters such a
// container, so for each task the runtime's `exec` runs beside it, in the step's cgroup, and hands
// on its output, signals and exit status.
#include <fcntl.h>
#include <unistd.h>

#include "noded/shim/process/own_kernel.h"
#include "noded/shim/process/step_tasks.h"

namespace gantry::runtime {

Result<void> StepTasks::check_own_kernel() const {
  const auto refuse = [&](const char* what) {
    return fail(
        ErrorCode::unsupported,
        "a step in the sandbox " + std::string(enum_name(shim_.request.sandbox)) + " has " + what);
  };
  if (request_.terminal) return refuse("no terminal (--pty)");
  if (request_.mpi != proto::StepMpi::none)
    return refuse("no server for MPI; start it with --mpi=none");
  if (request_.memory > 0) return refuse("no memory limit of its own (--mem)");
  return {};
}

Result<void> StepTasks::start_by_runtime(const TaskPlace& place) {
  const std::string dir = step_dir(shim_.setup.state_dir, request_.key, request_.step);
  const Fd dir_fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir_fd) return fail_errno(ErrorCode::io_error, dir);
  for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
    std::vector<Fd> given;
    auto task = prepare(i, given);
    if (!task) return tl::unexpected(task.error());
    const std::string name = "process." + std::to_string(i);
    const std::string text = write_oci_process(shim_.setup, shim_.request,
                                               {task->argv, task->env, place.cwd, task->limits});
    if (auto r = write_whole(dir_fd.get(), name.c_str(), text, Durability::none); !r) return r;
    ChildSpec spec;
    spec.argv = own_kernel_exec(shim_, dir + "/" + name);
    spec.env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    spec.in = task->in;
    spec.out = task->out;
    spec.err = task->err;
    spec.cgroup = place.cgroup;
    spec.own_group = true;
    const auto pid = spawn(spec);
    if (!pid) return tl::unexpected(pid.error());
    tasks_[i].pid = *pid;
  }
  return {};
}

}  // namespace gantry::runtime
