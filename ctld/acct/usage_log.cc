#include "ctld/acct/usage_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "common/codec/codec.h"

namespace gantry::acct {
namespace {

constexpr std::size_t kBlock = 64 * 1024;

tl::unexpected<Error> failed(const std::string& path) {
  return fail(errno == ENOSPC ? ErrorCode::out_of_space : ErrorCode::io_error,
              fmt::format("{}: {}", path, std::strerror(errno)));
}

// The octets [from, to) of the file.
Result<std::string> read_at(int fd, const std::string& path, std::uint64_t from, std::size_t size) {
  std::string out(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const ssize_t n = ::pread(fd, out.data() + have, size - have, static_cast<off_t>(from + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(path);
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  out.resize(have);
  return out;
}

Result<std::uint64_t> number_of_line(const std::string& path, std::string_view line) {
  const auto event = codec::from_json<core::UsageEvent>(line);
  if (event) return event->seq;
  return fail(ErrorCode::malformed,
              fmt::format("{}: a line is no usage event: {}", path, event.error().message));
}

// The start of the line that contains `at`, or ends before it; the file is read backwards in
// blocks.
Result<std::uint64_t> line_before(int fd, const std::string& path, std::uint64_t at) {
  while (at > 0) {
    const std::uint64_t from = at > kBlock ? at - kBlock : 0;
    ASSIGN(text, read_at(fd, path, from, static_cast<std::size_t>(at - from)));
    if (const std::size_t end = text->rfind('\n'); end != std::string::npos) return from + end + 1;
    at = from;
  }
  return std::uint64_t{0};
}

Result<std::string> line_at(int fd, const std::string& path, std::uint64_t at) {
  std::string out;
  while (true) {
    ASSIGN(text, read_at(fd, path, at + out.size(), kBlock));
    const std::size_t end = text->find('\n');
    out.append(*text, 0, std::min(end, text->size()));
    if (end != std::string::npos || text->empty()) return out;
  }
}

struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
};

// The start of the first line with an event after `after`. Lines are in the order of event numbers.
Result<std::uint64_t> find_behind(int fd, const std::string& path, std::uint64_t after,
                                  std::uint64_t size) {
  std::uint64_t low = 0, high = size;  // the line starts in [low, high]
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    const auto begin = line_before(fd, path, middle);
    if (!begin) return begin;
    ASSIGN(line, line_at(fd, path, *begin));
    const auto number = number_of_line(path, *line);
    if (!number) return number;
    if (*number > after)
      high = *begin;
    else
      low = *begin + line->size() + 1;
  }
  return low;
}

}  // namespace

Result<std::unique_ptr<UsageLog>> UsageLog::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (fd < 0) return failed(path);
  std::unique_ptr<UsageLog> log(new UsageLog(fd, path));
  TRY(log->find_end());
  return log;
}

UsageLog::~UsageLog() {
  ::close(fd_);
}

Result<void> UsageLog::find_end() {
  const off_t size = ::lseek(fd_, 0, SEEK_END);
  if (size < 0) return failed(path_);
  ASSIGN(whole, line_before(fd_, path_, static_cast<std::uint64_t>(size)));
  if (*whole < static_cast<std::uint64_t>(size) &&
      ::ftruncate(fd_, static_cast<off_t>(*whole)) != 0)
    return failed(path_);
  if (*whole == 0) return {};
  ASSIGN(begin, line_before(fd_, path_, *whole - 1));
  ASSIGN(line, line_at(fd_, path_, *begin));
  ASSIGN(number, number_of_line(path_, *line));
  last_ = *number;
  return {};
}

Result<void> UsageLog::append(const std::vector<core::UsageEvent>& events) {
  std::string text;
  std::uint64_t last = last_;
  for (const core::UsageEvent& event : events) {
    if (event.seq <= last_) continue;
    text += codec::to_json(event) + "\n";
    last = event.seq;
  }
  for (std::string_view rest(text); !rest.empty();) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(path_);
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  dirty_ |= !text.empty();
  last_ = last;
  return {};
}

Result<void> UsageLog::sync() {
  if (!dirty_) return {};
  if (::fdatasync(fd_) != 0) return failed(path_);
  dirty_ = false;
  return {};
}

Result<std::string> usage_lines(const std::string& path, std::uint64_t after,
                                const std::string& tenant, std::size_t limit) {
  File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return failed(path);
  const off_t end = ::lseek(file.fd, 0, SEEK_END);
  ASSIGN(size, line_before(file.fd, path, static_cast<std::uint64_t>(std::max<off_t>(end, 0))));
  ASSIGN(at, find_behind(file.fd, path, after, *size));
  std::string out;
  while (*at < *size && out.size() < limit) {
    const auto line = line_at(file.fd, path, *at);
    if (!line) return line;
    *at += line->size() + 1;
    if (!tenant.empty()) {
      const auto event = codec::from_json<core::UsageEvent>(*line);
      if (!event || event->tenant != tenant) continue;
    }
    out += *line + "\n";
  }
  return out;
}

}  // namespace gantry::acct
