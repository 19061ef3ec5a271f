// The costs of planning MIG slices, and the gain.
//
//   bench_mig [gpus] [jobs] [measured jobs]     default 1,000, 10,000 and 20,000
//
// The first table shows one plan for a long queue on GPUs of which 85 % of the slices are in use;
// some other slices exist but are idle. The naive search takes each job in turn, tries every GPU
// and every start, and counts the places that would be left. It keeps nothing from one job to the
// next. The second table shows the refused demand for slices, as tests/sched/mig/mig_demand.h
// defines it.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <random>

#include "tests/sched/mig/mig_demand.h"
#include "tests/sched/mig/mig_world.h"

namespace gantry::sched {
namespace {

double millis() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

struct Load {
  MigTable table = compiled(h100_geometry());
  MigView view;
  std::mt19937_64 random{1};

  Load(std::uint32_t gpus, std::uint32_t jobs, unsigned in_use, bool several) {
    view.now = Instant{hours(1000).us};
    view.tables = {&table};
    for (std::uint32_t g = 0; g < gpus; ++g) {
      MigGpuView& v = view.gpus.emplace_back();
      v.node = g / 8;
      v.index = g % 8;
      v.table = 0;
      v.mig = true;
      for (MigState s = 0; table.legal(s) != 0;) {
        const auto at = nth(table.legal(s), random());
        s = table.with(s, at);
        MigSliceView& slice = v.slices.emplace_back();
        slice.at = at;
        if (random() % 100 < in_use)
          slice.use = MigUse{JobId{1}, view.now + minutes(1 + pick(600))};
      }
    }
    for (const MigProfile& p : table.profiles()) view.wants.emplace_back().profile = p.name;
    for (std::uint32_t j = 0; j < jobs; ++j)
      view.jobs.push_back({JobId{100 + j}, static_cast<std::uint32_t>(random() % 7),
                           several ? 1 + static_cast<std::uint32_t>(random() % 3) : 1,
                           minutes(1 + pick(600))});
  }
  std::int64_t pick(std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  }
  static MigPlacementId nth(std::uint64_t bits, std::uint64_t n) {
    for (n %= static_cast<std::uint64_t>(std::popcount(bits)); n > 0; --n) bits &= bits - 1;
    return static_cast<MigPlacementId>(std::countr_zero(bits));
  }
};

// The search only starts jobs; it makes no reservations and no changes. Layouts are lists, and
// whether one is legal is computed anew each time.
std::size_t naive(const Load& load) {
  struct Slice {
    std::uint32_t profile, start;
  };
  const auto profiles = load.table.profiles();
  std::vector<std::vector<Slice>> gpus;
  for (const MigGpuView& v : load.view.gpus) {
    auto& slices = gpus.emplace_back();
    for (const MigSliceView& s : v.slices)
      if (s.use)
        slices.push_back(
            {load.table.placements()[s.at].profile, load.table.placements()[s.at].start});
  }
  const auto fits = [&](const std::vector<Slice>& on, std::uint32_t p, std::uint32_t start) {
    std::uint32_t compute = profiles[p].compute_slices, same = 0;
    for (const Slice& s : on) {
      compute += profiles[s.profile].compute_slices;
      same += s.profile == p ? 1 : 0;
      if (start < s.start + profiles[s.profile].memory_slices &&
          s.start < start + profiles[p].memory_slices)
        return false;
    }
    return compute <= load.table.compute_slices() && same < profiles[p].max_instances;
  };
  std::size_t started = 0;
  for (const MigJob& job : load.view.jobs) {
    std::uint32_t best_free = UINT32_MAX, best_gpu = 0, best_start = 0, best_left = 0;
    for (std::uint32_t g = 0; g < gpus.size(); ++g)
      for (const std::uint32_t start : profiles[job.want].starts) {
        if (!fits(gpus[g], job.want, start)) continue;
        std::uint32_t free = load.table.memory_slices(), left = 0;
        for (const Slice& s : gpus[g]) free -= profiles[s.profile].memory_slices;
        std::vector<Slice> then = gpus[g];
        then.push_back({job.want, start});
        for (std::uint32_t p = 0; p < profiles.size(); ++p)
          for (const std::uint32_t other : profiles[p].starts) left += fits(then, p, other) ? 1 : 0;
        if (free > best_free || (free == best_free && left <= best_left)) continue;
        best_free = free;
        best_left = left;
        best_gpu = g;
        best_start = start;
      }
    if (best_free == UINT32_MAX) continue;
    gpus[best_gpu].push_back({job.want, best_start});
    ++started;
  }
  return started;
}

void plan_cost(const char* what, std::uint32_t gpus, std::uint32_t jobs, unsigned in_use,
               bool several, bool compare) {
  const Load load(gpus, jobs, in_use, several);
  std::vector<double> times;
  MigPlan plan;
  for (int i = 0; i < 15; ++i) {
    const double start = millis();
    plan = plan_mig(load.view, {});
    times.push_back(millis() - start);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  fmt::print("{:<44} {:>8.2f} {:>8.2f}  {:>6} starts, {:>4} changes, {:>3} reserved", what, median,
             times.back(), plan.starts.size(), plan.changes.size(), plan.reservations.size());
  if (compare) {
    const double start = millis();
    const std::size_t started = naive(load);
    const double took = millis() - start;
    fmt::print("; naive {:.0f} ms for {} starts: {:.0f} times", took, started, took / median);
  }
  fmt::print("\n");
}

void refused(const char* what, DemandMode mode, double load, Duration patience, KnownEnds ends,
             std::uint32_t jobs) {
  const DemandResult r = random_demand(mode, {.mix = even_jobs(),
                                              .load = load,
                                              .jobs = jobs,
                                              .seed = 1,
                                              .patience = patience,
                                              .ends = ends,
                                              .policy = {}});
  fmt::print("{:<60} {:>3.0f} % {:>8.2f} % {:>8.2f} % {:>8.1f} s\n", what, load * 100,
             r.refused * 100, r.refused_jobs * 100, r.mean_wait);
}

}  // namespace
}  // namespace gantry::sched

int main(int argc, char** argv) {
  using namespace gantry;
  using namespace gantry::sched;
  const auto arg = [&](int i, std::uint32_t otherwise) {
    return argc > i ? static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)) : otherwise;
  };
  const std::uint32_t gpus = arg(1, 1'000), jobs = arg(2, 10'000), measured = arg(3, 20'000);
  fmt::print("MIG: one plan, {} GPUs, {} waiting jobs; milliseconds of CPU\n", gpus, jobs);
  fmt::print("{:<44} {:>8} {:>8}\n", "", "median", "max");
  plan_cost("85 % of the slices in use", gpus, jobs, 85, false, true);
  plan_cost("85 % in use, 1 to 3 slices a job", gpus, jobs, 85, true, false);
  plan_cost("nothing in use, all to be cut anew", gpus, jobs, 0, false, true);
  plan_cost("everything in use", gpus, jobs, 100, false, false);
  plan_cost("85 % in use, one job waits", gpus, 1, 85, false, false);
  if (measured == 0) return 0;
  fmt::print("\nMIG: demand refused on 64 GPUs, jobs of 1 h on average, all six profiles alike\n");
  fmt::print("{:<60} {:>5} {:>10} {:>10} {:>10}\n", "", "load", "of slices", "of jobs", "wait");
  for (const double load : {0.85, 1.0}) {
    const std::uint32_t many = measured * 10;
    refused("without re-partitioning: emptiest GPU first", DemandMode::spread, load, {},
            KnownEnds::none, many);
    refused("without: first GPU that fits", DemandMode::first_fit, load, {}, KnownEnds::none, many);
    refused("without: fullest GPU first", DemandMode::fullest, load, {}, KnownEnds::none, many);
  }
  struct Bound {
    const char* text;
    Duration d;
  };
  for (const Bound b : {Bound{"30 s", seconds(30)}, Bound{"5 min", minutes(5)},
                        Bound{"15 min", minutes(15)}, Bound{"30 min", minutes(30)}}) {
    const auto row = [&](const char* ends, KnownEnds known) {
      refused(fmt::format("with: a job waits at most {}, {}", b.text, ends).c_str(),
              DemandMode::repartition, 0.85, b.d, known, measured);
    };
    row("ends known", KnownEnds::exact);
    row("limits up to twice the run time", KnownEnds::limits);
    row("no limits", KnownEnds::none);
  }
  return 0;
}
