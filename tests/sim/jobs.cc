// See jobs.h.
#include "tests/sim/jobs.h"

#include <fmt/core.h>

#include "common/proto/job_submit.h"

namespace gantry::sim {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

void draw_shape(Random& random, const Settings& settings, JobShape& shape) {
  if (random.chance(200)) {
    shape.min_nodes = shape.max_nodes = static_cast<std::uint32_t>(random.between(2, 3));
    shape.tasks = shape.min_nodes * static_cast<std::uint32_t>(random.between(1, 2));
  } else if (random.chance(200)) {
    shape.tasks = static_cast<std::uint32_t>(random.between(2, 4));
    // the job runs on the fewest nodes that hold its tasks
    if (shape.tasks > 2) shape.max_nodes = shape.tasks;
  }
  if (random.chance(300)) shape.cpus_per_task = static_cast<std::uint32_t>(random.between(1, 3));
  if (random.chance(700))
    shape.memory_per_node = random.between(1, 24) * 128 * kMiB;
  else if (random.chance(500))
    shape.memory_per_cpu = random.between(1, 8) * 128 * kMiB;
  shape.exclusive = random.chance(40);
  if (random.chance(60)) shape.constraint = "fast";
  if (random.chance(40)) shape.required_nodes = {random.pick(settings.config.nodes).name};
}

void draw_dependencies(Random& random, const std::vector<JobId>& known, JobSpec& spec) {
  if (random.chance(60)) {
    Dependency d;
    d.kind = DependencyKind::singleton;
    spec.dependencies.push_back(d);
  }
  if (known.empty() || !random.chance(250)) return;
  const auto count = random.between(1, 2);
  for (std::int64_t i = 0; i < count; ++i) {
    Dependency d;
    d.kind = static_cast<DependencyKind>(random.between(1, spec.array ? 5 : 4));
    d.job = random.chance(700) ? known.back() : random.pick(known);
    if (d.kind == DependencyKind::after && random.chance(300))
      d.delay = minutes(random.between(1, 3));
    if (random.chance(100)) d.array_task = static_cast<std::uint32_t>(random.below(4));
    spec.dependencies.push_back(d);
  }
  spec.any_dependency = random.chance(300);
  spec.cancel_on_invalid_dependency = random.chance(800);
}

void draw_times(Random& random, Instant now, JobSpec& spec) {
  if (random.chance(700)) spec.time_limit = seconds(random.between(20, 1200));
  if (random.chance(100)) spec.begin = now + seconds(random.between(1, 900));
  if (random.chance(50)) spec.deadline = now + seconds(random.between(60, 3600));
  if (random.chance(120)) {
    WarnSignal warn;
    warn.signal = static_cast<std::int32_t>(random.between(10, 12));
    warn.before = seconds(random.between(1, 120));
    warn.batch_shell_only = random.chance(500);
    spec.warn_signal = warn;
  }
}

void draw_array(Random& random, JobSpec& spec) {
  ArraySpec array;
  const auto first = static_cast<std::uint32_t>(random.below(5));
  const auto step = static_cast<std::uint32_t>(random.chance(200) ? random.between(2, 4) : 1);
  const auto tasks = static_cast<std::uint32_t>(random.between(1, 12));
  array.ranges.push_back({first, first + (tasks - 1) * step, step});
  if (random.chance(500)) array.max_running = static_cast<std::uint32_t>(random.between(1, 4));
  spec.array = std::move(array);
}

}  // namespace

std::string script_of(const std::string& request_id) {
  return fmt::format("#!/bin/sh\n# {}\n", request_id.back());
}

proto::SubmitJob draw_submit(Random& random, const Settings& settings,
                             const std::vector<JobId>& known, Instant now, std::string request_id) {
  proto::SubmitJob m;
  JobSpec& spec = m.spec;
  spec.name = fmt::format("name{}", random.below(6));
  spec.comment = request_id;
  spec.work_dir = "/home/sim";
  draw_shape(random, settings, spec.shape);
  if (random.chance(150)) draw_array(random, spec);
  draw_dependencies(random, known, spec);
  draw_times(random, now, spec);
  if (random.chance(200)) spec.partition = "some";
  spec.hold = random.chance(60);
  spec.requeue = random.chance(700);
  spec.nice = static_cast<std::int32_t>(random.chance(300) ? random.below(100) : 0);
  if (!spec.array && random.chance(60)) {
    spec.kind = JobKind::allocation;
  } else {
    m.script = script_of(request_id);
  }
  if (random.chance(300)) m.environment = {{"N", fmt::format("{}", random.below(3))}};
  m.test_only = random.chance(10);
  // Not drawn, so that older histories stay as they were.
  if (spec.name < "name3") spec.io_rate = 100'001 * (std::uint64_t{spec.shape.tasks} + 1);
  m.request_id = std::move(request_id);
  return m;
}

}  // namespace gantry::sim
