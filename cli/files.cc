#include "cli/files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace gantry::cli {
namespace {

tl::unexpected<Error> io_error(std::string_view what, const std::string& path, int error) {
  return fail(ErrorCode::io_error,
              fmt::format("cannot {} {}: {}", what, path, std::strerror(error)));
}

}  // namespace

Result<std::optional<std::string>> read_small_file(const std::string& path, std::size_t most) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (fd < 0) return io_error("read", path, errno);
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t n = 0;
  while (text.size() <= most && (n = ::read(fd, buffer.data(), buffer.size())) > 0)
    text.append(buffer.data(), static_cast<std::size_t>(n));
  const int error = errno;
  ::close(fd);
  if (n < 0) return io_error("read", path, error);
  if (text.size() > most)
    return fail(ErrorCode::invalid_argument, fmt::format("{} has more than {} bytes", path, most));
  return std::optional(std::move(text));
}

Result<void> write_file(const std::string& path, std::string_view text, mode_t mode) {
  const std::string beside = fmt::format("{}.{}.tmp", path, ::getpid());
  ::unlink(beside.c_str());  // left by a dead process; never another user's file
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) return io_error("write", beside, errno);
  bool good = ::fchmod(fd, mode) == 0;
  while (good && !text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    good = n > 0;
    if (good) text.remove_prefix(static_cast<std::size_t>(n));
  }
  good = good && ::fsync(fd) == 0;
  int error = errno;
  if (::close(fd) != 0 && good) {
    good = false;
    error = errno;
  }
  if (good && ::rename(beside.c_str(), path.c_str()) != 0) {
    good = false;
    error = errno;
  }
  if (good) return {};
  ::unlink(beside.c_str());
  return io_error("write", path, error);
}

Result<void> make_directories(const std::string& path, mode_t mode) {
  for (std::size_t end = 1; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) return io_error("make", part, errno);
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return fail(ErrorCode::io_error, fmt::format("{} is not a directory", path));
  return {};
}

}  // namespace gantry::cli
