// gtenant budget: shows what is left of budgets.
#include <fmt/core.h>

#include <algorithm>

#include "cli/session.h"
#include "cli/table.h"
#include "cli/tenancy/cmd_gtenant.h"
#include "common/text/text.h"

namespace gantry::cli::gtenant_budget {
namespace {

struct BudgetOptions {
  std::string format;
  bool no_header = false;
  bool json = false;
};

constexpr std::string_view kBudgetFormat = "%n %t %.8a %.8s %.8l %.9f %.4u";
constexpr std::string_view kBudgetLongFormat =
    "%n %t %p %.10a %.10s %.10r %.10l %.10f %.5u %.7w %A";

constexpr Option kBudgetOptions[] = {
    takes("format", 'o', "FORMAT", "Fields as %[[.]WIDTH]LETTER with any text around them",
          put<&BudgetOptions::format>),
    flag("json", "As JSON", put<&BudgetOptions::json>),
    flag("long", 'l',
         "Also the period, what is set aside, who waits, and what happens at the limit",
         does<[](BudgetOptions& options) { options.format = kBudgetLongFormat; }>),
    flag("noheader", 'h', "No header", put<&BudgetOptions::no_header>),
};

using O = std::string&;
using Row = const proto::BudgetRow&;

std::string scope_of(Row r) {
  std::string out = r.budget.tenant;
  if (!r.budget.project.empty()) out += "/" + r.budget.project;
  if (!r.budget.user.empty()) out += " " + r.budget.user;
  return out;
}

Money left_of(Row r) {
  return r.amount - r.spent - r.reserved;
}

std::int64_t percent_of(Row r) {
  return static_cast<std::int64_t>(static_cast<__int128>(r.spent.micros) * 100 /
                                   std::max<std::int64_t>(r.amount.micros, 1));
}

Colour colour_of(Row r) {
  if (r.period.empty()) return Colour::none;
  if (left_of(r) <= Money{} || r.spent >= r.amount) return Colour::red;
  return !r.little_history && r.forecast > r.amount ? Colour::yellow : Colour::none;
}

void put_sum(O o, Row r, Money sum) {
  o += r.period.empty() ? "-" : format_money(sum, 2);
}

constexpr Column<proto::BudgetRow> kColumns[] = {
    {'n', "Budget", "BUDGET", [](O o, Row r) { o += r.budget.name; }},
    {'t', "Of", "OF", [](O o, Row r) { o += scope_of(r); }},
    {'p', "Period", "PERIOD",
     [](O o, Row r) {
       o += r.period == "fixed" ? r.budget.from + ".." + r.budget.until
            : r.period.empty()  ? "-"
                                : r.period;
     }},
    {'a', "Amount", "AMOUNT", [](O o, Row r) { o += format_money(r.amount, 2); }},
    coloured<proto::BudgetRow>({'s', "Spent", "SPENT", [](O o, Row r) { put_sum(o, r, r.spent); }},
                               colour_of),
    {'r', "Reserved", "RESERVED", [](O o, Row r) { put_sum(o, r, r.reserved); }},
    {'l', "Left", "LEFT", [](O o, Row r) { put_sum(o, r, left_of(r)); }},
    {'f', "Forecast", "FORECAST",
     [](O o, Row r) {
       if (r.little_history && !r.period.empty())
         o += "too early";
       else
         put_sum(o, r, r.forecast);
     }},
    {'u', "Use", "USE",
     [](O o, Row r) { o += r.period.empty() ? "-" : fmt::format("{}%", percent_of(r)); }},
    {'w', "Waiting", "WAITING", [](O o, Row r) { o += std::to_string(r.waiting); }},
    {'A', "AtLimit", "AT LIMIT",
     [](O o, Row r) {
       o += enum_name(r.budget.at_limit);
       if (!r.budget.lower_to.empty()) o += " " + r.budget.lower_to;
     }},
    {'i', "Increase", "INCREASE", [](O o, Row r) { o += format_money(r.increase, 2); }},
    {'e', "Ends", "ENDS", [](O o, Row r) { o += r.period.empty() ? "-" : format_time(r.to); }}};
Result<int> run_budget_list(const Invocation& in) {
  BudgetOptions options;
  OPERANDS(operands, in, &options, 0, kAnyOperands);
  const std::span<const Column<proto::BudgetRow>> columns(kColumns);
  ASSIGN(layout,
         parse_format(options.format.empty() ? kBudgetFormat : options.format, infos(columns),
                      options.format.empty() || options.format == kBudgetLongFormat));
  ASSIGN(reply, ask<proto::BudgetList>(in.program(), proto::ListBudgets{**operands}));
  if (options.json) return print_pretty(*reply);
  TableStyle style;
  style.header = !options.no_header;
  style.colour = wants_colour(stdout);
  {
    TableWriter table(std::move(*layout), style, stdout);
    for (const proto::BudgetRow& row : reply->rows) add_row(table, columns, row);
  }
  int status = 0;
  for (const std::string& name : **operands) {
    const bool found = std::any_of(reply->rows.begin(), reply->rows.end(), [&](Row row) {
      return row.budget.name == name || row.budget.tenant == name;
    });
    if (found) continue;
    fmt::print(stderr, "{}: error: there is no budget {}, nor one of a tenant {}\n", in.program(),
               name, name);
    status = 1;
  }
  if (reply->rows.empty() && (*operands)->empty())
    fmt::print(stderr, "{}: there is no budget; gtenant apply -f FILE\n", in.program());
  return status;
}

const Command kBudgetList{
    {"list", "List budgets with what is spent, set aside, left and forecast", "[BUDGET|TENANT...]"},
    {.description =
         "SPENT is up to now, RESERVED (with -l) what jobs that run may still cost up to their "
         "time "
         "limits, "
         "LEFT what new ones may cost. FORECAST is what will be spent at the end of the period at "
         "the pace of the last seven days; before charges of three days are known it is too early "
         "for "
         "one. With -l, WAITING counts jobs that wait for the budget.\n\n"
         "Fields of -o: %n name, %t whose, %p period, %a amount, %s spent, %r reserved, %l left, "
         "%f "
         "forecast, %u part that is spent, %w waiting jobs, %A what happens at the limit, %i of "
         "the "
         "amount: increases in force, %e end of the period.",
     .options = kBudgetOptions,
     .examples = {{"gtenant budget list", "Every budget that you may see"},
                  {"gtenant budget list -l fraud",
                   "Those of a tenant, with what is set aside and who waits"},
                  {"gtenant budget list -h -o '%n %l'", "What each has left, for scripts"}},
     .run = run_budget_list}};
constexpr const Command* kBudgetSub[] = {&kBudgetList};

}  // namespace

const Command kTenantBudget{
    {"budget", "Money for tenants, projects and users: list"},
    {.description = "Budgets are documents: gtenant apply, diff, export and delete are "
                    "for them, too. docs/money.md explains them with examples.",
     .examples = {{"gtenant budget list", "Every budget that you may see"},
                  {"gtenant budget list -l fraud",
                   "Those of a tenant, with what is set aside and who waits"},
                  {"gtenant budget list -h -o '%n %l'", "What each has left, for scripts"}},
     .sub = kBudgetSub}};

}  // namespace gantry::cli::gtenant_budget
