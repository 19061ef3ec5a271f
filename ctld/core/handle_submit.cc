// SubmitJob: a job, or an array as one record. The answer leaves after the commit of its event, its
// spec and what is new of its script and environment. A retry with the same request id gets the
// first one's answer.
#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/hostlist.h"
#include "ctld/core/authorise.h"
#include "ctld/core/blobs.h"
#include "ctld/core/budget_gate.h"
#include "ctld/core/dependency.h"
#include "ctld/core/estimate.h"
#include "ctld/core/forecast.h"
#include "ctld/core/handlers.h"
#include "ctld/core/licenses.h"
#include "ctld/core/record.h"
#include "ctld/core/validate.h"

namespace gantry::core {
namespace {

// The job that this request made before, if it is still known.
const Job* made_before(const Context& ctx, const Identity& who, const std::string& request_id) {
  if (request_id.empty()) return nullptr;
  const auto it = ctx.state.requests.find(request_key(who.owner.uid, request_id));
  if (it == ctx.state.requests.end()) return nullptr;
  const Job* job = ctx.state.jobs.find(it->second);
  if (job == nullptr || job->uid != who.owner.uid) return nullptr;
  const auto head = codec::decode<SpecHead>(job->spec);
  return head && head->request_id == request_id ? job : nullptr;
}

Bytes bytes_of(const store::Digest& digest) {
  return Bytes(digest.begin(), digest.end());
}

// Stores the contents unless some job has them already. Within one turn nothing is counted yet, so
// the batch may hold the same blob twice; the store keeps one.
Bytes store_blob(Context& ctx, Bytes contents) {
  const store::Digest digest = digest_of(contents);
  if (!ctx.state.blobs.known(digest))
    ctx.turn.append.blobs.emplace_back(digest, std::move(contents));
  return bytes_of(digest);
}

Hold hold_at_submit(const Identity& who, const JobSpec& spec) {
  if (spec.priority == 0u && is_admin(who)) return Hold::admin;
  return spec.hold || spec.priority == 0u ? Hold::user : Hold::none;
}

std::uint32_t cores_of(const JobSpec& spec) {
  return std::max(spec.shape.tasks, spec.shape.min_nodes) * spec.shape.cpus_per_task;
}

void put_cost(const Context& ctx, const Identity& who, const Partition& partition,
              const JobSpec& spec, std::optional<Duration> limit, const Forecast* where,
              proto::SubmitReply& reply) {
  const auto cost = estimate_cost(ctx, partition, spec, limit, where);
  if (!cost) return;
  reply.currency = ctx.state.ledger.prices.currency;
  reply.cost_per_hour = cost->per_hour;
  reply.cost_expected = cost->expected;
  reply.cost_most = cost->most;
  warn_of_budgets(ctx, partition, spec, who.owner.user, *cost, reply.warnings);
}

// What can be said without a plan.
void test_only(Context& ctx, const ClientRequest& from, const Partition& partition,
               const JobSpec& spec, std::optional<Duration> limit, proto::SubmitReply reply) {
  reply.cpus = cores_of(spec);
  std::optional<Forecast> found;
  if (partition.up() && spec.dependencies.empty() && licenses_free(ctx.state, spec.shape))
    found = forecast(ctx, partition, spec.shape);
  put_cost(ctx, from.who, partition, spec, limit, found ? &*found : nullptr, reply);
  if (!found) {
    reply.warnings.push_back(
        "it cannot start at once: what it needs is taken, or it has to wait for something else");
    return ctx.reply(from, std::move(reply));
  }
  std::vector<std::string> names;
  for (const NodeId id : found->nodes) names.push_back(ctx.state.node(id).name);
  reply.cpus = found->cores;
  reply.expected_start = std::max(found->start, spec.begin.value_or(found->start));
  reply.expected_nodes = compress_hostlist(names);
  const std::uint64_t waiting = ctx.state.counters.queued;
  if (waiting > 0)
    reply.warnings.push_back(fmt::format("jobs that wait already may go first: {}", waiting));
  ctx.reply(from, std::move(reply));
}

}  // namespace

void handle(Context& ctx, const ClientRequest& from, proto::SubmitJob&& submit) {
  if (!submit.test_only) {
    if (const Job* first = made_before(ctx, from.who, submit.request_id)) {
      proto::SubmitReply reply;
      reply.job = first->id;
      reply.partition = ctx.state.partition(class_of(ctx.state, *first).partition).name;
      return ctx.reply(from, std::move(reply));
    }
  }
  if (ctx.state.counters.unended >= ctx.config.controller.max_jobs)
    return refuse(ctx, from,
                  {ErrorCode::limit_exceeded,
                   fmt::format("the queue holds {} jobs, the most that controller.max_jobs allows",
                               ctx.state.counters.unended)});
  const auto resolved = validate(ctx, from.who, submit);
  if (!resolved) return refuse(ctx, from, resolved.error());
  auto dependencies = resolve_dependencies(ctx, from.who, submit.spec);
  if (!dependencies) return refuse(ctx, from, dependencies.error());

  proto::SubmitReply reply;
  reply.partition = submit.spec.partition;
  const Partition& partition = ctx.state.partition(resolved->partition);
  if (!partition.up())
    reply.warnings.push_back(fmt::format("partition {} is down: the job waits", partition.name));
  if (auto r =
          check_budgets(ctx, partition, submit.spec, from.who.owner.user, resolved->time_limit);
      !r)
    return refuse(ctx, from, r.error());
  if (submit.test_only) {
    return test_only(ctx, from, partition, submit.spec, resolved->time_limit, std::move(reply));
  }
  put_cost(ctx, from.who, partition, submit.spec, resolved->time_limit, nullptr, reply);

  StoredSpec stored{std::move(submit.spec), from.who.owner, {}, {}, std::move(submit.request_id)};
  if (!submit.script.empty()) stored.script_digest = store_blob(ctx, std::move(submit.script));
  if (!submit.environment.empty())
    stored.environment_digest =
        store_blob(ctx, codec::encode(EnvironmentBlob{std::move(submit.environment)}));

  event::JobSubmitted made;
  made.job = JobId(ctx.state.last_job.value() + 1);
  made.partition = resolved->partition;
  made.time_limit = resolved->time_limit;
  made.hold = hold_at_submit(from.who, stored.spec);
  made.dependencies = std::move(dependencies->statuses);
  made.not_before = dependencies->not_before;
  if (stored.spec.begin && *stored.spec.begin > ctx.now)
    made.not_before = std::max(*stored.spec.begin, made.not_before.value_or(*stored.spec.begin));
  if (const CompiledTenant* tenant = ctx.state.tenancy.tenant(partition.name))
    for (const tenancy::TenantClass& c : tenant->effective.classes)
      if (c.name == stored.spec.tenant_class) made.class_priority = c.value;
  made.corr_met = dependencies->corr_met.spans();
  made.corr_never = dependencies->corr_never.spans();
  reply.job = made.job;

  Bytes spec = codec::encode(stored);
  ctx.turn.append.specs.emplace_back(made.job, spec);
  ctx.state.new_specs.emplace(made.job, std::move(spec));
  ctx.record(std::move(made));
  ++ctx.rt.stats.submits;
  ctx.reply(from, std::move(reply));
}

}  // namespace gantry::core
