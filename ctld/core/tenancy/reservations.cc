#include "ctld/core/tenancy/reservations.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/text/hostlist.h"
#include "common/text/text.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/context.h"
#include "ctld/core/request.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/queues.h"

namespace gantry::core {
namespace {

template <class T>
bool among(const std::vector<T>& list, const T& one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

std::string nodes_text(const State& state, const std::vector<NodeId>& nodes) {
  std::vector<std::string> names;
  for (const NodeId id : nodes) names.push_back(state.node(id).name);
  return compress_hostlist(names);
}

std::string_view kind_of(const AdvanceReservation& r) {
  return r.maintenance ? "maintenance window" : "reservation";
}

tl::unexpected<Error> no_reservation(const std::string& name) {
  return fail(ErrorCode::not_found,
              fmt::format("there is no reservation \"{}\"; gctl reservations lists them", name));
}

}  // namespace

Result<void> check_reservation(const Context& ctx, const Identity& who, const Partition& partition,
                               const JobShape& shape, std::optional<Duration> limit,
                               const std::string& name) {
  const auto& all = ctx.state.tenancy.reservations;
  const auto it = all.find(name);
  if (it == all.end()) return no_reservation(name);
  const AdvanceReservation& r = it->second;
  if (r.maintenance && r.tenants.empty() && r.users.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is a maintenance window: no job may use it", name));
  const CompiledTenant* payer = tenant_of(ctx.state, partition);
  const bool tenant = payer != nullptr && among(r.tenants, payer->effective.name);
  if (!Sight(ctx.state, who).reservation(r)) return no_reservation(name);
  if (!tenant && !among(r.users, who.owner.user) && !is_operator(ctx.state, who))
    return fail(ErrorCode::permission_denied,
                fmt::format("{} may not use reservation {} from partition {}", who.owner.user, name,
                            partition.name));
  // A recurring reservation offers its full length to a job that waits for the next occurrence.
  const Duration room = r.until - (r.repeats ? r.from : std::max(r.from, ctx.now));
  if (!limit || *limit > room)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("reservation {} {}: a job in it needs a time limit of {} at "
                            "the most, not {}",
                            name,
                            r.repeats ? fmt::format("lasts {}", format_duration(room))
                                      : fmt::format("ends at {}", format_time(r.until)),
                            format_duration(room), format_time_limit(limit)));
  std::uint32_t nodes = 0;
  for (const NodeId id : r.nodes) nodes += among(partition.nodes, id) ? 1 : 0;
  if (shape.min_nodes > nodes)
    return fail(ErrorCode::never_fits,
                fmt::format("reservation {} has {} nodes of partition {}; the job needs {}", name,
                            nodes, partition.name, shape.min_nodes));
  for (const std::string& node : shape.required_nodes)
    if (!among(r.nodes, ctx.state.node_named(node)->id))
      return fail(ErrorCode::never_fits,
                  fmt::format("node {} is not in reservation {}", node, name));
  return {};
}

bool let_into(const State& state, const Job& job, const std::string& name) {
  const auto it = state.tenancy.reservations.find(name);
  if (it == state.tenancy.reservations.end()) return true;
  const AdvanceReservation& r = it->second;
  if (r.made <= std::max(job.submitted, job.window_named)) return true;
  const std::string user(state.names.text(job.user));
  return among(r.users, user) || r.by == user ||
         among(r.tenants, state.partition(class_of(state, job).partition).payer());
}

void look_at_waiting(Context& ctx, const std::string& name) {
  ctx.state.jobs.walk(JobId{}, [&](const Job& job) {
    if (job.phase != Phase::queued) return true;
    bool named = false;
    each_window_of(ctx.state, job, [&](const std::string& one) { named = named || one == name; });
    if (named) ctx.touched.jobs.push_back(job.id);
    return true;
  });
}

std::string reservation_words(const Context& ctx, const Job& job, const std::string& name) {
  const auto& all = ctx.state.tenancy.reservations;
  const auto it = all.find(name);
  if (it == all.end() || !let_into(ctx.state, job, name))
    return fmt::format(
        "its reservation {} is over, or was removed (gctl update job ... "
        "reservation= names another, or none)",
        name);
  const AdvanceReservation& r = it->second;
  if (ctx.now < r.from)
    return fmt::format("its reservation {} begins at {}", name, format_time(r.from));
  if (r.repeats)
    return fmt::format(
        "its reservation {} of {} is full until others in it end, or too short for it until it is "
        "over at {}, and begins again at {}",
        name, nodes_text(ctx.state, r.nodes), format_time(r.until),
        format_time(occurrence_of(next_of(*r.repeats)).from));
  return fmt::format("its reservation {} of {} is full until others in it end, and is over at {}",
                     name, nodes_text(ctx.state, r.nodes), format_time(r.until));
}

std::string window_words(const Context& ctx, const std::string& name, Instant from) {
  const auto& all = ctx.state.tenancy.reservations;
  const auto it = all.find(name);
  if (it == all.end())
    return fmt::format("it would run into {}, which begins at {}", name, format_time(from));
  const AdvanceReservation& r = it->second;
  const std::string nodes = nodes_text(ctx.state, r.nodes);
  if (from >= r.until)
    return fmt::format(
        "it would run into {} {} of {}, which comes again at {}: a shorter time limit "
        "may fit",
        kind_of(r), name, nodes, format_time(from));
  if (ctx.now >= r.from)
    return fmt::format("{} {} has {} until {}", kind_of(r), name, nodes, format_time(r.until));
  return fmt::format("it would run into {} {} of {}, from {} to {}: a shorter time limit may fit",
                     kind_of(r), name, nodes, format_time(r.from), format_time(r.until));
}

}  // namespace gantry::core
