#include "common/net/key_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gantry::net {
namespace {

Error io(const std::string& what, const std::string& path) {
  const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io_error;
  return {code, fmt::format("{} {}: {}", what, path, std::strerror(errno))};
}

// A file descriptor that closes itself.
struct File {
  int fd;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

bool write_and_sync(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return fsync(fd) == 0;
}

}  // namespace

Result<void> write_private_file(const std::string& path, const std::string& text) {
  const std::string partial = fmt::format("{}.{}.tmp", path, getpid());
  const File file{open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  if (file.fd < 0) return tl::unexpected(io("cannot create", partial));
  // link() is used instead of rename(), because it fails if the name is taken.
  if (!write_and_sync(file.fd, text) || link(partial.c_str(), path.c_str()) != 0) {
    Error error = io("cannot write", path);
    if (errno == EEXIST)
      error = {ErrorCode::already_exists, fmt::format("key file {} is there already", path)};
    unlink(partial.c_str());
    return tl::unexpected(error);
  }
  unlink(partial.c_str());
  return {};
}

Result<std::map<std::string, std::string>> read_private_file(const std::string& path) {
  const File file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return tl::unexpected(io("cannot open key file", path));
  struct stat st = {};
  if (fstat(file.fd, &st) != 0) return tl::unexpected(io("cannot read key file", path));
  if (!S_ISREG(st.st_mode))
    return fail(ErrorCode::invalid_argument, fmt::format("key file {} is no regular file", path));
  if ((st.st_mode & 077) != 0)
    return fail(ErrorCode::permission_denied,
                fmt::format("key file {} may be read by others (mode {:04o}): chmod 600 it", path,
                            st.st_mode & 07777));
  std::string text(kMaxKeyFileBytes + 1, '\0');
  const ssize_t n = read(file.fd, text.data(), text.size());
  if (n < 0) return tl::unexpected(io("cannot read key file", path));
  if (static_cast<std::size_t>(n) > kMaxKeyFileBytes)
    return fail(ErrorCode::malformed, fmt::format("key file {} is too long for one", path));
  text.resize(static_cast<std::size_t>(n));

  std::map<std::string, std::string> values;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = line.find(' ');
    if (space == std::string::npos)
      return fail(ErrorCode::malformed, fmt::format("key file {} has a line that is no "
                                                    "\"name value\"",
                                                    path));
    values[line.substr(0, space)] = line.substr(space + 1);
  }
  return values;
}

}  // namespace gantry::net
