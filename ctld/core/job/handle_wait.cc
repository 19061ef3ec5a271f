// WaitJobs: answered when every job that it names (for an array: every task) has ended, or started.
// Waits are in memory only, so a client that loses its connection asks again.
#include <algorithm>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/proto/job_query.h"
#include "common/proto/job_ref.h"
#include "common/proto/job_submit.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/memory.h"
#include "ctld/core/job/rows.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

constexpr std::size_t kMaxWaitJobs = 10'000;  // jobs that one request may name
// Limits of one user at a time, over all connections, because each wait is kept in memory and
// checked when a job ends.
constexpr std::size_t kMaxUserWaits = 4'096;
constexpr std::size_t kMaxUserWaitJobs = 100'000;  // jobs in all waits of a user

bool reached(const State& state, JobId id, bool until_started) {
  const Job* job = state.jobs.find(id);
  if (job == nullptr || job->phase == Phase::ended) return true;
  if (!until_started) return false;
  if (job->is_array()) return job->tasks->never_started == 0;
  return job->phase == Phase::running || job->phase == Phase::finishing;
}

proto::JobRow result_row(const Context& ctx, const Job& job) {
  proto::JobRow row = live_row(ctx, job);
  if (job.is_array() && job.phase == Phase::ended) {
    row.exit = job.tasks->worst_exit;
    row.outcome = job.tasks->worst;
    row.array_tasks.clear();
  }
  return row;
}

void unlink(Context& ctx, std::uint64_t id, const Wait& wait) {
  const auto without = [id](auto& table, const auto& key) {
    const auto it = table.find(key);
    if (it == table.end()) return;
    std::erase(it->second, id);
    if (it->second.empty()) table.erase(it);
  };
  for (const JobId job : wait.jobs) without(ctx.rt.job->waits_of, job);
  without(ctx.rt.job->waits_from, wait.connection);
  const auto user = ctx.rt.job->waited_by.find(wait.uid);
  GANTRY_ASSERT(user != ctx.rt.job->waited_by.end(), "a wait that was not counted");
  user->second.jobs -= wait.jobs.size();
  if (--user->second.requests == 0) ctx.rt.job->waited_by.erase(user);
}

Result<void> check_room_to_wait(const Context& ctx, const Identity& who, const Wait& wait) {
  const auto user = ctx.rt.job->waited_by.find(wait.uid);
  if (user == ctx.rt.job->waited_by.end() || is_operator(ctx.state, who)) return {};
  const auto& has = user->second;
  if (has.requests < kMaxUserWaits && has.jobs + wait.jobs.size() <= kMaxUserWaitJobs) return {};
  return fail(ErrorCode::too_many,
              fmt::format("{} waits for {} jobs in {} requests already, and one user may wait for "
                          "{} in {}: try again later",
                          who.owner.user, has.jobs, has.requests, kMaxUserWaitJobs, kMaxUserWaits));
}

void keep_wait(Context& ctx, Wait&& wait) {
  const std::uint64_t id = ctx.rt.job->next_wait++;
  for (const JobId job : wait.jobs) ctx.rt.job->waits_of[job].push_back(id);
  ctx.rt.job->waits_from[wait.connection].push_back(id);
  Waited& user = ctx.rt.job->waited_by[wait.uid];
  ++user.requests;
  user.jobs += wait.jobs.size();
  ctx.rt.job->waits.emplace(id, std::move(wait));
}

// Starts where the last look ended, so that over all ends of jobs each job is checked about once. A
// job that had started may be queued again by now, so before the answer all jobs are checked again.
bool all_reached(const State& state, Wait& wait) {
  const auto first_open = [&](std::size_t from) {
    const auto it =
        std::find_if(wait.jobs.begin() + static_cast<std::ptrdiff_t>(from), wait.jobs.end(),
                     [&](JobId id) { return !reached(state, id, wait.until_started); });
    return static_cast<std::size_t>(it - wait.jobs.begin());
  };
  wait.reached = first_open(wait.reached);
  if (wait.reached == wait.jobs.size()) wait.reached = first_open(0);
  return wait.reached == wait.jobs.size();
}

bool try_answer(Context& ctx, Wait& wait) {
  if (!all_reached(ctx.state, wait)) return false;
  proto::WaitReply reply;
  for (const JobId id : wait.jobs)
    if (const Job* job = ctx.state.jobs.find(id)) reply.rows.push_back(result_row(ctx, *job));
  ctx.turn.replies.push_back({wait.connection, wait.request, std::move(reply)});
  return true;
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::WaitJobs&& message) {
  if (message.jobs.empty() || message.jobs.size() > kMaxWaitJobs)
    return refuse(
        ctx, from,
        {ErrorCode::invalid_argument, fmt::format("name 1 to {} jobs to wait for", kMaxWaitJobs)});
  Wait wait{from.connection,       from.request,   from.who.owner.uid, {},
            message.until_started, message.notices};
  for (const proto::JobRef& ref : message.jobs) {
    const Job* job = ctx.state.jobs.find(ref.id());
    if (job == nullptr || !may(May::see, ctx.state, from.who, *job))
      return refuse(ctx, from,
                    {ErrorCode::not_found, fmt::format("there is no job {}", format_job_ref(ref))});
    if (ref.tasks.empty()) {
      wait.jobs.push_back(ref.id());
      continue;
    }
    // A task can be waited for once it is an element; before that, the request has to name the
    // whole array.
    const auto ordinal =
        job->is_array() && ref.tasks.size() == 1 && ref.tasks[0].first == ref.tasks[0].last
            ? job->tasks->indexes.ordinal_of(ref.tasks[0].first)
            : std::nullopt;
    const auto element = ordinal ? job->tasks->elements.find(*ordinal)
                                 : std::map<std::uint32_t, JobId>::const_iterator{};
    if (!ordinal || element == job->tasks->elements.end())
      return refuse(ctx, from,
                    {ErrorCode::wrong_state,
                     fmt::format("job {}: only the whole array, or one task that has been started, "
                                 "can be waited for",
                                 ref.job.value())});
    wait.jobs.push_back(element->second);
  }
  std::sort(wait.jobs.begin(), wait.jobs.end());
  wait.jobs.erase(std::unique(wait.jobs.begin(), wait.jobs.end()), wait.jobs.end());
  if (try_answer(ctx, wait)) return;
  if (auto room = check_room_to_wait(ctx, from.who, wait); !room)
    return refuse(ctx, from, room.error());
  keep_wait(ctx, std::move(wait));
}

void answer_waits(Context& ctx, JobId job) {
  const auto it = ctx.rt.job->waits_of.find(job);
  if (it == ctx.rt.job->waits_of.end()) return;
  for (const std::uint64_t id : std::vector<std::uint64_t>(it->second)) {
    const auto wait = ctx.rt.job->waits.find(id);
    if (wait == ctx.rt.job->waits.end() || !reached(ctx.state, job, wait->second.until_started))
      continue;
    if (!try_answer(ctx, wait->second)) continue;
    unlink(ctx, id, wait->second);
    ctx.rt.job->waits.erase(wait);
  }
}

void tell_waits(Context& ctx, JobId job, const std::string& text) {
  const auto it = ctx.rt.job->waits_of.find(job);
  if (it == ctx.rt.job->waits_of.end()) return;
  for (const std::uint64_t id : std::vector<std::uint64_t>(it->second)) {
    const auto wait = ctx.rt.job->waits.find(id);
    if (wait == ctx.rt.job->waits.end() || !wait->second.notices) continue;
    ctx.turn.replies.push_back(
        {wait->second.connection, wait->second.request, proto::WaitReply{{}, text}});
    unlink(ctx, id, wait->second);
    ctx.rt.job->waits.erase(wait);
  }
}

void drop_waits(Context& ctx, ConnectionId connection) {
  std::erase_if(ctx.rt.job->logs,
                [&](const auto& entry) { return entry.second.connection == connection; });
  std::erase_if(ctx.rt.job->probes,
                [&](const auto& entry) { return entry.second.connection == connection; });
  const auto it = ctx.rt.job->waits_from.find(connection);
  if (it == ctx.rt.job->waits_from.end()) return;
  for (const std::uint64_t id : std::vector<std::uint64_t>(it->second)) {
    const auto wait = ctx.rt.job->waits.find(id);
    if (wait == ctx.rt.job->waits.end()) continue;
    unlink(ctx, id, wait->second);
    ctx.rt.job->waits.erase(wait);
  }
}

const Subject kWaitMessages{.name = "wait", .handlers = kHandlers<proto::WaitJobs>};

}  // namespace gantry::core
