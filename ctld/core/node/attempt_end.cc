#include "ctld/core/node/attempt_end.h"
#include "ctld/core/node/memory.h"
#include "ctld/core/node_links.h"

#include <algorithm>

#include "common/proto/attempt.h"
#include "common/proto/node_report.h"
#include "ctld/core/context.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

Instant told_time(const Context& ctx, NodeId node, Instant theirs, Instant earliest) {
  const Instant at = ctx.link(node).clock.ours(theirs).value_or(ctx.now);
  return std::max(earliest, std::min(at, ctx.now));
}

AttemptTimes attempt_times(const Context& ctx, const Job& job, NodeId node,
                           const proto::ExitReport& report) {
  const Instant placed = job.active->placed;
  const bool batch_node = job.active->nodes.front().grant.node == node;
  const std::optional<Instant> known = batch_node ? job.started : std::nullopt;
  const Instant told_end = told_time(ctx, node, report.ended, known.value_or(placed));
  if (!report.ran || (!known && !report.started)) return {known, told_end};
  const Duration ran = std::clamp(*report.ran, Duration{}, ctx.now - placed);
  Instant started = known ? *known : told_time(ctx, node, *report.started, placed);
  started =
      std::min(started, ctx.now - ran);  // not before `placed`, because `ran` is at most that long
  return {batch_node ? std::optional(started) : std::nullopt, started + ran};
}

Duration asleep(const Context& ctx, const Job& job) {
  const auto it = ctx.rt.node->asleep.find(job.id);
  if (it == ctx.rt.node->asleep.end() || it->second.first != job.attempt) return Duration{};
  return it->second.second;
}

void note_sleep(Context& ctx, NodeId node, const proto::AttemptKey& key, Duration asleep) {
  const Job* job = ctx.state.jobs.find(key.job);
  if (job == nullptr || job->attempt != key.attempt || !job->placed()) return;
  if (job->active->nodes.front().grant.node != node) return;  // only the batch node's time counts
  const Duration most = ctx.now - job->active->placed;
  ctx.rt.node->asleep[key.job] = {key.attempt, std::clamp(asleep, Duration{}, most)};
}

}  // namespace gantry::core
