// A shim as noded sees it: started detached, watched by pidfd, known to be alive by its lock.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

struct ShimProcess {
  int pid = 0;
  Fd pidfd;
};

enum class ShimState { never_ran, alive, gone };

// A session of its own, nothing inherited but the lock of `dir` (descriptor 3) and `log` as stderr.
Result<ShimProcess> start_shim(const std::string& shim_path, const std::string& dir,
                               const std::vector<std::string>& args, int log);

// The lock of a directory whose shim is about to be started; already_exists when one has it.
Result<Fd> take_lock(const std::string& dir);

// A session of its own, /dev/null as standard files but for `log` as stderr, `third` as descriptor
// 3
// (-1 = none); reaped like a shim. argv[0] is a path.
Result<ShimProcess> start_process(const std::vector<std::string>& argv, int third, int log);

// After a restart: whose lock is held lives, whatever its process id says.
ShimState find_shim(const std::string& dir, ShimProcess& found);

// Stopped (SIGSTOP, a debugger): it hears nothing but SIGKILL.
bool is_stopped(const ShimProcess& shim);
void signal_shim(const ShimProcess& shim, int number);
bool reap_shim(
    const ShimProcess& shim);  // no zombie stays if it was our child; false = it still runs

}  // namespace gantry::runtime
