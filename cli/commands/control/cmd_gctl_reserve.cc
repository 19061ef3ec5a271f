// The commands for advance reservations and maintenance windows.
#include <fmt/core.h>

#include <algorithm>

#include "cli/commands/control/gctl.h"
#include "cli/local_zone.h"
#include "cli/session.h"
#include "cli/table.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::gctl_reserve {
namespace {

// ---- reserve

struct Reserve {
  proto::MakeReservation make;
  Instant now{};
  bool json = false;
};

Result<void> set_nodes(Reserve& r, std::string_view text) {
  ASSIGN(names, expand_hostlist(text));
  for (std::string& name : *names) r.make.nodes.push_back(std::move(name));
  return {};
}
Result<void> set_duration(Reserve& r, std::string_view text) {
  ASSIGN(length, parse_duration(text));
  if (!*length) return fail(ErrorCode::invalid_argument, "a reservation cannot be UNLIMITED");
  r.make.length = **length;
  return {};
}
Result<void> set_repeat(Reserve& r, std::string_view text) {
  for (const auto& [every, name] : enum_names(Recurrence{}))
    if (name == text) {
      r.make.every = every;
      r.make.zone = local_zone_rule();
      return {};
    }
  return fail(ErrorCode::invalid_argument,
              "a reservation repeats hourly, daily, weekdays, weekends or weekly");
}
Result<void> set_replace(Reserve& r, std::string_view text) {
  if (text != "down" && text != "used")
    return fail(ErrorCode::invalid_argument, "replaced are nodes that are down, or used");
  r.make.replacement = text == "used" ? proto::NodeReplacement::used : proto::NodeReplacement::down;
  return {};
}
Result<void> set_purge(Reserve& r, std::string_view text) {
  ASSIGN(length, parse_duration(text));
  if (!*length) return fail(ErrorCode::invalid_argument, "--purge-after needs a time");
  r.make.purge_after = **length;
  return {};
}

constexpr Option kReserveOptions[] = {
    takes("comment", "TEXT", "What it is for", put<AT(Reserve, make.comment)>),
    takes("count", 'N', "N", "So many nodes, chosen among those that nobody needs then",
          number<"count", 1, 65'536, AT(Reserve, make.count)>),
    takes("duration", 't', "TIME", "How long: minutes, H:M:S, D-H, D-H:M:S", call<set_duration>),
    takes("end", 'E', "TIME", "Until when, instead of a duration", put_time<AT(Reserve, make.end)>),
    takes("features", 'C', "FEATURES", "With --count: nodes with these features: a, a&b, a|b",
          put<AT(Reserve, make.constraint)>),
    flag("ignore-jobs", "Although jobs may still run there when it begins; they are left alone",
         put<AT(Reserve, make.ignore_jobs)>),
    flag("json", "What was made as JSON", put<&Reserve::json>),
    flag("maintenance", "Nobody's: no job runs there meanwhile",
         put<AT(Reserve, make.maintenance)>),
    takes("nodes", 'w', "NODES", "These nodes", call<set_nodes>),
    takes("partition", 'p', "PARTITION", "With --count: nodes of this partition or tenant",
          put<AT(Reserve, make.partition)>),
    takes("purge-after", "TIME", "It ends early when no job has named it for so long",
          call<set_purge>),
    takes("repeat", "WHEN",
          "It comes again at this local time: hourly, daily, weekdays, weekends, weekly",
          call<set_repeat>),
    takes("replace", "WHICH",
          "With --count: free nodes take the place of those that are down; or of those that are "
          "down or used, so that there are always free ones",
          call<set_replace>),
    takes("start", 'S', "TIME",
          "From when: 2026-01-31T08:00, 16:00, now+2hours, tomorrow (default now)",
          put_time<AT(Reserve, make.start)>),
    takes("tenants", "TENANT,...", "Whose jobs may use it", put<AT(Reserve, make.tenants)>),
    takes("users", 'u', "USER,...", "Who may use it", put<AT(Reserve, make.users)>),
};

Result<int> run_reserve(const Invocation& in) {
  Reserve r;
  r.now = system_now();
  OPERANDS(operands, in, &r, 0, 1);
  if (!(*operands)->empty()) r.make.name = (*operands)->front();
  if (r.make.nodes.empty() && r.make.count == 0)
    return fail(ErrorCode::usage, "give --nodes or --count");
  if (!r.make.length && !r.make.end) return fail(ErrorCode::usage, "give --duration or --end");
  ASSIGN(reply, ask<proto::ListReservationsReply>(in.program(), r.make));
  for (const std::string& warning : reply->warnings)
    fmt::print(stderr, "{}: warning: {}\n", in.program(), warning);
  if (r.json) return print_pretty(*reply);
  for (const proto::ReservationRow& row : reply->reservations)
    fmt::print("{} {} has {} from {} to {}{}{}\n",
               row.maintenance ? "maintenance window" : "reservation", row.name, row.node_list,
               format_time(row.start), format_time(row.end),
               row.every == Recurrence::once ? "" : ", ",
               row.every == Recurrence::once ? "" : enum_name(row.every));
  return 0;
}

// ---- reservations

struct List {
  std::string format;
  bool no_header = false;
  bool json = false;
};

constexpr Option kListOptions[] = {
    takes("format", 'o', "FORMAT", "Fields as %[[.]WIDTH]LETTER with any text around them",
          put<&List::format>),
    flag("json", "As JSON", put<&List::json>),
    flag("noheader", 'h', "No header", put<&List::no_header>),
};

using O = std::string&;
using V = const proto::ReservationRow&;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text.empty() ? "-" : text;
}

constexpr Column<proto::ReservationRow> kColumns[] = {
    {'n', "Name", "NAME", [](O o, V r) { o += r.name; }},
    {'s', "State", "STATE",
     [](O o, V r) {
       o += r.maintenance ? "maint" : r.active ? "active" : "planned";
       if (r.maintenance && !r.active) o += "-planned";
     }},
    {'S', "Start", "START", [](O o, V r) { o += format_time(r.start); }},
    {'E', "End", "END", [](O o, V r) { o += format_time(r.end); }},
    {'d', "Duration", "DURATION", [](O o, V r) { o += format_duration(r.end - r.start); }},
    {'D', "Nodes", "NODES", [](O o, V r) { o += std::to_string(r.nodes); }},
    {'N', "NodeList", "NODELIST", [](O o, V r) { o += r.node_list; }},
    {'T', "Tenants", "TENANTS", [](O o, V r) { o += joined(r.tenants); }},
    {'u', "Users", "USERS", [](O o, V r) { o += joined(r.users); }},
    {'q', "Queued", "QUEUED", [](O o, V r) { o += std::to_string(r.queued); }},
    {'r', "Running", "RUNNING", [](O o, V r) { o += std::to_string(r.running); }},
    {'b', "By", "BY", [](O o, V r) { o += r.by; }},
    {'R', "Repeat", "REPEAT",
     [](O o, V r) { o += r.every == Recurrence::once ? "-" : enum_name(r.every); }},
    {'x', "Replace", "REPLACE",
     [](O o, V r) {
       const bool none = r.replacement == proto::NodeReplacement::none;
       o += none ? "-" : enum_name(r.replacement);
     }},
    {'P', "PurgeAfter", "PURGEAFTER",
     [](O o, V r) { o += r.purge_after ? format_duration(*r.purge_after) : "-"; }},
    {'c', "Comment", "COMMENT", [](O o, V r) { o += r.comment; }}};
constexpr std::string_view kUsual = "%n %s %S %E %D %N %T %u %q %r %c";
constexpr std::string_view kUsualRepeat = "%n %s %S %E %R %D %N %T %u %q %r %c";

Result<int> run_list(const Invocation& in) {
  List list;
  OPERANDS(operands, in, &list, 0, kAnyOperands);
  ASSIGN(reply,
         ask<proto::ListReservationsReply>(in.program(), proto::ListReservations{**operands}));
  const bool repeat = std::any_of(reply->reservations.begin(), reply->reservations.end(),
                                  [](V r) { return r.every != Recurrence::once; });
  const std::string_view usual = repeat ? kUsualRepeat : kUsual;
  const std::span<const Column<proto::ReservationRow>> columns = kColumns;
  ASSIGN(layout, parse_format(list.format.empty() ? usual : std::string_view(list.format),
                              infos(columns), list.format.empty()));
  if (list.json) return print_pretty(*reply);
  TableWriter table(*layout, {.header = !list.no_header, .colour = wants_colour(stdout)}, stdout);
  for (const proto::ReservationRow& row : reply->reservations) add_row(table, columns, row);
  return 0;
}

// ---- unreserve

struct NoOptions {};

Result<int> run_unreserve(const Invocation& in) {
  NoOptions none;
  OPERANDS(operands, in, &none, 1, kAnyOperands);
  ASSIGN(session, Session::open(in.program()));
  for (const std::string& name : **operands)
    TRY(session->call<proto::Ok>(proto::RemoveReservation{name}));
  return 0;
}

}  // namespace

const Command kGctlReserve{
    {"reserve", "Set nodes aside for a time, for some, or for maintenance", "[NAME]"},
    {.description =
         "Other jobs start there only if they end before, by their time limits. Jobs use it with "
         "--reservation NAME and a time limit that fits into it. With --maintenance nobody does. "
         "It is refused when jobs may still run there at its start, or when another reservation "
         "has one of the nodes; a maintenance window may overlap others. It ends by itself; jobs "
         "that still wait for it then wait until they name another (gctl update job JOB "
         "reservation=NAME) or none (reservation=). With --repeat the next one follows when one "
         "has "
         "ended, and jobs that wait for it are kept until then.\n\n"
         "For operators and administrators.",
     .options = kReserveOptions,
     .examples =
         {{"gctl reserve course --count 4 --start 2026-02-02T09:00 --duration 8:00:00 --users "
           "eva,ben",
           "Four nodes for a course"},
          {"gctl reserve --maintenance --nodes 'n[01-16]' --start tomorrow --duration 2:00:00 "
           "--comment "
           "'new firmware'",
           "Nothing runs there in those two hours"},
          {"gctl reserve demo --count 2 --start 14:00 --duration 1:00:00 --repeat weekdays "
           "--users eva",
           "Two nodes, from Monday to Friday"},
          {"gbatch --reservation course -t 1:00:00 lesson1.sh", "A job in it"}},
     .run = run_reserve}};
const Command kGctlReservations{
    {"reservations", "List reservations and maintenance windows", "[NAME...]"},
    {.description =
         "Fields of -o: %n name, %s state, %S start, %E end, %d duration, %D number and %N list of "
         "nodes, %T tenants, %u users, %q queued and %r running jobs, %b who made it, %c comment, "
         "%R when it comes again, %x which nodes are replaced, %P how long it may be idle.",
     .options = kListOptions,
     .examples = {{"gctl reservations", "All of them, with nodes and times"}},
     .run = run_list}};
const Command kGctlUnreserve{
    {"unreserve", "Remove reservations before their end; jobs there go on", "NAME..."},
    {.examples = {{"gctl unreserve course", "Give the nodes of reservation course back"}},
     .run = run_unreserve}};

}  // namespace gantry::cli::gctl_reserve
