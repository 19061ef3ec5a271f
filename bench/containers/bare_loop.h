// The floor of bench_containers: `crun run` in a loop, in the mount namespace that a shim has
// prepared. The config.json is that of a job of Gantry, but runs /bin/true in place of gantry-init.
#pragma once

#include <string>

#include "common/result.h"

namespace gantry::bench {

struct BareFigures {
  double seconds = 0;
  double cpu_ms = 0;  // per container
};

// `shim_pid` is the shim of a job that holds its container. Each of `parallel` processes runs
// `each` containers.
Result<BareFigures> bare_loop(int shim_pid, const std::string& mount_dir, int parallel, int each,
                              int memory_mib);

}  // namespace gantry::bench
