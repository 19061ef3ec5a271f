// Landlock for the shim and for tasks: restricts what a process may do with files. See
// hardened_rules.h; gantry-init does the same without a C library.
#pragma once

#include <string>
#include <vector>

namespace gantry::runtime {

// The version of Landlock that this kernel has; 0 = none, or it is switched off.
int landlock_version();

// Takes from this process the rights that a hardened job does not have (hardened_rules.h). Returns
// false if the kernel has Landlock but refuses.
bool harden_self();

// The rights that a process keeps: everything at and below `whole`, reading at and below `read`,
// and removing entries in and below `removable`. Paths that do not exist are left out.
struct KeptPlaces {
  std::vector<std::string> whole, read, removable;
};
// From now on this process and its children reach only these places and what they have open, and
// cannot change mounts. Returns false if the kernel has no Landlock, or refuses.
bool keep_only(const KeptPlaces& places);

}  // namespace gantry::runtime
