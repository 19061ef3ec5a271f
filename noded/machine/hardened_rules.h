// What Landlock takes from the programs of a hardened job, beside what its mounts and its system
// call filter do: programs are executed from the directories of its root and from its working
// directory, not from /tmp, /dev, /proc and /sys; it makes no device files; device controls work
// below /dev alone. As with every Landlock domain, its processes change no mounts and trace nobody
// outside.
//
// Each program that a job starts calls this before it is executed: the batch script by gantry-init,
// the tasks of steps by their shim. There is no C library (init_syscalls.h).
#pragma once

#include "noded/machine/landlock_calls.h"

namespace gantry::landlock {

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

// Gives `allowed` back at and below `path`, relative to the descriptor.
template <class Call>
void allow(const Call& call, const Calls& calls, long ruleset, int from, const char* path,
           std::uint64_t allowed) {
  const long place = call(calls.open_at, from, reinterpret_cast<long>(path), kOpenPlace, 0);
  if (place < 0) return;
  add(call, ruleset, static_cast<int>(place), allowed);
  call(calls.close, place, 0, 0, 0);
}

// Returns false if the kernel has Landlock and would not take the rules; true if it has none.
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
