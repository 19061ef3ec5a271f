// What Landlock forbids the programs of a hardened job, in addition to its mounts and its system
// call filter: programs can be executed only from the directories of its root and from its working
// directory, not from /tmp, /dev, /proc and /sys; they cannot make device files; ioctl on devices
// works only below /dev. As in every Landlock domain, processes cannot change mounts or trace
// processes outside.
//
// Each program that a job starts calls this before it is executed: the batch script by gantry-init,
// the tasks of steps by their shim. There is no C library (init_syscalls.h).
#pragma once

#include <cstdint>

namespace gantry::landlock {

// Landlock by plain system calls: a process gives up rights to files for itself and for all that it
// starts later. It is used with and without a C library (gantry-init has none), so the system calls
// go through `call`, which returns -errno like the kernel. Source: Documentation/userspace-api/
// landlock.rst of Linux.

// Numbers of the system calls; they are the same on all architectures.
inline constexpr long kCreateRuleset = 444;
inline constexpr long kAddRule = 445;
inline constexpr long kRestrictSelf = 446;

// Rights to files, with the version of Landlock that introduced them.
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
  std::uint64_t all = kRefer - 1;  // the rights of version 1
  if (version >= 2) all |= kRefer;
  if (version >= 3) all |= kTruncate;
  if (version >= 5) all |= kIoctlDev;
  return all;
}

struct RulesetAttr {  // later versions have longer forms; the kernel accepts this one, too
  std::uint64_t handled;
};
struct __attribute__((packed)) PathAttr {
  std::uint64_t allowed;
  std::int32_t directory;
};

// The version of Landlock that the kernel has; below 1 if it has none, or it is switched off.
template <class Call>
long version(const Call& call) {
  return call(kCreateRuleset, 0, 0, 1);
}

// Returns the descriptor of a ruleset that removes these rights everywhere, except where add()
// allows them.
template <class Call>
long make(const Call& call, std::uint64_t handled) {
  const RulesetAttr attr{handled};
  return call(kCreateRuleset, reinterpret_cast<long>(&attr), sizeof attr, 0);
}

// Allows the rights at and below the place of the descriptor.
template <class Call>
long add(const Call& call, long ruleset, int place, std::uint64_t allowed) {
  const PathAttr attr{allowed, place};
  return call(kAddRule, ruleset, 1, reinterpret_cast<long>(&attr), 0);
}

// From now on this process has only the rights of the ruleset. It needs no_new_privs.
template <class Call>
long restrict_self(const Call& call, long ruleset) {
  return call(kRestrictSelf, ruleset, 0, 0);
}

inline constexpr long kOpenPlace = 010000000 | 02000000;  // O_PATH | O_CLOEXEC
inline constexpr long kOpenList = 02000000;               // O_RDONLY | O_CLOEXEC
inline constexpr const char* kWithoutPrograms[] = {"tmp", "dev", "proc", "sys", ".", ".."};

struct Calls {  // numbers of the system calls that differ between architectures
  long open_at, list, close;
};

inline bool same_name(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}

inline bool has_programs(const char* name) {
  for (const char* other : kWithoutPrograms)
    if (same_name(name, other)) return false;
  return true;
}

// Allows the rights `allowed` at and below `path`, relative to the descriptor.
template <class Call>
void allow(const Call& call, const Calls& calls, long ruleset, int from, const char* path,
           std::uint64_t allowed) {
  const long place = call(calls.open_at, from, reinterpret_cast<long>(path), kOpenPlace, 0);
  if (place < 0) return;
  add(call, ruleset, static_cast<int>(place), allowed);
  call(calls.close, place, 0, 0, 0);
}

// Returns false if the kernel has Landlock but refuses the rules; true if it has none.
template <class Call>
bool harden(const Call& call, const Calls& calls) {
  constexpr int kHere = -100;  // AT_FDCWD
  const long has = version(call);
  if (has < 1) return true;
  const std::uint64_t handled = rights_of(has) & (kExecute | kMakeChar | kMakeBlock | kIoctlDev);
  const long ruleset = make(call, handled);
  if (ruleset < 0) return false;
  const long root = call(calls.open_at, kHere, reinterpret_cast<long>("/"), kOpenList, 0);
  if (root < 0) return false;
  alignas(8) char entries[4096];
  for (;;) {
    const long bytes = call(calls.list, root, reinterpret_cast<long>(entries), sizeof entries, 0);
    if (bytes <= 0) break;
    for (long at = 0; at < bytes;) {  // struct linux_dirent64: length at 16, name from 19 on
      const char* entry = entries + at;
      const auto length = static_cast<unsigned short>(static_cast<unsigned char>(entry[16]) |
                                                      static_cast<unsigned char>(entry[17]) << 8);
      if (has_programs(entry + 19))
        allow(call, calls, ruleset, static_cast<int>(root), entry + 19, kExecute);
      at += length;
    }
  }
  allow(call, calls, ruleset, kHere, ".", kExecute);
  if ((handled & kIoctlDev) != 0) allow(call, calls, ruleset, kHere, "/dev", kIoctlDev);
  call(calls.close, root, 0, 0, 0);
  const bool done = restrict_self(call, ruleset) == 0;
  call(calls.close, ruleset, 0, 0, 0);
  return done;
}

}  // namespace gantry::landlock
