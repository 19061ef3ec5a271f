// Landlock by plain system calls: a process gives up rights to files for itself and for all that it
// starts later. It is used with and without a C library (gantry-init has none), so the system calls
// go through `call`, which returns -errno like the kernel. Source: Documentation/userspace-api/
// landlock.rst of Linux.
#pragma once

#include <cstdint>

namespace gantry::landlock {

// Numbers of the system calls; they are the same on all architectures.
inline constexpr long kCreateRuleset = 444;
inline constexpr long kAddRule = 445;
inline constexpr long kRestrictSelf = 446;

// Rights to files, with the version of Landlock that brought them.
inline constexpr std::uint64_t kExecute = 1 << 0;
inline constexpr std::uint64_t kRemoveDir = 1 << 4;
inline constexpr std::uint64_t kRemoveFile = 1 << 5;
inline constexpr std::uint64_t kMakeChar = 1 << 6;
inline constexpr std::uint64_t kMakeBlock = 1 << 11;
inline constexpr std::uint64_t kRefer = 1 << 13;     // 2
inline constexpr std::uint64_t kTruncate = 1 << 14;  // 3
inline constexpr std::uint64_t kIoctlDev = 1 << 15;  // 5
inline constexpr std::uint64_t kReadFile = 1 << 2;
inline constexpr std::uint64_t kReadDir = 1 << 3;

// All rights that a kernel with this version knows.
constexpr std::uint64_t rights_of(long version) {
  std::uint64_t all = kRefer - 1;  // those of version 1
  if (version >= 2) all |= kRefer;
  if (version >= 3) all |= kTruncate;
  if (version >= 5) all |= kIoctlDev;
  return all;
}

struct RulesetAttr {  // longer ones follow in later versions; the kernel takes this one, too
  std::uint64_t handled;
};
struct __attribute__((packed)) PathAttr {
  std::uint64_t allowed;
  std::int32_t directory;
};

// The version of Landlock that the kernel has; below 1: it has none, or it is switched off.
template <class Call>
long version(const Call& call) {
  return call(kCreateRuleset, 0, 0, 1);
}

// A ruleset that takes these rights away everywhere, except where add() gives them back; a
// descriptor.
template <class Call>
long make(const Call& call, std::uint64_t handled) {
  const RulesetAttr attr{handled};
  return call(kCreateRuleset, reinterpret_cast<long>(&attr), sizeof attr, 0);
}

// Gives the rights back at and below what the descriptor is open on.
template <class Call>
long add(const Call& call, long ruleset, int place, std::uint64_t allowed) {
  const PathAttr attr{allowed, place};
  return call(kAddRule, ruleset, 1, reinterpret_cast<long>(&attr), 0);
}

// From now on this process has the rights of the ruleset alone. It needs no_new_privs.
template <class Call>
long restrict_self(const Call& call, long ruleset) {
  return call(kRestrictSelf, ruleset, 0, 0);
}

}  // namespace gantry::landlock
