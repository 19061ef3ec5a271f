// gtenant list and quota: show what tenants hold of what they own.
#include <fmt/core.h>

#include <algorithm>

#include "cli/columns/tenant_columns.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/tenancy/cmd_gtenant.h"

namespace gantry::cli::gtenant_use {
namespace {

struct UseOptions {
  std::string format;
  bool no_header = false;
  bool json = false;
};

constexpr Option kUseOptions[] = {
    takes("format", 'o', "FORMAT", "Fields as %[[.]WIDTH]LETTER with any text around them",
          put<&UseOptions::format>),
    flag("json", "As JSON", put<&UseOptions::json>),
    flag("noheader", 'h', "No header", put<&UseOptions::no_header>),
};

Result<Layout> layout_of(const UseOptions& options, std::string_view usual,
                         std::span<const ColumnInfo> columns) {
  return parse_format(options.format.empty() ? usual : std::string_view(options.format), columns,
                      options.format.empty());
}

TableStyle style_of(const UseOptions& options) {
  TableStyle style;
  style.header = !options.no_header;
  style.colour = wants_colour(stdout);
  return style;
}

// Reports names for which there are no rows. Returns 1 if there are any.
int name_missing(const Invocation& in, const std::vector<std::string>& names,
                 const std::vector<proto::TenantUse>& rows) {
  int status = 0;
  for (const std::string& name : names) {
    const bool found =
        std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
    if (found) continue;
    fmt::print(stderr, "{}: error: there is no tenant or cohort {}\n", in.program(), name);
    status = 1;
  }
  return status;
}

// Shows what the named tenants and cohorts use, or all of them: `add_rows` adds the lines of one,
// and `tell` prints on standard error what has no line.
template <class Columns, class AddRows, class Tell>
Result<int> show_use(const Invocation& in, const Columns& columns, std::string_view usual,
                     AddRows add_rows, Tell tell) {
  UseOptions options;
  OPERANDS(operands, in, &options, 0, kAnyOperands);
  ASSIGN(layout, layout_of(options, usual, infos(columns)));
  ASSIGN(reply, ask<proto::TenantUsageReply>(in.program(), proto::TenantUsage{**operands}));
  if (options.json) return print_pretty(*reply);
  {
    TableWriter table(*layout, style_of(options), stdout);
    for (const proto::TenantUse& row : reply->rows) add_rows(table, row, options);
  }
  for (const proto::TenantUse& row : reply->rows) tell(row);
  return name_missing(in, **operands, reply->rows);
}

Result<int> run_list(const Invocation& in) {
  const auto add = [](TableWriter& table, const proto::TenantUse& row, const UseOptions&) {
    if (!row.is_cohort) add_row(table, tenant_columns(), row);
  };
  return show_use(in, tenant_columns(), kTenantFormat, add, [](const proto::TenantUse&) {});
}

Result<int> run_quota(const Invocation& in) {
  const auto add = [](TableWriter& table, const proto::TenantUse& row, const UseOptions& options) {
    bool first = true;
    for (const proto::QuotaUse& cell : row.cells) {
      QuotaRow line{&row, &cell, first || !options.format.empty(),
                    is_terminal(stdout) && terminal_width(stdout) >= kColumnsForBars};
      add_row(table, quota_columns(), line);
      first = false;
    }
  };
  return show_use(in, quota_columns(), kQuotaFormat, add, [&](const proto::TenantUse& row) {
    if (row.cells.empty() && !row.is_cohort)
      fmt::print(stderr, "{}: {} has no quota: it may use everything that is free\n", in.program(),
                 row.name);
  });
}

}  // namespace

const Command kTenantList{
    {"list", "List tenants with what they use", "[TENANT...]"},
    {.description =
         "GPU, CPU and MEMORY are what is used of its own, + what is borrowed, / what it owns.\n\n"
         "Fields of -o: %n name, %c cohort, %q queued and %r running jobs with their limits, %g "
         "GPUs, %p cores, %m memory, %d scratch, %i io and %w net per second, %s state.",
     .options = kUseOptions,
     .examples = {{"gtenant list", "All tenants that you may see"}, {"gtenant list fraud", "One"}},
     .run = run_list}};
const Command kTenantQuota{
    {"quota", "Show what tenants and cohorts use, own, borrow and lend", "[TENANT|COHORT...]"},
    {.description =
         "On a terminal the bar shows what is used of its own (#), what is borrowed (+), and the "
         "rest up to the limit (.).\n\n"
         "Fields of -o: %n name, %r resource, %f flavor, %u used, %o nominal, %b borrowed, %l "
         "limit, %L lent and lending limit, %a available now, %p part of the limit.",
     .options = kUseOptions,
     .examples = {{"gtenant quota fraud", "Every line of its quota"},
                  {"gtenant quota -h -o '%n %r %a'", "What each could start now, for scripts"}},
     .run = run_quota}};

}  // namespace gantry::cli::gtenant_use
