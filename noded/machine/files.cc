#include "noded/machine/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace gantry::runtime {

std::string errno_text(std::string_view what, int error) {
  std::string text(what);
  text += ": ";
  text += std::strerror(error);
  return text;
}

std::string errno_text(std::string_view what) {
  return errno_text(what, errno);
}

tl::unexpected<Error> fail_errno(ErrorCode code, std::string_view what) {
  return fail(code, errno_text(what));
}

ErrorCode code_of_path_error(int error) {
  switch (error) {
    case ENOENT: return ErrorCode::not_found;
    case EACCES:
    case EPERM:
    case EROFS:
    case EDQUOT: return ErrorCode::permission_denied;  // the user's own quota is full
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
    case EXDEV:
    case ENXIO:
    case ETXTBSY: return ErrorCode::invalid_argument;
    case ENOSPC: return ErrorCode::out_of_space;
    default: return ErrorCode::io_error;
  }
}

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io_error, path);
  std::string out;
  char buffer[16384];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(ErrorCode::io_error, path);
    if (n == 0) return out;
    out.append(buffer, static_cast<std::size_t>(n));
    if (out.size() > max_bytes)
      return fail(ErrorCode::limit_exceeded, path + ": file is too large");
  }
}

Result<void> write_existing(const std::string& path, std::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return fail_errno(ErrorCode::io_error, path);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return fail_errno(ErrorCode::io_error, path);
  return {};
}

bool try_write(const std::string& path, std::string_view text) {
  return write_existing(path, text).has_value();
}

Result<Fd> write_visible(int dir_fd, const char* name, std::string_view bytes) {
  const std::string temporary = std::string(name) + ".tmp";
  Fd fd(::openat(dir_fd, temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return fail_errno(ErrorCode::io_error, temporary);
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return fail_errno(errno == ENOSPC ? ErrorCode::out_of_space : ErrorCode::io_error, temporary);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::renameat(dir_fd, temporary.c_str(), dir_fd, name) != 0)
    return fail_errno(ErrorCode::io_error, name);
  return fd;
}

Result<void> make_durable(int dir_fd, const Fd& file, const char* name) {
  if (::fdatasync(file.get()) != 0 || ::fsync(dir_fd) != 0)
    return fail_errno(ErrorCode::io_error, name);
  return {};
}

// The content reaches the disk before the rename, so a crash leaves the old file or the new one.
Result<void> write_whole(int dir_fd, const char* name, std::string_view bytes,
                         Durability durability) {
  if (durability == Durability::none) {
    ASSIGN(fd, write_visible(dir_fd, name, bytes));
    return {};
  }
  const std::string early = std::string(name) + ".new";
  ASSIGN(fd, write_visible(dir_fd, early.c_str(), bytes));
  if (::fdatasync(fd->get()) != 0) return fail_errno(ErrorCode::io_error, early);
  if (::renameat(dir_fd, early.c_str(), dir_fd, name) != 0 || ::fsync(dir_fd) != 0)
    return fail_errno(ErrorCode::io_error, name);
  return {};
}

Result<void> write_small(int dir_fd, const char* name, std::string_view bytes, unsigned mode) {
  const Fd fd(::openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd || ::write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return fail_errno(errno == ENOSPC ? ErrorCode::out_of_space : ErrorCode::io_error, name);
  return {};
}

Result<void> make_dirs(const std::string& path, unsigned mode) {
  for (std::size_t at = 1; at <= path.size(); ++at) {
    if (at < path.size() && path[at] != '/') continue;
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), at == path.size() ? mode : 0755) != 0 && errno != EEXIST &&
        errno != EROFS)
      return fail_errno(ErrorCode::io_error, part);
  }
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return fail_errno(ErrorCode::io_error, path);
  return {};
}

namespace {

constexpr int kRemoveDepth = 100;  // each level needs one descriptor
constexpr int kRemoveRounds = 10'000;
constexpr int kRemoveNames = 1'000'000;  // names tried for one directory

// Directories that are too deep are moved up to `top` and removed in another round.
struct Removal {
  Fd top;
  int moved = 0;
  bool again = false;
};

// A user may have made such names to delay the removal; the same round removes them.
bool move_up(int parent, const char* name, Removal& all) {
  for (int i = 0; i < kRemoveNames; ++i) {
    const std::string higher = ".deep-" + std::to_string(all.moved++);
    if (::renameat2(parent, name, all.top.get(), higher.c_str(), RENAME_NOREPLACE) == 0)
      return true;
    if (errno != EEXIST) return false;
  }
  return false;
}

// Does not enter another file system: users can mount one (FUSE) whose answers they control.
int open_beside(int parent, const char* name) {
  open_how how{};
  how.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
  return static_cast<int>(::syscall(SYS_openat2, parent, name, &how, sizeof how));
}

void remove_at(int parent, const char* name, int depth, Removal& all) {
  if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT) return;
  if (::unlinkat(parent, name, AT_REMOVEDIR) == 0) return;
  if (depth > kRemoveDepth && all.top) {
    all.again = move_up(parent, name, all) || all.again;
    return;
  }
  // The path of the top itself may cross file systems.
  const Fd fd(depth == 0 ? ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                         : open_beside(parent, name));
  if (!fd) return;
  // The directory is taken from its owner. A process that still has it open cannot make anything in
  // it from now on, so the entries that are read next are final. Some file systems have no owners;
  // the tree is removed there too.
  if (::geteuid() == 0 && ::fchown(fd.get(), 0, 0) == 0) (void)::fchmod(fd.get(), 0700);
  DIR* dir = ::fdopendir(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view child = entry->d_name;
    if (child != "." && child != "..") remove_at(fd.get(), entry->d_name, depth + 1, all);
  }
  ::closedir(dir);
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

}  // namespace

void remove_tree(const std::string& path) {
  Removal all;
  all.top.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  for (int round = 0; round < kRemoveRounds; ++round) {
    all.again = false;
    remove_at(AT_FDCWD, path.c_str(), 0, all);
    if (!all.again) return;
  }
}

std::vector<std::string> list_dir(const std::string& path) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(dir);
  std::ranges::sort(names);
  return names;
}

std::uint64_t start_time_of(int pid) {
  if (pid <= 0) return 0;
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return 0;
  const auto close = text->rfind(')');  // the process name before it may contain any character
  if (close == std::string::npos) return 0;
  const auto fields = split(std::string_view(*text).substr(close + 2), ' ');
  std::uint64_t ticks = 0;
  if (fields.size() > 19)
    std::from_chars(fields[19].data(), fields[19].data() + fields[19].size(), ticks);
  return ticks;
}

std::string trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  const auto last = text.find_last_not_of(" \t\r\n");
  return std::string(text.substr(first, last - first + 1));
}

}  // namespace gantry::runtime
