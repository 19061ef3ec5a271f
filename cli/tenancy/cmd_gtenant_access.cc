// gtenant access: the access report. It shows who may do what, since when and by whom.
#include <fmt/core.h>

#include "cli/columns/tenant_columns.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/tenancy/cmd_gtenant.h"
#include "common/codec/codec.h"

namespace gantry::cli::gtenant_access {
namespace {

constexpr std::string_view kFormat = "%t %u %r %g %e %s %b";
constexpr std::string_view kCsvFormat = "%t %u %r %x %g %e %s %b %R %f";

struct AccessOptions {
  std::string format;
  bool no_header = false, csv = false, json = false;
};

constexpr Option kOptions[] = {
    flag("csv", "All columns, for a spreadsheet", put<&AccessOptions::csv>),
    takes("format", 'o', "FORMAT",
          "Fields as %[[.]WIDTH]LETTER with any text around them: t tenant, u who, r role, x "
          "rights, g GPUs, e until, s since, b by, f from, R revision",
          put<&AccessOptions::format>),
    flag("json", "As JSON", put<&AccessOptions::json>),
    flag("noheader", 'h', "No header", put<&AccessOptions::no_header>),
};

// A CSV field as in RFC 4180. A text that a spreadsheet would treat as a formula is prefixed with
// an apostrophe.
std::string csv_field(std::string text) {
  if (!text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos &&
      text != "-")
    text.insert(text.begin(), '\'');
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? 2 : 1, c);
  return out + '"';
}

void print_csv(const std::vector<proto::AccessRow>& rows, bool header) {
  const auto columns = access_columns();
  std::string line;
  for (const auto& column : columns) line.append(line.empty() ? "" : ",").append(column.name);
  if (header) fmt::print("{}\n", line);
  for (const proto::AccessRow& row : rows) {
    bool first = true;
    for (const auto& column : columns) {
      std::string text;
      column.put(text, row);
      fmt::print("{}{}", first ? "" : ",", csv_field(std::move(text)));
      first = false;
    }
    fmt::print("\n");
  }
}

Result<int> run_access(const Invocation& in) {
  AccessOptions options;
  OPERANDS(operands, in, &options, 0, kAnyOperands);
  const auto columns = access_columns();
  ASSIGN(layout, parse_format(options.format.empty() ? kFormat : std::string_view(options.format),
                              infos(columns), options.format.empty()));
  ASSIGN(reply, ask<proto::AccessReply>(in.program(), proto::ListAccess{**operands, 0}));
  if (options.json) return print_pretty(*reply);
  if (options.csv) {
    print_csv(reply->rows, !options.no_header);
    return 0;
  }
  TableWriter table(*layout, {.header = !options.no_header, .colour = wants_colour(stdout)},
                    stdout);
  for (const proto::AccessRow& row : reply->rows) add_row(table, columns, row);
  return 0;
}

}  // namespace

const Command kTenantAccess{
    {"access", "Report who may do what, since when and by whom", "[TENANT...]"},
    {.description =
         "Without a tenant: all tenants, and the roles of the cluster. Administrators, operators "
         "and "
         "auditors see all rows; who may edit the roles of a tenant sees those of the tenant, and "
         "everybody their own. SINCE and BY are of the revision that granted the role; where this "
         "is older than the history that is kept there is a dash.",
     .options = kOptions,
     .examples = {{"gtenant access fraud", "Who has which role in fraud, since when and by whom"},
                  {"gtenant access --csv",
                   "The report for a review: every grant that you may see"}},
     .run = run_access}};

}  // namespace gantry::cli::gtenant_access
