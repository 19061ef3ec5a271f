// greport: what tenants held and what it cost, by month or week: the ledger as a bill.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/invoice.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "common/ledger_metrics.h"

namespace gantry::cli {
namespace {

struct ReportQuery {
  std::vector<std::string> by;
  std::vector<std::string> tenants, projects, users;
  std::string invoice;  // a file
  bool csv = false;
  bool json = false;
  bool metrics = false;
  bool no_header = false;
};

constexpr Option kReportOptions[] = {
    {.name = "accounts",
     .letter = 'A',
     .arg = Arg::required,
     .value = "ACCOUNT,...",
     .help = "These projects",
     .set = put<&ReportQuery::projects>},
    {.name = "by",
     .letter = 'b',
     .arg = Arg::required,
     .value = "COLUMN,...",
     .help = "A line for each: period, tenant, project, user, job_type, pool, item, plan; "
             "period and tenant unless given",
     .set = put<&ReportQuery::by>},
    {.name = "csv", .help = "As CSV, with the exact amounts", .set = put<&ReportQuery::csv>},
    {.name = "invoice",
     .arg = Arg::required,
     .value = "FILE",
     .help = "An invoice of one tenant (-t) and period, as FILE.html or FILE.pdf",
     .set = put<&ReportQuery::invoice>},
    {.name = "json", .help = "As JSON, money in millionths", .set = put<&ReportQuery::json>},
    {.name = "metrics",
     .help = "Over all time, in the text format of Prometheus",
     .set = put<&ReportQuery::metrics>},
    {.name = "noheader",
     .letter = 'n',
     .help = "No header and no total",
     .set = put<&ReportQuery::no_header>},
    {.name = "tenants",
     .letter = 't',
     .arg = Arg::required,
     .value = "TENANT,...",
     .help = "These tenants (or partitions)",
     .set = put<&ReportQuery::tenants>},
    {.name = "users",
     .letter = 'u',
     .arg = Arg::required,
     .value = "USER,...",
     .help = "These users",
     .set = put<&ReportQuery::users>},
};

// A line of the report: all items of one group together, GPUs by model as well.
struct Line {
  std::vector<std::string> keys;  // by the columns asked for
  Held cpu, memory, scratch, gpu;
  std::map<std::string, Held> models;  // "a100"; slices count as their part
  Money cost, credit;
  std::uint64_t runs = 0;
};

struct Key {
  std::string_view name;
  std::string proto::LedgerRow::*member;
};
constexpr Key kKeys[] = {
    {"period", &proto::LedgerRow::period},     {"tenant", &proto::LedgerRow::tenant},
    {"project", &proto::LedgerRow::project},   {"user", &proto::LedgerRow::user},
    {"job_type", &proto::LedgerRow::job_type}, {"pool", &proto::LedgerRow::pool},
    {"item", &proto::LedgerRow::item},         {"plan", &proto::LedgerRow::plan}};

void add(Line& line, const proto::LedgerRow& row) {
  add_held(line.cpu, row.cpu, kThousandthsUnit);
  add_held(line.memory, row.memory, kMebibyteUnit);
  add_held(line.scratch, row.scratch, kMebibyteUnit);
  add_held(line.gpu, row.gpu, kThousandthsUnit);
  if (row.item.starts_with("gpu:")) {
    const std::string model = row.item.substr(4, row.item.find(':', 4) - 4);
    add_held(line.models[model], row.gpu, kThousandthsUnit);
  }
  line.cost += row.cost;
  line.credit += row.credit;
  line.runs += row.runs;
}

std::vector<Line> lines_of(const std::vector<std::string>& by,
                           const std::vector<proto::LedgerRow>& rows) {
  std::map<std::vector<std::string>, Line> groups;
  for (const proto::LedgerRow& row : rows) {
    std::vector<std::string> keys;
    for (const std::string& name : by)
      for (const Key& key : kKeys)
        if (key.name == name) keys.push_back(row.*key.member);
    Line& line = groups[keys];
    line.keys = std::move(keys);
    add(line, row);
  }
  std::vector<Line> out;
  for (auto& [keys, line] : groups) out.push_back(std::move(line));
  return out;
}

// ---- CSV

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

void print_csv(const std::vector<std::string>& by, const std::vector<Line>& lines,
               const std::set<std::string>& models, const std::string& currency, bool header) {
  std::string out;
  if (header) {
    for (const std::string& name : by) out += name + ",";
    out += "gpu_hours,";
    for (const std::string& model : models) out += csv_cell("gpu_hours_" + model) + ",";
    out += "cpu_hours,memory_gib_hours,scratch_gib_hours,cost,credit,net,currency,runs\n";
  }
  for (const Line& line : lines) {
    for (const std::string& key : line.keys) out += csv_cell(key) + ",";
    out += format_hours(line.gpu, kThousandthsUnit) + ",";
    for (const std::string& model : models) {
      const auto it = line.models.find(model);
      out += format_hours(it == line.models.end() ? Held{} : it->second, kThousandthsUnit) + ",";
    }
    out += fmt::format("{},{},{},{},{},{},{},{}\n", format_hours(line.cpu, kThousandthsUnit),
                       format_hours(line.memory, kMebibyteUnit),
                       format_hours(line.scratch, kMebibyteUnit), format_money(line.cost, 6),
                       format_money(line.credit, 6), format_money(line.cost - line.credit, 6),
                       currency, line.runs);
  }
  fmt::print("{}", out);
}

// ---- table

class Sheet {
 public:
  Sheet(const std::vector<std::string>& by, const std::set<std::string>& models,
        const std::string& currency)
      : models_(models), priced_(!currency.empty()) {
    for (const std::string& name : by) column(name, false);
    for (const std::string& model : models) column(model + "-hours", true);
    column("core-hours", true);
    column("GiB-hours", true);
    column("runs", true);
    if (!priced_) return;
    column("cost", true);
    column("credit", true);
    column("net " + currency, true);
  }

  void print(const std::vector<Line>& lines, const Line* total, bool header) {
    TableStyle style;
    style.header = header;
    TableWriter table(std::move(layout_), style, stdout);
    for (const Line& line : lines) put(table, line, Colour::none);
    if (total != nullptr) put(table, *total, Colour::none);
  }

 private:
  void column(std::string name, bool right) {
    for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    Cell cell;
    cell.column = layout_.cells.size();
    cell.before = layout_.cells.empty() ? "" : "  ";
    cell.width = static_cast<int>(name.size());
    cell.header = std::move(name);
    cell.right = right;
    cell.grows = true;
    layout_.cells.push_back(std::move(cell));
  }

  void put(TableWriter& table, const Line& line, Colour colour) const {
    table.begin_row(colour);
    const auto cell = [&](const std::string& text) {
      table.cell_text() += text;
      table.end_cell();
    };
    for (const std::string& key : line.keys) cell(key.empty() ? "-" : key);
    for (const std::string& model : models_) {
      const auto it = line.models.find(model);
      cell(it == line.models.end() ? "-" : format_hours(it->second, kThousandthsUnit));
    }
    cell(format_hours(line.cpu, kThousandthsUnit));
    cell(format_hours(line.memory, kMebibyteUnit));
    cell(std::to_string(line.runs));
    if (!priced_) return;
    cell(format_money(line.cost, 4));
    cell(format_money(line.credit, 4));
    cell(format_money(line.cost - line.credit, 4));
  }

  const std::set<std::string>& models_;
  bool priced_;
  Layout layout_;
};

void print_report(const ReportQuery& query, const proto::LedgerReply& reply) {
  const std::vector<Line> lines = lines_of(query.by, reply.rows);
  std::set<std::string> models;
  for (const Line& line : lines)
    for (const auto& [model, held] : line.models) models.insert(model);
  if (query.csv) return print_csv(query.by, lines, models, reply.currency, !query.no_header);
  Line total;
  for (const proto::LedgerRow& row : reply.rows) add(total, row);
  total.keys.assign(query.by.size(), "");
  if (!total.keys.empty()) total.keys.front() = "total";
  Sheet(query.by, models, reply.currency)
      .print(lines, lines.size() > 1 && !query.no_header ? &total : nullptr, !query.no_header);
}

Result<void> check_by(std::vector<std::string>& by) {
  if (by.empty()) by = {"period", "tenant"};
  for (std::size_t i = 0; i < by.size(); ++i) {
    if (std::none_of(std::begin(kKeys), std::end(kKeys),
                     [&](const Key& key) { return key.name == by[i]; }))
      return fail(ErrorCode::usage,
                  fmt::format("there is no column \"{}\"; use period, tenant, project, user, "
                              "job_type, pool, item or plan",
                              by[i]));
    if (std::find(by.begin(), by.begin() + static_cast<std::ptrdiff_t>(i), by[i]) !=
        by.begin() + static_cast<std::ptrdiff_t>(i))
      return fail(ErrorCode::usage, fmt::format("--by names `{}` twice", by[i]));
  }
  return {};
}

// Counters must not fall, so they are over all time.
Result<int> run_metrics(const Invocation& in, const ReportQuery& query) {
  auto session = Session::open(in.program());
  if (!session) return tl::unexpected(session.error());
  proto::QueryLedger all;
  all.first = "0000-01";
  all.last = "9999-12";
  all.by = {"tenant", "job_type", "item"};
  all.tenants = query.tenants;
  const auto ledger = session->call<proto::LedgerReply>(all);
  if (!ledger) return tl::unexpected(ledger.error());
  const auto usage = session->call<proto::TenantUsageReply>(proto::TenantUsage{query.tenants});
  if (!usage) return tl::unexpected(usage.error());
  fmt::print("{}", ledger_metrics(*ledger, *usage));
  return 0;
}

Result<int> run_invoice(const Invocation& in, const ReportQuery& query,
                        const std::vector<std::string>& periods) {
  const bool pdf = query.invoice.ends_with(".pdf");
  if (!pdf && !query.invoice.ends_with(".html"))
    return fail(
        ErrorCode::usage,
        fmt::format("\"{}\": an invoice is a file with .html or .pdf at its end", query.invoice));
  if (query.tenants.size() != 1 || periods.size() > 1 || !query.by.empty() ||
      !query.projects.empty() || !query.users.empty())
    return fail(ErrorCode::usage, "an invoice is of one tenant (-t TENANT) and one period");
  proto::QueryLedger of;
  of.first = of.last = periods.empty() ? "last-month" : periods.front();
  of.by = {"period", "project", "user", "item"};
  of.tenants = query.tenants;
  const auto reply = ask<proto::LedgerReply>(in.program(), of);
  if (!reply) return tl::unexpected(reply.error());
  if (reply->rows.empty())
    return fail(ErrorCode::not_found,
                fmt::format("{} held nothing in {} that you may see", query.tenants[0], of.first));
  const Invoice invoice = make_invoice(query.tenants[0], reply->rows[0].period, *reply);
  const std::string text = pdf ? invoice_pdf(invoice) : invoice_page(invoice);
  if (auto done = write_file(query.invoice, text, 0644); !done) return tl::unexpected(done.error());
  fmt::print("{}: invoice {}, {} {}\n", query.invoice, invoice.number,
             format_money(invoice.cost - invoice.credit, 2), invoice.currency);
  return 0;
}

Result<int> run_report(const Invocation& in) {
  ReportQuery query;
  const auto operands = in.parse(&query, 0, 2);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  if (query.csv + query.json + query.metrics + !query.invoice.empty() > 1)
    return fail(ErrorCode::usage, "use one of --csv, --invoice, --json and --metrics");
  if (!query.invoice.empty()) return run_invoice(in, query, **operands);
  if (query.metrics) {
    if (!(*operands)->empty() || !query.by.empty() || !query.projects.empty() ||
        !query.users.empty())
      return fail(ErrorCode::usage, "--metrics are over all time, and of tenants as a whole");
    return run_metrics(in, query);
  }
  if (auto sound = check_by(query.by); !sound) return tl::unexpected(sound.error());
  const std::vector<std::string>& periods = **operands;
  proto::QueryLedger ask_for;
  ask_for.first = periods.empty() ? "this-month" : periods.front();
  ask_for.last = periods.empty() ? "this-month" : periods.back();
  ask_for.by = query.by;
  if (std::find(query.by.begin(), query.by.end(), "item") == query.by.end() && !query.json)
    ask_for.by.emplace_back("item");  // for GPUs by model
  ask_for.tenants = query.tenants;
  ask_for.projects = query.projects;
  ask_for.users = query.users;
  const auto reply = ask<proto::LedgerReply>(in.program(), ask_for);
  if (!reply) return tl::unexpected(reply.error());
  if (query.json)
    fmt::print("{}\n", codec::to_json(*reply, codec::JsonStyle::pretty));
  else
    print_report(query, *reply);
  return 0;
}

constexpr Example kReportExamples[] = {
    {"greport", "This month, by tenant, up to now"},
    {"greport last-month --csv > bill.csv", "Last month, for finance"},
    {"greport 2026-W44 2026-W47 -t fraud -b period,project,user",
     "Four weeks of a tenant, by project and user"},
    {"greport -b item", "What it was spent on"},
    {"greport last-month -t fraud --invoice fraud.pdf", "The bill, to be filed"},
    {"greport --metrics > /var/lib/prometheus/node-exporter/gantry.prom",
     "For Prometheus, from a timer"},
};
constexpr ExitDoc kReportExits[] = {
    {"0", "fine"}, {"1", "no answer"}, {"2", "the command line is wrong"}};

}  // namespace

extern const Command kGreport;
const Command kGreport{
    .name = "greport",
    .summary = "What tenants held and what it cost, by month or week",
    .operands = "[PERIOD [PERIOD]]",
    .description =
        "From the first PERIOD to the second: months as 2026-11, ISO weeks as 2026-W47, or "
        "this-month, last-month, this-week, last-week; this month unless given. Months and weeks "
        "end at midnight in the tenant's time zone. Jobs that run are counted up to now.\n\n"
        "What counts is what was held, from the start of a job until its nodes let go: hours of "
        "GPUs by model (a slice counts as its part of one), of cores, and of GiB of memory. CREDIT "
        "is what is given back of COST for preempted work and faults; NET is what is left. "
        "docs/money.md explains it.\n\n"
        "One sees what is one's own, all of tenants in which one has a role, and as an operator "
        "or administrator everything.",
    .options = kReportOptions,
    .examples = kReportExamples,
    .exits = kReportExits,
    .run = run_report,
};

}  // namespace gantry::cli
