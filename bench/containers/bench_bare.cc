// This program runs one round of the bare `crun run` loop beside a running job. The loop uses the
// mounts, the config.json and the limits of this job, but runs /bin/true. bench/system compares
// Gantry's containers with this loop. It needs root.
//
//   bench_bare SHIM_PID PARALLEL EACH MEMORY_MIB      EACH containers in each of PARALLEL processes
//
// The program prints one JSON line. SHIM_PID is in the file shim.lock of the job's directory.
#include <fmt/core.h>

#include <cstdlib>

#include "bench/containers/bare_loop.h"

int main(int argc, char** argv) {
  int numbers[4];
  for (int i = 0; i < 4; ++i) numbers[i] = i + 1 < argc ? std::atoi(argv[i + 1]) : 0;
  const auto [shim, parallel, each, memory_mib] = numbers;
  if (argc != 5 || shim <= 0 || parallel <= 0 || each <= 0 || memory_mib <= 0) {
    fmt::print(stderr, "usage: bench_bare SHIM_PID PARALLEL EACH MEMORY_MIB\n");
    return 2;
  }
  const auto done = gantry::bench::bare_loop(shim, "/run/gantry-mnt", parallel, each, memory_mib);
  if (!done) {
    fmt::print(stderr, "bench_bare: {}\n", done.error().message);
    return 1;
  }
  fmt::print("{{\"per_second\": {:.1f}, \"cpu_ms\": {:.2f}}}\n", parallel * each / done->seconds,
             done->cpu_ms);
  return 0;
}
