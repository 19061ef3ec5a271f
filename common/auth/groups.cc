#include "common/auth/groups.h"

#include <grp.h>

#include <algorithm>
#include <cerrno>

namespace gantry::auth {
namespace {

constexpr std::size_t kMaxCachedGroups = 65'536;
constexpr std::size_t kFirstGroupBytes = 4096;
constexpr std::size_t kMaxGroupBytes = 16 << 20;  // bytes of one entry with all its members

std::string find_name(Gid gid) {
  std::vector<char> buffer(kFirstGroupBytes);
  group entry = {};
  group* found = nullptr;
  while (getgrgid_r(gid.value(), &entry, buffer.data(), buffer.size(), &found) == ERANGE &&
         buffer.size() < kMaxGroupBytes)
    buffer.resize(2 * buffer.size());
  return found == nullptr ? "" : found->gr_name;
}

}  // namespace

const std::string& GroupNames::name_of(Gid gid, Instant now) {
  const auto known = entries_.find(gid);
  if (known != entries_.end() && now < known->second.at + keep_) return known->second.name;
  if (entries_.size() >= kMaxCachedGroups) entries_.clear();
  Entry& entry = entries_[gid];
  entry = {find_name(gid), now};
  return entry.name;
}

std::vector<std::string> GroupNames::of(const Owner& owner, Instant now) {
  std::vector<std::string> out;
  const auto add = [&](Gid gid) {
    if (const std::string& name = name_of(gid, now); !name.empty()) out.push_back(name);
  };
  add(owner.gid);
  for (const Gid gid : owner.groups) add(gid);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace gantry::auth
