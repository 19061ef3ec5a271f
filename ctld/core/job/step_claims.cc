#include "ctld/core/job/step_claims.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/proto/steps.h"
#include "common/text/split.h"
#include "common/text/text.h"
#include "ctld/core/access/select.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

using Counts = std::vector<std::uint32_t>;

constexpr std::uint32_t kMostGpus =
    65'535;  // more than any job has; times the number of tasks it still fits

// How many running steps have claimed each GPU of the job on this node.
Counts users_of_gpus(const Job& job, const NodeRun& run) {
  Counts users(run.grant.devices.size(), 0);
  for (const StepState& step : job.active->steps) {
    if (step.ended) continue;
    for (std::size_t i = 0; i < step.gpus.size(); ++i)
      if (step.nodes[i] == run.grant.node)
        for (const std::uint16_t gpu : step.gpus[i])
          if (gpu < users.size()) ++users[gpu];
  }
  return users;
}

std::int64_t claimed_memory(const Job& job, const NodeRun& run) {
  std::int64_t sum = 0;
  for (const StepState& step : job.active->steps) {
    if (step.ended) continue;
    for (std::size_t i = 0; i < step.memory.size(); ++i)
      if (step.nodes[i] == run.grant.node) sum += step.memory[i];
  }
  return sum;
}

// The indexes of the job's GPUs on this node that are of the model that the step names.
std::vector<std::uint16_t> gpus_on(const State& state, const NodeRun& run,
                                   const std::string& models) {
  const std::vector<std::string> wanted = split(models, '|');
  const auto& known = state.node(run.grant.node).facts.gpus.gpus;
  std::vector<std::uint16_t> out;
  for (std::size_t i = 0; i < run.grant.devices.size(); ++i) {
    const auto device = std::find_if(known.begin(), known.end(), [&](const GpuDevice& gpu) {
      return gpu.index == run.grant.devices[i].gpu;
    });
    const bool fits = models.empty() || device == known.end() ||
                      std::find(wanted.begin(), wanted.end(), device->model) != wanted.end();
    if (fits) out.push_back(static_cast<std::uint16_t>(i));
  }
  return out;
}

// A step of a job with --gpus-per-node=2 gives --gpus-per-node=0 to ask in another way, because
// otherwise the job's variables ask for 2 on each node.
bool counts_by_node(const proto::StepShape& shape) {
  return shape.gpus_per_node && (*shape.gpus_per_node > 0 || (!shape.gpus && !shape.gpus_per_task));
}

// How many GPUs the step wants on each node. A number for the whole step is dealt to the nodes in
// turn, as far as each has some.
Counts wanted_gpus(const proto::StepShape& shape, const Counts& tasks, const Counts& there) {
  Counts out(tasks.size(), 0);
  const bool by_node = counts_by_node(shape);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (by_node)
      out[i] = *shape.gpus_per_node;
    else if (shape.gpus_per_task && !shape.gpus)
      out[i] = std::min(*shape.gpus_per_task, kMostGpus) * tasks[i];
  }
  if (by_node || !shape.gpus) return out;
  std::uint32_t left = std::min(*shape.gpus, kMostGpus);
  for (bool more = true; left > 0 && more;) {
    more = false;
    for (std::size_t i = 0; i < out.size() && left > 0; ++i) {
      if (out[i] == there[i]) continue;
      ++out[i];
      --left;
      more = true;
    }
  }
  if (left > 0 && !out.empty())
    out.front() += left;  // more GPUs than there are; the caller refuses it
  return out;
}

Result<void> claim_gpus(const State& state, const Job& job, const proto::StepShape& shape,
                        const std::vector<const NodeRun*>& nodes, const Counts& tasks,
                        StepClaims& claims) {
  if (!shape.gpus && !shape.gpus_per_node && !shape.gpus_per_task) return {};
  std::vector<std::vector<std::uint16_t>> all;
  Counts there;
  for (const NodeRun* run : nodes) {
    all.push_back(gpus_on(state, *run, shape.gpu_model));
    there.push_back(static_cast<std::uint32_t>(all.back().size()));
  }
  const Counts wanted = wanted_gpus(shape, tasks, there);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (wanted[i] > there[i])
      return fail(
          ErrorCode::never_fits,
          fmt::format("the step asks for {} {}GPUs on node {}, where job {} has {}", wanted[i],
                      shape.gpu_model.empty() ? "" : shape.gpu_model + " ",
                      state.node(nodes[i]->grant.node).name, display_id(state, job), there[i]));
    const Counts users = users_of_gpus(job, *nodes[i]);
    std::vector<std::uint16_t>& own = all[i];
    std::stable_sort(own.begin(), own.end(),
                     [&](std::uint16_t a, std::uint16_t b) { return users[a] < users[b]; });
    own.resize(wanted[i]);
    const auto taken = [&](std::uint16_t gpu) { return users[gpu] > 0; };
    claims.busy = claims.busy || (!shape.overlap && std::any_of(own.begin(), own.end(), taken));
    std::sort(own.begin(), own.end());
  }
  claims.gpus = std::move(all);
  return {};
}

Result<void> claim_memory(const State& state, const Job& job, const proto::StepShape& shape,
                          const std::vector<const NodeRun*>& nodes, const Counts& tasks,
                          std::uint32_t cpus_per_task, StepClaims& claims) {
  if (shape.memory_per_node <= 0 && shape.memory_per_cpu <= 0) return {};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeRun& run = *nodes[i];
    const std::int64_t cores = shape.all_cores ? static_cast<std::int64_t>(run.grant.cpus.size())
                                               : std::int64_t{tasks[i]} * cpus_per_task;
    // Both factors are bounded by the grant, so the product cannot overflow.
    const std::int64_t each = std::min(shape.memory_per_cpu, run.grant.memory + 1);
    const std::int64_t wanted =
        shape.memory_per_node > 0 ? shape.memory_per_node : each * std::max<std::int64_t>(cores, 1);
    if (wanted > run.grant.memory)
      return fail(ErrorCode::never_fits,
                  fmt::format("the step asks for {} of memory on node {}, where job {} has {}",
                              format_memory(wanted), state.node(run.grant.node).name,
                              display_id(state, job), format_memory(run.grant.memory)));
    claims.busy =
        claims.busy || (!shape.overlap && claimed_memory(job, run) + wanted > run.grant.memory);
    claims.memory.push_back(wanted);
  }
  return {};
}

}  // namespace

bool has_free_gpus(const State& state, const Job& job, const NodeRun& run,
                   const proto::StepShape& shape, std::size_t nodes) {
  const auto share = [&](std::uint32_t all) {
    return (all + nodes - 1) / std::max<std::size_t>(nodes, 1);
  };
  const std::size_t wanted = counts_by_node(shape) ? *shape.gpus_per_node
                             : shape.gpus          ? share(*shape.gpus)
                                                   : shape.gpus_per_task.value_or(0);
  if (wanted == 0) return true;
  const Counts users = users_of_gpus(job, run);
  const auto all = gpus_on(state, run, shape.gpu_model);
  const auto free =
      std::count_if(all.begin(), all.end(), [&](std::uint16_t gpu) { return users[gpu] == 0; });
  return static_cast<std::size_t>(free) >= wanted;
}

void StepClaims::put(std::size_t node, proto::StepNode& out) const {
  if (node < gpus.size()) out.gpus = gpus[node];
  if (node < memory.size()) out.memory = memory[node];
}

Result<StepClaims> claims_of(const State& state, const Job& job, const proto::StepShape& shape,
                             const std::vector<const NodeRun*>& nodes,
                             const std::vector<std::uint32_t>& tasks, std::uint32_t cpus_per_task) {
  StepClaims claims;
  TRY(claim_gpus(state, job, shape, nodes, tasks, claims));
  TRY(claim_memory(state, job, shape, nodes, tasks, cpus_per_task, claims));
  return claims;
}

}  // namespace gantry::core
