// UpdateJob: changes what may still change, by the rules of a submit.
#include <algorithm>

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/limits.h"
#include "common/proto/job_change.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/event/events_shrink.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/queue_choice.h"
#include "ctld/core/job/split.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/job/submit/dependency.h"
#include "ctld/core/job/submit/queue_list.h"
#include "ctld/core/job/submit/rates.h"
#include "ctld/core/job/submit/rules.h"
#include "ctld/core/job/submit/security.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/request.h"
#include "ctld/core/resize/shrink.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"
#include "ctld/core/state/stored_spec.h"
#include "ctld/core/tenancy/admission.h"
#include "ctld/core/tenancy/network.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/tenancy/reservations.h"
#include "ctld/core/tenancy/tenant_submit.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

tl::unexpected<Error> not_queued(const State& state, const Job& job, std::string_view what) {
  return fail(ErrorCode::wrong_state,
              fmt::format("job {} is {}: its {} can only change while it waits",
                          display_id(state, job), enum_name(job.phase), what));
}

Result<void> check_ranks(const Context& ctx, const Identity& who, const Job& job,
                         const proto::UpdateJob& m) {
  if (m.priority && !is_admin(who))
    return fail(ErrorCode::permission_denied, "only an administrator may set a priority");
  if (m.nice && (*m.nice < -kMaxNice || *m.nice > kMaxNice))
    return fail(ErrorCode::invalid_argument,
                fmt::format("nice must be {} to {}, not {}", -kMaxNice, kMaxNice, *m.nice));
  if (m.site_factor && !is_admin(who))
    return fail(ErrorCode::permission_denied, "only an administrator may set a site factor");
  if (m.nice && *m.nice < 0 && !is_admin(who))
    return fail(ErrorCode::permission_denied,
                "only an administrator may give a negative nice value");
  if (m.array_max_running && !job.is_array())
    return fail(ErrorCode::wrong_state, fmt::format("job {} is no array, or no task of it waits",
                                                    display_id(ctx.state, job)));
  return {};
}

// The limit of a running job may be lowered; only an administrator may raise it.
Result<void> check_limit(const Context& ctx, const Identity& who, const Job& job,
                         const Partition& partition, const proto::UpdateJob& m) {
  if (!m.time_limit) return {};
  const auto old = time_limit_of(ctx.state, job);
  if (job.phase != Phase::queued && !is_admin(who) && old && *m.time_limit > *old)
    return fail(ErrorCode::permission_denied,
                "only an administrator may raise the time limit of a job that has started");
  if (is_admin(who) && m.time_limit->us > 0 && *m.time_limit <= hours(24 * kMaxDurationDays))
    return {};
  ASSIGN(checked, check_time_limit(partition, m.time_limit, false));
  return {};
}

// True if the job stays in its tenant under the account that the request names.
bool keeps(const State& state, const QueueWish& wish) {
  const CompiledTenant* tenant = state.tenancy.tenant(wish.present);
  if (tenant == nullptr) return false;
  if (wish.account == wish.present) return true;
  const auto& projects = tenant->effective.projects;
  return std::any_of(projects.begin(), projects.end(),
                     [&](const tenancy::Project& p) { return p.name == wish.account; });
}

// The queue that the request moves the job to: another partition, another tenant, or both; null =
// it stays. The asker must be allowed to submit to it, and the job's class must be allowed there.
Result<const Partition*> queue_for(Context& ctx, const Identity& who, const Job& job,
                                   const proto::UpdateJob& m) {
  const PartitionId present = class_of(ctx.state, job).partition;
  const Partition& now = ctx.state.partition(present);
  QueueWish wish{m.partition.value_or(""), m.account.value_or(""), tenant_name_of(ctx.state, now)};
  if (m.partition && wish.partition.empty())
    return fail(ErrorCode::invalid_argument, "the partition's name is empty");
  const bool others =
      m.account && (owes_tenant(ctx.state, now) ||
                    (ctx.state.tenancy.tenant(wish.account) != nullptr && !keeps(ctx.state, wish)));
  if (!m.partition && !others) return nullptr;
  // A job moves from one tenant's own queue into the other tenant's own queue, and from one
  // tenant's queue in a partition into the other's queue in it.
  if (!m.partition && !ctx.state.tenancy.queues.contains(now.name)) wish.partition = now.name;
  auto queue = choose_queue(ctx, who, wish);
  if (!queue) return queue;
  const CompiledTenant* tenant = tenant_of(ctx.state, **queue);
  if (tenant == nullptr || is_admin(who)) return queue;
  const std::uint32_t index = class_of(ctx.state, job).priority_class;
  if (std::binary_search(tenant->allowed_classes.begin(), tenant->allowed_classes.end(), index))
    return queue;
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("job {} has the priority class {}, which tenant {} does not allow",
                  display_id(ctx.state, job),
                  ctx.state.tenancy.compiled.view->classes.at(index).name, tenant->effective.name));
}

// Checks the rules that can differ in another queue.
Result<void> check_arrival(Context& ctx, const Job& job, const Partition& queue,
                           const Identity& who, const proto::UpdateJob& m) {
  const std::string& window = m.reservation ? *m.reservation : class_of(ctx.state, job).reservation;
  if (auto r = check_open(who, queue, !window.empty()); !r) return r;
  if (auto r = check_partition_fit(ctx, queue, class_of(ctx.state, job).shape); !r) return r;
  if (auto r = check_moved(ctx, job, queue); !r) return r;
  if (auto r = check_sharing(ctx.state, queue, class_of(ctx.state, job).shape); !r) return r;
  const auto stored = codec::decode<StoredSpec>(spec_bytes(ctx.state, job));
  if (stored && stored->spec.network == NetworkMode::host)
    if (auto r = check_host_network(ctx.state, queue); !r) return r;
  if (stored)
    if (auto r = check_security(ctx.state, job.uid, queue, stored->spec); !r) return r;
  if (stored)
    if (auto r = check_rates_named(ctx.state, queue, stored->spec); !r) return r;
  if (stored && !stored->spec.network_profile.empty())
    if (auto r = check_network_profile(ctx.state, queue, stored->spec.network_profile); !r)
      return r;
  if (m.time_limit) return {};
  const auto limit = time_limit_of(ctx.state, job);
  TRY(check_time_limit(queue, limit, !limit));
  return {};
}

// The account that the request names; or, in another queue, the job's present one if it exists
// there, else the default one.
Result<std::optional<std::string>> account_for(const State& state, const Identity& who,
                                               const Job& job, const Partition& queue,
                                               const proto::UpdateJob& m) {
  if (!m.account && !m.partition) return std::optional<std::string>();
  const std::string now(state.names.text(job.account));
  if (m.account) TRY(check_text("the account", *m.account, kMaxAccountBytes));
  const CompiledTenant* tenant = tenant_of(state, queue);
  if (tenant == nullptr) return m.account;
  const Payer payer =
      payer_of(state, who, std::string(state.names.text(job.user)), tenant->effective.name);
  auto project = project_of(payer, tenant->effective, m.account.value_or(now));
  if (!project && !m.account) project = project_of(payer, tenant->effective, "");
  if (!project) return tl::unexpected(project.error());
  return *project == now ? std::optional<std::string>() : std::optional(std::move(*project));
}

// Checks the lists of the partition, for the account that the job gets.
Result<void> check_lists(const State& state, const Identity& who, const Job& job,
                         const Partition& queue, const std::optional<std::string>& account) {
  const auto& classes = state.tenancy.class_names;
  const std::uint32_t index = class_of(state, job).priority_class;
  return check_admission(state, who, queue,
                         {account.value_or(std::string(state.names.text(job.account))),
                          index < classes.size() ? classes[index] : std::string()});
}

// Checks a new reservation, or the present one for another queue.
Result<void> check_window(const Context& ctx, const Identity& who, const Job& job,
                          const Partition& queue, const proto::UpdateJob& m) {
  const sched::ClassKey& key = class_of(ctx.state, job);
  const std::string& name = m.reservation ? *m.reservation : key.reservation;
  if (name.empty() || !(m.reservation || queue.id != key.partition)) return {};
  return check_reservation(ctx, who, queue, key.shape, m.time_limit ? m.time_limit : key.time_limit,
                           name);
}

// The shape with the changes that are asked for, checked by the rules of a submit.
Result<JobShape> reshaped(Context& ctx, const Identity& who, const Job& job,
                          const Partition& partition, const proto::UpdateJob& m) {
  const sched::ClassKey& key = class_of(ctx.state, job);
  if (key.het)
    return fail(ErrorCode::wrong_state,
                fmt::format("job {} is a component: what it asks for cannot change",
                            display_id(ctx.state, job)));
  const proto::Reshape& change = *m.reshape;
  JobShape shape = key.shape;
  const auto set = [](const auto& from, auto& to) {
    if (from) to = *from;
  };
  set(change.min_nodes, shape.min_nodes);
  set(change.max_nodes, shape.max_nodes);
  set(change.tasks, shape.tasks);
  set(change.cpus_per_task, shape.cpus_per_task);
  if (change.memory_per_node || change.memory_per_cpu) shape.memory_per_gpu = 0;
  if (change.memory_per_node) shape.memory_per_cpu.reset();
  if (change.memory_per_cpu) shape.memory_per_node.reset();
  if (change.memory_per_node) shape.memory_per_node = change.memory_per_node;
  if (change.memory_per_cpu) shape.memory_per_cpu = change.memory_per_cpu;
  set(change.constraint, shape.constraint);
  set(change.required_nodes, shape.required_nodes);
  set(change.excluded_nodes, shape.excluded_nodes);
  if (shape.gpus_in_all > 0 &&
      (shape.min_nodes != key.shape.min_nodes || shape.max_nodes != key.shape.max_nodes))
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("job {} has {} GPUs that are dealt to {} nodes: the number of nodes cannot "
                    "change",
                    display_id(ctx.state, job), shape.gpus_in_all, key.shape.min_nodes));
  if (shape.gpus_per_task > 0 && shape.tasks != key.shape.tasks)
    return fail(ErrorCode::invalid_argument,
                fmt::format("job {} has {} GPUs, by its tasks: the number of tasks cannot change",
                            display_id(ctx.state, job), shape.gpus_in_all));
  if (shape.tasks < shape.min_nodes) {  // each node needs a task
    if (change.tasks) return fail(ErrorCode::invalid_argument, "there are fewer tasks than nodes");
    shape.tasks = shape.min_nodes;
  }
  shape.max_nodes = std::max(shape.min_nodes, std::min(shape.max_nodes, shape.tasks));
  TRY(check_new_shape(ctx, partition, shape));
  TRY(check_reshaped(ctx, partition, shape));
  const std::string& window = m.reservation ? *m.reservation : key.reservation;
  if (!window.empty())
    TRY(check_reservation(ctx, who, partition, shape, m.time_limit ? m.time_limit : key.time_limit,
                          window));
  return shape;
}

Result<event::JobUpdated> changes(Context& ctx, const Identity& who, const Job& job,
                                  const proto::UpdateJob& m);

Result<void> check_update_texts(const proto::UpdateJob& m) {
  if (m.name)
    if (auto r = check_text("the job name", *m.name, kMaxNameBytes); !r) return r;
  if (m.name && m.name->empty())
    return fail(ErrorCode::invalid_argument, "a job name is not empty");
  if (m.comment) return check_text("the comment", *m.comment, kMaxCommentBytes);
  return {};
}

// With several partitions the job goes to the first that accepts it, and moves among them by itself
// later.
Result<event::JobUpdated> changes_of_list(Context& ctx, const Identity& who, const Job& job,
                                          const proto::UpdateJob& m) {
  ASSIGN(names, names_of_list(*m.partition, "partitions"));
  std::optional<Error> refused;
  std::optional<event::JobUpdated> first;
  std::vector<PartitionId> taking;
  for (const std::string& name : *names) {
    proto::UpdateJob one = m;
    one.partition = name;
    auto e = changes(ctx, who, job, one);
    if (!e && e.error().code == ErrorCode::not_found) return e;
    if (!e) {
      if (!refused) refused = e.error();
    } else {
      taking.push_back(*e->partition);
      if (!first) first = std::move(*e);
    }
  }
  if (!first) return tl::unexpected(*refused);
  first->queues = queues_beside(ctx.state, *first->partition, taking);
  return *first;
}

// With several reservations the job goes to the first that accepts it, and moves among them by
// itself later.
Result<event::JobUpdated> changes_of_windows(Context& ctx, const Identity& who, const Job& job,
                                             const proto::UpdateJob& m) {
  ASSIGN(names, names_of_list(*m.reservation, "reservations"));
  std::optional<Error> refused;
  std::optional<event::JobUpdated> first;
  std::vector<std::string> taking;
  for (const std::string& name : *names) {
    proto::UpdateJob one = m;
    one.reservation = name;
    auto e = changes(ctx, who, job, one);
    if (!e && e.error().code == ErrorCode::not_found) return e;
    if (!e) {
      if (!refused) refused = e.error();
    } else {
      taking.push_back(name);
      if (!first) first = std::move(*e);
    }
  }
  if (!first) return tl::unexpected(*refused);
  if (taking.size() > 1) first->windows = std::move(taking);
  return *first;
}

Result<event::JobUpdated> changes(Context& ctx, const Identity& who, const Job& job,
                                  const proto::UpdateJob& m) {
  TRY(may_go_on(ctx.state, who, job));
  const bool queued = job.phase == Phase::queued;
  event::JobUpdated e;
  e.job = job.id;
  const Partition* partition = nullptr;
  if (m.partition && m.partition->find(',') != std::string::npos)
    return changes_of_list(ctx, who, job, m);
  if (m.reservation && m.reservation->find(',') != std::string::npos)
    return changes_of_windows(ctx, who, job, m);
  if ((m.partition || m.account) && !queued)
    return not_queued(ctx.state, job, m.partition ? "partition" : "account");
  ASSIGN(queue, queue_for(ctx, who, job, m));
  if (*queue != nullptr) {
    partition = *queue;
    TRY(check_arrival(ctx, job, *partition, who, m));
    e.partition = partition->id;
    if (job.queues) e.queues.emplace();
  } else {
    partition = &ctx.state.partition(class_of(ctx.state, job).partition);
  }
  if (partition->declared == nullptr)
    return fail(ErrorCode::wrong_state,
                fmt::format("partition {} is no longer configured: move the job "
                            "to another one first",
                            partition->name));
  TRY(check_ranks(ctx, who, job, m));
  TRY(check_limit(ctx, who, job, *partition, m));
  TRY(check_update_texts(m));
  TRY(check_instant(ctx, "the begin time", m.begin));
  if (m.begin && !queued) return not_queued(ctx.state, job, "begin time");
  if (m.priority == 0u && !queued)
    return fail(
        ErrorCode::wrong_state,
        fmt::format("job {} is {}: priority 0 holds a job, and only one that waits can be held",
                    display_id(ctx.state, job), enum_name(job.phase)));
  if (m.reservation && !queued) return not_queued(ctx.state, job, "reservation");
  ASSIGN(account, account_for(ctx.state, who, job, *partition, m));
  if (e.partition || *account) TRY(check_lists(ctx.state, who, job, *partition, *account));
  TRY(check_window(ctx, who, job, *partition, m));
  if (m.reshape) {
    if (!queued) return not_queued(ctx.state, job, "size");
    ASSIGN(shape, reshaped(ctx, who, job, *partition, m));
    e.shape = std::move(*shape);
  }
  if (m.requeue && !queued) return not_queued(ctx.state, job, "requeue setting");
  e.requeue = m.requeue;
  e.account = std::move(*account);
  e.reservation = m.reservation;
  if (m.reservation && job.windows) e.windows.emplace();
  e.time_limit = m.time_limit;
  e.nice = m.nice;
  e.site_factor = m.site_factor;
  e.priority = m.priority;
  e.name = m.name;
  e.comment = m.comment;
  e.begin = m.begin;
  e.max_running = m.array_max_running;
  TRY(rules_allow(ctx, who, job, e));
  return e;
}

}  // namespace

namespace {

// The owner of the job, as its spec has it.
Result<Identity> owner_of(const State& state, const Job& job) {
  ASSIGN(stored, codec::decode<StoredSpec>(spec_bytes(state, job)));
  Identity who;
  who.owner = stored->owner;
  return who;
}

}  // namespace

Result<event::JobUpdated> move_within(Context& ctx, const Job& job, const Partition& queue) {
  ASSIGN(who, owner_of(ctx.state, job));
  event::JobUpdated e;
  e.job = job.id;
  e.partition = queue.id;
  TRY(check_arrival(ctx, job, queue, *who, {}));
  TRY(check_window(ctx, *who, job, queue, {}));
  const auto& classes = ctx.state.tenancy.class_names;
  const std::uint32_t index = class_of(ctx.state, job).priority_class;
  TRY(check_partition_lists(ctx.state, *who, queue,
                            {std::string(ctx.state.names.text(job.account)),
                             index < classes.size() ? classes[index] : std::string()}));
  TRY(rules_allow(ctx, *who, job, e));
  return e;
}

Result<event::JobUpdated> move_to_window(Context& ctx, const Job& job, const std::string& name) {
  ASSIGN(who, owner_of(ctx.state, job));
  proto::UpdateJob m;
  m.reservation = name;
  const Partition& queue = ctx.state.partition(class_of(ctx.state, job).partition);
  TRY(check_window(ctx, *who, job, queue, m));
  event::JobUpdated e;
  e.job = job.id;
  e.reservation = name;
  TRY(rules_allow(ctx, *who, job, e));
  return e;
}

static void handle(Context& ctx, const ClientRequest& from, proto::UpdateJob&& m) {
  change_jobs(ctx, from, {m.job}, Trigger::update, [&](const Job& job) -> Result<void> {
    const JobId id = job.id;
    proto::UpdateJob mine = m;
    if (job.is_element() && m.job.job == job.array && m.job.tasks.empty())
      mine.array_max_running.reset();  // a limit for the array, not for its elements
    std::optional<event::NodesGivenBack> given_back;
    if (mine.reshape && job.phase == Phase::running) {
      ASSIGN(less, shrink(ctx.state, job, *mine.reshape));
      given_back = std::move(*less);
      mine.reshape.reset();
    }
    ASSIGN(e, changes(ctx, from.who, job, mine));
    if (given_back && !given_back->nodes.empty()) {
      const std::vector<NodeId> nodes = given_back->nodes;
      ctx.record(*given_back);
      end_steps_on(ctx, ctx.state.jobs.at(id), nodes);
    }
    const std::string old_name(ctx.state.names.text(job.name));
    const auto share = job.share;
    ctx.record(*e);
    // The scheduler is told of a job again when its place in the queue changes. Another account
    // does not change the place, but from now on the job counts against other jobs.
    if (ctx.state.jobs.at(id).share != share && ctx.rt.plan->marks.at(id).told.startable != 0)
      ctx.rt.plan->marks.edit(id).told.since = Instant{};
    if (m.name) {
      settle_named(ctx, job.uid, old_name);
      settle_named(ctx, job.uid, *m.name);
    }
    if (m.priority == 0u) ctx.record(event::JobHeld{id, Hold::admin, "priority 0"});
    const Job& now = ctx.state.jobs.at(id);
    if (m.time_limit && now.placed())
      ctx.turn.changes.emplace_back(
          sched::JobLimitChanged{id, placed_view(ctx.state, now).ends_by});
    return {};
  });
}

const Subject kUpdateMessages{.name = "update", .handlers = kHandlers<proto::UpdateJob>};

}  // namespace gantry::core
