#include "noded/shim/process/own_kernel.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/codec/codec.h"
#include "noded/machine/cgroup.h"
#include "noded/machine/files.h"
#include "noded/shim/environment.h"
#include "noded/shim/fence.h"
#include "noded/shim/process/container.h"
#include "noded/shim/task.h"

namespace gantry::runtime {

namespace {

constexpr Duration kStateTime = seconds(10);  // for one call of the runtime
constexpr int kAskAgain = 20;                 // milliseconds

const std::string& runtime_of(const Shim& shim) {
  return shim.request.sandbox == Sandbox::gvisor ? shim.setup.gvisor_path : shim.setup.vm_path;
}

// The runtime's own records. They are in the job's directory, where steps find them. The
// container's name is unique on the machine, because runsc names a socket after it.
std::string records_of(const Shim& shim) {
  return shim.dir + "/kernel";
}
std::string name_of(const Shim& shim) {
  return "gantry-" + shim.setup.node + "-" + job_name(shim.request.key);
}

std::vector<std::string> command_of(const Shim& shim, const std::string& log) {
  std::vector<std::string> argv{runtime_of(shim), "--root", records_of(shim)};
  if (!log.empty()) argv.insert(argv.end(), {"--log", log});
  if (shim.request.sandbox != Sandbox::gvisor) return argv;
  // Files of the job may change on other nodes, too, so the sandbox's kernel must not cache them.
  for (const char* word : {"--ignore-cgroups", "--file-access=shared", "--network=none"})
    argv.emplace_back(word);
  return argv;
}

const std::vector<std::string>& environment() {
  static const std::vector<std::string> kOwn{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  return kOwn;
}

// An image is a separate mount. Directories of the host are read-only mounts in a directory where
// the container's ids cannot make files.
void close_root(const Root& root) {
  if (!root.read_only) return;
  mount_attr attr{};
  attr.attr_set = MOUNT_ATTR_RDONLY;
  ::mount_setattr(AT_FDCWD, root.path.c_str(), 0, &attr, sizeof attr);
}

Result<void> write_bundle(const Shim& shim, const std::string& bundle, const Root& root,
                          const std::vector<std::string>& env) {
  OciInput input;
  input.root = root.path;
  // The shim has made the root read-only. A process in a user namespace that serves its files
  // cannot remount it, because the mount's flags are locked there.
  input.read_only = false;
  input.cwd = "/";
  input.env = env;
  input.args = {"alone"};
  if (shim.request.kind == LaunchKind::holder) {
    input.args.emplace_back("pause");
  } else {
    for (const std::string& word :
         {std::string("in"), root.cwd, std::string("run"), std::string(kScript)})
      input.args.push_back(word);
    input.args.insert(input.args.end(), shim.request.argv.begin(), shim.request.argv.end());
  }
  // The process that serves the container's files cannot make files in its root.
  const Fd place(
      ::open((root.path + kInitInside).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0755));
  if (!place) return fail_errno(ErrorCode::runtime_failed, root.path + kInitInside);
  close_root(root);
  for (const std::string& dir : {bundle, records_of(shim)})
    if (::mkdir(dir.c_str(), 0711) != 0) return fail_errno(ErrorCode::runtime_failed, dir);
  const Fd dir(::open(bundle.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return write_whole(dir.get(), "config.json", write_oci_config(shim.setup, shim.request, input),
                     Durability::none);
}

void say_kernel_runs(const Shim& shim, int pid, const std::optional<Beginning>& began) {
  RunningRecord record;
  record.own_kernel = true;
  record.init_pid = pid;
  record.init_start = start_time_of(pid);
  record.held = !began;
  if (began) began->into(record);
  (void)write_small(shim.dir_fd.get(), kRunningFile, codec::encode(record));
  notify(shim, began ? NoteKind::running : NoteKind::held);
}

// The job's standard files as the runtime gets them: pipes. A runtime may change the owner of its
// standard files (runsc to nobody, runc to the container's user), and a user-space kernel writes to
// files at its own offsets.
class StandardPipes {
 public:
  static Result<StandardPipes> make(const StandardFiles& files) {
    StandardPipes pipes;
    const bool joined = files.err_fd() == files.out.get();
    TRY(pipes.add(files.out.get(), pipes.out_));
    if (joined)
      pipes.err_.reset(::fcntl(pipes.out_.get(), F_DUPFD_CLOEXEC, 3));
    else
      TRY(pipes.add(files.err_fd(), pipes.err_));
    TRY(pipes.feed(files.in.get()));
    return pipes;
  }
  void give(ChildSpec& spec) const {
    spec.in = in_.get();
    spec.out = out_.get();
    spec.err = err_.get();
  }
  void let_go() {
    for (Fd* fd : {&in_, &out_, &err_}) fd->reset();
  }
  void watch(std::vector<pollfd>& all) const {
    for (const Way& way : ways_)
      if (way.from) all.push_back({way.from.get(), POLLIN, 0});
  }
  // Moves what has been written, without waiting for more.
  void move() {
    for (Way& way : ways_) {
      std::array<char, 65536> bytes{};
      while (way.from) {
        const ssize_t n = ::read(way.from.get(), bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) {
          way.from.reset();
          break;
        }
        write_all(way.to, bytes.data(), static_cast<std::size_t>(n));
      }
    }
  }
  // The process that passes on the job's input; 0 = there is none.
  [[nodiscard]] int feeder() const { return feeder_; }

 private:
  struct Way {
    Fd from;
    int to;
  };
  static Result<std::array<Fd, 2>> pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(ErrorCode::runtime_failed, "pipe");
    return std::array<Fd, 2>{Fd(ends[0]), Fd(ends[1])};
  }
  Result<void> add(int to, Fd& writer) {
    ASSIGN(ends, pipe());
    ::fcntl((*ends)[0].get(), F_SETFL, O_NONBLOCK);
    ways_.push_back({std::move((*ends)[0]), to});
    writer = std::move((*ends)[1]);
    return {};
  }
  static void write_all(int to, const char* bytes, std::size_t size) {
    while (size > 0) {
      const ssize_t n = ::write(to, bytes, size);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;  // the disk is full: the output is lost, as in any program
      bytes += n;
      size -= static_cast<std::size_t>(n);
    }
  }
  // Input may be endless, and the job may not read it: so a separate process passes it on.
  // /dev/null needs none.
  Result<void> feed(int from) {
    ASSIGN(ends, pipe());
    in_ = std::move((*ends)[0]);
    struct stat st {};
    if (::fstat(from, &st) != 0 || S_ISCHR(st.st_mode)) return {};
    feeder_ = ::fork();
    if (feeder_ < 0) return fail_errno(ErrorCode::runtime_failed, "fork");
    if (feeder_ > 0) return {};
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    in_.reset();
    std::array<char, 65536> bytes{};
    for (ssize_t n = 0; (n = ::read(from, bytes.data(), bytes.size())) > 0;)
      write_all((*ends)[1].get(), bytes.data(), static_cast<std::size_t>(n));
    ::_exit(0);
  }

  std::vector<Way> ways_;
  Fd in_, out_, err_;
  int feeder_ = 0;
};

class OwnKernel {
 public:
  OwnKernel(Shim& shim, Signals& signals, const StandardFiles& files, StandardPipes pipes)
      : shim_(shim),
        signals_(signals),
        files_(files),
        pipes_(std::move(pipes)),
        log_(shim.setup.mount_dir + "/runtime.log") {}

  Result<void> run(const std::string& bundle, ExitRecord& record, std::optional<Beginning>& began) {
    const auto cgroup = open_cgroup_entries(shim_.setup.cgroups, job_cgroup(shim_.request.key));
    ChildSpec spec;
    spec.argv = command_of(shim_, log_);
    for (const std::string& word :
         {std::string("run"), std::string("--bundle"), bundle, name_of(shim_)})
      spec.argv.push_back(word);
    spec.env = environment();
    pipes_.give(spec);
    spec.cgroup = &cgroup;
    ASSIGN(pid, spawn(spec));
    pid_ = *pid;
    pipes_.let_go();
    if (auto r = await_up(); !r) {
      end();
      return r;
    }
    began = Beginning::now();
    say_kernel_runs(shim_, pid_, began);
    while (!status_) wait(fence_pause(shim_));
    end();
    record.exit = WIFSIGNALED(*status_) ? ExitStatus{0, WTERMSIG(*status_)}
                                        : ExitStatus{WEXITSTATUS(*status_), 0};
    return {};
  }

 private:
  // A short job may have ended before the runtime reported it as running.
  Result<void> await_up() {
    while (!status_) {
      wait(kAskAgain);
      if (killed_ || status_) break;
      ChildSpec ask;
      ask.argv = command_of(shim_, "");
      ask.argv.insert(ask.argv.end(), {"state", name_of(shim_)});
      ask.env = environment();
      ASSIGN(said, run_to_end(std::move(ask), signals_, kStateTime));
      killed_ = killed_ || said->by_order;
      if (said->status == 0 && said->output.find("\"running\"") != std::string::npos) return {};
      reap();
    }
    if (killed_) return fail(ErrorCode::runtime_failed, "ended by order while starting");
    const std::string why = complaint();
    if (*status_ == 0 || why.empty()) return {};
    return fail(ErrorCode::runtime_failed, runtime_of(shim_) + ": " + why);
  }

  // The first error in the runtime's log. runsc writes JSON objects.
  [[nodiscard]] std::string complaint() const {
    const std::string log = read_file(log_).value_or("");
    constexpr std::string_view kMessage = "{\"msg\":\"";
    const auto at = log.find(kMessage);
    if (at == std::string::npos) return trim(log).empty() ? std::string() : runtime_complaint(log_);
    const auto begin = at + kMessage.size();
    return log.substr(begin, log.find("\",\"level\"", begin) - begin);
  }

  void wait(int pause) {
    std::vector<pollfd> watched{{signals_.fd(), POLLIN, 0}};
    pipes_.watch(watched);
    ::poll(watched.data(), watched.size(), pause);
    if (fence_is_over(shim_)) kill_all();
    for (int s = signals_.next(); s != 0; s = signals_.next()) {
      if (s == SIGTERM) kill_all();
      if (s == kAttachSignal) hand_on_signals();
      if (s == SIGUSR2)
        if (const auto text = read_file(shim_.dir + "/" + kNoticeFile))
          say_in_output(shim_.request, files_, *text);
    }
    pipes_.move();
    reap();
  }
  // gantry-init inside passes them on to the job's program.
  void hand_on_signals() {
    for (const std::string& name : list_dir(shim_.dir)) {
      if (!name.starts_with(kSignalPrefix)) continue;
      const std::string number = trim(read_file(shim_.dir + "/" + name).value_or(""));
      ::unlinkat(shim_.dir_fd.get(), name.c_str(), 0);
      ChildSpec kill;
      kill.argv = command_of(shim_, "");
      kill.argv.insert(kill.argv.end(), {"kill", name_of(shim_), number});
      kill.env = environment();
      (void)run_to_end(std::move(kill), signals_, kStateTime);
    }
  }
  void kill_all() {
    killed_ = true;
    ::kill(pid_, SIGKILL);
    kill_cgroup(shim_.setup.cgroups, job_cgroup(shim_.request.key), Duration{});
  }
  void reap() {
    int status = 0;
    for (pid_t ended = ::waitpid(-1, &status, WNOHANG); ended > 0;
         ended = ::waitpid(-1, &status, WNOHANG))
      if (ended == pid_) status_ = status;
  }
  // No process of the runtime outlives the job.
  void end() {
    if (!status_) ::kill(pid_, SIGKILL);
    if (pipes_.feeder() > 0) ::kill(pipes_.feeder(), SIGKILL);
    pipes_.move();
    kill_cgroup(shim_.setup.cgroups, job_cgroup(shim_.request.key), seconds(5));
    remove_tree(records_of(shim_));
  }

  Shim& shim_;
  Signals& signals_;
  const StandardFiles& files_;
  StandardPipes pipes_;
  std::string log_;
  int pid_ = 0;
  std::optional<int> status_;
  bool killed_ = false;
};

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

// The program in the script's first line: "/bin/sh" of "#!/bin/sh -e"; "" = none.
std::string interpreter_of(const std::string& script) {
  const std::string line = script.substr(0, script.find('\n'));
  if (!line.starts_with("#!")) return {};
  const std::size_t from = line.find_first_not_of(" \t", 2);
  if (from == std::string::npos) return {};
  return line.substr(from, line.find_first_of(" \t\r", from) - from);
}

}  // namespace

Result<void> run_own_kernel(Shim& shim, Signals& signals, const Root& root,
                            const StandardFiles& files, const std::vector<std::string>& env,
                            ExitRecord& record, std::optional<Beginning>& began) {
  if (runtime_of(shim).empty())
    return fail(ErrorCode::runtime_failed, "this node does not have the sandbox " +
                                               std::string(enum_name(shim.request.sandbox)));
  const std::string bundle = shim.setup.mount_dir + "/bundle";
  TRY(write_bundle(shim, bundle, root, env));
  if (shim.request.hold && shim.request.kind == LaunchKind::batch) {
    say_kernel_runs(shim, 0, std::nullopt);
    if (!await_go(shim, signals))
      return fail(ErrorCode::runtime_failed, "ended by order while held");
  }
  ASSIGN(pipes, StandardPipes::make(files));
  return OwnKernel(shim, signals, files, std::move(*pipes)).run(bundle, record, began);
}

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

std::string script_failure(const Shim& shim, int error) {
  const std::string program =
      interpreter_of(read_file(shim.dir + "/run/script").value_or(std::string()));
  const std::string& image = shim.request.container.image;
  const std::string where = image.empty() ? "on " + shim.setup.node : "in the image " + image;
  const std::string named = " (the first line of the script names it)";
  if (error == ENOENT && !program.empty()) return program + " does not exist " + where + named;
  if (error == EACCES && !program.empty()) return program + " may not be executed " + where + named;
  return on_node(shim, errno_text("the batch script cannot be run", error));
}

}  // namespace gantry::runtime
