#include "ctld/core/job/queue_choice.h"

#include <algorithm>

#include "ctld/core/context.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/job/submit/queue_list.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/resources/forecast.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr Duration kLook = seconds(5);
// Looks per second, over all such jobs: a look takes up to a millisecond on large partitions. With
// more jobs, each is looked at less often.
constexpr std::uint64_t kLooksASecond = 50;
// A queue with free resources may have jobs that go first. So a job that moves and does not start
// waits longer before it moves again, up to this time.
constexpr Duration kLongestStay = hours(1);

Duration stay_of(const JobMark& mark) {
  return std::min(kLongestStay, kLook * (std::int64_t{1} << std::min(mark.moves, 10u)));
}

bool starts_now(const Context& ctx, const Partition& queue, const JobShape& shape) {
  const auto found = forecast(ctx, queue, shape);
  return found && found->start <= ctx.now;
}

bool starts_in(const Context& ctx, const sched::ClassKey& key, const std::string& window) {
  const auto it = ctx.state.tenancy.reservations.find(window);
  if (it == ctx.state.tenancy.reservations.end()) return false;
  const auto start = start_within(ctx, ctx.state.partition(key.partition), key.shape,
                                  key.least_limit(), it->second);
  return start && *start <= ctx.now;
}

// The move to another of its reservations in which it can start now, if there is one.
std::optional<event::JobUpdated> other_window(Context& ctx, const Job& job) {
  if (!job.windows) return std::nullopt;
  const sched::ClassKey& key = class_of(ctx.state, job);
  if (ctx.now < job.eligible + kLook && starts_in(ctx, key, key.reservation)) return std::nullopt;
  for (const std::string& other : *job.windows) {
    if (other == key.reservation || !starts_in(ctx, key, other)) continue;
    if (auto move = move_to_window(ctx, job, other)) return std::move(*move);
  }
  return std::nullopt;
}

// Likewise to another of its queues.
std::optional<event::JobUpdated> other_queue(Context& ctx, const Job& job) {
  if (!job.queues) return std::nullopt;
  const sched::ClassKey& key = class_of(ctx.state, job);
  const Partition& present = ctx.state.partition(key.partition);
  // The next plan starts the job where it is.
  if (ctx.now < job.eligible + kLook && present.up() && starts_now(ctx, present, key.shape))
    return std::nullopt;
  for (const PartitionId other : *job.queues) {
    if (other == key.partition) continue;
    const Partition& queue = ctx.state.partition(other);
    if (queue.declared == nullptr || !queue.up() || !starts_now(ctx, queue, key.shape)) continue;
    if (auto move = move_within(ctx, job, queue)) return std::move(*move);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Instant> next_queue_look(const Context& ctx, const Job& job) {
  if ((!job.queues && !job.windows) || job.phase != Phase::queued) return std::nullopt;
  const auto rounds = static_cast<std::int64_t>(ctx.state.counters.several /
                                                (kLooksASecond * kLook.us / seconds(1).us));
  const std::int64_t period = kLook.us * (1 + rounds);
  // Jobs are looked at one after the other, not all at once.
  const auto offset = static_cast<std::int64_t>(job.id.value() * 7919 * 1000) % period;
  return Instant{(ctx.now.us - offset) / period * period + period + offset};
}

void look_at_queues(Context& ctx, JobId id) {
  const Job& job = ctx.state.jobs.at(id);
  if ((!job.queues && !job.windows) || startable(ctx, job) == 0) return;
  const JobMark& mark = ctx.rt.plan->marks.at(id);
  if (mark.moved != Instant{} && ctx.now < mark.moved + stay_of(mark)) return;
  auto move = other_queue(ctx, job);
  if (!move) move = other_window(ctx, job);
  if (!move) return;
  ctx.record(*move);
  JobMark& edit = ctx.rt.plan->marks.edit(id);
  edit.moved = ctx.now;
  ++edit.moves;
}

}  // namespace gantry::core
