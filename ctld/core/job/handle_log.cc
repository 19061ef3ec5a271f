// ReadLog: a piece of a job's output file, which its batch node reads as the job's user. The
// request waits under a ticket until the node answers.
#include <algorithm>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "common/job/output_pattern.h"
#include "common/proto/job_ref.h"
#include "common/proto/job_submit.h"
#include "common/proto/node_relay.h"
#include "common/proto/session.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/select.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/memory.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/node_links.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/record.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/storage.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

constexpr std::uint32_t kMaxLogBytes = 1 << 20;  // bytes in one LogChunk
constexpr std::size_t kMaxLogsInFlight = 10'000;
constexpr std::size_t kMaxUserLogs = 64;  // requests of one user at a time

Result<void> check_room_to_read(const Context& ctx, const Identity& who) {
  const auto own =
      std::count_if(ctx.rt.job->logs.begin(), ctx.rt.job->logs.end(),
                    [&](const auto& entry) { return entry.second.uid == who.owner.uid; });
  if (static_cast<std::size_t>(own) >= kMaxUserLogs && !is_operator(ctx.state, who))
    return fail(
        ErrorCode::too_many,
        fmt::format("{} waits for the output of {} jobs, as many as one user may: try again "
                    "later",
                    who.owner.user, own));
  if (ctx.rt.job->logs.size() >= kMaxLogsInFlight)
    return fail(ErrorCode::unavailable, "too many requests for output at once");
  return {};
}

Result<std::string> path_of(const State& state, const Job& job, const StoredSpec& stored,
                            bool std_err) {
  const JobSpec& spec = stored.spec;
  std::string pattern = std_err && !spec.std_err.empty() ? spec.std_err : spec.std_out;
  if (pattern.empty()) pattern = job.is_element() ? "gantry-%A_%a.out" : "gantry-%j.out";
  PatternValues values;
  values.job = job.id;
  values.array_job = job.array;
  if (job.is_element()) values.array_task = job.task;
  values.name = state.names.text(job.name);
  values.user = stored.owner.user;
  values.node = state.node(job.active->nodes.front().grant.node).name;
  auto path = expand_pattern(pattern, values);
  if (path && !path->starts_with('/')) path->insert(0, spec.work_dir + '/');
  return path;
}

// The single job that the reference names.
Result<const Job*> named(const State& state, const Identity& who, const proto::JobRef& ref) {
  std::vector<proto::JobRef> unknown;
  const std::vector<Selected> found = resolve(state, who, {ref}, unknown, May::read);
  if (found.empty())
    return fail(ErrorCode::not_found, fmt::format("there is no job {}", ref.job.value()));
  const Job& job = state.jobs.at(found.front().job);
  const bool leads = class_of(state, job).het.has_value();  // only the leader has output
  if ((found.size() > 1 && !leads) || (job.is_array() && job.tasks->pending.count() > 1))
    return fail(ErrorCode::invalid_argument,
                fmt::format("job {} is an array: name one task, as {}_0", ref.job.value(),
                            ref.job.value()));
  return &job;
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::ReadLog&& message) {
  const auto found = named(ctx.state, from.who, message.job);
  if (!found) return refuse(ctx, from, found.error());
  const Job& job = **found;
  if (!job.active || !job.started)
    return refuse(
        ctx, from,
        {ErrorCode::wrong_state, fmt::format("job {} has not started: there is no output yet",
                                             display_id(ctx.state, job))});
  if (job.kind != JobKind::batch)
    return refuse(ctx, from, {ErrorCode::wrong_state, "an allocation has no output of its own"});
  if (auto room = check_room_to_read(ctx, from.who); !room) return refuse(ctx, from, room.error());
  auto stored = codec::decode<StoredSpec>(spec_bytes(ctx.state, job));
  GANTRY_ASSERT(stored.has_value(), "a spec that was read once");
  auto path = path_of(ctx.state, job, *stored, message.std_err);
  if (!path) return refuse(ctx, from, path.error());
  const NodeId node = job.active->nodes.front().grant.node;
  if (ctx.link(node).session == 0)
    return refuse(
        ctx, from,
        {ErrorCode::unavailable,
         fmt::format("node {}, which has the output, does not answer", ctx.state.node(node).name)});
  const std::uint64_t ticket = ctx.rt.job->next_ticket++;
  proto::FetchLog order{ticket,
                        *path,
                        std::move(stored->owner),
                        message.offset,
                        std::min(message.max_bytes, kMaxLogBytes),
                        storage_for(ctx.state, job)};
  ctx.rt.job->logs.emplace(ticket, LogRequest{from.connection, from.request, from.who.owner.uid,
                                              job.id, message.offset, std::move(*path), node});
  ctx.send(node, std::move(order));
}

void drop_logs(Context& ctx, NodeId node) {
  std::erase_if(ctx.rt.job->logs, [&](const auto& entry) {
    if (entry.second.node != node) return false;
    proto::ErrorReply error{
        static_cast<std::uint16_t>(ErrorCode::unavailable),
        fmt::format("node {}, which has the output, does not answer", ctx.state.node(node).name)};
    ctx.turn.replies.push_back({entry.second.connection, entry.second.request, std::move(error)});
    return true;
  });
}

static void handle(Context& ctx, NodeId node, proto::FetchLogReply&& answer) {
  const auto it = ctx.rt.job->logs.find(answer.ticket);
  if (it == ctx.rt.job->logs.end() || it->second.node != node) {
    ++ctx.rt.stats.reports_ignored;
    return;
  }
  const LogRequest request = std::move(it->second);
  ctx.rt.job->logs.erase(it);
  if (!answer.error.empty()) {
    proto::ErrorReply error{static_cast<std::uint16_t>(ErrorCode::io_error),
                            std::move(answer.error)};
    ctx.turn.replies.push_back({request.connection, request.request, std::move(error)});
    return;
  }
  const Job* job = ctx.state.jobs.find(request.job);
  proto::LogChunk chunk;
  chunk.data = std::move(answer.data);
  if (chunk.data.size() > kMaxLogBytes) chunk.data.resize(kMaxLogBytes);
  chunk.offset = request.offset;
  chunk.job_ended = job == nullptr || job->phase == Phase::ended;
  chunk.path = request.path;
  ctx.turn.replies.push_back({request.connection, request.request, std::move(chunk)});
}

const Subject kLogMessages{.name = "log",
                           .handlers = kHandlers<proto::ReadLog, proto::FetchLogReply>};

}  // namespace gantry::core
