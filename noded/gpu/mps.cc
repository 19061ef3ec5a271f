#include "noded/gpu/mps.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "noded/machine/files.h"

namespace gantry::gpu {
namespace {

constexpr int kControlSeconds = 10;  // seconds for the program to answer
constexpr int kEndMillis = 2000;     // milliseconds in which daemons may end by themselves

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  for (const std::string& dir : split(path != nullptr ? path : "/usr/bin:/bin", ':'))
    if (const std::string file = dir + "/" + name; ::access(file.c_str(), X_OK) == 0) return file;
  return {};
}

// Compares the real user id, which shows who started the process, and not the effective one: with a
// set-uid program any user can make a process with root's rights and any environment.
bool is_ours(const std::string& proc_dir) {
  const auto status = runtime::read_file(proc_dir + "/status");
  const auto at = status ? status->find("\nUid:\t") : std::string::npos;
  return at != std::string::npos &&
         std::strtoul(status->c_str() + at + 6, nullptr, 10) == ::getuid();
}

// Processes of this user whose environment has this entry: a daemon and the servers that it starts.
std::vector<pid_t> processes_with(const std::string& entry) {
  std::vector<pid_t> found;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return found;
  while (const dirent* d = ::readdir(proc)) {
    const pid_t pid = static_cast<pid_t>(std::atoi(d->d_name));
    const std::string dir = fmt::format("/proc/{}", pid);
    if (pid <= 1 || !is_ours(dir)) continue;
    const auto environment = runtime::read_file(dir + "/environ");
    if (!environment || environment->empty()) continue;
    for (const std::string& e : split(*environment, '\0'))
      if (e == entry) {
        found.push_back(pid);
        break;
      }
  }
  ::closedir(proc);
  return found;
}

struct Child {
  std::vector<std::string> args;
  std::vector<std::string> env;
  std::string shm;    // the directory that the daemon sees as /dev/shm
  std::string input;  // text for its standard input
};

// Makes sure that mounts made here are not seen outside. In a chroot "/" is no mount, so its
// propagation cannot be changed; then setns() to the process's own namespace leads to its real
// root, and a descriptor leads back. This runs after fork, so it makes only system calls.
bool mounts_stay_here() {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0) return true;
  if (errno != EINVAL) return false;
  const int chroot = ::open("/", O_PATH | O_DIRECTORY);
  const int own = ::open("/proc/self/ns/mnt", O_RDONLY);
  return chroot >= 0 && own >= 0 && ::setns(own, CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 && ::fchdir(chroot) == 0 &&
         ::chroot(".") == 0;
}

// This runs after fork, so it makes only system calls.
[[noreturn]] void become(const Child& child, char* const* argv, char* const* env, int input) {
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(input, 0);
  ::dup2(null, 1);
  ::dup2(null, 2);
  ::setsid();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  if (::unshare(CLONE_NEWNS) != 0 || !mounts_stay_here() ||
      ::mount(child.shm.c_str(), "/dev/shm", nullptr, MS_BIND, nullptr) != 0)
    ::_exit(126);
  for (int fd = 3; fd < 1024; ++fd) ::close(fd);
  ::execve(argv[0], argv, env);
  ::_exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& t : texts) out.push_back(const_cast<char*>(t.c_str()));
  out.push_back(nullptr);
  return out;
}

// Runs a child to its end. An error means that it could not run, did not end in time, or failed.
Result<void> run(const Child& child) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return runtime::fail_errno(ErrorCode::io_error, "pipe");
  const Fd read(pipe[0]);
  Fd write(pipe[1]);
  const auto argv = pointers(child.args), env = pointers(child.env);
  const pid_t pid = ::fork();
  if (pid == 0) become(child, argv.data(), env.data(), read.get());
  if (pid < 0) return runtime::fail_errno(ErrorCode::io_error, "fork");
  (void)!::write(write.get(), child.input.data(), child.input.size());
  write = Fd();
  int status = 0;
  for (int waited = 0; ::waitpid(pid, &status, WNOHANG) == 0; waited += 5) {
    if (waited > kControlSeconds * 1000) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      return fail(ErrorCode::timed_out,
                  fmt::format("{} does not answer in {} s", child.args[0], kControlSeconds));
    }
    ::poll(nullptr, 0, 5);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(ErrorCode::unavailable,
              fmt::format("{} failed ({})", child.args[0],
                          WIFEXITED(status) ? fmt::format("exit {}", WEXITSTATUS(status))
                                            : fmt::format("signal {}", WTERMSIG(status))));
}

Result<void> make_dir(const std::string& path, mode_t mode) {
  TRY(runtime::make_dirs(path, mode));
  if (::chmod(path.c_str(), mode) != 0) return runtime::fail_errno(ErrorCode::io_error, path);
  return {};
}

}  // namespace

Mps::Mps(std::string control, std::string dir)
    : program_(find_program(control)), control_(std::move(control)), dir_(std::move(dir)) {}

std::string Mps::why_not() const {
  if (!program_.empty()) return {};
  return fmt::format("{} is not there (noded.mps_control)", control_);
}

bool Mps::runs(const std::string& uuid) const {
  return !processes_with("CUDA_MPS_PIPE_DIRECTORY=" + of(uuid) + "/pipe").empty();
}

Result<MpsPaths> Mps::serve(const std::string& tenant, const std::string& uuid) {
  if (program_.empty()) return fail(ErrorCode::unavailable, why_not());
  const MpsPaths paths{of(uuid) + "/pipe", of(uuid) + "/shm"};
  const auto whose = runtime::read_file(of(uuid) + "/tenant");
  const bool running = runs(uuid);
  if (running && whose && *whose == tenant) return paths;
  if (running)
    return fail(ErrorCode::wrong_state,
                fmt::format("the MPS daemon of {} belongs to another tenant", uuid));
  end(uuid);  // removes what a dead daemon has left
  TRY(make_dir(dir_, 0700));
  TRY(make_dir(of(uuid), 0711));
  for (const std::string& d : {paths.pipe, of(uuid) + "/log"}) TRY(make_dir(d, 0755));
  TRY(make_dir(paths.shm, 0755));
  if (::mount("tmpfs", paths.shm.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "mode=1777,size=1g") != 0)
    return runtime::fail_errno(ErrorCode::io_error, paths.shm);
  const Fd here(::open(of(uuid).c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC));
  TRY(runtime::write_whole(here.get(), "tenant", tenant, runtime::Durability::none));
  if (auto r = start(uuid); !r) {
    end(uuid);
    return tl::unexpected(r.error());
  }
  return paths;
}

Result<void> Mps::start(const std::string& uuid) {
  return run({{program_, "-d"},
              {"PATH=/usr/local/bin:/usr/bin:/bin", "CUDA_VISIBLE_DEVICES=" + uuid,
               "CUDA_MPS_PIPE_DIRECTORY=" + of(uuid) + "/pipe",
               "CUDA_MPS_LOG_DIRECTORY=" + of(uuid) + "/log"},
              of(uuid) + "/shm",
              ""});
}

void Mps::end(const std::string& uuid) {
  const std::string entry = "CUDA_MPS_PIPE_DIRECTORY=" + of(uuid) + "/pipe";
  if (!program_.empty() && !processes_with(entry).empty()) {
    (void)run(
        {{program_}, {"PATH=/usr/local/bin:/usr/bin:/bin", entry}, of(uuid) + "/shm", "quit\n"});
    for (int waited = 0; waited < kEndMillis && !processes_with(entry).empty(); waited += 20)
      ::poll(nullptr, 0, 20);
  }
  for (const pid_t pid : processes_with(entry)) ::kill(pid, SIGKILL);
  ::umount2((of(uuid) + "/shm").c_str(), MNT_DETACH);
  runtime::remove_tree(of(uuid));
}

std::vector<std::string> Mps::keep(const std::map<std::string, std::string>& tenant_by_gpu) {
  std::vector<std::string> done;
  for (const std::string& uuid : runtime::list_dir(dir_)) {
    const auto whose = runtime::read_file(of(uuid) + "/tenant");
    const auto wanted = tenant_by_gpu.find(uuid);
    if (wanted != tenant_by_gpu.end() && whose && *whose == wanted->second) continue;
    end(uuid);
    done.push_back(fmt::format("the MPS daemon of {} has ended", uuid));
  }
  return done;
}

std::map<std::string, std::string> mps_variables(DevicePart part, ByteCount memory) {
  const std::int64_t thousandths = part.value();
  const Mebibytes limit = mebibytes_in(part_of(memory, part));
  std::map<std::string, std::string> out{
      {"CUDA_MPS_PIPE_DIRECTORY", kMpsInJob},
      {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
       thousandths % 10 == 0 ? fmt::format("{}", thousandths / 10)
                             : fmt::format("{}.{}", thousandths / 10, thousandths % 10)}};
  if (limit > Mebibytes{})
    out["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = fmt::format("0={}M", limit.value());
  return out;
}

}  // namespace gantry::gpu
