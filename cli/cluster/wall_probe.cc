#include "cli/cluster/wall_probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>

namespace gantry::cli {
namespace {

// The outcome of an attempt: it was stopped, it succeeded, or it could not be tried.
struct Came {
  bool testable = true;
  bool stopped = true;
  std::string why;
};
Came through(std::string what = {}) {
  return {true, false, std::move(what)};
}
Came stopped(std::string why) {
  return {true, true, std::move(why)};
}
Came untestable(std::string why) {
  return {false, false, std::move(why)};
}

// From the result of a system call: a failure means that the attempt was stopped.
Came by_call(long result) {
  return result < 0 ? stopped(std::strerror(errno)) : through();
}

// The call's arguments are invalid. Any error other than "not permitted" or "no such call" means
// that the kernel has executed the call.
Came by_filter(long result) {
  const int error = errno;
  if (result < 0 && (error == EPERM || error == ENOSYS || error == EACCES))
    return stopped(std::strerror(error));
  return through(result < 0 ? std::string("the kernel answers: ") + std::strerror(error) : "");
}

// Runs the attempt in a child, so that its changes have no effect here. The child's exit status is
// its errno; 255: the attempt succeeded.
Came in_child(const std::function<long()>& attempt) {
  constexpr int kThrough = 255;
  const pid_t pid = ::fork();
  if (pid < 0) return untestable("no process could be started");
  if (pid == 0) {
    const long result = attempt();
    ::_exit(result < 0 ? errno & 0x7f : kThrough);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return stopped(std::string("signal ") + ::strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status) == kThrough ? through() : stopped(std::strerror(WEXITSTATUS(status)));
}

// A file of /proc; "" = it cannot be read.
std::string text_of(const std::string& path) {
  std::array<char, 8192> text{};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t n = ::read(fd, text.data(), text.size());
  ::close(fd);
  return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : std::string();
}

std::string status_line(const char* name) {
  const std::string text = text_of("/proc/self/status");
  const auto at = text.find(std::string("\n") + name + ":");
  if (at == std::string::npos) return {};
  const auto begin = text.find_first_not_of("\t ", at + std::strlen(name) + 2);
  return text.substr(begin, text.find('\n', begin) - begin);
}

Came has_capability() {
  for (const char* set : {"CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"}) {
    const std::string value = status_line(set);
    if (value.empty()) return untestable("/proc/self/status does not tell");
    if (value.find_first_not_of('0') != std::string::npos)
      return through(std::string(set) + " " + value);
  }
  return stopped("all sets are empty");
}

Came gains_privileges() {
  return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? stopped("no_new_privs is set") : through();
}

// A process that does not belong to the job's user.
Came sees_others() {
  DIR* dir = ::opendir("/proc");
  if (dir == nullptr) return untestable("there is no /proc");
  std::string found;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    struct stat st {};
    if (::stat(("/proc/" + name).c_str(), &st) == 0 && st.st_uid != ::geteuid() &&
        ::access(("/proc/" + name + "/cmdline").c_str(), R_OK) == 0) {
      if (text_of("/proc/" + name + "/comm").find("gantry-init") == std::string::npos) found = name;
    }
  }
  ::closedir(dir);
  return found.empty() ? stopped("only its own are there") : through("process " + found);
}

Came writes(const char* path) {
  struct stat st {};
  if (::stat(path, &st) != 0) return untestable(std::string("there is no ") + path);
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd >= 0) ::close(fd);
  return by_call(fd);
}

Came reads(const char* path) {
  struct stat st {};
  if (::lstat(path, &st) != 0) return untestable("there is none to be seen");
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return stopped(std::strerror(errno));
  char byte = 0;
  const ssize_t n = ::read(fd, &byte, 1);
  ::close(fd);
  return n > 0 ? through() : stopped(n == 0 ? "it is empty" : std::strerror(errno));
}

Came makes_file_in(const std::string& dir) {
  const std::string path = dir + "/gantry-check-" + std::to_string(::getpid());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return stopped(std::strerror(errno));
  ::close(fd);
  ::unlink(path.c_str());
  return through();
}

Came makes_device() {
  const std::string path = "/tmp/gantry-check-device-" + std::to_string(::getpid());
  const long made =
      ::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 1));  // the machine's memory (/dev/mem)
  const Came came = by_call(made);
  if (made == 0) ::unlink(path.c_str());
  return came;
}

// Tries to open devices in /dev that the job was not given.
Came opens_disk() {
  for (const char* path :
       {"/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse"}) {
    const int fd = ::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
    ::close(fd);
    return through(path);
  }
  return stopped("none can be opened");
}

Came socket_of(int family, int type, int protocol) {
  const int fd = ::socket(family, type | SOCK_CLOEXEC, protocol);
  if (fd >= 0) ::close(fd);
  return by_call(fd);
}

// Connects to an address that only the machine's own network reaches.
Came connects(const char* address, std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return stopped(std::strerror(errno));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  unsigned a = 0, b = 0, c = 0, d = 0;
  std::sscanf(address, "%u.%u.%u.%u", &a, &b, &c, &d);
  to.sin_addr.s_addr = htonl(a << 24 | b << 16 | c << 8 | d);
  constexpr int kPatience = 1500;  // milliseconds
  int error = ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd watched{fd, POLLOUT, 0};
    socklen_t size = sizeof error;
    if (::poll(&watched, 1, kPatience) != 1)
      error = ETIMEDOUT;
    else
      ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  ::close(fd);
  // The rules of a job's network refuse in the same way as a machine without the port.
  return error == 0 ? through() : stopped(std::strerror(error));
}

// Tests that set-uid programs have no effect: because of their mount or of no_new_privs, which is
// tested separately.
Came setuid_mount() {
  for (const char* path : {"/usr/bin/su", "/bin/su", "/usr/bin/passwd", "/usr/bin/mount"}) {
    struct statvfs fs {};
    struct stat st {};
    if (::stat(path, &st) != 0) continue;
    if (::statvfs(path, &fs) != 0) return untestable(std::strerror(errno));
    return (fs.f_flag & ST_NOSUID) != 0 ? stopped("mounted nosuid") : through(path);
  }
  return untestable("no such program is there");
}

Came executes_in(const std::string& dir) {
  const std::string path = dir + "/gantry-check-program-" + std::to_string(::getpid());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
  if (fd < 0) return stopped(std::strerror(errno));
  constexpr std::string_view kScript = "#!/bin/sh\nexit 255\n";
  (void)!::write(fd, kScript.data(), kScript.size());
  ::close(fd);
  const Came came = in_child([&]() -> long {
    const char* argv[] = {path.c_str(), nullptr};
    const char* env[] = {nullptr};
    return ::execve(path.c_str(), const_cast<char**>(argv), const_cast<char**>(env));
  });
  ::unlink(path.c_str());
  return came;
}

Came limit_is_open(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0)
    return untestable(std::strerror(errno));
  return limit.rlim_max == 0 ? stopped("the limit is 0") : through();
}

struct Attempt {
  const char *layer, *what;
  std::function<Came()> run;
};

constexpr const char* kCalls = "system call filter";

std::vector<Attempt> usual() {
  return {
      {"user namespace", "become root",
       [] { return in_child([] { return static_cast<long>(::setuid(0)); }); }},
      {"no capabilities", "have one", has_capability},
      {"no new privileges", "gain some by a program", gains_privileges},
      {"no new privileges", "set-uid programs", setuid_mount},
      {"PID namespace", "see processes of others", sees_others},
      {"mount namespace", "mount a file system",
       [] {
         return in_child([] {
           const long made = ::mount("none", "/tmp", "tmpfs", 0, nullptr);
           if (made == 0) ::umount2("/tmp", MNT_DETACH);  // without isolation, the mount is undone
           return made;
         });
       }},
      {"read-only root", "make a file in /usr", [] { return makes_file_in("/usr"); }},
      {"read-only root", "make a file in /etc", [] { return makes_file_in("/etc"); }},
      {"devices", "make one", makes_device},
      {"devices", "open a disk, the memory, the kernel's log", opens_disk},
      {kCalls, "a user namespace of its own",
       [] { return in_child([] { return static_cast<long>(::unshare(CLONE_NEWUSER)); }); }},
      {kCalls, "load a program into the kernel (bpf)",
       [] { return by_filter(::syscall(SYS_bpf, 0, nullptr, 0)); }},
      {kCalls, "io_uring", [] { return by_filter(::syscall(SYS_io_uring_setup, 1, nullptr)); }},
      {kCalls, "keys of the kernel",
       [] { return by_filter(::syscall(SYS_keyctl, 0, -3, 0, 0, 0)); }},
      {kCalls, "count events of the processor",
       [] { return by_filter(::syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0)); }},
      {"network", "raw packets", [] { return socket_of(AF_INET, SOCK_RAW, IPPROTO_ICMP); }},
      {"network", "frames", [] { return socket_of(AF_PACKET, SOCK_RAW, 0); }},
      {"network", "the hypervisor's sockets", [] { return socket_of(AF_VSOCK, SOCK_STREAM, 0); }},
      {"network", "a cloud's metadata service", [] { return connects("169.254.169.254", 80); }},
      {"kernel's files", "change a setting",
       [] { return writes("/proc/sys/kernel/core_pattern"); }},
      {"kernel's files", "sysrq", [] { return writes("/proc/sysrq-trigger"); }},
      {"kernel's files", "its memory (/proc/kcore)", [] { return reads("/proc/kcore"); }},
      {"files of the node", "password hashes", [] { return reads("/etc/shadow"); }},
      {"files of the node", "the node's key", [] { return reads("/etc/gantry/noded.key"); }},
      {"process limit", "as many processes as it likes",
       [] { return untestable("only by a flood; docs/security.md names the test"); }},
  };
}

std::vector<Attempt> of_hardened() {
  return {
      {"hardened", "trace a process",
       [] { return in_child([] { return ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }); }},
      {"hardened", "read another process's memory",
       [] {
         return by_filter(::syscall(SYS_process_vm_readv, ::getpid(), nullptr, 0, nullptr, 0, 0));
       }},
      {"hardened", "another personality",
       [] { return in_child([] { return static_cast<long>(::personality(ADDR_NO_RANDOMIZE)); }); }},
      {"hardened", "execute a program in /tmp", [] { return executes_in("/tmp"); }},
      {"hardened", "execute a program in /dev/shm", [] { return executes_in("/dev/shm"); }},
      {"hardened", "a core dump", [] { return limit_is_open(RLIMIT_CORE); }},
      {"hardened", "the kernel's symbols", [] { return reads("/proc/kallsyms"); }},
      {"hardened", "the kernel's modules", [] { return reads("/proc/modules"); }},
      {"hardened", "a netlink socket beside routes",
       [] { return socket_of(AF_NETLINK, SOCK_RAW, 15); }},  // NETLINK_KOBJECT_UEVENT
  };
}

}  // namespace

WallReport probe_walls(Sandbox level) {
  WallReport report;
  std::vector<Attempt> all = usual();
  if (level == Sandbox::hardened)
    for (Attempt& one : of_hardened()) all.push_back(std::move(one));
  for (const Attempt& one : all) {
    const Came came = one.run();
    report.findings.push_back({"", one.layer, one.what,
                               !came.testable ? kWallUntested
                               : came.stopped ? kWallOn
                                              : kWallOff,
                               came.why});
  }
  return report;
}

}  // namespace gantry::cli
