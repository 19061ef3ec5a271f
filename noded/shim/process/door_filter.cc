#include "noded/shim/process/door_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <vector>

namespace gantry::runtime {
namespace {

#if defined(__x86_64__)
constexpr unsigned kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kMachine = AUDIT_ARCH_AARCH64;
#else
#error "the door's filter knows x86-64 and arm64"
#endif

constexpr long kCalls[] = {SYS_recvfrom, SYS_sendto, SYS_epoll_pwait, SYS_epoll_ctl, SYS_accept4,
                           SYS_close, SYS_socket, SYS_connect, SYS_shutdown, SYS_setsockopt,
                           SYS_getsockopt, SYS_clock_gettime, SYS_epoll_create1,
                           // the allocator
                           SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex,
#if defined(__x86_64__)
                           SYS_epoll_wait,
#endif
                           SYS_exit_group, SYS_exit, SYS_rt_sigreturn, SYS_restart_syscall};

}  // namespace

bool keep_only_calls_of_a_door() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;  // their runtimes make calls of their own
#else
  const auto step = [](unsigned code, unsigned value) {
    return sock_filter{static_cast<unsigned short>(code), 0, 0, value};
  };
  const auto jump = [](unsigned value, std::size_t if_so, std::size_t if_not) {
    return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned char>(if_so),
                       static_cast<unsigned char>(if_not), value};
  };
  std::vector<sock_filter> program{
      step(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      jump(kMachine, 1, 0),
      step(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      step(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const long call : kCalls) {
    program.push_back(jump(static_cast<unsigned>(call), 0, 1));
    program.push_back(step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  program.push_back(step(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  const sock_fprog whole{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0;
#endif
}

}  // namespace gantry::runtime
