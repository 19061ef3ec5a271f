// Landlock for the shim and for tasks: what a process may still do with files. See
// hardened_rules.h; gantry-init does the same without a C library.
#pragma once

#include <string>
#include <vector>

namespace gantry::runtime {

// The version of Landlock that this kernel has; 0 = none, or it is switched off.
int landlock_version();

// Takes from this process what a hardened job does without (hardened_rules.h). False: the kernel
// has Landlock and would not.
bool harden_self();

// What a process keeps: everything at and below `whole`, reading at and below `read`, and removing
// what lies in and below `removable`. Paths that do not exist are left out.
struct KeptPlaces {
  std::vector<std::string> whole, read, removable;
};
// From now on this process, and what it starts, reaches these places alone, beside what it has
// open. It can change no mounts any more. False: the kernel has no Landlock, or would not.
bool keep_only(const KeptPlaces& places);

}  // namespace gantry::runtime
