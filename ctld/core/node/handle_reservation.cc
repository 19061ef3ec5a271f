// MakeReservation, RemoveReservation, ListReservations. A reservation is made whole or refused. It
// is for named nodes, or for a number of nodes, chosen among those that no job or reservation needs
// in that time.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/limits.h"
#include "common/proto/reservation.h"
#include "common/proto/session.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/node/memory.h"
#include "ctld/core/node/subject.h"
#include "ctld/core/node/windows.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/reservations.h"
#include "ctld/sched/queue/constraint.h"

namespace gantry::core {
namespace {

constexpr Duration kPast = seconds(60);  // a start up to this long ago counts as now
constexpr std::size_t kNamedJobs = 5;    // jobs named in one message
constexpr std::size_t kMaxZoneBytes = 100;

tl::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

Result<std::string> name_for(const Context& ctx, const Identity& who, const std::string& asked) {
  const auto& all = ctx.state.tenancy.reservations;
  if (asked.empty())
    for (std::size_t n = 1;; ++n)
      if (std::string name = fmt::format("{}_{}", who.owner.user, n); !all.contains(name))
        return name;
  const bool sound = std::all_of(asked.begin(), asked.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
  if (!sound || asked.size() > kMaxAccountBytes)
    return bad(
        fmt::format("the name \"{}\" must be of letters, digits, '-', '_' and '.', at most "
                    "{} of them",
                    asked, kMaxAccountBytes));
  if (all.contains(asked))
    return fail(ErrorCode::already_exists, fmt::format("there is a reservation {} already", asked));
  return asked;
}

// The reservation that the request changes; null for a new one.
const AdvanceReservation* changed_by(const State& state, const proto::MakeReservation& m) {
  const auto it = state.tenancy.reservations.find(m.name);
  return !m.replaces || it == state.tenancy.reservations.end() ? nullptr : &it->second;
}

Result<void> set_times(const Context& ctx, const proto::MakeReservation& m, AdvanceReservation& r) {
  if (m.end.has_value() == m.length.has_value())
    return bad("a reservation has either an end or a duration");
  if (auto ok = check_instant(ctx, "the start", m.start); !ok) return ok;
  const AdvanceReservation* old = changed_by(ctx.state, m);
  r.from = m.start.value_or(old != nullptr ? old->from : ctx.now);
  if (const bool stays = old != nullptr && r.from == old->from; !stays) {
    if (r.from < ctx.now - kPast)
      return bad(fmt::format("the start {} has passed", format_time(r.from)));
    r.from = std::max(r.from, ctx.now);
  }
  if (m.length && (m.length->us <= 0 || *m.length > hours(24 * kMaxDurationDays)))
    return bad(
        fmt::format("the duration must be above zero, and at most {} days", kMaxDurationDays));
  r.until = m.end ? *m.end : r.from + *m.length;
  if (auto ok = check_instant(ctx, "the end", r.until); !ok) return ok;
  if (r.until <= r.from)
    return bad(fmt::format("the end {} must come after the start {}", format_time(r.until),
                           format_time(r.from)));
  if (r.until <= ctx.now) return bad(fmt::format("the end {} has passed", format_time(r.until)));
  return {};
}

// Sets whether the reservation recurs, and moves it to its next occurrence if that is asked for.
Result<void> set_repetition(const Context& ctx, const proto::MakeReservation& m,
                            AdvanceReservation& r) {
  if (m.every == Recurrence::once)
    return m.skip ? bad("only a reservation that comes again has a next occurrence")
                  : Result<void>();
  const AdvanceReservation* old = changed_by(ctx.state, m);
  if (m.skip && old == nullptr) return bad("a new reservation has no occurrence to skip");
  if (auto ok = check_text("the time zone", m.zone, kMaxZoneBytes); !ok) return ok;
  ASSIGN(repeats, repetition_of(m.every, m.zone, {r.from, r.until}));
  r.repeats = std::move(*repeats);
  // An occurrence at a time that a clock change skips is later; the next occurrence is at the usual
  // time.
  if (old != nullptr && old->repeats && old->from == r.from && old->until == r.until &&
      old->repeats->every == r.repeats->every && old->repeats->zone == r.repeats->zone)
    r.repeats = old->repeats;
  if (!m.skip) return {};
  r.repeats = next_of(*r.repeats);
  const TimeSpan next = occurrence_of(*r.repeats);
  r.from = next.from;
  r.until = next.until;
  return {};
}

// Sets which nodes are replaced and when the reservation ends early. Its nodes have been chosen
// before.
Result<void> set_upkeep(const Context& ctx, const proto::MakeReservation& m,
                        AdvanceReservation& r) {
  const AdvanceReservation* old = changed_by(ctx.state, m);
  if (old != nullptr && old->by_count && m.count == 0 && old->nodes == r.nodes) {
    r.by_count = true;
    r.partition = old->partition;
    r.constraint = old->constraint;
  }
  if (m.replacement != proto::NodeReplacement::none && !r.by_count)
    return bad("nodes are replaced in a reservation of a number of nodes, not of these nodes");
  r.replacement = m.replacement;
  if (m.purge_after && (m.purge_after->us <= 0 || *m.purge_after > hours(24 * kMaxDurationDays)))
    return bad(fmt::format("an idle reservation ends after more than zero, and at most {} days",
                           kMaxDurationDays));
  if (m.purge_after && r.maintenance && r.tenants.empty() && r.users.empty())
    return bad("no job names a maintenance window: it would end at once");
  r.purge_after = m.purge_after;
  return {};
}

// Sets who may use the reservation, within the tenants' limits of reservations.
Result<void> set_people(const Context& ctx, proto::MakeReservation& m, AdvanceReservation& r) {
  const TenancyState& tenancy = ctx.state.tenancy;
  if (!m.maintenance && m.tenants.empty() && m.users.empty())
    return bad("name the tenants or users who may use it, or make it a maintenance window");
  if (m.tenants.size() > kMaxReservationNames || m.users.size() > kMaxReservationNames)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("at most {} tenants and as many users", kMaxReservationNames));
  for (auto* list : {&m.tenants, &m.users}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  for (const std::string& user : m.users)
    if (auto ok = check_text("a user's name", user, kMaxAccountBytes); !ok) return ok;
  for (const std::string& name : m.tenants) {
    const CompiledTenant* tenant = tenancy.tenant(name);
    if (tenant == nullptr)
      return fail(ErrorCode::not_found, fmt::format("there is no tenant {}", name));
    const auto& most = tenant->effective.counts.reservations;
    std::uint64_t has = 0;
    for (const auto& [other, one] : tenancy.reservations)
      has += other != r.name && std::binary_search(one.tenants.begin(), one.tenants.end(), name)
                 ? 1
                 : 0;
    if (most && has + 1 > *most)
      return fail(ErrorCode::limit_exceeded,
                  fmt::format("tenant {} would have {} reservations; its limit is {}", name,
                              has + 1, *most));
  }
  r.tenants = std::move(m.tenants);
  r.users = std::move(m.users);
  r.maintenance = m.maintenance;
  return {};
}

// The times of a reservation, as messages show them.
std::string times_text(const AdvanceReservation& r) {
  return fmt::format("from {} to {}{}{}", format_time(r.from), format_time(r.until),
                     r.repeats ? ", " : "", r.repeats ? enum_name(r.repeats->every) : "");
}

Result<void> take_named(const Context& ctx, const proto::MakeReservation& m,
                        AdvanceReservation& r) {
  if (!m.partition.empty() || !m.constraint.empty())
    return bad("partition and features choose nodes by count; these are named");
  std::set<NodeId> chosen;
  auto rivals = rivals_of(ctx.state, r);
  // A maintenance window may overlap any other reservation.
  std::erase_if(
      rivals, [&](const AdvanceReservation* other) { return r.maintenance || other->maintenance; });
  for (const std::string& name : m.nodes) {
    const Node* node = ctx.state.node_named(name);
    if (node == nullptr || node->declared == nullptr)
      return fail(ErrorCode::not_found, fmt::format("node \"{}\" is not in this cluster", name));
    chosen.insert(node->id);
    const AdvanceReservation* other = holder_of(node->id, rivals);
    if (other != nullptr)
      return fail(ErrorCode::wrong_state, fmt::format("reservation {} has node {} {}", other->name,
                                                      name, times_text(*other)));
  }
  r.nodes.assign(chosen.begin(), chosen.end());
  return {};
}

Result<void> take_count(const Context& ctx, const proto::MakeReservation& m,
                        AdvanceReservation& r) {
  ASSIGN(constraint, sched::parse_constraint(m.constraint));
  std::vector<NodeId> from = ctx.state.node_order;
  if (!m.partition.empty()) {
    const Partition* partition = ctx.state.partition_named(m.partition);
    if (partition == nullptr || partition->declared == nullptr)
      return fail(ErrorCode::not_found, fmt::format("there is no partition \"{}\"", m.partition));
    from = partition->nodes;
  }
  const auto rivals = rivals_of(ctx.state, r);
  std::vector<NodeId> up, down;
  for (const NodeId id : from) {
    const Node& node = ctx.state.node(id);
    if (!sched::matches(*constraint, node.declared->features)) continue;
    if (holder_of(id, rivals) != nullptr) continue;
    if (!m.ignore_jobs && !jobs_beyond(ctx.state, id, r.from).empty()) continue;
    (available(ctx, node) ? up : down).push_back(id);
  }
  if (up.size() + down.size() < m.count)
    return fail(ErrorCode::never_fits,
                fmt::format("{} of the {} nodes can be had {}: others are reserved, or "
                            "jobs may still run there{}",
                            up.size() + down.size(), m.count, times_text(r),
                            m.ignore_jobs ? "" : " (--ignore-jobs)"));
  up.insert(up.end(), down.begin(), down.end());  // nodes out of service come last
  up.resize(m.count);
  std::sort(up.begin(), up.end());
  r.nodes = std::move(up);
  r.by_count = true;
  r.partition = m.partition;
  r.constraint = m.constraint;
  return {};
}

// The warning about jobs that may still run when the reservation begins, or the error if they
// forbid it.
Result<std::string> check_jobs(const Context& ctx, const proto::MakeReservation& m,
                               const AdvanceReservation& r) {
  std::set<JobId> jobs;
  const AdvanceReservation* old = changed_by(ctx.state, m);
  const auto had = [&](NodeId node) {  // the node was in it before, so its jobs were checked then
    return old != nullptr && r.from >= old->from &&
           std::find(old->nodes.begin(), old->nodes.end(), node) != old->nodes.end();
  };
  for (const NodeId node : r.nodes)
    for (const JobId id : had(node) ? std::vector<JobId>() : jobs_beyond(ctx.state, node, r.from))
      jobs.insert(id);
  if (jobs.empty()) return std::string();
  std::vector<std::string> names;
  for (const JobId id : jobs) {
    if (names.size() == kNamedJobs) {
      names.emplace_back("...");
      break;
    }
    names.push_back(display_id(ctx.state, ctx.state.jobs.at(id)));
  }
  const std::string text =
      fmt::format("{} job{} may still run there when it begins: {}", jobs.size(),
                  jobs.size() == 1 ? "" : "s", fmt::join(names, ", "));
  if (m.ignore_jobs) return text;
  return fail(ErrorCode::wrong_state, text + " (--ignore-jobs makes it all the same)");
}

Result<AdvanceReservation> reservation_of(const Context& ctx, const Identity& who,
                                          proto::MakeReservation& m) {
  AdvanceReservation r;
  const AdvanceReservation* old = changed_by(ctx.state, m);
  if (m.replaces && old == nullptr)
    return fail(ErrorCode::not_found, fmt::format("there is no reservation \"{}\"", m.name));
  if (old == nullptr && ctx.state.tenancy.reservations.size() >= kMaxReservations)
    return fail(
        ErrorCode::limit_exceeded,
        fmt::format("there are {} reservations, the most that there can be", kMaxReservations));
  if (m.nodes.empty() == (m.count == 0))
    return bad("a reservation has either nodes by name or a number of nodes");
  ASSIGN(name, old != nullptr ? Result<std::string>(m.name) : name_for(ctx, who, m.name));
  r.name = std::move(*name);
  r.by = old != nullptr ? old->by : who.owner.user;
  r.made = old != nullptr ? old->made : ctx.now;
  TRY(check_text("the comment", m.comment, kMaxCommentBytes));
  r.comment = m.comment;
  TRY(set_times(ctx, m, r));
  TRY(set_repetition(ctx, m, r));
  TRY(set_people(ctx, m, r));
  TRY(m.nodes.empty() ? take_count(ctx, m, r) : take_named(ctx, m, r));
  TRY(set_upkeep(ctx, m, r));
  return r;
}

proto::ReservationRow row_of(const Context& ctx, const AdvanceReservation& r) {
  proto::ReservationRow row;
  row.name = r.name;
  std::vector<std::string> names;
  for (const NodeId id : r.nodes) names.push_back(ctx.state.node(id).name);
  row.node_list = compress_hostlist(names);
  row.nodes = static_cast<std::uint32_t>(r.nodes.size());
  row.start = r.from;
  row.end = r.until;
  row.maintenance = r.maintenance;
  row.active = r.from <= ctx.now && ctx.now < r.until;
  row.tenants = r.tenants;
  row.users = r.users;
  row.by = r.by;
  row.comment = r.comment;
  if (r.repeats) {
    row.every = r.repeats->every;
    row.zone = r.repeats->zone;
  }
  row.replacement = r.replacement;
  row.purge_after = r.purge_after;
  row.by_count = r.by_count;
  row.partition = r.partition;
  row.constraint = r.constraint;
  return row;
}

void count_jobs(const State& state, std::vector<proto::ReservationRow>& rows) {
  std::map<std::string_view, proto::ReservationRow*> by_name;
  for (proto::ReservationRow& row : rows) by_name.emplace(row.name, &row);
  state.jobs.walk(JobId{}, [&](const Job& job) {
    if (job.phase == Phase::ended) return true;
    const std::uint64_t queued =
        job.phase != Phase::queued ? 0 : (job.is_array() ? job.tasks->pending.count() : 1);
    each_window_of(state, job, [&](const std::string& name) {
      const auto it = by_name.find(name);
      if (it == by_name.end()) return;
      it->second->queued += queued;
      it->second->running += job.placed() ? 1 : 0;
    });
    return true;
  });
}

// Narrows a row to what those who may use the reservation see: nodes visible to them, their
// tenants, and their own user name.
void narrow(const Sight& sight, const Identity& who, const AdvanceReservation& r,
            proto::ReservationRow& row) {
  if (sight.everything()) return;
  const std::vector<std::string> names = sight.names_of(r.nodes);
  row.node_list = compress_hostlist(names);
  row.nodes = static_cast<std::uint32_t>(names.size());
  std::erase_if(row.tenants, [&](const std::string& name) { return !sight.tenant(name); });
  std::erase_if(row.users, [&](const std::string& name) { return name != who.owner.user; });
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::MakeReservation&& m) {
  auto made = reservation_of(ctx, from.who, m);
  if (!made) return refuse(ctx, from, made.error());
  const auto warning = check_jobs(ctx, m, *made);
  if (!warning) return refuse(ctx, from, warning.error());
  const std::string name = made->name;
  ctx.note(fmt::format("reservation {} was {} by {}", name, m.replaces ? "changed" : "made",
                       from.who.owner.user));
  ctx.record(event::ReservationSet{std::move(*made)});
  ctx.rt.node->windows_idle.erase(name);
  tell_window(ctx, name);
  const AdvanceReservation& r = ctx.state.tenancy.reservations.at(name);
  proto::ListReservationsReply reply;
  reply.now = ctx.now;
  reply.reservations.push_back(row_of(ctx, r));
  if (!warning->empty()) reply.warnings.push_back(*warning);
  ctx.reply(from, std::move(reply));
}

static void handle(Context& ctx, const ClientRequest& from, proto::RemoveReservation&& m) {
  if (!ctx.state.tenancy.reservations.contains(m.name))
    return refuse(ctx, from,
                  {ErrorCode::not_found, fmt::format("there is no reservation \"{}\"", m.name)});
  ctx.note(fmt::format("reservation {} was removed by {}", m.name, from.who.owner.user));
  ctx.record(event::ReservationRemoved{m.name, from.who.owner.user});
  ctx.rt.node->windows_idle.erase(m.name);
  tell_window(ctx, m.name);
  ctx.reply(from, proto::Ok{});
}

static void handle(Context& ctx, const ClientRequest& from, proto::ListReservations&& m) {
  proto::ListReservationsReply reply;
  reply.now = ctx.now;
  const Sight sight(ctx.state, from.who);
  std::set<std::string> asked(m.names.begin(), m.names.end());
  for (const auto& [name, r] : ctx.state.tenancy.reservations) {
    if (!sight.reservation(r) || (!m.names.empty() && asked.erase(name) == 0)) continue;
    narrow(sight, from.who, r, reply.reservations.emplace_back(row_of(ctx, r)));
  }
  if (!asked.empty())
    return refuse(
        ctx, from,
        {ErrorCode::not_found, fmt::format("there is no reservation \"{}\"", *asked.begin())});
  std::stable_sort(reply.reservations.begin(), reply.reservations.end(),
                   [](const auto& a, const auto& b) { return a.start < b.start; });
  if (!reply.reservations.empty()) count_jobs(ctx.state, reply.reservations);
  ctx.reply(from, std::move(reply));
}

const Subject kReservationMessages{
    .name = "reservation",
    .handlers =
        kHandlers<proto::MakeReservation, proto::RemoveReservation, proto::ListReservations>};

}  // namespace gantry::core
