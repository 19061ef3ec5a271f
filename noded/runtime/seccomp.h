// The system calls that jobs may make: Debian's allow-list for containers, compiled once when noded
// starts, because compiling it costs an OCI runtime 5 to 25 ms for each container.
#pragma once

#include <string>

#include "common/result.h"

namespace gantry::runtime {

inline constexpr const char* kSeccompList = "/usr/share/containers/seccomp.json";

struct SeccompFilter {
  std::string bpf;     // struct sock_filter[], for this machine and its 32-bit ABIs
  std::string base64;  // the same filter, as crun takes it
  std::string oci;     // linux.seccomp of config.json, as runc takes it
};

// The calls of a job in its sandbox. `hardened` additionally forbids: tracing and reading other
// processes (ptrace, process_vm_*, pidfd_getfd), personality, modify_ldt, file handles, 32-bit
// calls; and sockets other than unix, netlink's route, and TCP and UDP over IP.
enum class CallFilter : std::uint8_t { standard, hardened };

// `list` is the text of a containers-common seccomp file. Its rules for capabilities are dropped,
// because jobs have none. clone3 is denied with ENOSYS. Denied with EPERM are clone and unshare
// with new namespaces, io_uring, keyctl, bpf, perf_event_open and userfaultfd. Sockets are of the
// families unix, IPv4, IPv6 and netlink; all others fail with ENOSYS.
Result<SeccompFilter> compile_seccomp(const std::string& list,
                                      CallFilter filter = CallFilter::standard);

}  // namespace gantry::runtime
