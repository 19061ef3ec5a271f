// gshare: shows the fair-share tree, and who is served first in it.
#include <fmt/core.h>

#include "cli/columns/known_names.h"
#include "cli/columns/tenant_columns.h"
#include "cli/command.h"
#include "cli/session.h"
#include "cli/table.h"
#include "config/values.h"

namespace gantry::cli::gshare {
namespace {

struct Query {
  std::string format;
  std::vector<std::string> tenants;
  bool no_header = false;
  bool json = false;
  bool tenants_only = false;
};

constexpr Option kOptions[] = {
    takes("format", 'o', "FORMAT", "Fields as %[[.]WIDTH]LETTER with any text around them",
          put<&Query::format>),
    flag("json", "As JSON", put<&Query::json>),
    flag("noheader", 'h', "No header", put<&Query::no_header>),
    takes("partition", 'p', "PARTITION,...", "These tenants", put<&Query::tenants>),
    flag("tenants", 't', "Tenants only, without projects and users", put<&Query::tenants_only>),
};

Result<int> run(const Invocation& in) {
  Query q;
  OPERANDS(operands, in, &q, 0, 0);
  const auto columns = share_columns();
  ASSIGN(layout, parse_format(q.format.empty() ? kShareFormat : std::string_view(q.format),
                              infos(columns), q.format.empty()));
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(reply, session->call<proto::ShareTreeReply>(proto::ShareTree{q.tenants}));
  std::set<std::string> seen;
  for (const proto::ShareRow& row : reply->rows) seen.insert(row.tenant);
  TRY(check_tenants(*session, q.tenants, seen));
  if (q.json) return print_pretty(*reply);
  TableStyle style;
  style.header = !q.no_header;
  style.colour = wants_colour(stdout);
  if (style.header)
    fmt::print("usage counts half after {}\n", config::show_length(reply->half_life));
  std::fflush(stdout);
  TableWriter table(*layout, style, stdout);
  for (const proto::ShareRow& row : reply->rows)
    if (!q.tenants_only || row.project.empty()) add_row(table, columns, row);
  return 0;
}

}  // namespace

extern const Command kGshare;
const Command kGshare{
    {"gshare", "Show the fair-share tree: shares, usage, and who is served first"},
    {.description =
         "Tenants, their projects and users, each with its part of the shares and of the usage "
         "among its siblings. LEVEL is share over usage: above 1 it has had less than its share; "
         "the highest is served first. BORROWS is how much of what can be lent a tenant holds "
         "beyond its own, over its weight: the lowest is served first. PLACE is the order that "
         "follows.\n\n"
         "Fields of -o: %n name, %s shares, %S part of the shares, %u usage, %U part of the usage, "
         "%R charge per second of what runs, %f level, %b borrows, %k place, %q queued, %r "
         "running.",
     .options = kOptions,
     .examples = {{"gshare", "The whole tree that one may see"},
                  {"gshare -p fraud", "One tenant, its projects and their users"}},
     .exits = {{"0", "fine"},
               {"1", "a tenant does not exist, or no answer"},
               {"2", "the command line is wrong"}},
     .run = run}};

}  // namespace gantry::cli::gshare
