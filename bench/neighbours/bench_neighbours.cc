// Measures what it costs a node to watch its jobs: processor time of one sample and of the
// judgement that follows, with real cgroups, as a share of one core at a sample every three
// seconds.
//
//   bench_neighbours [JOBS] [SAMPLES]
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "noded/machine/cgroup.h"
#include "noded/neighbours/detector.h"
#include "noded/sampling/sampler.h"

using namespace gantry;

namespace {

double cpu_ms() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(use.ru_utime) + ms(use.ru_stime);
}

int run(int jobs, int samples) {
  constexpr double kEveryMs = 3000;
  std::vector<std::string> why;
  const std::string root = fmt::format("gantry-bench-{}", ::getpid());
  const runtime::CgroupLayout layout = runtime::discover_cgroups(root, "n1", why);
  if (layout.version == 0) {
    fmt::print(stderr, "bench_neighbours: {}\n", why.empty() ? "no cgroup" : why[0]);
    return 1;
  }
  std::vector<sampling::WatchedJob> watched;
  for (int i = 1; i <= jobs; ++i) {
    const std::string name = fmt::format("job_{}.1", i);
    const auto made = runtime::create_cgroup(layout, name, {});
    if (!made) fmt::print(stderr, "bench_neighbours: {}\n", made.error().message);
    sampling::WatchedJob job;
    job.key = {JobId(static_cast<std::uint64_t>(i)), Attempt(1)};
    job.cgroup = name;
    watched.push_back(std::move(job));
  }
  {
    sampling::Sampler sampler({layout});
    neighbours::Detector detector{neighbours::Rules{}};
    double read = 0, judged = 0;
    for (int i = 0; i < samples; ++i) {
      const double begin = cpu_ms();
      sampler.watch(watched);
      neighbours::Sample sample = sampler.read(Instant{} + seconds(3 * (i + 1)));
      // Every job uses the disk, as if all had findings.
      for (auto& job : sample.jobs)
        if (!sample.disks.empty())
          job.disks = {{sample.disks[0].name, static_cast<std::uint64_t>(i) * 1000, 0, 0}};
      const double middle = cpu_ms();
      detector.take(std::move(sample));
      if (i == 0) continue;  // it opens the files
      read += middle - begin;
      judged += cpu_ms() - middle;
    }
    const double n = samples - 1;
    fmt::print("{} jobs, cgroup v{}: sample {:.3f} ms, judgement {:.3f} ms: {:.3f} % of a core\n",
               jobs, layout.version, read / n, judged / n, (read + judged) / n / kEveryMs * 100);
  }
  for (const auto& job : watched) runtime::remove_cgroup(layout, job.cgroup, seconds(1));
  for (const auto& mount : layout.mounts) {
    ::rmdir(mount.path.c_str());
    ::rmdir(mount.path.substr(0, mount.path.rfind('/')).c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int jobs = argc > 1 ? std::atoi(argv[1]) : 100;
  const int samples = argc > 2 ? std::atoi(argv[2]) : 200;
  if (jobs < 1 || samples < 2) {
    fmt::print(stderr, "usage: bench_neighbours [JOBS] [SAMPLES]\n");
    return 2;
  }
  return run(jobs, samples);
}
