#include "common/http/tokens.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/core.h>

namespace gantry::http {
namespace {

// Compares in constant time, so that the time does not reveal where the texts differ.
bool same(std::string_view a, std::string_view b) {
  unsigned char differ = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    differ |= static_cast<unsigned char>(a[i]) ^
              static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return differ == 0;
}

}  // namespace

Result<void> Tokens::read() {
  struct stat info {};
  if (::stat(path_.c_str(), &info) != 0)
    return fail(ErrorCode::io_error, fmt::format("{}: {}", path_, std::strerror(errno)));
  const std::int64_t changed =
      info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec + info.st_size;
  if (changed == changed_) return {};
  if ((info.st_mode & 077) != 0 || (info.st_uid != ::geteuid() && info.st_uid != 0))
    return fail(ErrorCode::permission_denied,
                fmt::format("{}: others may read it; it must have mode 0600 and belong to the "
                            "daemon's user or root",
                            path_));
  std::ifstream in(path_);
  std::vector<Line> lines;
  std::string text;
  for (int number = 1; std::getline(in, text); ++number) {
    std::istringstream words(text);
    Line line;
    std::string more;
    words >> line.tenant;
    if (line.tenant.empty() || line.tenant[0] == '#') continue;
    words >> line.token;
    if (line.token.size() < kLeastToken || words >> more)
      return fail(ErrorCode::malformed,
                  fmt::format("{}:{}: a line is TENANT TOKEN, or * TOKEN, the token of at least {} "
                              "characters",
                              path_, number, kLeastToken));
    lines.push_back(std::move(line));
  }
  lines_ = std::move(lines);
  changed_ = changed;
  return {};
}

Result<std::optional<Scope>> Tokens::scope_of(std::string_view token) {
  TRY(read());
  std::optional<Scope> out;
  for (const Line& line : lines_) {
    if (!same(token, line.token)) continue;
    out = Scope{line.tenant == "*" ? std::nullopt : std::optional(line.tenant)};
  }
  return out;
}

}  // namespace gantry::http
