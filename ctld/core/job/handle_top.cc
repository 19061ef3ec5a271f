// TopJobs: waiting jobs in front of their user's others. What they gain the others lose, so that
// nobody else's place changes for the worse.
#include <fmt/core.h>

#include <algorithm>

#include "ctld/core/access/select.h"
#include "ctld/core/handlers.h"
#include "ctld/core/job/split.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/tenancy/multifactor.h"

namespace gantry::core {
namespace {

// Waiting jobs of the same user in the same partition, account and priority class.
std::vector<const Job*> rivals_of(const State& state, const Job& job) {
  std::vector<const Job*> out;
  const auto user = state.users.find(job.uid);
  if (user == state.users.end()) return out;
  const sched::ClassKey& key = class_of(state, job);
  for (const JobId id : user->second.jobs.ids()) {
    const Job* other = state.jobs.find(id);
    if (other == nullptr || id == job.id || other->phase != Phase::queued || !has_row(*other))
      continue;
    const sched::ClassKey& its = class_of(state, *other);
    if (its.partition == key.partition && its.priority_class == key.priority_class &&
        other->account == job.account)
      out.push_back(other);
  }
  return out;
}

std::string too_far(const State& state, const Job& job) {
  return fmt::format("job {} would need a nice value beyond {}", display_id(state, job), kMaxNice);
}

// With k others, of which the first is d - 1 ahead, each loses ceil(d / (k + 1)) and the job gains
// the rest of d: it is then one ahead, and no more is gained than is lost.
Result<void> put_first(Context& ctx, const Job& job) {
  if (job.hold != Hold::none)
    return fail(ErrorCode::wrong_state,
                fmt::format("job {} is held; release it first", display_id(ctx.state, job)));
  const auto rivals = rivals_of(ctx.state, job);
  if (rivals.empty()) return {};
  std::int64_t first = INT64_MIN;
  for (const Job* other : rivals) first = std::max(first, priority_now(ctx, *other));
  const std::int64_t behind = first - priority_now(ctx, job) + 1;
  if (behind <= 0) return {};
  const auto parts = static_cast<std::int64_t>(rivals.size()) + 1;
  const std::int64_t loss = (behind + parts - 1) / parts;
  const std::int64_t gain = behind - loss;
  if (job.nice - gain < -kMaxNice) return fail(ErrorCode::limit_exceeded, too_far(ctx.state, job));
  for (const Job* other : rivals)
    if (other->nice + loss > kMaxNice)
      return fail(ErrorCode::limit_exceeded, too_far(ctx.state, *other));
  std::vector<std::pair<JobId, std::int64_t>> changes = {{job.id, job.nice - gain}};
  for (const Job* other : rivals) changes.emplace_back(other->id, other->nice + loss);
  for (const auto& [id, nice] : changes) {
    event::JobUpdated e;
    e.job = id;
    e.nice = static_cast<std::int32_t>(nice);
    ctx.record(std::move(e));
  }
  return {};
}

}  // namespace

void handle(Context& ctx, const ClientRequest& from, proto::TopJobs&& message) {
  const auto put = [&](const Job& job) -> Result<void> {
    if (job.phase != Phase::queued)
      return fail(ErrorCode::wrong_state,
                  fmt::format("job {} is {}: only waiting jobs have a place in the queue",
                              display_id(ctx.state, job), enum_name(job.phase)));
    return put_first(ctx, job);
  };
  // So that the first named is the first in the end.
  change_jobs(ctx, from, message.jobs, Trigger::update, put, Turns::last_named_first);
}

}  // namespace gantry::core
