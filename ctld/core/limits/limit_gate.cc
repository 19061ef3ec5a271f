#include "ctld/core/limits/limit_gate.h"

#include <vector>

#include "ctld/core/context.h"
#include "ctld/core/limits/limits.h"
#include "ctld/core/limits/memory.h"
#include "ctld/core/resources/uses.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

// Number of jobs of one list that are offered to the scheduler at a time. A list is looked at again
// whenever a job starts or ends, so all jobs that may start are offered in time.
constexpr std::size_t kMostLetIn = 64;
constexpr Duration kLookAtUse = seconds(10);  // for use that decays or runs out by itself

// Components of a heterogeneous job start together or not at all.
bool held_back(const Context& ctx, const Job& job) {
  if (verdict_of_limits(ctx.state, job, ctx.now)) return true;
  const auto& het = class_of(ctx.state, job).het;
  for (std::uint32_t i = 0; het && i < het->size; ++i) {
    const Job* part = ctx.state.jobs.find(het->member(i));
    if (part != nullptr && part->phase == Phase::queued && part->id != job.id &&
        verdict_of_limits(ctx.state, *part, ctx.now))
      return true;
  }
  return false;
}

LimitListKey list_of(const State& state, const Job& job) {
  const UseKey key = use_key_of(state, job);
  return {job.cls, key.uid, key.share ? key.share->value() : UINT32_MAX};
}

void list_job(Context& ctx, const Job& job) {
  const LimitListKey key = list_of(ctx.state, job);
  const auto [at, fresh] = ctx.rt.limits->limited.try_emplace(job.id, key);
  if (!fresh && at->second == key) return;
  if (!fresh) {
    drop_limit(ctx, job.id);
    ctx.rt.limits->limited.emplace(job.id, key);
  }
  ctx.rt.limits->lists[key].insert(job.id);
  if (!ctx.rt.limits->due) ctx.rt.limits->due = ctx.now + kLookAtUse;
}

}  // namespace

bool limited(Context& ctx, const Job& job) {
  if (!held_back(ctx, job)) {
    drop_limit(ctx, job.id);
    return false;
  }
  list_job(ctx, job);
  return true;
}

bool refused_by_limit(Context& ctx, const Job& job) {
  if (!held_back(ctx, job)) return false;
  sync_queue(ctx, job);
  ctx.turn.schedule = true;
  return true;
}

void drop_limit(Context& ctx, JobId job) {
  const auto it = ctx.rt.limits->limited.find(job);
  if (it == ctx.rt.limits->limited.end()) return;
  const auto list = ctx.rt.limits->lists.find(it->second);
  list->second.erase(job);
  if (list->second.empty()) ctx.rt.limits->lists.erase(list);
  ctx.rt.limits->limited.erase(it);
}

bool open_limits(Context& ctx) {
  if (!ctx.touched.uses) return false;
  ctx.touched.uses = false;
  bool some = false;
  for (const auto& [key, jobs] : ctx.rt.limits->lists) {
    const Job* first = ctx.state.jobs.find(*jobs.begin());
    if (first != nullptr && held_back(ctx, *first)) continue;
    std::size_t opened = 0;
    for (const JobId job : jobs) {
      if (++opened > kMostLetIn) break;
      ctx.touched.jobs.push_back(job);
      some = true;
    }
  }
  return some;
}

void look_at_limits(Context& ctx) {
  ctx.rt.limits->due.reset();
  if (ctx.rt.limits->lists.empty()) return;
  ctx.rt.limits->due = ctx.now + kLookAtUse;
  ctx.touched.uses = true;
}

}  // namespace gantry::core
