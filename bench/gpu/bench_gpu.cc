// The costs that GPUs cause in a node daemon, with the stand-in driver: a sample of every slice of
// 8 GPUs with 7 slices each, discovery, and the making and destroying of a slice. The figures
// include the stand-in's own time. The calls of a real driver take longer.
//
//   bench_gpu [steps]        default 2,000
#include <fmt/core.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "noded/gpu/health/sample.h"
#include "noded/gpu/mig/mig.h"
#include "noded/machine/files.h"

namespace gantry::gpu {
namespace {

double seconds_of(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// The CPU time of this thread and the wall time of each run, in microseconds.
struct Times {
  std::vector<double> cpu, wall;
  template <class F>
  void run(F work) {
    const double c = seconds_of(CLOCK_THREAD_CPUTIME_ID), w = seconds_of(CLOCK_MONOTONIC);
    work();
    cpu.push_back((seconds_of(CLOCK_THREAD_CPUTIME_ID) - c) * 1e6);
    wall.push_back((seconds_of(CLOCK_MONOTONIC) - w) * 1e6);
  }
  static double at(std::vector<double> v, double part) {
    std::sort(v.begin(), v.end());
    return v[static_cast<std::size_t>(static_cast<double>(v.size() - 1) * part)];
  }
  double row(std::string_view what) const {
    fmt::print("{:<52} {:>10.1f} {:>10.1f} {:>10.1f}\n", what, at(cpu, 0.5), at(cpu, 0.99),
               at(wall, 0.5));
    return at(cpu, 0.5);
  }
};

std::string library_path() {
  char self[4096] = {};
  if (::readlink("/proc/self/exe", self, sizeof self - 1) < 0) return "";
  std::string build = self;
  for (int i = 0; i < 2; ++i) build.resize(build.rfind('/'));
  return build + "/nvml/libnvidia-ml.so.1";
}

int run(const std::string& dir, int steps) {
  std::ofstream(dir + "/fleet.json") << R"({"gpus": [{"model": "h100", "count": 8, "mig": true}]})";
  ::setenv("GANTRY_FAKE_NVML", (dir + "/fleet.json").c_str(), 1);
  const auto nvml = Nvml::open(library_path());
  auto journal = MigJournal::open(dir + "/journal");
  if (!nvml || !journal) {
    fmt::print(stderr, "bench_gpu: {}\n", (nvml ? journal.error() : nvml.error()).message);
    return 1;
  }
  fmt::print("{:<52} {:>10} {:>10} {:>10}\n", "", "cpu us", "cpu p99", "wall us");
  const Roots nowhere{dir, dir, dir};
  Discovery found = discover(**nvml, nowhere, Instant{});
  MigPartitioner mig(**nvml, std::move(*journal));
  Times create, destroy, look, sample;
  for (const MigTarget& target : mig_targets(found))
    for (std::uint32_t start = 0; start < 7; ++start)
      create.run([&] { static_cast<void>(mig.create(target, 19, start)); });
  for (int i = 0; i < 50; ++i) look.run([&] { found = discover(**nvml, nowhere, Instant{}); });
  GpuSampler sampler(**nvml, found, seconds(5));
  Instant now{};
  std::size_t slices = 0;
  for (const GpuDevice& gpu : found.inventory.gpus)
    for (const MigSlice& slice : gpu.slices)
      slices += sampler.begin(gpu.index, &slice, now).has_value() ? 1 : 0;
  for (int i = 0; i < steps; ++i) {
    now = now + seconds(5);
    sample.run([&] { sampler.step(now); });
  }
  const auto targets = mig_targets(found);
  for (const MigTarget& target : targets)
    for (const MigSlice& slice : target.gpu->slices)
      destroy.run([&] { static_cast<void>(mig.destroy(target, slice, {})); });
  const double step = sample.row(fmt::format("a sample of {} slices on 8 GPUs", slices));
  look.row("discovery of 8 GPUs with 56 slices");
  create.row("a slice made (durably journalled)");
  destroy.row("a slice destroyed");
  fmt::print("sampling every 5 s: {:.4f} % of a core; {} points stored in {} bytes\n",
             step / 5e6 * 100, sampler.so_far(1)->points, sampler.so_far(1)->data.size());
  return slices == 56 ? 0 : 1;
}

}  // namespace
}  // namespace gantry::gpu

int main(int argc, char** argv) {
  char dir[] = "/tmp/gantry-bench-gpu-XXXXXX";
  if (::mkdtemp(dir) == nullptr) return 1;
  const int result = gantry::gpu::run(dir, argc > 1 ? std::max(1, std::atoi(argv[1])) : 2000);
  gantry::runtime::remove_tree(dir);
  return result;
}
