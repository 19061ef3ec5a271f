#include "noded/shim/process/step_tasks.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "common/codec/codec.h"
#include "noded/machine/cgroup.h"
#include "noded/machine/files.h"
#include "noded/machine/user_child.h"
#include "noded/shim/environment.h"
#include "noded/shim/io/outputs.h"
#include "noded/shim/rootfs/oci_config.h"

namespace gantry::runtime {
namespace {

constexpr std::size_t kChunk = 32 << 10;

struct Pipe {
  Fd reader, writer;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(ErrorCode::runtime_failed, "pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// Opens PID 1 of the job's container as a pidfd, so that its number cannot be reused for another
// process.
Result<Fd> container_of(const Shim& shim) {
  const auto gone = [&] {
    return fail(ErrorCode::wrong_state,
                "job " + job_name(shim.request.key) + " does not run on node " + shim.setup.node);
  };
  const auto bytes = read_file(shim.dir + "/" + kRunningFile);
  if (!bytes) return gone();
  const auto running = codec::decode<RunningRecord>(*bytes);
  if (!running || running->init_pid <= 0) return gone();
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, running->init_pid, 0)));
  if (!pidfd || start_time_of(running->init_pid) != running->init_start) return gone();
  return pidfd;
}

// The nodes of a job start one after the other, so the step may be here before its container.
Result<Fd> container_when_running(const Shim& shim) {
  constexpr int kTries = 2'000;  // every 5 ms
  const std::string record = shim.dir + "/" + kRunningFile;
  const std::string exit = shim.dir + "/" + kExitFile;
  for (int i = 0; i < kTries; ++i) {
    if (::access(record.c_str(), F_OK) == 0 || ::access(exit.c_str(), F_OK) == 0) break;
    // tidy-allow(sleep): only noded gets an event for the container's start
    ::usleep(5'000);
  }
  return container_of(shim);
}

}  // namespace

std::vector<std::uint16_t> StepTasks::cpus_of(std::uint32_t index) const {
  if (index < request_.task_cpus.size()) return request_.task_cpus[index];
  const auto& cpus = request_.cpus;
  const std::size_t share = cpus.size() / request_.task_env.size();
  if (!request_.bind_tasks || share == 0) return cpus;
  const auto first = cpus.begin() + static_cast<std::ptrdiff_t>(share * index);
  return {first, first + static_cast<std::ptrdiff_t>(share)};
}

Result<std::string> StepTasks::file_of(std::uint32_t index, const std::string& pattern) const {
  auto values = pattern_values(shim_.setup, shim_.request);
  values.step = request_.step;
  values.task = request_.rank(index);
  values.node_index = request_.node_index;
  ASSIGN(name, expand_pattern(pattern, values));
  const auto& dir = request_.work_dir.empty() ? shim_.request.work_dir : request_.work_dir;
  return absolute_path(dir, *name);
}

Result<int> StepTasks::input_of(std::uint32_t index, std::vector<Fd>& given) {
  if (!request_.std_in.empty()) {
    ASSIGN(path, file_of(index, request_.std_in));
    ASSIGN(fd, open_input(shim_.request, *path));
    given.push_back(std::move(*fd));
  } else if (reads_input(index)) {
    ASSIGN(pipe, make_pipe());
    ::fcntl(pipe->writer.get(), F_SETFL, O_NONBLOCK);
    tasks_[index].input = std::move(pipe->writer);
    given.push_back(std::move(pipe->reader));
  } else {
    given.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  return given.back().get();
}

Result<int> StepTasks::output_of(std::uint32_t index, const std::string& pattern, int number,
                                 Task& task, std::vector<Fd>& given) {
  if (pattern.empty()) {
    ASSIGN(pipe, make_pipe());
    ::fcntl(pipe->reader.get(), F_SETFL, O_NONBLOCK);
    given.push_back(std::move(pipe->writer));
    task.streams.push_back({std::move(pipe->reader), number});
    return given.back().get();
  }
  ASSIGN(path, file_of(index, pattern));
  ASSIGN(fd,
         open_output(shim_.request, *path, request_.open_mode.value_or(shim_.request.open_mode)));
  given.push_back(std::move(*fd));
  return given.back().get();
}

// Task 0 makes its terminal itself. Until then there is nothing to read, as for all other tasks.
Result<void> StepTasks::give_terminal(std::uint32_t index, TaskSpec& spec, std::vector<Fd>& given) {
  given.emplace_back(::open("/dev/null", O_RDWR | O_CLOEXEC));
  spec.in = spec.out = spec.err = given.back().get();
  if (request_.rank(index) != 0) return {};
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno(ErrorCode::runtime_failed, "socketpair");
  terminal_socket_.reset(ends[0]);
  given.emplace_back(ends[1]);
  spec.extra = ends[1];
  spec.terminal = request_.terminal;
  return {};
}

// By now every task has executed its program or failed to, so what task 0 passed has arrived.
void StepTasks::take_terminal() {
  if (!terminal_socket_) return;
  terminal_ = take_passed(terminal_socket_).fd;
  terminal_socket_.reset();
  if (!terminal_) return;
  ::fcntl(terminal_.get(), F_SETFL, ::fcntl(terminal_.get(), F_GETFL) | O_NONBLOCK);
  tasks_.front().input.reset(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3));
  tasks_.front().streams.push_back({Fd(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3)), 1});
}

namespace {

// A step that asks for no limits has those of its job.
const ProcessLimits& limits_of_step(const LaunchRequest& job, const StepRequest& step) {
  return step.limits == ProcessLimits{} ? job.limits : step.limits;
}

}  // namespace

Result<TaskSpec> StepTasks::prepare(std::uint32_t index, std::vector<Fd>& given) {
  TaskSpec spec;
  spec.argv = request_.argv;
  spec.cpus = cpus_of(index);
  if (index < request_.task_mems.size()) spec.mems = request_.task_mems[index];
  if (index < request_.task_notes.size()) spec.note = request_.task_notes[index];
  spec.mems_preferred = request_.mems_preferred;
  spec.limits = &limits_of_step(shim_.request, request_);
  ASSIGN(env, task_environment(shim_.request, request_, gpus_, index, spec.cpus));
  spec.env = std::move(env->variables);
  spec.note += env->note;
  if (mpi_) {  // first, because the first variable of a name counts
    spec.env.insert(spec.env.begin(), mpi_->environment(index).begin(),
                    mpi_->environment(index).end());
    spec.more = mpi_->sockets(index);
  }
  if (request_.terminal) {
    TRY(give_terminal(index, spec, given));
    return spec;
  }
  ASSIGN(in, input_of(index, given));
  spec.in = *in;
  auto& task = tasks_[index];
  ASSIGN(out, output_of(index, request_.std_out, 1, task, given));
  spec.out = *out;
  if (!request_.std_out.empty() && request_.std_err.empty()) {
    spec.err = *out;
    return spec;
  }
  ASSIGN(err, output_of(index, request_.std_err, 2, task, given));
  spec.err = *err;
  return spec;
}

Result<void> StepTasks::start(Signals& signals) {
  if (request_.task_env.empty() || request_.argv.empty())
    return fail(ErrorCode::invalid_argument, "a step needs a program and at least one task");
  if (has_own_kernel(shim_.request.sandbox))
    return fail(ErrorCode::unsupported, "a job in the sandbox " +
                                            std::string(enum_name(shim_.request.sandbox)) +
                                            " has no steps: nothing of the node can enter it");
  tasks_.resize(request_.task_env.size());
  TaskPlace place;
  Fd container;
  if (shim_.setup.runtime != RuntimeKind::process) {
    ASSIGN(found, container_when_running(shim_));
    container = std::move(*found);
    place.container = container.get();
    place.seccomp_bpf =
        read_file(shim_.setup.state_dir + "/" + filter_of(shim_.request.sandbox).bpf).value_or("");
    place.hardened = shim_.request.sandbox == Sandbox::hardened;
  }
  const auto cgroup_name = step_cgroup(request_.key, request_.step);
  const bool alone = request_.gpus && has_device_rules(shim_.setup.cgroups);
  gpus_ = gpus_of_step(shim_.request, request_, alone);
  if (auto r = create_step_cgroup(shim_.setup.cgroups, cgroup_name, request_.memory,
                                  devices_closed_to(shim_.request, request_));
      !r)
    return r;
  const auto cgroup = open_cgroup_entries(shim_.setup.cgroups, cgroup_name);
  place.cgroup = &cgroup;
  place.owner = &shim_.request.owner;
  place.cwd = request_.work_dir.empty() ? shim_.request.work_dir : request_.work_dir;
  place.rootless = shim_.setup.rootless;
  if (request_.mpi != proto::StepMpi::none) {
    TaskPlace of_server = place;
    of_server.hardened = false;  // its program is the node's, outside of the container
    ASSIGN(server, MpiServer::start(shim_, request_, of_server, signals));
    mpi_ = std::move(*server);
  }
  return start_in(place);
}

Result<void> StepTasks::start_in(const TaskPlace& place) {
  std::vector<TaskSpec> specs;
  std::vector<Fd> given;  // the shim's copies of the tasks' ends, closed once the tasks have them
  for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
    ASSIGN(spec, prepare(i, given));
    specs.push_back(std::move(*spec));
  }
  ASSIGN(started, start_tasks(specs, place));
  given.clear();
  if (mpi_) mpi_->let_go_of_sockets();
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    tasks_[i].pid = (*started)[i].pid;
    tasks_[i].error = std::move((*started)[i].error);
  }
  // The step was killed during its start: some tasks were not reported, and one of them may be
  // about to run.
  const bool cut_short = std::ranges::any_of(tasks_, [](const Task& t) { return t.pid <= 0; });
  if (cut_short)
    kill_cgroup(shim_.setup.cgroups, step_cgroup(request_.key, request_.step), seconds(1));
  for (std::uint32_t i = 0; cut_short && i < tasks_.size(); ++i) {
    if (tasks_[i].pid > 0) continue;
    tasks_[i].status = ExitStatus{0, SIGKILL};
    io_.exited(i, *tasks_[i].status, "");
  }
  take_terminal();
  return {};
}

void StepTasks::collect_exits() {
  for (;;) {
    int status = 0;
    rusage used{};
    const pid_t pid = ::wait4(-1, &status, WNOHANG, &used);
    if (pid <= 0) return;
    add_usage(used);
    for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].pid != pid || tasks_[i].status) continue;
      tasks_[i].status = WIFSIGNALED(status) ? ExitStatus{0, WTERMSIG(status)}
                                             : ExitStatus{WEXITSTATUS(status), 0};
      for (auto& stream : tasks_[i].streams)  // sends its output before its exit
        read_to_end(i, stream);
      io_.exited(i, *tasks_[i].status, tasks_[i].error);
    }
  }
}

void StepTasks::add_usage(const rusage& used) {
  const auto us = [](const timeval& t) { return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_usec; };
  usage_.cpu_user_us += us(used.ru_utime);
  usage_.cpu_system_us += us(used.ru_stime);
  usage_.memory_peak_bytes =
      std::max<std::int64_t>(usage_.memory_peak_bytes, std::int64_t{used.ru_maxrss} * 1024);
}

// Returns the number of bytes read; 0 = nothing more for now, or closed.
std::size_t StepTasks::read_stream(std::uint32_t index, Stream& stream) {
  static_assert(kChunk <= 64 << 10, "on the stack");
  std::array<char, kChunk> buffer;
  const ssize_t n = ::read(stream.fd.get(), buffer.data(), buffer.size());
  if (n > 0) {
    io_.output(index, stream.number, {buffer.data(), static_cast<std::size_t>(n)});
    return static_cast<std::size_t>(n);
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  stream.fd.reset();
  io_.closed(index, stream.number);
  return 0;
}

void StepTasks::read_to_end(std::uint32_t index, Stream& stream) {
  if (stream.fd) read_what_is_there(stream.fd.get(), [&] { return read_stream(index, stream); });
}

void StepTasks::move_output() {
  for (std::uint32_t i = 0; i < tasks_.size(); ++i)
    for (auto& stream : tasks_[i].streams)
      if (stream.fd && !io_.full()) read_stream(i, stream);
}

void StepTasks::drain() {
  for (std::uint32_t i = 0; i < tasks_.size(); ++i)
    for (auto& stream : tasks_[i].streams) read_to_end(i, stream);
}

bool StepTasks::reads_input(std::uint32_t index) const {
  if (request_.io_address.empty()) return false;
  switch (request_.input) {
    case proto::StepInputTo::all_tasks: return true;
    case proto::StepInputTo::one_task: return request_.rank(index) == request_.input_rank;
    case proto::StepInputTo::first_task: break;
  }
  return request_.rank(index) == 0;
}

bool StepTasks::input_full() const {
  return std::ranges::any_of(tasks_,
                             [](const Task& t) { return t.pending_input.size() > kMaxInput; });
}

void StepTasks::input(std::string_view bytes) {
  for (Task& task : tasks_)
    if (task.input) task.pending_input.append(bytes);
  write_input();
}

void StepTasks::close_input() {
  close_input_ = true;
  write_input();
}

void StepTasks::write_input(Task& task) {
  while (task.input && !task.pending_input.empty()) {
    const ssize_t n =
        ::write(task.input.get(), task.pending_input.data(), task.pending_input.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) {  // the task does not read any more
      task.input.reset();
      task.pending_input.clear();
      return;
    }
    task.pending_input.erase(0, static_cast<std::size_t>(n));
  }
  if (!close_input_) return;
  // Sends the end of file as a terminal would; the terminal's other side stays open for the output.
  if (terminal_ && task.input) (void)!::write(task.input.get(), "\004", 1);
  task.input.reset();
}

void StepTasks::window(const proto::TerminalSize& size) {
  const winsize window{size.rows, size.columns, 0, 0};
  if (terminal_) ::ioctl(terminal_.get(), TIOCSWINSZ, &window);  // the kernel sends SIGWINCH
}

void StepTasks::signal(int number) {
  for (const auto& task : tasks_)
    // Each task has its own session.
    if (!task.status && task.pid > 0) ::kill(is_for_tasks(number) ? task.pid : -task.pid, number);
}

std::vector<StepTasks::Wanted> StepTasks::wanted() const {
  std::vector<Wanted> out;
  for (const auto& task : tasks_)
    if (task.input && !task.pending_input.empty()) out.push_back({task.input.get(), POLLOUT});
  if (io_.full()) return out;
  if (mpi_ && mpi_->fd() >= 0) out.push_back({mpi_->fd(), mpi_->events()});
  for (const auto& task : tasks_)
    for (const auto& stream : task.streams)
      if (stream.fd) out.push_back({stream.fd.get(), POLLIN});
  return out;
}

std::vector<ExitStatus> StepTasks::statuses() const {
  std::vector<ExitStatus> out;
  for (const auto& task : tasks_) out.push_back(task.status.value_or(ExitStatus{0, SIGKILL}));
  return out;
}

}  // namespace gantry::runtime
