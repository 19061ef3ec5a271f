#include "noded/gpu/health/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "noded/machine/files.h"

namespace gantry::gpu {
namespace {

constexpr std::size_t kMostLog = std::size_t{64} << 20;  // bytes; a kernel keeps far less

// Each read gives one record; EPIPE means that some were overwritten meanwhile.
std::string read_log(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string text;
  char record[8192];
  while (fd && text.size() < kMostLog) {
    const ssize_t n = ::read(fd.get(), record, sizeof record);
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (n <= 0) break;
    text.append(record, static_cast<std::size_t>(n));
  }
  return text;
}

// Reads a head such as "6,1234,5678901,-;text": the third number is microseconds.
std::optional<Duration> time_of(std::string_view head) {
  for (int i = 0; i < 2; ++i) {
    const auto comma = head.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    head.remove_prefix(comma + 1);
  }
  std::int64_t us = 0;
  const auto [end, error] = std::from_chars(head.data(), head.data() + head.size(), us);
  if (error != std::errc{} || us < 0) return std::nullopt;
  return microseconds(us);
}

}  // namespace

std::vector<LoggedXid> logged_xids(const std::string& kmsg, Duration since) {
  const std::string text = read_log(kmsg);
  std::vector<LoggedXid> out;
  for (std::string_view left = text; !left.empty();) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    const auto semicolon = line.find(';');
    if (semicolon == std::string_view::npos) continue;
    const auto at = time_of(line.substr(0, semicolon));
    if (!at || *at <= since) continue;
    if (auto xid = parse_xid_line(line.substr(semicolon + 1)))
      out.push_back({*at, std::move(*xid)});
  }
  return out;
}

}  // namespace gantry::gpu
