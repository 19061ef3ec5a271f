// MIG geometries for tests and benches, as drivers of such GPUs report them. The product has no
// such table: it gets the geometry from each node's driver.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "common/resources/gpu.h"
#include "ctld/sched/gpu/mig_plan.h"

namespace gantry::sched {

MigGeometry h100_geometry();  // 7 compute and 8 memory slices, like all A100, H100, H200, B200
MigGeometry a30_geometry();   // 4 compute and 4 memory slices; two profiles share the media engines

MigTable compiled(const MigGeometry& geometry);  // asserts that the geometry can be compiled

// Random GPUs, queues and times, and checks of plans for them.
struct MigWorld {
  MigView view;
  MigPolicy policy;
  std::mt19937_64 random;

  struct Size {
    std::uint32_t nodes = 3, gpus_per_node = 4, jobs = 12;
    bool plain = false;  // only healthy GPUs with MIG on, none partitioned by hand
  };
  explicit MigWorld(std::uint64_t seed);
  MigWorld(std::uint64_t seed, Size size);
  MigWorld(const MigWorld&) = delete;
  MigWorld& operator=(const MigWorld&) = delete;

  std::uint64_t pick(std::uint64_t n) { return random() % n; }
  bool chance(unsigned percent) { return pick(100) < percent; }
  const MigTable& table(const MigGpuView& g) const { return *view.tables[*g.table]; }

  void add_jobs(std::uint32_t n);
  // Carries out the first `steps` steps of the plan's changes (destroying or making a slice is a
  // step), then the starts that are possible. Returns the number of steps that were done.
  std::size_t follow(const MigPlan& plan, std::size_t steps = SIZE_MAX);
  void pass(Duration d);  // ends the jobs whose time has come; their slices stay, idle

  [[nodiscard]] std::string check_layouts() const;  // "" or the mistake
  [[nodiscard]] std::string check(const MigPlan& plan) const;

 private:
  void fill(MigGpuView& gpu);
  MigJob random_job();
  std::uint64_t next_job_ = 1;
};

std::string print(const MigPlan& plan);

}  // namespace gantry::sched
