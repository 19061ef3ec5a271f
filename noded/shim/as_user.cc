#include "noded/shim/as_user.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>

#include "noded/runtime/become_user.h"
#include "noded/runtime/passing.h"
#include "noded/runtime/pseudo_files.h"

namespace gantry::runtime {
namespace {

constexpr int kMostLinks = 40;
constexpr int kMostTries = 100;
constexpr int kLookMs = 200;  // how often the shim looks whether it is told to end
constexpr int kWritePatienceMs = 2'000;
constexpr const char* kAllowed = "; a regular file, a named pipe or /dev/null is allowed";

// -1 with errno.
int open_path(int directory, const std::string& path, int flags, unsigned mode) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  for (int attempt = 0;; ++attempt) {
    const long fd = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how);
    if (fd >= 0 || (errno != EINTR && errno != EAGAIN) || attempt >= kMostTries)
      return static_cast<int>(fd);
  }
}

Result<void> check_kind(const Fd& fd, const std::string& path) {
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return fail_errno(code_of_path_error(errno), path);
  // Its descriptor would lead out of the container, to the host's own mounts.
  if (S_ISDIR(st.st_mode)) return fail(ErrorCode::invalid_argument, path + ": is a directory");
  const bool null = S_ISCHR(st.st_mode) && st.st_rdev == ::makedev(1, 3);
  if (null) return {};
  if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
    return fail(ErrorCode::invalid_argument,
                path + (S_ISSOCK(st.st_mode) ? ": is a socket" : ": is a device") + kAllowed);
  return check_holds_files(fd, path);
}

struct Split {
  std::string directory, name;
};
Split split_path(const std::string& path) {
  const auto slash = path.rfind('/');
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

std::optional<std::string> link_at(const Fd& directory, const std::string& name) {
  std::string target(4096, '\0');
  const ssize_t n = ::readlinkat(directory.get(), name.c_str(), target.data(), target.size());
  if (n <= 0) return std::nullopt;
  target.resize(static_cast<std::size_t>(n));
  return target;
}

}  // namespace

Result<void> check_holds_files(const Fd& fd, const std::string& path) {
  struct statfs fs {};
  if (::fstatfs(fd.get(), &fs) != 0) return fail_errno(code_of_path_error(errno), path);
  const auto pseudo = pseudo_of_magic(static_cast<long>(fs.f_type));
  if (pseudo.empty()) return {};
  return fail(ErrorCode::invalid_argument,
              path + ": belongs to the node's kernel (" + std::string(pseudo) + ")" + kAllowed);
}

Result<Fd> AsUser::open(const std::string& path, int flags) const {
  if (path.empty() || path.front() != '/')
    return fail(ErrorCode::invalid_argument, path + ": not an absolute path");
  Fd fd(open_path(AT_FDCWD, path, flags, 0));
  if (!fd) return fail_errno(code_of_path_error(errno), path);
  return fd;
}

// Where everybody may make files, one of another user's may lie in wait. The kernel asks the same
// (fs.protected_regular, protected_fifos), but only of who opens with O_CREAT.
Result<void> AsUser::check_kept_apart(const Fd& fd, const std::string& path) const {
  const Fd directory(open_path(AT_FDCWD, split_path(path).directory, O_PATH | O_DIRECTORY, 0));
  struct stat file {
  }, above{};
  if (!directory || ::fstat(fd.get(), &file) != 0 || ::fstat(directory.get(), &above) != 0)
    return fail_errno(code_of_path_error(errno), path);
  const bool shared = (above.st_mode & S_ISVTX) != 0 && (above.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (!shared || file.st_uid == uid_ || file.st_uid == above.st_uid) return {};
  return fail(ErrorCode::permission_denied,
              path + ": belongs to another user, in a directory where everybody may make files");
}

// First a descriptor that can do nothing, then a look at what it is, then the same file again
// through that descriptor: no name is looked up twice, and no device sees an open.
Result<Fd> AsUser::open_file(const std::string& given, int flags, unsigned mode) const {
  if (given.empty() || given.front() != '/')
    return fail(ErrorCode::invalid_argument, given + ": not an absolute path");
  const int careful = flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  std::string path = given;
  for (int turn = 0; turn < kMostLinks; ++turn) {
    const Fd there(open_path(AT_FDCWD, path, O_PATH, 0));
    if (there) {
      if (auto r = check_kind(there, given); !r) return tl::unexpected(r.error());
      if ((flags & O_CREAT) != 0)
        if (auto r = check_kept_apart(there, path); !r) return tl::unexpected(r.error());
      const std::string link = "/proc/self/fd/" + std::to_string(there.get());
      Fd fd(::open(link.c_str(), careful & ~O_CREAT));
      if (!fd) return fail_errno(code_of_path_error(errno), given);
      ::fcntl(fd.get(), F_SETFL, flags & O_APPEND);
      return fd;
    }
    if (errno != ENOENT || (flags & O_CREAT) == 0)
      return fail_errno(code_of_path_error(errno), given);
    const auto [above, name] = split_path(path);
    const Fd directory(open_path(AT_FDCWD, above, O_PATH | O_DIRECTORY, 0));
    if (!directory) return fail_errno(code_of_path_error(errno), given);
    if (auto r = check_holds_files(directory, given); !r) return tl::unexpected(r.error());
    Fd fd(open_path(directory.get(), name, careful | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
    if (fd) {
      ::fcntl(fd.get(), F_SETFL, flags & O_APPEND);
      return fd;
    }
    if (errno != EEXIST) return fail_errno(code_of_path_error(errno), given);
    // A link to what is not there yet; or it has come meanwhile.
    if (const auto target = link_at(directory, name))
      path = target->starts_with('/') ? *target : above + "/" + *target;
  }
  return fail(ErrorCode::invalid_argument, errno_text(given, ELOOP));
}

bool AsUser::may(const Fd& fd, int how) const {
  return ::syscall(SYS_faccessat2, fd.get(), "", how, AT_EACCESS | AT_EMPTY_PATH) == 0;
}

namespace {

// The child's last message; those before it have a descriptor each.
struct Outcome {
  std::int32_t code = 0;  // an ErrorCode; 0 = done
  std::uint64_t facts = 0;
};
constexpr std::size_t kMostText = kMaxPassedBytes - sizeof(Outcome);

void close_others(std::vector<int> keep) {
  keep.insert(keep.end(), {0, 1, 2});
  std::sort(keep.begin(), keep.end());
  unsigned next = 0;
  for (const int fd : keep) {
    if (fd < 0) continue;
    const auto here = static_cast<unsigned>(fd);
    if (here > next) ::syscall(SYS_close_range, next, here - 1, 0u);
    next = std::max(next, here + 1);
  }
  ::syscall(SYS_close_range, next, ~0u, 0u);
}

// SIGTERM is blocked in the shim and taken from a descriptor; here it only has to be seen.
bool told_to_end() {
  sigset_t waiting;
  sigemptyset(&waiting);
  return ::sigpending(&waiting) == 0 && ::sigismember(&waiting, SIGTERM) == 1;
}

std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

class UserChild {
 public:
  [[noreturn]] static void run(const Owner& owner, const UserWork& work, const Fd& socket,
                               const std::vector<int>& keep, pid_t parent) {
    std::vector<gid_t> groups;
    for (const auto g : owner.groups) groups.push_back(g.value());
    const uid_t uid = owner.uid.value();
    const char* failed = become_user(uid, owner.gid.value(), groups.data(), groups.size());
    if (failed != nullptr)
      send(socket, fail_errno(ErrorCode::runtime_failed,
                              std::string("becoming the job's user: ") + failed));
    if (failed != nullptr || ::getppid() != parent) ::_exit(1);
    std::vector<int> needed = keep;
    needed.push_back(socket.get());
    close_others(std::move(needed));
    send(socket, work(AsUser(::geteuid())));
    ::_exit(0);
  }

 private:
  static void send(const Fd& socket, const Result<FromUser>& done) {
    Outcome outcome;
    std::string text;
    if (done) {
      outcome.facts = done->facts;
      for (const Fd& fd : done->files)
        if (!pass(socket, "f", fd.get())) return;
    } else {
      outcome.code = static_cast<std::int32_t>(done.error().code);
      text = done.error().message.substr(0, kMostText);
    }
    std::string bytes(reinterpret_cast<const char*>(&outcome), sizeof outcome);
    (void)pass(socket, bytes + text, -1);
  }
};

namespace {

Result<FromUser> hear(const Fd& socket, int patience_ms) {
  FromUser out;
  const std::int64_t until = now_ms() + patience_ms;
  for (;;) {
    pollfd watched{socket.get(), POLLIN, 0};
    if (::poll(&watched, 1, kLookMs) <= 0) {
      if (told_to_end()) return fail(ErrorCode::runtime_failed, "ended by order");
      if (patience_ms >= 0 && now_ms() > until)
        return fail(ErrorCode::runtime_failed, "work in the user's name took too long");
      continue;
    }
    Passed one = take_passed(socket);
    if (one.fd) {
      out.files.push_back(std::move(one.fd));
      continue;
    }
    Outcome outcome;
    if (one.bytes.size() < sizeof outcome)
      return fail(ErrorCode::runtime_failed, "the process of the job's user was killed");
    std::memcpy(&outcome, one.bytes.data(), sizeof outcome);
    if (outcome.code != 0)
      return fail(static_cast<ErrorCode>(outcome.code), one.bytes.substr(sizeof outcome));
    out.facts = outcome.facts;
    return out;
  }
}

}  // namespace

Result<FromUser> as_user(const Owner& owner, const UserWork& work, const UserWorkLimits& limits) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno(ErrorCode::runtime_failed, "socketpair");
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(ErrorCode::runtime_failed, "fork");
  if (pid == 0) UserChild::run(owner, work, theirs, limits.keep, self);
  theirs.reset();
  auto done = hear(ours, limits.patience_ms);
  ::kill(pid, SIGKILL);  // it has said all; one that hangs in a dead file server is left to init
  int status = 0;
  const bool hung = !done && done.error().code == ErrorCode::runtime_failed;
  while (::waitpid(pid, &status, hung ? WNOHANG : 0) < 0 && errno == EINTR) {
  }
  return done;
}

Result<Fd> open_as_user(const Owner& owner, const std::function<Result<Fd>(const AsUser&)>& work) {
  auto done = as_user(owner, [&](const AsUser& user) -> Result<FromUser> {
    auto fd = work(user);
    if (!fd) return tl::unexpected(fd.error());
    FromUser out;
    out.files.push_back(std::move(*fd));
    return out;
  });
  if (!done) return tl::unexpected(done.error());
  return std::move(done->files.front());
}

void write_as_user(const Owner& owner, int fd, std::string_view text) {
  if (fd < 0) return;
  (void)as_user(owner,
                [&](const AsUser&) -> Result<FromUser> {
                  (void)!::write(fd, text.data(), text.size());
                  return FromUser{};
                },
                {{fd}, kWritePatienceMs});
}

}  // namespace gantry::runtime
