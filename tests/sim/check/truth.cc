// See truth.h.
#include "tests/sim/check/truth.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/proto/node_order.h"
#include "tests/sim/gpus.h"

namespace gantry::sim {
namespace {

std::string shown(const AttemptKey& key) {
  return fmt::format("job {} attempt {}", key.job.value(), key.attempt.value());
}

}  // namespace

void Truth::check_gpus(const std::string& node, const GpuInventory& gpus,
                       const proto::Launch& launch) {
  for (const GpuGrant& mine : launch.placement.at(launch.node_index).gpus) {
    if (const std::string why = impossible(gpus, mine); !why.empty())
      broken(fmt::format("{} begins on {}, where {}", shown(launch.key), node, why));
    DevicePart sum = mine.of_device();
    for (const auto& [where, live] : live_) {
      if (where.first != node) continue;
      for (const GpuGrant& theirs : live.has.gpus) {
        const std::string why = conflict(gpus, mine, theirs, live.tenant == launch.tenant);
        if (!why.empty())
          broken(fmt::format("{} and {} on {}: {}", shown(where.second), shown(launch.key), node,
                             why));
        if (theirs.gpu != mine.gpu) continue;
        if (!mine.profile) sum += part_of_gpu(theirs.thousandths);
        if (mine.profile && theirs.start == mine.start) sum += theirs.of_slice;
      }
    }
    if (sum > kWholeDevice)
      broken(fmt::format("{} thousandths of GPU {} of {}, or of one of its slices, are given",
                         sum.value(), mine.gpu, node));
  }
}

void Truth::begins(const NodeConfig& node, const GpuInventory& gpus, const proto::Launch& launch) {
  const NodePlacement& mine = launch.placement.at(launch.node_index);
  std::int64_t memory = mine.memory;
  for (const auto& [where, live] : live_) {
    if (where.first != node.name) continue;
    const NodePlacement& theirs = live.has;
    memory += theirs.memory;
    for (const std::uint16_t cpu : mine.cpus)
      if (std::find(theirs.cpus.begin(), theirs.cpus.end(), cpu) != theirs.cpus.end())
        broken(fmt::format("core {} of {} is used by {} and by {}", cpu, node.name,
                           shown(where.second), shown(launch.key)));
  }
  if (!gpus.gpus.empty()) check_gpus(node.name, gpus, launch);
  if (memory > node.memory)
    broken(fmt::format("{} has promised more memory than it has", node.name));
  auto& attempts = live_attempts_[launch.key.job];
  if (!attempts.empty() && !attempts.contains(launch.key.attempt))
    broken(fmt::format("{} begins on {} while attempt {} lives", shown(launch.key), node.name,
                       attempts.begin()->first.value()));
  if (!live_.emplace(Where{node.name, launch.key}, Live{mine, launch.tenant}).second)
    broken(fmt::format("{} begins twice on {}", shown(launch.key), node.name));
  ++attempts[launch.key.attempt];
}

void Truth::user_code_starts(const std::string& node, const proto::Launch& launch) {
  if (!starts_.emplace(node, launch.key).second)
    broken(fmt::format("{} ran twice on {}", shown(launch.key), node));
  if (!launch.runs_batch) return;
  // A waiting job may be told not to requeue any more; that counts from its next start on.
  const auto [last, first] = may_return_.emplace(launch.key.job, launch.spec.requeue);
  if (!first && !last->second)
    broken(fmt::format("job {} may start once and started again", launch.key.job.value()));
  last->second = launch.spec.requeue;
}

void Truth::gone(const std::string& node, const AttemptKey& key) {
  if (live_.erase(Where{node, key}) == 0) return;
  const auto job = live_attempts_.find(key.job);
  const auto attempt = job->second.find(key.attempt);
  if (--attempt->second == 0) job->second.erase(attempt);
  if (job->second.empty()) live_attempts_.erase(job);
}

void Truth::exit_recorded(const std::string& node, const AttemptKey& key, const node::Exit& exit,
                          Duration slept) {
  ends_[Where{node, key}] = {queue_.now(), slept, stopped(node)};
  if (!exits_.emplace(Where{node, key}, exit).second)
    broken(fmt::format("{} ended twice on {}", shown(key), node));
}

void Truth::kills(const std::string& node, const AttemptKey& key) {
  kills_.emplace(Where{node, key}, queue_.now());
}

std::optional<Instant> Truth::killed(const std::string& node, const AttemptKey& key) const {
  const auto it = kills_.find(Where{node, key});
  return it == kills_.end() ? std::nullopt : std::optional(it->second);
}

std::vector<std::pair<std::string, AttemptKey>> Truth::alive() const {
  std::vector<std::pair<std::string, AttemptKey>> out;
  for (const auto& [where, live] : live_) out.push_back(where);
  return out;
}

void Truth::runs_anew(JobId job) {
  const auto of_job = [&](const auto& entry) { return entry.first.second.job == job; };
  std::erase_if(exits_, of_job);
  std::erase_if(ends_, of_job);
  std::erase_if(kills_, of_job);
  std::erase_if(starts_, [&](const Where& where) { return where.second.job == job; });
  may_return_.erase(job);
}

bool Truth::live(const std::string& node, const AttemptKey& key) const {
  return live_.contains(Where{node, key});
}

const node::Exit* Truth::exit_of(const std::string& node, const AttemptKey& key) const {
  const auto it = exits_.find(Where{node, key});
  return it == exits_.end() ? nullptr : &it->second;
}

bool Truth::started(const std::string& node, const AttemptKey& key) const {
  return starts_.contains(Where{node, key});
}

}  // namespace gantry::sim
