// ListJobs and ShowJob: reading the queue, narrowed to what the asker may see.
#include <algorithm>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "common/codec/limits.h"
#include "common/proto/job_query.h"
#include "common/proto/job_ref.h"
#include "common/proto/neighbours.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/select.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/explain.h"
#include "ctld/core/job/rows.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/neighbours/neighbours.h"
#include "ctld/core/request.h"
#include "ctld/core/state/record.h"
#include "ctld/core/state/state.h"
#include "ctld/core/state/stored_spec.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

// The model of the GPUs of a grant, which are all of one kind.
std::string gpu_model_of(const Node& node, const std::vector<GpuGrant>& grants) {
  for (const GpuDevice& gpu : node.facts.gpus.gpus)
    if (!grants.empty() && gpu.index == grants.front().gpu) return gpu.model;
  return {};
}

constexpr std::uint32_t kMaxRows = 1000;  // rows in one ListJobsReply: a few ms of the loop
constexpr std::size_t kPageBytes =
    1 << 20;  // bytes of long fields in a page; the last row may exceed it
constexpr std::size_t kMaxShown = 1000;  // jobs in one ShowJobReply

// Adds a row. Returns false when the page is full.
bool add_row(const Context& ctx, const Sight& sight, const Job& job, std::uint32_t limit,
             std::size_t& bytes, proto::ListJobsReply& reply) {
  if (!has_row(job)) return true;
  if (reply.rows.size() >= limit || bytes >= kPageBytes) {
    reply.more = true;
    return false;
  }
  proto::JobRow& row = reply.rows.emplace_back(live_row(ctx, job));
  row.verdict = sight.verdict(std::move(row.verdict));
  bytes += row.array_tasks.size() + row.node_list.size();
  reply.next = job.id;
  return true;
}

// The size of the script; 0 if the job was stored before sizes were counted.
std::size_t script_bytes(const State& state, const Job& job) {
  const auto head = codec::decode<SpecHead>(spec_bytes(state, job));
  GANTRY_ASSERT(head.has_value(), "a spec that was read once");
  return head->script_bytes;
}

proto::JobDetail detail_of(const Context& ctx, const Sight& sight, const Job& job, BlobRefs& blobs,
                           bool with_script) {
  auto stored = codec::decode<StoredSpec>(spec_bytes(ctx.state, job));
  GANTRY_ASSERT(stored.has_value(), "a spec that was read once");
  proto::JobDetail detail;
  detail.row = live_row(ctx, job);
  detail.row.verdict = sight.verdict(std::move(detail.row.verdict));
  detail.spec = std::move(stored->spec);
  detail.spec.name = detail.row.name;
  detail.spec.partition = detail.row.partition;
  detail.spec.account = detail.row.account;
  detail.spec.reservation = detail.row.reservation;
  detail.spec.shape = class_of(ctx.state, job).shape;
  detail.spec.requeue = job.may_requeue;
  detail.spec.nice = job.nice;
  detail.spec.priority = job.priority;
  detail.spec.time_limit = detail.row.time_limit;
  detail.spec.unlimited_time = !detail.row.time_limit;
  detail.spec.hold = job.hold != Hold::none;
  if (job.comment) detail.spec.comment = *job.comment;
  if (job.not_before && job.phase == Phase::queued) detail.spec.begin = job.not_before;
  if (job.is_array()) detail.spec.array->max_running = job.tasks->max_running;
  detail.owner = std::move(stored->owner);
  detail.cause = job.cause;
  detail.attempt = job.attempt.value();
  detail.preemptions = job.preemptions;
  if (job.active) {
    detail.usage = job.active->usage;
    detail.checkpoint = job.active->checkpoint;
    detail.suspended_since = job.active->suspended;
    for (const StepState& step : job.active->steps)
      if (step.ended && std::pair(step.exit.code, step.exit.signal) >
                            std::pair(detail.worst_step.code, detail.worst_step.signal))
        detail.worst_step = step.exit;
    for (const NodeRun& run : job.active->nodes) {
      if (run.given_back) continue;
      const Node& node = ctx.state.node(run.grant.node);
      detail.placement.push_back({node.name, run.grant.cpus, run.grant.memory, run.grant.scratch,
                                  run.grant.tasks, run.grant.devices, run.grant.gres});
      detail.gpu_models.push_back(gpu_model_of(node, run.grant.devices));
    }
  }
  if (job.notes) {
    detail.worst_step = job.notes->derived_exit.value_or(detail.worst_step);
    detail.admin_comment = job.notes->admin_comment;
    detail.system_comment = job.notes->system_comment;
  }
  if (job.dependencies && job.phase == Phase::queued)
    for (const DependencyState& d : job.dependencies->list)
      if (d.status != DependencyStatus::met)
        detail.waits_for.push_back({d.what, d.status == DependencyStatus::never});
  if (with_script && stored->script_digest.size() == sizeof(store::Digest)) {
    blobs.script.emplace();
    std::copy(stored->script_digest.begin(), stored->script_digest.end(), blobs.script->begin());
  }
  detail.why = why(ctx, job, &sight);
  for (const proto::NeighbourEvent& e : neighbour_events(ctx, job, [&](const Job& other) {
         return sight.jobs().may(May::see, ctx.state, other);
       }))
    if (!e.ended) detail.why.push_back(fmt::format("on {} {}", e.node, e.text));
  return detail;
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::ListJobs&& message) {
  const auto match = JobMatch::make(ctx.state, message.filter);
  if (!match) return refuse(ctx, from, match.error());
  const std::uint32_t limit = message.limit == 0 ? kMaxRows : std::min(message.limit, kMaxRows);
  const Sight sight(ctx.state, from.who);
  proto::ListJobsReply reply;
  reply.now = ctx.now;
  reply.currency = ctx.state.ledger.prices.currency;
  std::size_t bytes = 0;
  if (message.filter.jobs.empty()) {
    walk_jobs(ctx.state, from.who, *match, message.after,
              [&](const Job& job) { return add_row(ctx, sight, job, limit, bytes, reply); });
  } else {
    for (const Selected& s : resolve(ctx.state, from.who, message.filter.jobs, reply.unknown)) {
      const Job& job = ctx.state.jobs.at(s.job);
      if (job.id <= message.after || !(*match)(ctx.state, job)) continue;
      if (!add_row(ctx, sight, job, limit, bytes, reply)) break;
    }
  }
  ctx.reply(from, std::move(reply));
}

static void handle(Context& ctx, const ClientRequest& from, proto::ShowJob&& message) {
  std::vector<proto::JobRef> unknown;
  const Sight sight(ctx.state, from.who);
  proto::ShowJobReply reply;
  reply.now = ctx.now;
  std::vector<BlobRefs> blobs;
  std::size_t bytes = 0;  // each task of an array has its spec and its script in the reply
  for (const Selected& s : resolve(ctx.state, from.who, {message.job}, unknown)) {
    const Job& job = ctx.state.jobs.at(s.job);
    if (!has_row(job)) continue;
    if (reply.jobs.size() >= kMaxShown) break;
    const bool script = message.with_script && may(May::read, ctx.state, from.who, job);
    bytes += spec_bytes(ctx.state, job).size() + (script ? script_bytes(ctx.state, job) : 0);
    if (bytes > codec::kMaxMessageBytes)
      return refuse(ctx, from,
                    {ErrorCode::limit_exceeded,
                     fmt::format("job {} with all its tasks is more than a message may hold ({} "
                                 "MiB): name one task, or ask without the script",
                                 message.job.job.value(), codec::kMaxMessageBytes >> 20)});
    reply.jobs.push_back(detail_of(ctx, sight, job, blobs.emplace_back(), script));
  }
  if (!unknown.empty())
    return refuse(
        ctx, from,
        {ErrorCode::not_found, fmt::format("there is no job {}", message.job.job.value())});
  ctx.reply(from, std::move(reply));
  ctx.turn.replies.back().blobs = std::move(blobs);
}

const Subject kListMessages{.name = "list", .handlers = kHandlers<proto::ListJobs, proto::ShowJob>};

}  // namespace gantry::core
