#include "common/auth/users.h"

#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace gantry::auth {
namespace {

constexpr std::size_t kFirstEntryBytes = 4096;
constexpr std::size_t kMaxEntryBytes = 1 << 20;  // bytes of one password entry
constexpr int kMaxGroups = 65'536;               // the kernel's own limit

std::vector<Gid> groups_of(const char* name, gid_t primary) {
  int count = 64;
  std::vector<gid_t> raw(static_cast<std::size_t>(count));
  while (getgrouplist(name, primary, raw.data(), &count) < 0 && count <= kMaxGroups &&
         static_cast<std::size_t>(count) > raw.size())
    raw.resize(static_cast<std::size_t>(count));
  raw.resize(std::min(raw.size(), static_cast<std::size_t>(std::max(count, 0))));
  std::vector<Gid> groups;
  for (const gid_t gid : raw)
    if (gid != primary) groups.emplace_back(gid);
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

// Looks a user up. `ask` is getpwuid_r or getpwnam_r with its key bound; `who` is for the error.
template <class Ask>
Result<Owner> find(Ask ask, const std::string& who) {
  std::vector<char> buffer(kFirstEntryBytes);
  passwd entry = {};
  passwd* found = nullptr;
  int error = 0;
  while ((error = ask(&entry, buffer.data(), buffer.size(), &found)) == ERANGE &&
         buffer.size() < kMaxEntryBytes)
    buffer.resize(2 * buffer.size());
  // POSIX allows these other errors for a user that does not exist.
  const bool absent = error == 0 || error == ENOENT || error == ESRCH;
  if (found == nullptr && absent)
    return fail(ErrorCode::not_found, fmt::format("there is no user {} on this machine", who));
  if (found == nullptr)
    return fail(ErrorCode::io_error, fmt::format("the user database cannot be asked for {}: {}",
                                                 who, std::strerror(error)));
  return Owner{.uid = Uid(entry.pw_uid),
               .gid = Gid(entry.pw_gid),
               .user = entry.pw_name,
               .groups = groups_of(entry.pw_name, entry.pw_gid),
               .home = entry.pw_dir,
               .shell = entry.pw_shell};
}

}  // namespace

Result<Owner> find_user(Uid uid) {
  return find([uid](passwd* entry, char* buffer, std::size_t size,
                    passwd** found) { return getpwuid_r(uid.value(), entry, buffer, size, found); },
              fmt::format("with uid {}", uid.value()));
}

Result<Owner> find_user(const std::string& name) {
  return find(
      [&name](passwd* entry, char* buffer, std::size_t size, passwd** found) {
        return getpwnam_r(name.c_str(), entry, buffer, size, found);
      },
      fmt::format("\"{}\"", name));
}

Result<Owner> UserCache::find(Uid uid, Instant now) {
  const auto known = entries_.find(uid);
  if (known != entries_.end() && now < known->second.at + keep_) return known->second.owner;
  auto fresh = find_user(uid);
  if (fresh) {
    if (entries_.size() >= kMaxCachedUsers) entries_.clear();
    entries_[uid] = {*fresh, now};
    return fresh;
  }
  if (fresh.error().code == ErrorCode::io_error && known != entries_.end())
    return known->second.owner;
  entries_.erase(uid);
  return fresh;
}

}  // namespace gantry::auth
