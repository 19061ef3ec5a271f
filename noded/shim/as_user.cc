#include "noded/shim/as_user.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "noded/machine/storage_view.h"
#include "noded/machine/user_child.h"
#include "noded/runtime/job_dir.h"

namespace gantry::runtime {
namespace {

constexpr int kMostLinks = 40;
constexpr int kMostTries = 100;
constexpr int kLookMs = 200;  // how often the shim checks whether it is told to end
constexpr int kWritePatienceMs = 2'000;
constexpr const char* kEverybody = ", in a directory where everybody may make files";
constexpr const char* kAllowed = "; a regular file, a named pipe or /dev/null is allowed";

// Returns -1, with errno set, on failure.
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
  // A descriptor of a directory would give access to the host's own mounts, outside of the
  // container.
  if (S_ISDIR(st.st_mode)) return fail(ErrorCode::invalid_argument, path + ": is a directory");
  const bool null = S_ISCHR(st.st_mode) && st.st_rdev == ::makedev(1, 3);
  if (null) return {};
  if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
    return fail(ErrorCode::invalid_argument,
                path + (S_ISSOCK(st.st_mode) ? ": is a socket" : ": is a device") + kAllowed);
  return check_holds_files(fd, path);
}

// What a job may not see is reported to it as missing.
tl::unexpected<Error> not_shown(const std::string& path) {
  return fail(ErrorCode::not_found, errno_text(path, ENOENT));
}

struct Split {
  std::string directory, name;
};
Split split_path(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

// Whether every user may make files in this directory but remove only own ones.
bool is_shared(const struct stat& directory) {
  return (directory.st_mode & S_ISVTX) != 0 && (directory.st_mode & (S_IWGRP | S_IWOTH)) != 0;
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
  if (!storage_shows(fd.get())) return not_shown(path);
  return fd;
}

// In a directory where everybody may make files, another user may have put a file there in advance,
// or a hard link to a file of the job's owner. The kernel makes similar checks if
// fs.protected_regular, protected_fifos and protected_hardlinks are set.
Result<void> AsUser::check_kept_apart(const Fd& file, const Fd& directory,
                                      const std::string& path) const {
  struct stat here {
  }, above{};
  if (::fstat(file.get(), &here) != 0 || ::fstat(directory.get(), &above) != 0)
    return fail_errno(code_of_path_error(errno), path);
  if (!is_shared(above)) return {};
  if (here.st_uid != uid_ && here.st_uid != above.st_uid)
    return fail(ErrorCode::permission_denied, path + ": belongs to another user" + kEverybody);
  if (S_ISREG(here.st_mode) && here.st_nlink > 1)
    return fail(ErrorCode::permission_denied, path + ": has another name as well" + kEverybody);
  return {};
}

// Returns the target of a link, or nullopt if it is no link. Magic links of the kernel are refused:
// the text of such a link is not the file that it opens.
Result<std::optional<std::string>> AsUser::target_of(const Fd& link, const Fd& directory,
                                                     const std::string& path) const {
  struct stat here {
  }, above{};
  if (::fstat(link.get(), &here) != 0 || ::fstat(directory.get(), &above) != 0)
    return fail_errno(code_of_path_error(errno), path);
  if (!S_ISLNK(here.st_mode)) return std::nullopt;
  if (!check_holds_files(link, path))
    return fail(ErrorCode::invalid_argument, errno_text(path, ELOOP));
  if (is_shared(above) && here.st_uid != uid_ && here.st_uid != above.st_uid)
    return fail(ErrorCode::permission_denied, path + ": is another user's link" + kEverybody);
  std::string target(4096, '\0');
  const ssize_t n = ::readlinkat(link.get(), "", target.data(), target.size());
  if (n <= 0) return fail_errno(code_of_path_error(errno), path);
  target.resize(static_cast<std::size_t>(n));
  return target;
}

// First opens an O_PATH descriptor, which can neither read nor write, then checks its type, then
// opens the same file again through that descriptor. So no name is resolved twice, and no device is
// opened. A link at the end of the path is read in the same way, and followed from its directory.
Result<Fd> AsUser::open_file(const std::string& given, int flags, unsigned mode) const {
  if (given.empty() || given.front() != '/')
    return fail(ErrorCode::invalid_argument, given + ": not an absolute path");
  const int careful = flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  std::string path = given;
  Fd base;  // the directory from which a relative path starts
  for (int turn = 0; turn < kMostLinks; ++turn) {
    const auto [above, name] = split_path(path);
    Fd directory(open_path(base ? base.get() : AT_FDCWD, above, O_PATH | O_DIRECTORY, 0));
    if (!directory) return fail_errno(code_of_path_error(errno), given);
    if (!storage_shows(directory.get())) return not_shown(given);
    const Fd there(open_path(directory.get(), name.empty() ? "." : name, O_PATH | O_NOFOLLOW, 0));
    if (!there && errno == ENOENT && (flags & O_CREAT) != 0) {
      TRY(check_holds_files(directory, given));
      Fd fd(open_path(directory.get(), name, careful | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
      if (!fd && errno == EEXIST) continue;  // another process has made the file meanwhile
      if (!fd) return fail_errno(code_of_path_error(errno), given);
      ::fcntl(fd.get(), F_SETFL, flags & O_APPEND);
      return fd;
    }
    if (!there) return fail_errno(code_of_path_error(errno), given);
    ASSIGN(target, target_of(there, directory, given));
    if (*target) {
      path = std::move(**target);
      base = path.starts_with('/') ? Fd() : std::move(directory);
      continue;
    }
    if (!storage_shows(there.get())) return not_shown(given);
    TRY(check_kind(there, given));
    if ((flags & O_CREAT) != 0) TRY(check_kept_apart(there, directory, given));
    const std::string link = "/proc/self/fd/" + std::to_string(there.get());
    Fd fd(::open(link.c_str(), careful & ~O_CREAT));
    if (!fd) return fail_errno(code_of_path_error(errno), given);
    ::fcntl(fd.get(), F_SETFL, flags & O_APPEND);
    return fd;
  }
  return fail(ErrorCode::invalid_argument, errno_text(given, ELOOP));
}

bool AsUser::may(const Fd& fd, int how) const {
  return ::syscall(SYS_faccessat2, fd.get(), "", how, AT_EACCESS | AT_EMPTY_PATH) == 0;
}

namespace {

// The child's last message; each earlier message carries one descriptor.
struct Outcome {
  std::int32_t code = 0;  // an ErrorCode; 0 = success
  std::uint64_t facts = 0;
};
constexpr std::size_t kMostText = kMaxPassedBytes - sizeof(Outcome);

// The shim has SIGTERM blocked and reads it from a descriptor; this only checks whether it is
// pending.
bool told_to_end() {
  sigset_t waiting;
  sigemptyset(&waiting);
  return ::sigpending(&waiting) == 0 && ::sigismember(&waiting, SIGTERM) == 1;
}

// Runs in the child.
void say(const Fd& socket, const Result<FromUser>& done) {
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

Result<FromUser> hear(UserChild& child, int patience_ms) {
  FromUser out;
  const Duration until = since_boot() + milliseconds(patience_ms);
  for (;;) {
    pollfd watched{child.socket().get(), POLLIN, 0};
    if (::poll(&watched, 1, kLookMs) <= 0) {
      if (told_to_end()) return fail(ErrorCode::runtime_failed, "ended by order");
      if (patience_ms >= 0 && since_boot() > until)
        return fail(ErrorCode::runtime_failed, "work in the user's name took too long");
      continue;
    }
    Passed one = take_passed(child.socket());
    if (one.fd) {
      out.files.push_back(std::move(one.fd));
      continue;
    }
    Outcome outcome;
    if (one.bytes.size() < sizeof outcome)
      return fail(ErrorCode::runtime_failed, child.wait() == kNotTheUser
                                                 ? "a process could not become the job's user"
                                                 : "the process of the job's user was killed");
    std::memcpy(&outcome, one.bytes.data(), sizeof outcome);
    if (outcome.code != 0)
      return fail(static_cast<ErrorCode>(outcome.code), one.bytes.substr(sizeof outcome));
    out.facts = outcome.facts;
    return out;
  }
}

}  // namespace

Result<FromUser> as_user(const Owner& owner, const UserWork& work, const UserWorkLimits& limits) {
  auto child =
      UserChild::start(owner, UserChild::Channel::messages, limits.keep, [&](const Fd& socket) {
        say(socket, work(AsUser(::geteuid())));
        return 0;
      });
  if (!child) return tl::unexpected(child.error());
  return hear(*child, limits.patience_ms);
}

Result<Fd> open_as_user(const Owner& owner, const std::function<Result<Fd>(const AsUser&)>& work) {
  ASSIGN(done, as_user(owner, [&](const AsUser& user) -> Result<FromUser> {
           ASSIGN(fd, work(user));
           FromUser out;
           out.files.push_back(std::move(*fd));
           return out;
         }));
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
