// The messages between gantry-init and its shim over descriptor 3 of the container, a
// SOCK_SEQPACKET pair. The sender's process id comes from the kernel (SCM_CREDENTIALS), translated
// to the shim's PID namespace. The job can also send here, because it has the uid of gantry-init.
// So the shim trusts only the exit status, with which a job could deceive only itself.
#pragma once

#include <cstdint>

namespace gantry::runtime {

inline constexpr int kInitSocket = 3;
// The job's standard input, output and error have these numbers until gantry-init moves them to 0,
// 1 and 2. The OCI runtime does not get them as its own standard files: crun gives those to the
// container's user with fchown, even if one is the host's /dev/null.
inline constexpr int kInitFiles = 4;
inline constexpr int kInitFileCount = 3;
// The job's soft limit of open files; init lowers its own limit to this.
inline constexpr std::uint64_t kInitOpenFiles = 65536;

enum class InitWord : std::int32_t {
  up = 1,           // init to shim: PID 1 runs
  child = 2,        // the forked child sends it just before exec
  exec_failed = 3,  // value = errno
  exited = 4,       // value = wait status of the program
  go = 5,           // shim to init: start the held program
};

struct InitNote {
  InitWord word;
  std::int32_t value;
};

}  // namespace gantry::runtime
