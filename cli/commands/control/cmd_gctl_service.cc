// gctl service: lists services, whether they meet their objectives, and why they have their number
// of replicas; and commands for their rollouts. gtenant applies the documents of services.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/columns/service_columns.h"
#include "cli/commands/control/gctl.h"
#include "cli/session.h"
#include "cli/table.h"
#include "common/codec/codec.h"
#include "common/job/verdict_text.h"
#include "common/text/text.h"

namespace gantry::cli::gctl_service {
namespace {

constexpr std::string_view kUsual = "%n %t %r %q %e %p %x %k %m";

struct ServiceOptions {
  std::string tenant;
  std::string format = std::string(kUsual);
  bool json = false;
};

constexpr Option kJson[] = {
    flag("json", "As JSON", put<&ServiceOptions::json>),
};
constexpr Option kListOptions[] = {
    takes("format", 'o', "FORMAT",
          "Columns: %n name, %t tenant, %r ready/wanted, %R range, %q requests a second, %e errors "
          "and refusals, %w waiting, %p promise, %x reached, %k minutes kept, %u use, %c cost an "
          "hour, %m cost of 1,000 requests, %o owner",
          put<&ServiceOptions::format>),
    flag("json", "As JSON", put<&ServiceOptions::json>),
    takes("tenant", 't', "TENANT", "Of this tenant only", put<&ServiceOptions::tenant>),
};

Result<int> as_json(const proto::ServiceList& list) {
  return print_pretty(list);
}

template <class Row>
Result<void> print_rows(const std::vector<Row>& rows, std::span<const Column<Row>> columns,
                        std::string_view format) {
  ASSIGN(layout, parse_format(format, infos(columns), true));
  TableWriter table(*layout, {.colour = wants_colour(stdout)}, stdout);
  for (const Row& row : rows) add_row(table, columns, row);
  return {};
}

Result<int> run_list(const Invocation& in) {
  ServiceOptions options;
  OPERANDS(operands, in, &options, 0, 0);
  proto::ListServices request;
  if (!options.tenant.empty()) request.tenants.push_back(options.tenant);
  ASSIGN(list, ask<proto::ServiceList>(in.program(), request));
  if (options.json) return as_json(*list);
  if (list->rows.empty()) {
    fmt::print("there are no services that you see\n");
    return 0;
  }
  TRY(print_rows(list->rows, service_columns(), options.format));
  if (list->gates.empty())
    fmt::print(stderr, "{}: no gate has asked lately: no request reaches a service\n",
               in.program());
  return 0;
}

void field(std::string_view name, const std::string& value) {
  if (!value.empty()) fmt::print("{:<10}{}\n", name, value);
}

void print_head(const proto::ServiceRow& r) {
  fmt::print("service {} of tenant {}{}\n", r.name, r.tenant, r.paused ? ", paused" : "");
  field("owner", r.owner);
  field("hosts", fmt::format("{}", fmt::join(r.hosts, ", ")));
  field("replicas", fmt::format("{} wanted, {} ready, {} starting, {} draining; {} to {} allowed",
                                r.wanted, r.ready, r.pending, r.draining, r.least, r.most));
  field("why", r.reason);
  field("promise",
        fmt::format("{} % of the answers within {}{}", r.percentile, response_text(r.target),
                    r.minutes == 0
                        ? std::string()
                        : fmt::format("; kept in {} of {}", r.minutes_kept,
                                      counted(static_cast<std::int64_t>(r.minutes), "minute"))));
  std::string last = counted(static_cast<std::int64_t>(r.requests), "request");
  if (r.reached)
    last += fmt::format(", {} % within {}, half within {}", r.percentile, response_text(*r.reached),
                        response_text(*r.p50));
  if (r.errors > 0) last += ", " + counted(static_cast<std::int64_t>(r.errors), "error");
  if (r.refused > 0) last += fmt::format(", {} refused", r.refused);
  field("minute", last + fmt::format("; {} running, {} waiting now", r.running, r.waiting));
  if (r.cost_per_hour)
    field("cost", fmt::format("{} {} an hour{}", format_money(*r.cost_per_hour, 2), r.currency,
                              r.cost_per_1000 ? fmt::format(", {} for 1,000 requests",
                                                            format_money(*r.cost_per_1000, 4))
                                              : ""));
  field("rollout", r.rollout);
}

Result<proto::ServiceList> find(const Invocation& in, ServiceOptions& options, bool& stop) {
  stop = false;
  ASSIGN(operands, in.parse(&options, 1, 1));
  stop = !*operands;
  if (stop) return proto::ServiceList{};
  proto::ListServices request;
  request.name = (**operands).front();
  return ask<proto::ServiceList>(in.program(), request);
}

void print_events(const proto::ServiceRow& row, std::size_t most) {
  const std::size_t first = row.events.size() > most ? row.events.size() - most : 0;
  for (std::size_t i = first; i < row.events.size(); ++i)
    fmt::print("{}  {}\n", format_time(row.events[i].at), row.events[i].text);
}

Result<int> run_show(const Invocation& in) {
  constexpr std::size_t kFew = 5;
  ServiceOptions options;
  bool stop = false;
  ASSIGN(list, find(in, options, stop));
  if (stop) return 0;
  if (options.json) return as_json(*list);
  for (const proto::ServiceRow& row : list->rows) {
    print_head(row);
    if (!row.replicas.empty()) {
      fmt::print("\n");
      TRY(print_rows(row.replicas, replica_columns(), "%i %v %N %s %q %x %S %y"));
    }
    if (!row.events.empty()) fmt::print("\n");
    print_events(row, kFew);
  }
  return 0;
}

Result<int> run_why(const Invocation& in) {
  ServiceOptions options;
  bool stop = false;
  ASSIGN(list, find(in, options, stop));
  if (stop) return 0;
  if (options.json) return as_json(*list);
  for (const proto::ServiceRow& row : list->rows) {
    fmt::print("{} of {} replicas are ready: {}\n", row.ready, row.wanted, row.reason);
    for (const proto::ReplicaRow& r : row.replicas)
      if (r.state != "ready")
        fmt::print("replica {} of {} is {} since {}{}{}\n", r.job.value(), r.version, r.state,
                   format_time(r.since), r.why.empty() ? "" : ": ", r.why);
    if (list->gates.empty()) fmt::print("no gate has asked lately: no request reaches it\n");
    print_events(row, row.events.size());
  }
  return 0;
}

template <proto::ServiceAction action>
Result<int> run_change(const Invocation& in) {
  ServiceOptions options;
  OPERANDS(operands, in, &options, 1, 1);
  ASSIGN(list,
         ask<proto::ServiceList>(in.program(), proto::ChangeService{(**operands).front(), action}));
  if (options.json) return as_json(*list);
  for (const proto::ServiceRow& row : list->rows) print_head(row);
  return 0;
}

const Command kList{
    {"list", "List services"},
    {.description = "REACHED is the response time within which the promised part of the last "
                    "minute's answers came; KEPT is the part of the minutes, since the "
                    "controller started, in which the promise was kept.",
     .options = kListOptions,
     .examples = {{"gctl service list", "All services that you see, with the last minute"},
                  {"gctl service list -t fraud -o '%n %r %u %c'",
                   "Use and cost of those of one tenant"}},
     .run = run_list}};
const Command kShow{{"show", "Show one service with its replicas", "NAME"},
                    {.options = kJson,
                     .examples = {{"gctl service show score", "Its replicas and last changes"}},
                     .run = run_show}};
const Command kWhy{{"why", "Why a service has so many replicas", "NAME"},
                   {.options = kJson,
                    .examples = {{"gctl service why score",
                                  "Why it has so many replicas, and each change with its numbers"}},
                    .run = run_why}};
const Command kPause{{"pause", "Stop scaling and rollouts of a service", "NAME"},
                     {.options = kJson,
                      .examples = {{"gctl service pause score",
                                    "Its replicas stay as they are, whatever the load is"}},
                      .run = run_change<proto::ServiceAction::pause>}};
const Command kResume{{"resume", "Let a paused service go on", "NAME"},
                      {.options = kJson,
                       .examples = {{"gctl service resume score", "After a pause"}},
                       .run = run_change<proto::ServiceAction::resume>}};
const Command kBack{
    {"rollback", "Take back a rollout that is under way", "NAME"},
    {.description = "What was there before runs on. The document still says the new version; "
                    "it is not tried again until the document changes.",
     .options = kJson,
     .examples = {{"gctl service rollback score", "The rollout that is under way goes back"}},
     .run = run_change<proto::ServiceAction::roll_back>}};
const Command kRestart{
    {"restart", "Replace all replicas, as a rollout of the same version", "NAME"},
    {.options = kJson,
     .examples = {{"gctl service restart score",
                   "New replicas take the place of all, without a pause"}},
     .run = run_change<proto::ServiceAction::restart>}};
constexpr const Command* kSub[] = {&kList, &kShow, &kWhy, &kPause, &kResume, &kBack, &kRestart};

}  // namespace

const Command kGctlService{
    {"service", "Services: how they keep their promises, and their rollouts"},
    {.description = "A service is a document of the kind Service, applied by `gtenant apply`. Its "
                    "replicas are "
                    "jobs. docs/services.md has the whole.",
     .examples = {{"gctl service list", "All services that you see"},
                  {"gctl service why score", "Why it has so many replicas"}},
     .sub = kSub}};

}  // namespace gantry::cli::gctl_service
