// Becoming a user altogether, in a child of one of root's processes: all ids, the user's groups, no
// capability in any set, and no way to gain one. Changing only the fsuid is not enough: uid 0 and
// the capabilities stay, and much of /proc, /sys and the devices asks for those.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace gantry::runtime {

// Only system calls, no allocation: a child of a process of many threads may call it. Where this
// process is not root already, the ids stay. Afterwards nobody but root traces the process or reads
// its memory and descriptors, and it ends with its parent. nullptr = done; else what failed (errno
// is set), and the process must not go on.
const char* become_user(uid_t uid, gid_t gid, const gid_t* groups, std::size_t count);

}  // namespace gantry::runtime
