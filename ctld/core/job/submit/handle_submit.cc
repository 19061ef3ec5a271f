// SubmitJob: a job, or an array as one record. The answer leaves after the commit of its event, its
// spec, and its script and environment as far as they are new. A retry with the same request id
// gets the first answer again. SubmitTogether: the components of a heterogeneous job, all or none.
#include <set>
#include <span>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "common/proto/job_submit.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"
#include "config/config.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/submit/blobs.h"
#include "ctld/core/job/submit/dependency.h"
#include "ctld/core/job/submit/queue_list.h"
#include "ctld/core/job/submit/subject.h"
#include "ctld/core/job/submit/submit.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/money/budget_gate.h"
#include "ctld/core/money/estimate.h"
#include "ctld/core/request.h"
#include "ctld/core/resources/forecast.h"
#include "ctld/core/resources/licenses.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/record.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/turn_out.h"
#include "ctld/store/store.h"

namespace gantry::core {
namespace {

// The job that an earlier request with this id made, if it is still known.
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

// Stores the contents, unless a job in the store has the same contents. Uses are not counted within
// one turn, so the batch may hold the same blob twice; the store keeps one.
Bytes store_blob(Context& ctx, Bytes contents, std::uint32_t& bytes) {
  const store::Digest digest = digest_of(contents);
  bytes = static_cast<std::uint32_t>(contents.size());
  if (!ctx.state.blobs.known(digest))
    ctx.turn.append.blobs.emplace_back(digest, std::move(contents));
  return bytes_of(digest);
}

Hold hold_at_submit(const Identity& who, const JobSpec& spec) {
  if (spec.priority == 0u && is_admin(who)) return Hold::admin;
  return spec.hold || spec.priority == 0u ? Hold::user : Hold::none;
}

std::uint32_t cores_of(const JobSpec& spec) {
  return static_cast<std::uint32_t>(spec.shape.least_cores());
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

void warn_of_mail(const Context& ctx, const JobSpec& spec, proto::SubmitReply& reply) {
  std::string warning = mail_warning(ctx, spec);
  if (!warning.empty()) reply.warnings.push_back(std::move(warning));
}

// Of several partitions that a submit names, the job goes to the first in which it can start now,
// else to the one in which it would start the earliest by the limits of running jobs. Partitions
// that do not accept such a job are left out if another accepts it. Returns the partitions of its
// tenant that accept it, if they are several: the job moves among them while it waits.
Result<std::vector<PartitionId>> choose_partition(Context& ctx, const Identity& who,
                                                  proto::SubmitJob& submit,
                                                  std::span<const Resolved> beside = {}) {
  if (submit.spec.partition.find(',') == std::string::npos) return {};
  ASSIGN(names, names_of_list(submit.spec.partition, "partitions"));
  std::vector<PartitionId> taking;
  std::optional<PartitionId> goes_to;
  std::optional<Error> first;
  std::optional<std::pair<bool, Instant>> earliest;  // unknown start, start
  std::string chosen;
  for (const std::string& name : *names) {
    proto::SubmitJob trial = submit;
    trial.spec.partition = name;
    trial.test_only = true;
    const auto resolved = validate(ctx, who, trial, beside);
    if (!resolved) {
      if (resolved.error().code == ErrorCode::not_found) return tl::unexpected(resolved.error());
      if (!first) first = resolved.error();
      continue;
    }
    taking.push_back(resolved->partition);
    const Partition& partition = ctx.state.partition(resolved->partition);
    const auto found = partition.up() ? forecast(ctx, partition, trial.spec.shape) : std::nullopt;
    const std::pair at{!found, found ? found->start : Instant{}};
    if (earliest && *earliest <= at) continue;
    earliest = at;
    chosen = name;
    goes_to = resolved->partition;
  }
  if (!earliest) return tl::unexpected(*first);
  submit.spec.partition = chosen;
  return queues_beside(ctx.state, *goes_to, taking);
}

// A submit may name several reservations. The job goes to the one in which it could start the
// earliest by the limits of running jobs, the first of equal ones. Reservations that cannot hold
// such a job are left out if another can. Returns those that can, if they are several: the job
// moves among them while it waits.
Result<std::vector<std::string>> choose_window(Context& ctx, const Identity& who,
                                               proto::SubmitJob& submit) {
  if (submit.spec.reservation.find(',') == std::string::npos) return {};
  ASSIGN(names, names_of_list(submit.spec.reservation, "reservations"));
  std::vector<std::string> taking;
  std::optional<Error> first;
  std::optional<std::pair<bool, Instant>> earliest;  // unknown start, start
  for (const std::string& name : *names) {
    proto::SubmitJob trial = submit;
    trial.spec.reservation = name;
    trial.test_only = true;
    const auto queues = choose_partition(ctx, who, trial);
    const auto resolved =
        queues ? validate(ctx, who, trial) : Result<Resolved>(tl::unexpected(queues.error()));
    if (!resolved) {
      if (resolved.error().code == ErrorCode::not_found) return tl::unexpected(resolved.error());
      if (!first) first = resolved.error();
      continue;
    }
    taking.push_back(name);
    const auto start = start_within(ctx, ctx.state.partition(resolved->partition), trial.spec.shape,
                                    resolved->time_limit, ctx.state.tenancy.reservations.at(name));
    const std::pair at{!start, start.value_or(Instant{})};
    if (earliest && *earliest <= at) continue;
    earliest = at;
    submit.spec.reservation = name;
  }
  if (!earliest) return tl::unexpected(*first);
  if (taking.size() < 2) taking.clear();
  return taking;
}

// Answers a --test-only submit from a forecast, because no plan exists for it.
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

// Turns a checked submit into a job and returns its id.
JobId make_job(Context& ctx, const Identity& who, proto::SubmitJob&& submit,
               const Resolved& resolved, DependencyStart&& dependencies,
               std::vector<PartitionId> queues, std::vector<std::string> windows) {
  const Partition& partition = ctx.state.partition(resolved.partition);
  StoredSpec stored{std::move(submit.spec), who.owner, {}, {}, std::move(submit.request_id)};
  if (!submit.script.empty())
    stored.script_digest = store_blob(ctx, std::move(submit.script), stored.script_bytes);
  if (!submit.environment.empty())
    stored.environment_digest =
        store_blob(ctx, codec::encode(EnvironmentBlob{std::move(submit.environment)}),
                   stored.environment_bytes);

  event::JobSubmitted made;
  made.job = JobId(ctx.state.last_job.value() + 1);
  made.partition = resolved.partition;
  made.time_limit = resolved.time_limit;
  made.queues = std::move(queues);
  made.windows = std::move(windows);
  made.hold = hold_at_submit(who, stored.spec);
  made.dependencies = std::move(dependencies.statuses);
  made.not_before = dependencies.not_before;
  if (stored.spec.begin && *stored.spec.begin > ctx.now)
    made.not_before = std::max(*stored.spec.begin, made.not_before.value_or(*stored.spec.begin));
  if (const CompiledTenant* tenant = tenant_of(ctx.state, partition))
    for (const tenancy::TenantClass& c : tenant->effective.classes)
      if (c.name == stored.spec.tenant_class) made.class_priority = c.value;
  made.corr_met = dependencies.corr_met.spans();
  made.corr_never = dependencies.corr_never.spans();
  const JobId id = made.job;

  Bytes spec = codec::encode(stored);
  ctx.record(made, std::move(spec));
  ++ctx.rt.stats.submits;
  return id;
}

Result<void> queue_has_room(const Context& ctx, std::size_t more) {
  const std::uint64_t most = ctx.config.controller.max_jobs;
  if (ctx.state.counters.unended + more <= most) return {};
  return fail(ErrorCode::limit_exceeded,
              fmt::format("the queue holds {} jobs, {}the most that controller.max_jobs allows",
                          ctx.state.counters.unended,
                          more == 1 ? "" : fmt::format("{} more are over {}, ", more, most)));
}

// Bytes of scripts and environments that the user has not stored already.
std::uint64_t new_bytes(const State& state, Uid user, std::span<const proto::SubmitJob> parts) {
  std::uint64_t bytes = 0;
  const auto add = [&](const Bytes& blob) {
    if (!blob.empty() && !state.blobs.used_by(digest_of(blob), user)) bytes += blob.size();
  };
  for (const proto::SubmitJob& part : parts) {
    add(part.script);
    if (!part.environment.empty()) add(codec::encode(EnvironmentBlob{part.environment}));
  }
  return bytes;
}

// Limits what one user may have in the queue and in the store, whatever the tenants allow. The new
// specs are counted only once they are stored; their size is limited elsewhere.
Result<void> user_has_room(const Context& ctx, const Identity& who,
                           std::span<const proto::SubmitJob> parts) {
  if (is_operator(ctx.state, who)) return {};
  std::uint64_t jobs = 0, bytes = 0;
  for (const proto::SubmitJob& part : parts) {
    jobs += part.spec.array ? ArrayIndexes(part.spec.array->ranges).count() : 1;
    bytes += part.script.size();
    for (const auto& [name, value] : part.environment) bytes += name.size() + value.size() + 16;
  }
  const ControllerConfig& most = ctx.config.controller;
  const auto it = ctx.state.users.find(who.owner.uid);
  const UserJobs none;
  const UserJobs& has = it == ctx.state.users.end() ? none : it->second;
  if (has.unended + jobs > most.max_user_jobs)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("{} would have {} jobs queued and active, array tasks one by one; "
                            "controller.max_user_jobs allows {}",
                            who.owner.user, has.unended + jobs, most.max_user_jobs));
  const auto room = static_cast<std::uint64_t>(most.max_user_bytes);
  if (has.stored + bytes <= room) return {};
  bytes = new_bytes(ctx.state, who.owner.uid, parts);
  if (has.stored + bytes <= room) return {};
  return fail(ErrorCode::limit_exceeded,
              fmt::format("{} would have {} of scripts, environments and requests stored; "
                          "controller.max_user_bytes allows {}",
                          who.owner.user,
                          format_memory_rounded(static_cast<std::int64_t>(has.stored + bytes)),
                          format_memory_rounded(most.max_user_bytes)));
}

// Refuses options that no component may use, in any partition.
Result<void> check_parts(const std::vector<proto::SubmitJob>& parts) {
  const auto unsupported = [](std::string what) {
    return fail(ErrorCode::unsupported, fmt::format("{} of a heterogeneous job", what));
  };
  if (parts.size() < 2 || parts.size() > kMaxHetParts)
    return fail(ErrorCode::invalid_argument,
                fmt::format("a heterogeneous job has 2 to {} components, not {}", kMaxHetParts,
                            parts.size()));
  for (const proto::SubmitJob& part : parts) {
    const bool first = &part == &parts[0];
    if (part.test_only) return unsupported("a test of the start (--test-only)");
    if (part.spec.array) return unsupported("an array");
    if (part.spec.reservation.find(',') != std::string::npos)
      return unsupported("a list of reservations");
    if (!part.spec.shape.gpu_slice.empty()) return unsupported("a slice of a GPU in a component");
    if (!first && part.spec.kind != JobKind::allocation)
      return unsupported("a script for other than the first component");
    if (!first && !part.spec.shape.licenses.empty())
      return unsupported("licences for other than the first component");
    if (!first && !part.spec.dependencies.empty())
      return unsupported("a dependency of other than the first component");
  }
  return {};
}

// Components never share a node, so there must be enough nodes. Whether anything else separates
// them, only a plan can find out.
Result<void> enough_nodes(const Context& ctx, const std::vector<proto::SubmitJob>& parts,
                          const std::vector<Resolved>& resolved) {
  std::set<NodeId> nodes;
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& all = ctx.state.partition(resolved[i].partition).nodes;
    nodes.insert(all.begin(), all.end());
    wanted += std::max(1u, parts[i].spec.shape.min_nodes);
  }
  if (wanted <= nodes.size()) return {};
  return fail(ErrorCode::never_fits,
              fmt::format("the components ask for {} nodes together, their partitions have {}",
                          wanted, nodes.size()));
}

}  // namespace

namespace {

// A submit that passed all checks; only the job has to be made.
struct Checked {
  Resolved resolved;
  DependencyStart dependencies;
  std::vector<PartitionId> queues;
  std::vector<std::string> windows;
  proto::SubmitReply reply;
};

Result<Checked> check_submit(Context& ctx, const Identity& who, proto::SubmitJob& submit) {
  Checked out;
  TRY(queue_has_room(ctx, 1));
  ASSIGN(windows, choose_window(ctx, who, submit));
  out.windows = std::move(*windows);
  ASSIGN(queues, choose_partition(ctx, who, submit));
  out.queues = std::move(*queues);
  ASSIGN(resolved, validate(ctx, who, submit));
  out.resolved = *resolved;
  if (!submit.test_only) TRY(user_has_room(ctx, who, {&submit, 1}));
  ASSIGN(dependencies, resolve_dependencies(ctx, who, submit.spec));
  out.dependencies = std::move(*dependencies);

  proto::SubmitReply& reply = out.reply;
  reply.partition = submit.spec.partition;
  const Partition& partition = ctx.state.partition(resolved->partition);
  if (!partition.up())
    reply.warnings.push_back(fmt::format("partition {} is down: the job waits", partition.name));
  warn_of_mail(ctx, submit.spec, reply);
  reply.warnings.insert(reply.warnings.end(), resolved->warnings.begin(), resolved->warnings.end());
  TRY(check_budgets(ctx, partition, submit.spec, who.owner.user, resolved->time_limit));
  return out;
}

proto::SubmitReply make_checked(Context& ctx, const Identity& who, proto::SubmitJob&& submit,
                                Checked&& checked) {
  put_cost(ctx, who, ctx.state.partition(checked.resolved.partition), submit.spec,
           checked.resolved.time_limit, nullptr, checked.reply);
  checked.reply.job =
      make_job(ctx, who, std::move(submit), checked.resolved, std::move(checked.dependencies),
               std::move(checked.queues), std::move(checked.windows));
  return std::move(checked.reply);
}

// Only the controller makes replicas. A job that called itself one would get requests meant for
// another.
Result<void> is_no_replica(const proto::SubmitJob& submit) {
  if (!submit.spec.replica) return {};
  return fail(ErrorCode::permission_denied,
              "a job cannot say that it is a replica of a service; apply a Service document");
}

}  // namespace

Result<proto::SubmitReply> submit_job(Context& ctx, const Identity& who,
                                      proto::SubmitJob&& submit) {
  ASSIGN(checked, check_submit(ctx, who, submit));
  return make_checked(ctx, who, std::move(submit), std::move(*checked));
}

static void handle(Context& ctx, const ClientRequest& from, proto::SubmitJob&& submit) {
  if (!submit.test_only) {
    if (const Job* first = made_before(ctx, from.who, submit.request_id)) {
      proto::SubmitReply reply;
      reply.job = first->id;
      reply.partition = ctx.state.partition(class_of(ctx.state, *first).partition).name;
      return ctx.reply(from, std::move(reply));
    }
  }
  if (auto r = is_no_replica(submit); !r) return refuse(ctx, from, r.error());
  auto checked = check_submit(ctx, from.who, submit);
  if (!checked) return refuse(ctx, from, checked.error());
  if (submit.test_only)
    return test_only(ctx, from, ctx.state.partition(checked->resolved.partition), submit.spec,
                     checked->resolved.time_limit, std::move(checked->reply));
  ctx.reply(from, make_checked(ctx, from.who, std::move(submit), std::move(*checked)));
}

static void handle(Context& ctx, const ClientRequest& from, proto::SubmitTogether&& message) {
  std::vector<proto::SubmitJob>& parts = message.parts;
  if (auto r = check_parts(parts); !r) return refuse(ctx, from, r.error());
  proto::SubmitReply reply;
  if (const Job* first = made_before(ctx, from.who, parts[0].request_id)) {
    reply.job = first->id;
    reply.partition = ctx.state.partition(class_of(ctx.state, *first).partition).name;
    return ctx.reply(from, std::move(reply));
  }
  if (auto r = queue_has_room(ctx, parts.size()); !r) return refuse(ctx, from, r.error());
  const auto refuse_part = [&](std::size_t at, Error error) {
    error.message = fmt::format("component {}: {}", at, error.message);
    refuse(ctx, from, error);
  };
  std::vector<Resolved> resolved;
  std::vector<DependencyStart> dependencies;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (auto r = is_no_replica(parts[i]); !r) return refuse_part(i, r.error());
    JobSpec& spec = parts[i].spec;
    if (auto r = choose_partition(ctx, from.who, parts[i], resolved); !r)
      return refuse_part(i, r.error());
    const auto one = validate(ctx, from.who, parts[i], resolved);
    if (!one) return refuse_part(i, one.error());
    auto waits = resolve_dependencies(ctx, from.who, spec);
    if (!waits) return refuse_part(i, waits.error());
    const Partition& partition = ctx.state.partition(one->partition);
    if (auto r = check_budgets(ctx, partition, spec, from.who.owner.user, one->time_limit); !r)
      return refuse_part(i, r.error());
    if (!partition.up())
      reply.warnings.push_back(fmt::format("partition {} is down: the job waits", partition.name));
    if (i == 0) warn_of_mail(ctx, spec, reply);
    resolved.push_back(*one);
    dependencies.push_back(std::move(*waits));
  }
  if (auto r = user_has_room(ctx, from.who, parts); !r) return refuse(ctx, from, r.error());
  if (auto r = enough_nodes(ctx, parts, resolved); !r) return refuse(ctx, from, r.error());
  reply.partition = parts[0].spec.partition;
  reply.job = JobId(ctx.state.last_job.value() + 1);
  const bool requeue = parts[0].spec.requeue && parts[0].spec.kind == JobKind::batch;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].spec.het =
        HetPart{reply.job, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(parts.size())};
    parts[i].spec.requeue = requeue;
    const JobId id = make_job(ctx, from.who, std::move(parts[i]), resolved[i],
                              std::move(dependencies[i]), {}, {});
    GANTRY_ASSERT(id.value() == reply.job.value() + i, "ids follow each other");
  }
  ctx.reply(from, std::move(reply));
}

const Subject kSubmitMessages{.name = "submit",
                              .handlers = kHandlers<proto::SubmitJob, proto::SubmitTogether>};

}  // namespace gantry::core
