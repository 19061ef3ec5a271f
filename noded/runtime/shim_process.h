// A shim as noded sees it: started detached, watched through its pidfd, alive as long as its lock
// is held.
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

// Starts a shim in a session of its own. It inherits nothing but the lock of `dir` (descriptor 3)
// and `log` as stderr.
Result<ShimProcess> start_shim(const std::string& shim_path, const std::string& dir,
                               const std::vector<std::string>& args, int log);

// Takes the lock of a directory whose shim is about to be started; already_exists when a shim holds
// it.
Result<Fd> take_lock(const std::string& dir);

// Starts a program in a session of its own. Its standard files are /dev/null, but stderr is `log`;
// its descriptor 3 is `third` (-1 = none). It is reaped like a shim. argv[0] is a path.
Result<ShimProcess> start_process(const std::vector<std::string>& argv, int third, int log);

// For use after a restart: a shim whose lock is held is alive, whatever process id its file names.
ShimState find_shim(const std::string& dir, ShimProcess& found);

// Is the shim stopped, by SIGSTOP or a debugger? Then it reacts to nothing but SIGKILL.
bool is_stopped(const ShimProcess& shim);
void signal_shim(const ShimProcess& shim, int number);
bool reap_shim(
    const ShimProcess& shim);  // leaves no zombie if the shim was our child; false = it still runs

}  // namespace gantry::runtime
