#include "ctld/core/turn/waits.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/turn/memory.h"

#include <algorithm>

#include "ctld/core/context.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr Duration kShortest = seconds(1);

void add(std::vector<WaitPart>& parts, Reason reason, Duration length) {
  if (length.us <= 0) return;
  const auto it = std::find_if(parts.begin(), parts.end(),
                               [&](const WaitPart& p) { return p.reason == reason; });
  if (it == parts.end())
    parts.push_back({reason, length});
  else
    it->length = it->length + length;
}

// The reason why the job was not eligible at first.
Reason before_eligible(const Job& job) {
  if (job.dependencies) return Reason::dependency;
  if (job.not_before && *job.not_before == job.eligible)
    return job.backing_off ? Reason::requeued : Reason::begin_time;
  return Reason::held_user;
}

Reason reason_in(const WaitInterval& interval, JobId id) {
  return interval.head == id ? interval.of_head : interval.of_rest;
}

}  // namespace

void verdict_changes(Context& ctx, ClassId id, const sched::ClassVerdict& next) {
  const sched::ClassVerdict& cls = ctx.rt.plan->verdicts.of(ctx.state.classes, id);
  if (cls.of_head.reason == Reason::none) {  // no plan gave a verdict before
    ctx.rt.turn->wait_intervals.erase(id);
    return;
  }
  const bool same = cls.head == next.head && cls.of_head.reason == next.of_head.reason &&
                    cls.of_rest.reason == next.of_rest.reason;
  // A different first job with the same reason matters only if the other jobs wait for something
  // else.
  const bool alike = cls.of_head.reason == cls.of_rest.reason &&
                     next.of_head.reason == next.of_rest.reason &&
                     cls.of_head.reason == next.of_head.reason;
  if (same || alike) return;
  if (ctx.rt.turn->wait_intervals.size() >= kMaxClasses &&
      !ctx.rt.turn->wait_intervals.contains(id))
    return;
  std::vector<WaitInterval>& wait_intervals = ctx.rt.turn->wait_intervals[id];
  if (wait_intervals.size() == kMaxWaitIntervals)
    wait_intervals.erase(wait_intervals.begin());  // the next interval covers both
  wait_intervals.push_back({ctx.now, cls.head, cls.of_head.reason, cls.of_rest.reason});
}

std::vector<WaitPart> waits_of(const Context& ctx, const Job& job) {
  std::vector<WaitPart> parts;
  if (ctx.now - job.submitted < kShortest) return parts;
  Instant at = std::max(job.submitted, std::min(job.eligible, ctx.now));
  if (job.restarts == 0) add(parts, before_eligible(job), at - job.submitted);
  if (const auto again = ctx.rt.turn->waits_since.find(job.id);
      again != ctx.rt.turn->waits_since.end())
    at = std::max(at, again->second);
  const JobId id = job.is_element() ? job.array : job.id;
  const sched::ClassVerdict& cls = ctx.rt.plan->verdicts.of(ctx.state.classes, job.cls);
  if (const auto wait_intervals = ctx.rt.turn->wait_intervals.find(job.cls);
      wait_intervals != ctx.rt.turn->wait_intervals.end())
    for (const WaitInterval& interval : wait_intervals->second) {
      if (interval.until <= at) continue;
      add(parts, reason_in(interval, id), interval.until - at);
      at = interval.until;
    }
  const Reason last = (cls.head == id ? cls.of_head : cls.of_rest).reason;
  add(parts, last, ctx.now - at);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const WaitPart& a, const WaitPart& b) { return a.length > b.length; });
  std::erase_if(parts, [](const WaitPart& p) { return p.length < kShortest; });
  return parts;
}

}  // namespace gantry::core
