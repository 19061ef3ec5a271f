#include "noded/machine/become_user.h"

#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gantry::runtime {
namespace {

constexpr int kMostCapabilities = 63;

}  // namespace

const char* become_user(uid_t uid, gid_t gid, const gid_t* groups, std::size_t count) {
  // The C library's own forms of these calls also tell other threads, which the child does not
  // have.
  if (::geteuid() == 0) {
    for (int c = 0; c <= kMostCapabilities; ++c) ::prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
    if (::syscall(SYS_setgroups, count, groups) != 0) return "setgroups";
    if (::syscall(SYS_setresgid, gid, gid, gid) != 0) return "setresgid";
    if (::syscall(SYS_setresuid, uid, uid, uid) != 0) return "setresuid";
  }
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  if (::syscall(SYS_capset, &header, none) != 0) return "capset";
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "no_new_privs";
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return "dumpable";
  // The changes of ids above clear it.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return "parent's death";
  return nullptr;
}

}  // namespace gantry::runtime
