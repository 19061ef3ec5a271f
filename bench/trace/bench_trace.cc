// Replays workload logs and prints waits, slowdown and the time of the replay. Then it places the
// tasks of the trace openb on its nodes with the planner, and prints how many GPUs are allocated in
// the end. Without arguments it takes the logs that lie beside the project, if there are any, and
// other mixes of openb's tasks. Arguments are FILE.swf[.gz] PROCESSORS, or NODES.csv
// TASKS.csv[.gz]. A file of tasks needs five columns: name, cpu_milli, memory_mib, num_gpu,
// gpu_milli.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "tests/sched/openb.h"
#include "tests/sched/replay.h"

namespace gantry::sched {
namespace {

void run(const std::string& name, const std::string& path, std::uint32_t processors,
         std::uint32_t reservations) {
  auto jobs = read_swf(path);
  if (!jobs) {
    fmt::print("{:<34} skipped: no {}\n", name, path);
    return;
  }
  std::erase_if(*jobs, [&](const LogJob& j) { return j.processors > processors; });
  Policy policy;
  policy.depth = ~std::uint32_t{0};
  policy.reservations = reservations;
  policy.attempts = ~std::uint64_t{0};
  const auto start = std::chrono::steady_clock::now();
  const Replayed r = replay(*jobs, processors, Pool::one_node, policy);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  double wait = 0;
  std::int64_t most = 0;
  for (const std::int64_t w : r.waits) {
    wait += static_cast<double>(w);
    most = std::max(most, w);
  }
  fmt::print("{:<34} {:>7} {:>9.2f} {:>10.0f} {:>10} {:>8} {:>9.2f} {:>8.1f}\n", name, jobs->size(),
             mean_bounded_slowdown(*jobs, r.waits), wait / static_cast<double>(jobs->size()), most,
             r.plans, took.count(), took.count() * 1e6 / static_cast<double>(r.plans));
}

// The values of Random and FGD are means of ten seeds, which the authors of the trace have
// published.
struct Published {
  const char* mix;
  double random, fgd;
};
constexpr Published kPublished[] = {{"default", 87.47, 95.39},
                                    {"gpushare100", 79.44, 86.90},
                                    {"multigpu50", 90.27, 97.18},
                                    {"gpuspec33", 86.46, 94.55},
                                    {"cpu200", 83.77, 95.05}};

void place(const Openb& openb, const std::string& name, const Published* published) {
  constexpr int kSeeds = 10;
  double sum = 0, least = 100, most = 0, tasks = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const OpenbResult r = run_openb(openb, static_cast<std::uint64_t>(seed));
    sum += r.allocated;
    least = std::min(least, r.allocated);
    most = std::max(most, r.allocated);
    tasks += static_cast<double>(r.placed + r.refused);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print("{:<34} {:>7.2f}% {:>7.2f}% {:>7.2f}% {:>8.1f}", name, sum / kSeeds, least, most,
             took.count() * 1e6 / tasks);
  if (published != nullptr) fmt::print(" {:>8.2f}% {:>7.2f}%", published->random, published->fgd);
  fmt::print("\n");
}

void place(const std::string& nodes, const std::string& tasks, bool mixes) {
  const auto openb = read_openb(nodes, tasks);
  if (!openb) {
    fmt::print("openb skipped: no {} or {}\n", nodes, tasks);
    return;
  }
  fmt::print("{:<34} {:>8} {:>8} {:>8} {:>8}{}\n", "openb, 130 % of GPUs asked, 10 seeds", "mean",
             "least", "most", "us/task", mixes ? "   random      FGD" : "");
  if (!mixes) return place(*openb, tasks, nullptr);
  for (const Published& p : kPublished) place(openb_mix(*openb, p.mix), p.mix, &p);
}

}  // namespace
}  // namespace gantry::sched

int main(int argc, char** argv) {
  using namespace gantry::sched;
  if (argc == 3 && std::string(argv[1]).ends_with(".csv")) {
    place(argv[1], argv[2], false);
    return 0;
  }
  fmt::print("{:<34} {:>7} {:>9} {:>10} {:>10} {:>8} {:>9} {:>8}\n", "log", "jobs", "bsld",
             "mean wait", "max wait", "plans", "seconds", "us/plan");
  if (argc == 3) {
    run(argv[1], argv[1], static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10)), 1);
    return 0;
  }
  const std::string kth = trace_path("pyss_easy_KTH-SP2.swf.gz");
  run("KTH-SP2, EASY", kth, 100, 1);
  run("KTH-SP2, 10 reservations", kth, 100, 10);
  run("KTH-SP2, conservative", kth, 100, ~std::uint32_t{0});
  run("Philly on 720 GPUs, EASY", trace_path("philly_gpu.swf.gz"), 720, 1);
  place(trace_path("openb_node_list_gpu_node.csv"), trace_path("openb_pod_list_default.csv.gz"),
        true);
  return 0;
}
