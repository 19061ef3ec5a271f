// Measures the time of processes from outside: COUNT runs of a command, PARALLEL at a time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gantry::bench {

struct SpawnTimes {
  double seconds = 0;           // wall time of all runs together
  std::vector<double> each_ms;  // wall time of each run, sorted
  std::size_t failed = 0;       // runs that ended with a status other than 0
};

// "{}" in an argument becomes the number of the run. The output goes to /dev/null.
SpawnTimes spawn_runs(const std::vector<std::string>& command, std::size_t count,
                      std::size_t parallel);

double now_ms();  // monotonic time

}  // namespace gantry::bench
