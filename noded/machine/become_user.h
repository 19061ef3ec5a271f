// Makes a child of one of root's processes a user altogether: all ids, the user's groups, no
// capability in any set, and no way to gain one. To change only the fsuid would not be enough: uid
// 0 and the capabilities would stay, and much of /proc, /sys and the devices asks for those.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace gantry::runtime {

// It makes only system calls and allocates nothing, so a child of a process with many threads may
// call it. If the process is not root, its ids stay as they are. Afterwards only root can trace the
// process or read its memory and descriptors, and it ends with its parent. Returns nullptr when
// done; otherwise what failed (errno is set), and the process must not go on.
const char* become_user(uid_t uid, gid_t gid, const gid_t* groups, std::size_t count);

}  // namespace gantry::runtime
