#include "noded/shim/process/container.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "noded/machine/cgroup.h"
#include "noded/machine/files.h"
#include "noded/shim/mounts.h"
#include "noded/shim/task.h"

namespace gantry::runtime {

namespace {

static_assert(kInitOpenFiles == kJobFiles);

struct Pair {
  Fd ours, theirs;
};

Result<Pair> init_socket() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno(ErrorCode::runtime_failed, "socketpair");
  Pair pair{Fd(ends[0]), Fd(ends[1])};
  const int on = 1;
  ::setsockopt(pair.ours.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  return pair;
}

Result<Pair> runtime_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    return fail_errno(ErrorCode::runtime_failed, "pipe");
  return Pair{Fd(ends[0]), Fd(ends[1])};
}

// gantry-init enters the working directory, and the OCI runtime does not. gantry-init is the user
// and has no descriptor of a directory. A runtime that enters a user's path can be led out of the
// container by a link that points to the runtime's own descriptors (CVE-2024-21626).
std::vector<std::string> init_args(const LaunchRequest& request, const std::string& cwd) {
  std::vector<std::string> args;
  if (request.sandbox == Sandbox::hardened) args.emplace_back("hard");
  if (request.kind == LaunchKind::holder) {
    args.emplace_back("pause");
    return args;
  }
  for (const std::string& word :
       {std::string("in"), cwd, std::string(request.hold ? "hold" : "run"), std::string(kScript)})
    args.push_back(word);
  args.insert(args.end(), request.argv.begin(), request.argv.end());
  return args;
}

// runc sets the limits of a process from outside of its user namespace. A root without
// CAP_SYS_RESOURCE may do that only if it made the namespace. So runc is started with the limits,
// and the process inherits them.
bool inherits_limits(const Shim& shim) {
  return shim.setup.runtime == RuntimeKind::runc && !shim.setup.rootless;
}

// The limits that do not hinder runc itself, which gets them too: it reserves much address space,
// writes files, and starts threads.
ProcessLimits limits_beside_runc(ProcessLimits limits) {
  std::erase_if(limits.soft, [](const SoftLimit& limit) {
    return limit.name != LimitName::core && limit.name != LimitName::open_files &&
           limit.name != LimitName::locked_memory;
  });
  return limits;
}

Result<void> write_bundle(const Shim& shim, const std::string& bundle, const Root& root,
                          const std::vector<std::string>& env, const std::string& user_namespace) {
  OciInput input;
  input.user_namespace = user_namespace;
  input.has_limits = inherits_limits(shim);
  input.root = root.path;
  input.read_only = root.read_only;
  input.cwd = "/";
  input.args = init_args(shim.request, root.cwd);
  input.env = env;
  const FilterFiles& filter = filter_of(shim.request.sandbox);
  if (shim.setup.runtime == RuntimeKind::crun)
    input.seccomp_bpf = trim(read_file(shim.setup.state_dir + "/" + filter.base64).value_or(""));
  else
    input.seccomp_json = read_file(shim.setup.state_dir + "/" + filter.json).value_or("");
  if (shim.setup.runtime == RuntimeKind::runc && shim.setup.cgroups.version != 0)
    input.cgroups_path =
        shim.setup.cgroups.relative + "/" + container_cgroup(shim.setup, shim.request.key);
  if (::mkdir(bundle.c_str(), 0711) != 0) return fail_errno(ErrorCode::runtime_failed, bundle);
  const Fd dir(::open(bundle.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return write_whole(dir.get(), "config.json", write_oci_config(shim.setup, shim.request, input),
                     Durability::none);
}

// crun protects its own file from the container by starting itself a second time from a read-only
// mount. If it is in such a mount already it starts only once, which saves 2 ms and several RCU
// waits.
Result<std::string> read_only_runtime(const NodeSetup& setup) {
  const std::string target = setup.mount_dir + "/runtime";
  const Fd file(::open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  const Fd source(::open(setup.runtime_path.c_str(), O_PATH | O_CLOEXEC));
  if (!file || !source) return fail_errno(ErrorCode::runtime_failed, setup.runtime_path);
  ASSIGN(tree, clone_tree(source, Access::read_only, false));
  TRY(attach_tree(*tree, target));
  return target;
}

std::vector<std::string> runtime_command(const Shim& shim, const std::string& program,
                                         const std::string& bundle, const std::string& log) {
  const auto& setup = shim.setup;
  std::vector<std::string> argv{program, "--root", setup.mount_dir + "/state", "--log", log};
  if (setup.runtime == RuntimeKind::crun) argv.emplace_back("--cgroup-manager=disabled");
  for (const char* word : {"run", "--detach", "--preserve-fds=4", "--bundle"})
    argv.emplace_back(word);
  argv.push_back(bundle);
  if (setup.runtime == RuntimeKind::crun) argv.emplace_back("--no-new-keyring");
  argv.emplace_back("c0");
  return argv;
}

// The runtime ends when the container runs, or has failed; if it runs, PID 1 sends `up`.
Result<void> await_up(const Shim& shim, Container& container, int runtime_pid,
                      const std::string& log, Signals& signals) {
  int status = -1;
  bool give_up = false;
  for (;;) {
    pollfd watched[2] = {{signals.fd(), POLLIN, 0}, {container.socket.get(), POLLIN, 0}};
    ::poll(watched, 2, 1000);
    for (int s = signals.next(); s != 0; s = signals.next()) give_up = give_up || s == SIGTERM;
    read_init(container);
    if (status < 0 && give_up) ::kill(runtime_pid, SIGKILL);
    if (status < 0 && ::waitpid(runtime_pid, &status, WNOHANG) != runtime_pid) status = -1;
    if (status < 0) continue;
    if (status == 0 && container.init_pid != 0) return {};
    if (status == 0) {
      read_init(container);
      if (container.init_pid != 0) return {};
      if (container.closed) return fail(ErrorCode::runtime_failed, "gantry-init could not start");
      continue;
    }
    if (give_up) return fail(ErrorCode::runtime_failed, "ended by order while starting");
    return fail(ErrorCode::runtime_failed, shim.setup.runtime_path + ": " + status_text(status) +
                                               ": " + runtime_complaint(log));
  }
}

// Only the effective id changes, so the capabilities stay permitted: this user can make a namespace
// even if ordinary users may not.
bool become(std::uint32_t uid) {
  if (::syscall(SYS_setresuid, -1, uid, -1) != 0) return false;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return false;
  for (auto& set : sets) set.effective = set.permitted;
  return ::syscall(SYS_capset, &header, sets) == 0;
}

[[noreturn]] void hold_namespace(std::uint32_t uid, const Fd& up, pid_t shim) {
  const int error = become(uid) && ::unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // after the change of ids, which resets it
  if (::getppid() != shim) ::_exit(1);
  (void)!::write(up.get(), &error, sizeof error);
  for (;;) ::pause();
}

Result<void> write_map(const std::string& path, const std::vector<IdRange>& ranges) {
  std::string text;
  for (const IdRange& r : ranges)
    text += std::to_string(r.inside) + " " + std::to_string(r.outside) + " " +
            std::to_string(r.count) + "\n";
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return fail_errno(ErrorCode::runtime_failed, path);
  return {};
}

}  // namespace

std::string runtime_complaint(const std::string& log) {
  auto line = last_line(read_file(log).value_or(""));
  const auto message = line.find("msg=\"");
  if (message == std::string::npos) return line.empty() ? std::string(kNoComplaint) : line;
  line = line.substr(message + 5);
  if (!line.empty() && line.back() == '"') line.pop_back();
  return line;
}

Result<Container> start_container(const Shim& shim, const Root& root, const StandardFiles& files,
                                  const std::vector<std::string>& env, Signals& signals) {
  const std::string bundle = shim.setup.mount_dir + "/bundle";
  const std::string log = shim.setup.mount_dir + "/runtime.log";
  std::optional<UserNamespace> owned;  // held until the runtime has entered the namespace
  if (shim.setup.user_namespace && !shim.setup.rootless) {
    const IdMappings ids = mappings_of(shim.setup, shim.request);
    ASSIGN(made, UserNamespace::make(shim.request.key.job, ids.uids, ids.gids));
    owned.emplace(std::move(*made));
  }
  TRY(write_bundle(shim, bundle, root, env, owned ? owned->path() : ""));
  ASSIGN(pair, init_socket());
  // The way to pin without a cpuset cgroup: the job inherits the affinity. It is only a default,
  // because the job can change it.
  if (shim.setup.cgroups.with("cpuset") == nullptr) pin(shim.request.cpus);
  const auto cgroup = open_cgroup_entries(shim.setup.cgroups, job_cgroup(shim.request.key));
  ChildSpec spec;
  std::string program = shim.setup.runtime_path;
  if (shim.setup.runtime == RuntimeKind::crun) {
    ASSIGN(mounted, read_only_runtime(shim.setup));
    program = *mounted;
  }
  spec.argv = runtime_command(shim, program, bundle, log);
  spec.env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "XDG_RUNTIME_DIR=" + shim.setup.mount_dir};
  if (shim.setup.runtime == RuntimeKind::crun)
    spec.env.emplace_back("_LIBCONTAINER_CLONED_BINARY=1");
  // The runtime's own standard files are a pipe that is only for error messages: see
  // init_protocol.h.
  ASSIGN(talk, runtime_pipe());
  spec.in = talk->ours.get();
  spec.out = spec.err = talk->theirs.get();
  spec.more = {pair->theirs.get(), files.in.get(), files.out.get(), files.err_fd()};
  // runc moves the container into its own directory, and itself stays in none.
  const auto directory = open_cgroup_directory(shim.setup.cgroups, job_cgroup(shim.request.key));
  if (shim.setup.runtime == RuntimeKind::crun) {
    spec.cgroup = &cgroup;
    spec.cgroup_directory = directory.get();
  }
  if (inherits_limits(shim))
    for (const JobLimit& limit :
         job_limits(limits_beside_runc(shim.request.limits), shim.request.sandbox))
      spec.limits.push_back({limit.resource, limit.hard, limit.soft});
  ASSIGN(pid, spawn(spec));
  pair->theirs.reset();
  Container container;
  container.socket = std::move(pair->ours);
  if (auto r = await_up(shim, container, *pid, log, signals); !r) {
    char said[2048];
    const ssize_t n = ::read(talk->ours.get(), said, sizeof said);
    if (r.error().message.ends_with(kNoComplaint) && n > 0)
      r.error().message += ": " + last_line(std::string(said, static_cast<std::size_t>(n)));
    return tl::unexpected(r.error());
  }
  return container;
}

void read_init(Container& container) {
  for (;;) {
    InitNote note{};
    iovec part{&note, sizeof note};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(container.socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) container.closed = true;
    if (n <= 0) return;
    if (n != sizeof note) continue;
    ucred sender{};
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c))
      if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
        std::memcpy(&sender, CMSG_DATA(c), sizeof sender);
    switch (note.word) {
      case InitWord::up:
        container.init_pid = container.init_pid != 0 ? container.init_pid : sender.pid;
        break;
      case InitWord::child:
        container.child_pid = container.child_pid != 0 ? container.child_pid : sender.pid;
        break;
      case InitWord::exec_failed: container.exec_error = note.value; break;
      case InitWord::exited: container.program_status = note.value; break;
      case InitWord::go: break;
    }
  }
}

void say_go(const Container& container) {
  const InitNote note{InitWord::go, 0};
  (void)!::send(container.socket.get(), &note, sizeof note, MSG_NOSIGNAL);
}

void reap_children(Container& container) {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return;
    if (pid != container.init_pid) continue;
    container.init_status = status;
    container.ended = true;
    return;
  }
}

ExitStatus exit_of(const Container& container) {
  const int status = container.program_status.value_or(container.init_status);
  if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

Result<UserNamespace> UserNamespace::make(JobId job, const std::vector<IdRange>& uids,
                                          const std::vector<IdRange>& gids) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(ErrorCode::runtime_failed, "pipe");
  const Fd down(ends[0]);
  Fd up(ends[1]);
  const auto uid = static_cast<std::uint32_t>(kNamespaceUidBase + job.value() % kNamespaceUids);
  const pid_t shim = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(ErrorCode::runtime_failed, "fork");
  if (pid == 0) hold_namespace(uid, up, shim);
  up.reset();
  UserNamespace made(pid);
  int error = 0;
  if (::read(down.get(), &error, sizeof error) != sizeof error) error = ESRCH;
  if (error != 0)
    return fail(ErrorCode::runtime_failed, errno_text("a user namespace for the job", error));
  const std::string process = "/proc/" + std::to_string(pid);
  TRY(write_map(process + "/uid_map", uids));
  TRY(write_map(process + "/gid_map", gids));
  return made;
}

UserNamespace::UserNamespace(UserNamespace&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)) {}

UserNamespace::~UserNamespace() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace gantry::runtime
