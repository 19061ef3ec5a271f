// Reservations, checkpoints and quota events of a scenario; see world.h.
//
//   > reserve admin name=ci nodes=n[1-2] start=+1h length=2h tenants=fraud users=alice,bob
//   > reserve admin count=2 length=1h maintenance=yes ignore_jobs=yes partition=main features=gpu
//   > reserve admin nodes=n1 length=1h users=bob every=daily zone=UTC0 purge=10m
//   > reserve admin count=1 length=1h users=bob replace=used
//   > reserve admin name=ci replaces=yes skip=yes nodes=n1 ...
//   > note alice 1 exit=2 comment=again [admin=words] [system=words]
//   > unreserve admin ci       > reservations alice       > checkpointed alice 1
//   > alerts alice [fraud]                > accounts            of all jobs
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/assert.h"
#include "common/proto/history.h"
#include "common/proto/job_change.h"
#include "common/proto/job_text.h"
#include "common/proto/reservation.h"
#include "common/proto/tenant_events.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"
#include "ctld/acct/stored_rows.h"
#include "world.h"

namespace gantry::core::test {
namespace {

template <class E>
E enum_of(const std::string& text) {
  for (const auto& [value, name] : enum_names(E{}))
    if (name == text) return value;
  GANTRY_ASSERT(false, "a scenario has the words of the enumeration");
  return E{};
}

std::vector<std::string> names_of(const Words& w, const char* key) {
  std::vector<std::string> out;
  const std::string* text = w.find(key);
  if (text == nullptr) return out;
  std::string item;
  for (const char c : *text + ",") {
    if (c != ',') {
      item += c;
      continue;
    }
    if (!item.empty()) out.push_back(std::exchange(item, {}));
  }
  return out;
}

}  // namespace

void World::reserve(const Words& w) {
  proto::MakeReservation m;
  if (w.find("name")) m.name = *w.find("name");
  if (w.find("nodes")) m.nodes = *expand_hostlist(*w.find("nodes"));
  if (w.find("count")) m.count = std::stoul(*w.find("count"));
  if (w.find("partition")) m.partition = *w.find("partition");
  if (w.find("features")) m.constraint = *w.find("features");
  if (w.find("start")) m.start = time_of(*w.find("start"));
  if (w.find("end")) m.end = time_of(*w.find("end"));
  if (w.find("length")) m.length = parse_length(*w.find("length"));
  m.maintenance = w.find("maintenance") != nullptr;
  m.ignore_jobs = w.find("ignore_jobs") != nullptr;
  m.tenants = names_of(w, "tenants");
  m.users = names_of(w, "users");
  if (w.find("comment")) m.comment = *w.find("comment");
  m.replaces = w.find("replaces") != nullptr;
  m.skip = w.find("skip") != nullptr;
  if (w.find("every")) m.every = enum_of<Recurrence>(*w.find("every"));
  if (w.find("zone")) m.zone = *w.find("zone");
  if (w.find("replace")) m.replacement = enum_of<proto::NodeReplacement>(*w.find("replace"));
  if (w.find("purge")) m.purge_after = parse_length(*w.find("purge"));
  ask(w.plain.at(1), std::move(m));
}

void World::note(const Words& w) {
  fold();
  proto::NoteJobs m;
  for (std::size_t i = 2; i < w.plain.size(); ++i) m.jobs.push_back(*parse_job_ref(w.plain[i]));
  if (w.find("exit")) m.derived_exit = ExitStatus{std::stoi(*w.find("exit")), 0};
  if (w.find("comment")) m.comment = *w.find("comment");
  if (w.find("admin")) m.admin_comment = *w.find("admin");
  if (w.find("system")) m.system_comment = *w.find("system");
  GANTRY_ASSERT(acct::attach_stored(store_, m).has_value(), "the memory store reads");
  ask(w.plain.at(1), std::move(m));
}

bool World::reservations_command(const std::string& verb, const Words& w) {
  if (verb == "note") return note(w), true;
  if (verb == "reserve") return reserve(w), true;
  if (verb == "unreserve") return ask(w.plain.at(1), proto::RemoveReservation{w.plain.at(2)}), true;
  if (verb == "reservations") return ask(w.plain.at(1), proto::ListReservations{}), true;
  if (verb == "checkpointed")
    return ask(w.plain.at(1), proto::CheckpointJobs{{*parse_job_ref(w.plain.at(2))}}), true;
  if (verb == "accounts") return list_accounts(), true;
  if (verb == "alerts") {
    proto::TenantEvents m;
    if (w.plain.size() > 2) m.names = {w.plain[2]};
    return ask(w.plain.at(1), std::move(m)), true;
  }
  return false;
}

void World::list_accounts() {
  const State& state = core_->state();
  state.jobs.walk(JobId{}, [&](const Job& job) {
    line(fmt::format("{} in {}: {}", display_id(state, job),
                     state.partition(class_of(state, job).partition).name,
                     state.names.text(job.account)));
    return true;
  });
}

void World::print(const proto::ListReservationsReply& m) {
  if (m.reservations.empty()) line("no reservations");
  for (const proto::ReservationRow& r : m.reservations) {
    line(fmt::format("{} {} ({}) {} to {}{}{} by {}, {} queued, {} run", r.name, r.node_list,
                     r.nodes, time_text(r.start), time_text(r.end),
                     r.maintenance ? " maintenance" : "", r.active ? " active" : "", r.by, r.queued,
                     r.running));
    std::string more;
    if (r.every != Recurrence::once) more += fmt::format(" {} {}", enum_name(r.every), r.zone);
    if (r.replacement != proto::NodeReplacement::none)
      more += fmt::format(" replaces nodes that are {}", enum_name(r.replacement));
    if (r.purge_after) more += " purged after " + format_duration(*r.purge_after);
    if (!more.empty()) line(" " + more);
    if (!r.tenants.empty() || !r.users.empty())
      line(fmt::format("  for {} {}", fmt::join(r.tenants, ","), fmt::join(r.users, ",")));
  }
  for (const std::string& warning : m.warnings) line("warning: " + warning);
}

void World::print(const proto::TenantEventsReply& m) {
  if (m.events.empty()) line("no events");
  for (const proto::QuotaAlert& a : m.events)
    if (!a.budget.empty())
      line(fmt::format("{} {} {}: budget {} of {}: {} of {} ({} %), {} ended", a.number,
                       time_text(a.at), a.tenant, a.budget, a.period, format_money(a.spent),
                       format_money(a.amount), a.percent, a.ended));
    else if (!a.job.empty())
      line(fmt::format("{} {} {}: job {} of {}: {} idle for {}{}, {}", a.number, time_text(a.at),
                       a.tenant, a.job, a.user, a.gpus, format_duration(a.idle),
                       a.no_process ? " without a process" : "", enum_name(a.step)));
    else
      line(fmt::format("{} {} {}: {} of {} ({} %)", a.number, time_text(a.at), a.tenant,
                       amount_words(a.resource, a.used), amount_words(a.resource, a.nominal),
                       a.percent));
}

}  // namespace gantry::core::test
