#include "cli/step/allocation_shell.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/client_config.h"
#include "cli/columns/job_words.h"
#include "cli/step/step_run.h"
#include "common/text/hostlist.h"

namespace gantry::cli {

namespace {

void set(const std::string& name, const std::string& value) {
  ::setenv(("SLURM_" + name).c_str(), value.c_str(), 1);
  ::setenv(("GANTRY_" + name).c_str(), value.c_str(), 1);
}

Result<std::vector<proto::JobDetail>> details_of(Session& session, JobId job) {
  ASSIGN(shown, session.call<proto::ShowJobReply>(proto::ShowJob{{job, {}}, false}));
  if (shown->jobs.empty()) return fail(ErrorCode::not_found, "the allocation is gone");
  return std::move(shown->jobs);
}

// `behind` is appended to the names of the variables.
void set_geometry(const proto::JobDetail& job, const std::string& behind) {
  std::vector<std::uint32_t> tasks, cpus;
  for (const NodePlacement& place : job.placement) {
    tasks.push_back(place.tasks);
    cpus.push_back(static_cast<std::uint32_t>(place.cpus.size()));
  }
  set("TASKS_PER_NODE" + behind, compress_counts(tasks));
  set("JOB_CPUS_PER_NODE" + behind, compress_counts(cpus));
}

}  // namespace

Result<void> set_allocation_geometry(Session& session, JobId job) {
  ASSIGN(jobs, details_of(session, job));
  set_geometry(jobs->front(), "");
  return {};
}

Result<void> set_component_geometry(Session& session, JobId leader) {
  ASSIGN(jobs, details_of(session, leader));
  for (const proto::JobDetail& job : *jobs) {
    if (!job.row.het) continue;
    const std::string behind = fmt::format("_HET_GROUP_{}", job.row.het->offset);
    set("HET_SIZE", std::to_string(job.row.het->size));
    for (const char* name : {"JOB_ID", "JOBID"})
      set(name + behind, std::to_string(job.row.job.value()));
    for (const char* name : {"JOB_NODELIST", "NODELIST"}) set(name + behind, job.row.node_list);
    for (const char* name : {"JOB_NUM_NODES", "NNODES"})
      set(name + behind, std::to_string(job.row.nodes));
    for (const char* name : {"NTASKS", "NPROCS"}) set(name + behind, std::to_string(job.row.tasks));
    if (job.spec.given.cpus_per_task)
      set("CPUS_PER_TASK" + behind, std::to_string(job.spec.shape.cpus_per_task));
    if (job.spec.shape.memory_per_cpu)
      set("MEM_PER_CPU" + behind, std::to_string(*job.spec.shape.memory_per_cpu >> 20));
    else if (job.row.memory_per_node > 0)
      set("MEM_PER_NODE" + behind, std::to_string(job.row.memory_per_node >> 20));
    set("JOB_NAME" + behind, job.row.name);
    set("JOB_PARTITION" + behind, job.row.partition);
    set_geometry(job, behind);
  }
  return {};
}

void set_allocation_environment(const proto::JobRow& row, const JobRequest& request) {
  set("JOB_ID", std::to_string(row.job.value()));
  ::setenv("SLURM_JOBID", std::to_string(row.job.value()).c_str(), 1);
  set("JOB_NAME", row.name);
  set("JOB_NODELIST", row.node_list);
  ::setenv("SLURM_NODELIST", row.node_list.c_str(), 1);
  set("JOB_NUM_NODES", std::to_string(row.nodes));
  ::setenv("SLURM_NNODES", std::to_string(row.nodes).c_str(), 1);
  set("JOB_PARTITION", row.partition);
  set("JOB_USER", row.user);
  set("JOB_UID", std::to_string(row.uid.value()));
  set("JOB_GID", std::to_string(::getgid()));
  const std::string& qos = request.spec.priority_class;
  set("JOB_QOS", qos.empty() ? "normal" : qos);
  if (!row.account.empty()) set("JOB_ACCOUNT", row.account);
  if (row.started) set("JOB_START_TIME", std::to_string(row.started->us / 1'000'000));
  if (const auto end = expected_end_of(row); end && row.started)
    set("JOB_END_TIME", std::to_string(end->us / 1'000'000));
  if (const auto config = find_client_config(); config && !config->cluster.empty())
    set("CLUSTER_NAME", config->cluster);
  set("SUBMIT_DIR", request.spec.work_dir);
  set("SUBMIT_HOST", request.spec.submit_host);
  const JobShape& shape = request.spec.shape;
  if (shape.memory_per_cpu)
    set("MEM_PER_CPU", std::to_string(*shape.memory_per_cpu >> 20));
  else if (row.memory_per_node > 0)
    set("MEM_PER_NODE", std::to_string(row.memory_per_node >> 20));
  if (shape.overcommit) set("OVERCOMMIT", "1");
  if (request.spec.distribution) {
    const Distribution& distribution = *request.spec.distribution;
    if (distribution.plane > 0) set("DIST_PLANESIZE", std::to_string(distribution.plane));
    set("DISTRIBUTION", distribution_words(distribution));
  }
  const GivenOptions& given = request.spec.given;
  if (given.tasks || given.tasks_per_node)
    for (const char* name : {"NTASKS", "NPROCS"}) set(name, std::to_string(shape.tasks));
  if (given.cpus_per_gpu) set("CPUS_PER_GPU", std::to_string(*given.cpus_per_gpu));
  if (given.cpus_per_task) set("CPUS_PER_TASK", std::to_string(shape.cpus_per_task));
  if (given.tasks_per_node) set("NTASKS_PER_NODE", std::to_string(*shape.tasks_per_node));
  for (const auto& [name, value] : task_gpu_variables(request.gpus, ""))
    ::setenv(name.c_str(), value.c_str(), 1);
}

namespace {

// Prefix of messages of scontrol to a job, because batch jobs have them in their output.
constexpr std::string_view kOfANode = "slurmstepd: error: ";

// How often the command is checked while its allocation is waited for: after a twentieth of the
// time that it has run, within these bounds.
constexpr Duration kLeastLook = milliseconds(10), kMostLook = milliseconds(250);

// The command leads a process group, and gets the terminal if this process has it.
void lead_group(pid_t pid) {
  ::setpgid(pid, pid);
  if (::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) return;
  std::signal(SIGTTOU, SIG_IGN);
  ::tcsetpgrp(STDIN_FILENO, pid);
}

// Waits for the end of the command or of its allocation, whichever comes first. Returns true if the
// command has ended, with its `status`.
bool await_either(const std::string& program, pid_t pid, const AtRevocation& at_end, int& status) {
  proto::WaitJobs wait;
  wait.jobs.push_back({at_end.job, {}});
  wait.notices = true;
  const Instant began = system_now();
  auto asked = at_end.session->send(wait);
  while (asked) {
    const Duration look{std::clamp((system_now() - began).us / 20, kLeastLook.us, kMostLook.us)};
    const auto reply = at_end.session->receive<proto::WaitReply>(*asked, look);
    if (::waitpid(pid, &status, WNOHANG) == pid) return true;
    if (!reply && reply.error().code == ErrorCode::timed_out) continue;
    if (!reply) return false;  // nobody can report the end any more
    if (!reply->notice.empty()) {
      const std::string_view text = reply->notice;
      fmt::print(stderr, "{}: {}\n", program,
                 text.substr(text.starts_with(kOfANode) ? kOfANode.size() : 0));
      asked = at_end.session->send(wait);
      continue;
    }
    fmt::print(stderr, "{}: Job allocation {} has been revoked.\n", program, at_end.job.value());
    if (!at_end.signal) return false;
    ::kill(-pid, SIGCONT);
    ::kill(-pid, *at_end.signal);
    return false;
  }
  return false;
}

}  // namespace

Result<int> run_in_allocation(const std::string& program, Manner manner,
                              std::vector<std::string> command,
                              const std::optional<AtRevocation>& at_end) {
  if (command.empty()) {
    const char* shell = std::getenv("SHELL");
    command.emplace_back(shell != nullptr && *shell != 0 ? shell : "/bin/sh");
  }
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  // Signals of the terminal are meant for the command; this process survives, to release the
  // allocation.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  const pid_t pid = ::fork();
  if (pid < 0) return fail(ErrorCode::io_error, fmt::format("fork: {}", std::strerror(errno)));
  const bool leads = at_end && at_end->signal;
  if (leads) lead_group(pid == 0 ? ::getpid() : pid);
  if (pid == 0) {
    for (const int signal : {SIGINT, SIGQUIT, SIGTTOU}) std::signal(signal, SIG_DFL);
    ::execvp(argv[0], argv.data());
    const int error = errno;
    if (manner == Manner::slurm) {
      if (error == ENOENT)
        fmt::print(stderr, "{}: error: _fork_command: Unable to find command \"{}\"\n", program,
                   command[0]);
      else
        fmt::print(stderr, "{}: error: Unable to exec command \"{}\": {}\n", program, command[0],
                   std::strerror(error));
      ::_exit(1);
    }
    fmt::print(stderr, "{}: error: {}: {}\n", program, command[0], std::strerror(error));
    ::_exit(error == ENOENT ? 127 : 126);
  }
  int status = 0;
  const bool ended = at_end && await_either(program, pid, *at_end, status);
  while (!ended && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (leads) ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace gantry::cli
