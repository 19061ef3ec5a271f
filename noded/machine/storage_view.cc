#include "noded/machine/storage_view.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "noded/machine/files.h"

namespace gantry::runtime {
namespace {

StorageView& own_view() {
  static StorageView view;
  return view;
}

}  // namespace

bool is_below(std::string_view path, std::string_view top) {
  return path.substr(0, top.size()) == top &&
         (path.size() == top.size() || path[top.size()] == '/');
}

bool shows(const StorageView& view, int fd) {
  if (view.hidden.empty()) return true;
  std::array<char, 32> link{};
  std::array<char, 4096> real{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  const ssize_t n = ::readlink(link.data(), real.data(), real.size());
  // A path that is too long to be looked at could lie anywhere.
  if (n <= 0 || static_cast<std::size_t>(n) >= real.size()) return false;
  const std::string_view path(real.data(), static_cast<std::size_t>(n));
  const bool stored = std::any_of(view.hidden.begin(), view.hidden.end(),
                                  [&](const std::string& top) { return is_below(path, top); });
  return !stored || std::any_of(view.shown.begin(), view.shown.end(),
                                [&](const StorageMount& m) { return is_below(path, m.path); });
}

void set_storage_view(StorageView view) {
  own_view() = std::move(view);
}

bool storage_shows(int fd) {
  return shows(own_view(), fd);
}

Result<void> check_storage_directory(const std::string& path) {
  bool plain = path.size() > 1 && path.front() == '/';
  for (const std::string& part : split(std::string_view(path).substr(plain ? 1 : 0), '/'))
    plain = plain && !part.empty() && part != "." && part != "..";
  if (!plain)
    return fail(ErrorCode::invalid_argument,
                "noded.storage: " + path + " is not in its shortest form, as /srv/data");
  for (std::size_t end = 1; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    struct stat st {};
    if (::lstat(part.c_str(), &st) != 0)
      return fail_errno(ErrorCode::not_found, "noded.storage: " + part);
    if (!S_ISDIR(st.st_mode))
      return fail(ErrorCode::invalid_argument, "noded.storage: " + part + " is no directory");
    if (st.st_uid != ::geteuid() && st.st_uid != 0)
      return fail(ErrorCode::permission_denied,
                  "noded.storage: " + part + " does not belong to root");
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
      return fail(ErrorCode::permission_denied,
                  "noded.storage: others than root may write to " + part);
  }
  return {};
}

}  // namespace gantry::runtime
