// TopJobs: moves waiting jobs in front of the other jobs of their user. The other jobs lose what
// these gain, so that no other user's job is worse off.
//
// A request may name all of a user's jobs, so it is worked out as a whole: each job that changes is
// changed by one event, however many jobs are put in front of it in between.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "common/proto/job_change.h"
#include "ctld/core/access/select.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/split.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/multifactor.h"

namespace gantry::core {
namespace {

std::string too_far(const State& state, const Job& job) {
  return fmt::format("job {} would need a nice value beyond {}", display_id(state, job), kMaxNice);
}

// The waiting jobs of one user in one partition, account and priority class. What all other jobs
// lose is kept as one number, so putting one job in front takes only two sorted sets.
class Rivals {
 public:
  Rivals(const Context& ctx, const Job& one) : ctx_(ctx), key_(key_of(ctx.state, one)) {
    const auto user = ctx.state.users.find(one.uid);
    if (user == ctx.state.users.end()) return;
    for (const JobId id : user->second.jobs.ids()) {
      const Job* job = ctx.state.jobs.find(id);
      if (job == nullptr || job->phase != Phase::queued || !has_row(*job)) continue;
      if (key_of(ctx.state, *job) == key_) add(*job, job->nice);
    }
  }

  using Key = std::tuple<Uid, PartitionId, std::uint32_t, NameId>;
  static Key key_of(const State& state, const Job& job) {
    const sched::ClassKey& cls = class_of(state, job);
    return {job.uid, cls.partition, cls.priority_class, job.account};
  }

  // Adds a task that meanwhile has become a job of its own. If its array has no other waiting task,
  // the array is removed.
  void join(const Job& job) {
    if (places_.contains(job.id)) return;
    const auto array = places_.find(job.array);
    add(job, array == places_.end() ? job.nice : array->second.nice + lost_);
    if (array == places_.end() || has_row(ctx_.state.jobs.at(job.array))) return;
    first_.erase({array->second.ahead, array->first});
    nicest_.erase({array->second.nice, array->first});
  }

  // The best of the k other jobs is d - 1 ahead of this job. Each of the others loses ceil(d / (k +
  // 1)) and the job gains the rest of d. It is then one ahead, and together the other jobs lose at
  // least what it gains.
  Result<void> put_first(const Job& job) {
    if (job.hold != Hold::none)
      return fail(ErrorCode::wrong_state,
                  fmt::format("job {} is held; release it first", display_id(ctx_.state, job)));
    join(job);
    const Place own = places_.at(job.id);
    take_out(job.id, own);
    auto done = gain(job, own);
    const Place& now = places_.at(job.id);
    first_.insert({now.ahead, job.id});
    nicest_.insert({now.nice, job.id});
    return done;
  }

  void record(Context& ctx) const {
    for (const auto& [id, place] : places_) {
      const auto nice = static_cast<std::int32_t>(place.nice + lost_);
      if (nice == ctx.state.jobs.at(id).nice || !nicest_.contains({place.nice, id})) continue;
      event::JobUpdated e;
      e.job = id;
      e.nice = nice;
      ctx.record(e);
    }
  }

 private:
  // Both values are stored as if nothing had been lost: the priority is ahead - lost_, the nice
  // value nice + lost_.
  struct Place {
    std::int64_t ahead = 0, nice = 0;
  };

  void add(const Job& job, std::int64_t nice) {
    const Place place{priority_now(ctx_, job) + job.nice - nice + lost_, nice - lost_};
    places_[job.id] = place;
    first_.insert({place.ahead, job.id});
    nicest_.insert({place.nice, job.id});
  }
  void take_out(JobId id, const Place& place) {
    first_.erase({place.ahead, id});
    nicest_.erase({place.nice, id});
  }

  // The job itself must have been taken out of both sets.
  Result<void> gain(const Job& job, const Place& own) {
    if (first_.empty()) return {};
    const std::int64_t behind = first_.rbegin()->first - own.ahead + 1;
    if (behind <= 0) return {};
    const auto parts = static_cast<std::int64_t>(first_.size()) + 1;
    const std::int64_t loss = (behind + parts - 1) / parts;
    const std::int64_t gain = behind - loss;
    if (own.nice + lost_ - gain < -kMaxNice)
      return fail(ErrorCode::limit_exceeded, too_far(ctx_.state, job));
    const auto& [nice, nicest] = *nicest_.rbegin();
    if (nice + lost_ + loss > kMaxNice)
      return fail(ErrorCode::limit_exceeded, too_far(ctx_.state, ctx_.state.jobs.at(nicest)));
    lost_ += loss;
    places_[job.id] = {own.ahead + gain + loss, own.nice - gain - loss};
    return {};
  }

  const Context& ctx_;
  Key key_;
  std::int64_t lost_ = 0;  // what each job has lost, in nice value and in priority
  std::map<JobId, Place> places_;
  std::set<std::pair<std::int64_t, JobId>> first_, nicest_;
};

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::TopJobs&& message) {
  std::map<Rivals::Key, Rivals> all;
  const auto put = [&](const Job& job) -> Result<void> {
    if (job.phase != Phase::queued)
      return fail(ErrorCode::wrong_state,
                  fmt::format("job {} is {}: only waiting jobs have a place in the queue",
                              display_id(ctx.state, job), enum_name(job.phase)));
    return all.try_emplace(Rivals::key_of(ctx.state, job), ctx, job).first->second.put_first(job);
  };
  // The last named job is moved first, so that in the end the first named is in front.
  change_jobs(ctx, from, message.jobs, Trigger::update, put, Turns::last_named_first);
  for (const auto& [key, rivals] : all) rivals.record(ctx);
}

const Subject kTopMessages{.name = "top", .handlers = kHandlers<proto::TopJobs>};

}  // namespace gantry::core
