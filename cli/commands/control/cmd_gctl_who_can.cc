// gctl who-can: who has a right in a tenant, by which role.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/columns/tenant_columns.h"
#include "cli/commands/control/gctl.h"
#include "cli/session.h"
#include "cli/table.h"
#include "common/codec/codec.h"
#include "common/tenancy/tenancy_rules.h"

namespace gantry::cli::gctl_who_can {
namespace {

struct WhoOptions {
  bool json = false;
};

constexpr Option kOptions[] = {
    flag("json", "As JSON", put<&WhoOptions::json>),
};

std::vector<std::string_view> rights() {
  std::vector<std::string_view> out;
  for (const auto& row : enum_names(tenancy::TenantRight{})) out.push_back(row.second);
  return out;
}

bool has(const proto::AccessRow& row, const std::string& right) {
  // An operator manages all jobs, and an auditor sees all; documents grant them no other rights.
  if (row.tenant.empty() && row.role == "admin") return true;
  if (row.tenant.empty() && row.role == "operator")
    return right == "see" || right == "change-jobs" || right == "read-output";
  if (row.tenant.empty()) return right == "see";
  return std::find(row.rights.begin(), row.rights.end(), right) != row.rights.end();
}

Result<int> run(const Invocation& in) {
  WhoOptions options;
  OPERANDS(operands, in, &options, 2, 2);
  const std::string &right = (**operands)[0], &tenant = (**operands)[1];
  const auto all = rights();
  if (std::find(all.begin(), all.end(), right) == all.end())
    return fail(ErrorCode::usage,
                fmt::format("there is no right \"{}\"; there are {}", right, fmt::join(all, ", ")));
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(of_tenant, session->call<proto::AccessReply>(proto::ListAccess{{tenant}, 0}));
  ASSIGN(everywhere, session->call<proto::AccessReply>(proto::ListAccess{}));
  proto::AccessReply found;
  for (const proto::AccessRow& row : everywhere->rows)
    if (row.tenant.empty() && has(row, right)) found.rows.push_back(row);
  for (const proto::AccessRow& row : of_tenant->rows)
    if (!row.tenant.empty() && has(row, right)) found.rows.push_back(row);
  if (options.json) return print_pretty(found);
  const auto columns = access_columns();
  ASSIGN(layout, parse_format("%u %r %e %s %b %f", infos(columns), true));
  TableWriter table(*layout, {.colour = wants_colour(stdout)}, stdout);
  for (const proto::AccessRow& row : found.rows) add_row(table, columns, row);
  return 0;
}

}  // namespace

const Command kGctlWhoCan{
    {"who-can", "List who has a right in a tenant", "RIGHT TENANT"},
    {.description =
         "Rights are see, submit, change-jobs, read-output, edit-projects, edit-roles, "
         "edit-policies, edit-secrets and ask-increase. Everybody may do all of this to their own "
         "jobs. What you may not see of the access report (`gtenant access`) is not here either.",
     .options = kOptions,
     .examples = {{"gctl who-can read-output fraud",
                   "Who may read scripts and output of others in fraud"}},
     .run = run}};

}  // namespace gantry::cli::gctl_who_can
