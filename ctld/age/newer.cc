#include "ctld/age/newer.h"

#include <fmt/core.h>

#include "common/proto/attempt.h"
#include "common/proto/node_report.h"

namespace gantry::age {

std::string newer_than_us(const core::State& state, const proto::NodeRegister& message,
                          bool heard_us) {
  const Epoch theirs = message.highest_epoch;
  if (theirs > state.epoch || (theirs == state.epoch && !heard_us))
    return fmt::format("it has heard of controller start {}, and this is start {} of the store",
                       theirs.value(), state.epoch.value());
  if (message.highest_job > state.last_job)
    return fmt::format("it was once told to start job {}, and the last job of the store is {}",
                       message.highest_job.value(), state.last_job.value());
  for (const proto::AttemptStatus& status : message.attempts) {
    if (status.key.job > state.last_job)
      return fmt::format("it has job {}, and the last job of the store is {}",
                         status.key.job.value(), state.last_job.value());
    const core::Job* job = state.jobs.find(status.key.job);
    if (job != nullptr && status.key.attempt > job->attempt)
      return fmt::format("it has attempt {} of job {}, and the store knows of {}",
                         status.key.attempt.value(), status.key.job.value(), job->attempt.value());
  }
  return {};
}

bool is_placed(const core::State& state, const core::Node& node, const proto::AttemptKey& key) {
  const core::Job* job = state.jobs.find(key.job);
  if (job == nullptr || job->attempt != key.attempt || !job->placed()) return false;
  for (const core::NodeRun& run : job->active->nodes)
    if (run.grant.node == node.id && run.state != core::RunState::released) return true;
  return false;
}

}  // namespace gantry::age
