// Handlers about partitions: whether one is up and accepts jobs, for operators; and its other
// settings, for administrators. See in_force.h for how these combine with gantry.yaml.
#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/proto/partitions.h"
#include "common/proto/session.h"
#include "config/options.h"
#include "config/partitions.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/figures.h"
#include "ctld/core/handler.h"
#include "ctld/core/partition/subject.h"
#include "ctld/core/recorder.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/tenants.h"
#include "ctld/core/turn_out.h"
#include "ctld/core/view_memory.h"

namespace gantry::core {
namespace {

using proto::PartitionAction;

// Limit of names that commands have ever used. The record of a name is never removed, because jobs
// refer to it.
constexpr std::size_t kMostCommandNames = 1'000;
constexpr std::size_t kMostValueBytes = 64 << 10;  // of all values of one partition

Error no_partition(const std::string& name) {
  return {ErrorCode::not_found, fmt::format("there is no partition \"{}\"", name)};
}

Result<void> check_no_queue(const State& state, const std::string& name) {
  if (!state.tenancy.queues.contains(name)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} is the queue of a tenant: gtenant changes it", name));
}

struct InUse {
  std::uint64_t queued = 0;
  std::uint64_t active = 0;
};
InUse jobs_in(const State& state, const std::string& name) {
  InUse sum;
  for (const Partition& p : state.partitions) {  // also the queues that tenants have in it
    if (p.name != name) continue;
    const QueueCounts counts = state.queue_counts(p.id);
    sum.queued += counts.queued;
    sum.active += counts.active;
  }
  return sum;
}

Result<void> check_unused(const State& state, const std::string& name) {
  const InUse jobs = jobs_in(state, name);
  if (jobs.queued + jobs.active == 0) return {};
  return fail(
      ErrorCode::wrong_state,
      fmt::format("partition {} is in use: {} queued and {} active jobs have to end or move "
                  "first",
                  name, jobs.queued, jobs.active));
}

Result<void> check_new(const State& state, const std::string& name) {
  PartitionConfig named;
  TRY(config::set_option(config::options_of(named).front(), name));
  if (state.tenancy.documents.contains({tenancy::Tenant::kKind, name}))
    return fail(ErrorCode::already_exists,
                fmt::format("{} is a tenant, and a tenant's queue has its name", name));
  const Partition* there = state.partition_named(name);
  if (there != nullptr && there->declared != nullptr)
    return fail(ErrorCode::already_exists, fmt::format("partition {} exists already", name));
  const auto made =
      std::count_if(state.partitions.begin(), state.partitions.end(),
                    [](const Partition& p) { return p.origin == PartitionOrigin::command; });
  if (static_cast<std::size_t>(made) >= kMostCommandNames)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("commands have made {} partitions; more stand in gantry.yaml", made));
  return {};
}

// The partition as it would be, checked by the rules of gantry.yaml.
Result<void> check_sound(const Context& ctx, PartitionConfig would_be,
                         const config::PartitionValues& values) {
  std::size_t bytes = 0;
  for (const auto& [name, text] : values) bytes += name.size() + text.size();
  if (bytes > kMostValueBytes)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the options of one partition have at most {} bytes", kMostValueBytes));
  if (auto r = config::set_partition_options(would_be, values); !r) return r;
  const auto fault = config::check_partition(would_be, ctx.config, config::node_names(ctx.config));
  if (!fault) return {};
  return fail(ErrorCode::invalid_argument, fmt::format("{}: {}", fault->option, fault->what));
}

// Moves two values that the request has as separate members out of the values.
std::optional<bool> take_bool(config::PartitionValues& values, const char* option) {
  const auto it = values.find(option);
  if (it == values.end()) return std::nullopt;
  PartitionConfig read;
  (void)config::set_partition_options(read, {*it});
  const bool value = std::string_view(option) == "up" ? read.up : read.accepts_jobs;
  values.erase(it);
  return value;
}

bool makes_default(const config::PartitionValues& values) {
  PartitionConfig read;
  if (const auto it = values.find("default"); it != values.end())
    (void)config::set_partition_options(read, {*it});
  return read.is_default;
}

// Only one partition is the default: a default that another command chose loses that role.
void take_default(Context& ctx, PartitionId keeper, const std::string& by) {
  std::vector<event::PartitionSet> others;
  for (const Partition& p : ctx.state.partitions) {
    if (p.id == keeper || !makes_default(p.values)) continue;
    event::PartitionSet e{p.id, p.origin, p.values, {}, {}, false, by};
    e.values.erase("default");
    others.push_back(std::move(e));
  }
  for (event::PartitionSet& e : others) ctx.record(e);
}

// Puts in force what has been recorded.
void refresh(Context& ctx) {
  ctx.recorder.set_partitions();
  ctx.rt.figures->config_values = describe(ctx.config);
  compile_tenancy(ctx);  // gives tenants their queues, and tells the scheduler
}

std::string shown(const config::PartitionValues& values) {
  std::string out;
  for (const auto& [name, text] : values)
    out += fmt::format("{} {}={}", out.empty() ? ":" : ",", name, text);
  return out;
}

Result<void> put(Context& ctx, const std::string& by, proto::ChangePartition& m) {
  const bool fresh = m.action == PartitionAction::create;
  const Partition* there = ctx.state.partition_named(m.name);
  PartitionConfig base;
  base.name = m.name;
  if (fresh) {
    if (auto r = check_new(ctx.state, m.name); !r) return r;
  } else {
    if (there == nullptr || there->declared == nullptr) return tl::unexpected(no_partition(m.name));
    if (auto r = check_no_queue(ctx.state, m.name); !r) return r;
    if (m.values.empty())
      return fail(ErrorCode::invalid_argument, "say what of the partition is to change");
    base = *there->declared;
  }
  if (auto r = check_sound(ctx, std::move(base), m.values); !r) return r;
  if (there == nullptr)
    ctx.record(event::PartitionDeclared{
        PartitionId(static_cast<std::uint32_t>(ctx.state.partitions.size())), m.name});
  there = ctx.state.partition_named(m.name);
  ctx.note(fmt::format("partition {} is {} by {}{}", m.name, fresh ? "created" : "changed", by,
                       shown(m.values)));
  event::PartitionSet e{there->id, there->origin, std::move(m.values), {}, {}, fresh, by};
  e.up = take_bool(e.values, "up");
  e.accepts_jobs = take_bool(e.values, "accepts_jobs");
  if (makes_default(e.values)) take_default(ctx, there->id, by);
  if (fresh)
    e.origin = PartitionOrigin::command;
  else
    e.values.insert(there->values.begin(),
                    there->values.end());  // for options in both, the new values stay
  ctx.record(e);
  return {};
}

Result<void> take_away(Context& ctx, const std::string& by, const proto::ChangePartition& m) {
  const Partition* there = ctx.state.partition_named(m.name);
  const bool reset = m.action == PartitionAction::reset;
  const bool said =
      there != nullptr && (there->origin != PartitionOrigin::file || !there->values.empty() ||
                           there->up_set || there->accepts_jobs_set);
  if (there == nullptr ||
      (reset ? there->declared == nullptr && !said : there->declared == nullptr))
    return tl::unexpected(no_partition(m.name));
  if (auto r = check_no_queue(ctx.state, m.name); !r) return r;
  if (!m.values.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("options are of no use to {} a partition", enum_name(m.action)));
  if (reset && !said) return {};
  const bool filed = ctx.recorder.in_file(m.name);
  if (!reset || !filed)
    if (auto r = check_unused(ctx.state, m.name); !r) return r;
  ctx.note(fmt::format("partition {} is {} by {}", m.name, reset ? "reset" : "deleted", by));
  ctx.record(event::PartitionSet{there->id,
                                 !reset && filed ? PartitionOrigin::removed : PartitionOrigin::file,
                                 {},
                                 {},
                                 {},
                                 true,
                                 by});
  return {};
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::UpdatePartition&& m) {
  const Partition* partition = ctx.state.partition_named(m.name);
  if (partition == nullptr || partition->declared == nullptr)
    return refuse(ctx, from, no_partition(m.name));
  if (partition->up() != m.up || (m.accepts_jobs && partition->accepts_jobs() != *m.accepts_jobs)) {
    ctx.record(event::PartitionUpChanged{partition->id, m.up, m.accepts_jobs});
    for (const Partition& p : ctx.state.partitions) {  // also the queues that tenants have in it
      if (p.name != m.name) continue;
      ctx.rt.views->partitions[p.id.value()] = partition_view(ctx.state, p);
      ctx.turn.changes.emplace_back(ctx.rt.views->partitions[p.id.value()]);
    }
    ctx.turn.schedule = true;
  }
  ctx.reply(from, proto::Ok{});
}

static void handle(Context& ctx, const ClientRequest& from, proto::ChangePartition&& m) {
  const std::string& by = from.who.owner.user;
  const bool puts = m.action == PartitionAction::create || m.action == PartitionAction::update;
  const auto done = puts ? put(ctx, by, m) : take_away(ctx, by, m);
  if (!done) return refuse(ctx, from, done.error());
  refresh(ctx);
  ctx.reply(from, proto::Ok{});
}

const Subject kPartitionMessages{
    .name = "partition", .handlers = kHandlers<proto::UpdatePartition, proto::ChangePartition>};

}  // namespace gantry::core
