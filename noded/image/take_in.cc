#include "noded/image/take_in.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "noded/image/manifest.h"
#include "noded/machine/storage_view.h"
#include "noded/machine/user_child.h"

namespace gantry::runtime {
namespace {

constexpr int kTickMs = 200;

// Exit statuses of the child: 0, an errno, or one of these.
constexpr int kNoRegularFile = 200;
constexpr int kOfTheKernel = 201;
constexpr int kElsewhere = 202;

std::string true_path(int fd) {
  std::array<char, 4096> real{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = ::readlink(link.c_str(), real.data(), real.size());
  return n > 0 && static_cast<std::size_t>(n) < real.size()
             ? std::string(real.data(), static_cast<std::size_t>(n))
             : std::string();
}

int open_as_user(const UserFile& file, int flags) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_NO_MAGICLINKS;
  if (file.beneath != nullptr)
    how.resolve |= RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  const int dir = file.beneath != nullptr ? file.beneath->get() : AT_FDCWD;
  for (int attempt = 0;; ++attempt) {
    const long fd = ::syscall(SYS_openat2, dir, file.path.c_str(), &how, sizeof how);
    if (fd >= 0 || (errno != EINTR && errno != EAGAIN) || attempt > 100)
      return static_cast<int>(fd);
  }
}

// Runs in the child. It checks the file before it opens it for reading, because opening a device or
// a FIFO can have side effects.
int send_file(const UserFile& file, const Fd& pipe) {
  struct stat seen {
  }, opened{};
  const Fd look(open_as_user(file, O_PATH));
  if (!look || ::fstat(look.get(), &seen) != 0) return errno;
  if (!storage_shows(look.get())) return ENOENT;
  if (!S_ISREG(seen.st_mode) || is_of_the_kernel(look.get())) return kNoRegularFile;
  const Fd fd(open_as_user(file, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (!fd || ::fstat(fd.get(), &opened) != 0) return errno;
  if (!S_ISREG(opened.st_mode) || is_of_the_kernel(fd.get())) return kNoRegularFile;
  if (file.within != nullptr && !is_within(fd.get(), *file.within)) return kElsewhere;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return 0;
    for (ssize_t done = 0; done < n;) {
      const ssize_t w =
          ::write(pipe.get(), buffer.data() + done, static_cast<std::size_t>(n - done));
      if (w < 0 && errno != EINTR) return errno;
      if (w > 0) done += w;
    }
  }
}

int send_state(const UserFile& file, const Fd& pipe) {
  struct stat st {};
  const Fd fd(open_as_user(file, O_PATH));
  if (!fd || ::fstat(fd.get(), &st) != 0) return errno;
  if (!storage_shows(fd.get())) return ENOENT;
  if (is_of_the_kernel(fd.get()) || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
    return kNoRegularFile;
  if (file.within != nullptr && !is_within(fd.get(), *file.within)) return kElsewhere;
  if (::syscall(SYS_faccessat2, fd.get(), "", R_OK, AT_EACCESS | AT_EMPTY_PATH) != 0) return errno;
  const std::string path = true_path(fd.get());
  std::string bytes(reinterpret_cast<const char*>(&st), sizeof st);
  bytes += path;
  const auto size = static_cast<ssize_t>(bytes.size());
  return ::write(pipe.get(), bytes.data(), bytes.size()) == size ? 0 : EIO;
}

int pass_directory(const std::string& path, const Fd& socket) {
  const Fd fd(open_as_user({nullptr, path}, O_PATH | O_DIRECTORY));
  if (!fd) return errno;
  if (!storage_shows(fd.get())) return ENOENT;
  if (is_of_the_kernel(fd.get())) return kOfTheKernel;
  if (::syscall(SYS_faccessat2, fd.get(), "", R_OK | X_OK, AT_EACCESS | AT_EMPTY_PATH) != 0)
    return errno;
  return pass(socket, "d", fd.get()) ? 0 : EIO;
}

tl::unexpected<Error> child_failed(const std::string& path, int status) {
  if (status == kNoRegularFile)
    return fail(ErrorCode::invalid_argument, path + ": not a regular file");
  if (status == kOfTheKernel)
    return fail(ErrorCode::permission_denied, path + ": belongs to the node's kernel");
  if (status == kElsewhere)
    return fail(ErrorCode::permission_denied,
                path + ": not below one of this node's image directories");
  if (status < 0 || status == kNotTheUser)
    return fail(ErrorCode::runtime_failed, path + ": the process that reads it was ended");
  return fail(code_of_path_error(status), errno_text(path, status));
}

Result<UserChild> read_as(const Owner& owner, const UserFile& file,
                          int (*send)(const UserFile&, const Fd&)) {
  const std::vector<int> keep{file.beneath != nullptr ? file.beneath->get() : -1};
  return UserChild::start(owner, UserChild::Channel::bytes, keep,
                          [&](const Fd& parent) { return send(file, parent); });
}

// Passes on what the child sends, until its end.
Result<void> receive(UserChild& child, const std::string& path, const Stopped& stopped,
                     const std::function<Result<void>(std::string_view)>& take) {
  std::array<char, 65536> buffer{};
  for (;;) {
    if (const auto why = stopped(); !why.empty())
      return fail(ErrorCode::runtime_failed, path + ": " + why);
    pollfd watched{child.socket().get(), POLLIN, 0};
    if (::poll(&watched, 1, kTickMs) <= 0) continue;
    const ssize_t n = ::read(child.socket().get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(ErrorCode::io_error, path);
    if (n == 0) break;
    if (auto r = take({buffer.data(), static_cast<std::size_t>(n)}); !r) return r;
  }
  if (const int status = child.wait(); status != 0) return child_failed(path, status);
  return {};
}

Result<void> write_all(const Fd& out, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(out.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return fail_errno(errno == ENOSPC ? ErrorCode::out_of_space : ErrorCode::io_error,
                        "the image cache");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace

bool is_of_the_kernel(int fd) {
  struct statfs fs {};
  return ::fstatfs(fd, &fs) != 0 || !pseudo_of_magic(fs.f_type).empty();
}

bool is_within(int fd, const std::vector<std::string>& dirs) {
  if (dirs.empty()) return true;
  const std::string path = true_path(fd);
  return std::ranges::any_of(dirs, [&](const std::string& top) {
    return path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/');
  });
}

Result<TakenIn> take_in(const Owner& owner, const UserFile& file, const Fd& out,
                        std::int64_t max_bytes, const Stopped& stopped) {
  ASSIGN(child, read_as(owner, file, send_file));
  TakenIn taken;
  Sha256 sum;
  const auto done = receive(*child, file.path, stopped, [&](std::string_view part) -> Result<void> {
    taken.bytes += static_cast<std::int64_t>(part.size());
    if (taken.bytes > max_bytes)
      return fail(ErrorCode::invalid_argument,
                  file.path + ": more than " + std::to_string(max_bytes) + " bytes");
    sum.add(part);
    if (taken.head.size() < 8) taken.head += part.substr(0, 8 - taken.head.size());
    return write_all(out, part);
  });
  if (!done) return tl::unexpected(done.error());
  taken.digest = sum.hex();
  return taken;
}

Result<std::string> take_in_text(const Owner& owner, const UserFile& file, std::size_t max_bytes,
                                 const Stopped& stopped) {
  ASSIGN(child, read_as(owner, file, send_file));
  std::string text;
  ASSIGN(done, receive(*child, file.path, stopped, [&](std::string_view part) -> Result<void> {
           if (text.size() + part.size() > max_bytes)
             return fail(ErrorCode::invalid_argument,
                         file.path + ": more than " + std::to_string(max_bytes) + " bytes");
           text += part;
           return {};
         }));
  return text;
}

Result<FileState> look_at(const Owner& owner, const UserFile& file, const Stopped& stopped) {
  const std::string& path = file.path;
  ASSIGN(child, read_as(owner, file, send_state));
  std::string bytes;
  ASSIGN(done, receive(*child, path, stopped, [&](std::string_view part) -> Result<void> {
           bytes += part;
           return {};
         }));
  struct stat st {};
  if (bytes.size() < sizeof st) return child_failed(path, -1);
  std::memcpy(&st, bytes.data(), sizeof st);
  FileState state;
  state.directory = S_ISDIR(st.st_mode);
  state.true_path = bytes.substr(sizeof st);
  for (const auto part :
       {static_cast<std::int64_t>(st.st_dev), static_cast<std::int64_t>(st.st_ino),
        static_cast<std::int64_t>(st.st_size), static_cast<std::int64_t>(st.st_mtim.tv_sec),
        static_cast<std::int64_t>(st.st_mtim.tv_nsec), static_cast<std::int64_t>(st.st_ctim.tv_sec),
        static_cast<std::int64_t>(st.st_ctim.tv_nsec)})
    state.identity += (state.identity.empty() ? "" : ".") + std::to_string(part);
  return state;
}

Result<Fd> open_user_directory(const Owner& owner, const std::string& path,
                               const Stopped& stopped) {
  ASSIGN(child, UserChild::start(owner, UserChild::Channel::messages, {},
                                 [&](const Fd& parent) { return pass_directory(path, parent); }));
  for (;;) {
    if (const auto why = stopped(); !why.empty())
      return fail(ErrorCode::runtime_failed, path + ": " + why);
    pollfd watched{child->socket().get(), POLLIN, 0};
    if (::poll(&watched, 1, kTickMs) > 0) break;
  }
  auto passed = take_passed(child->socket());
  if (!passed.fd) return child_failed(path, child->wait());
  return std::move(passed.fd);
}

}  // namespace gantry::runtime
