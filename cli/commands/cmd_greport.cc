// greport: shows what tenants held and what it cost, by month or week: the ledger as a bill.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/bill/focus.h"
#include "cli/bill/invoice.h"
#include "cli/columns/known_names.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/session.h"
#include "cli/table.h"
#include "common/metrics/ledger_metrics.h"
#include "common/text/text.h"

namespace gantry::cli::greport {
namespace {

struct ReportQuery {
  std::vector<std::string> by;
  std::vector<std::string> tenants, projects, users;
  std::string invoice;  // name of the file to write
  bool csv = false;
  bool exact = false;
  bool focus = false;
  bool json = false;
  bool metrics = false;
  bool no_header = false;
};

constexpr Option kReportOptions[] = {
    takes("accounts", 'A', "ACCOUNT,...", "These projects", put<&ReportQuery::projects>),
    takes("by", 'b', "COLUMN,...",
          "A line for each: period, tenant, project, user, job_type, pool, item, plan, label:KEY, "
          "what the tenant's label of that key is, labels of jobs (controller.report_labels), "
          "job-label:KEY; period and tenant unless given",
          put<&ReportQuery::by>),
    flag("csv", "As CSV, with the exact amounts", put<&ReportQuery::csv>),
    flag("exact", "With --invoice: amounts to the millionth, without separators",
         put<&ReportQuery::exact>),
    flag("focus", "As CSV with the columns of FOCUS 1.0, for tools that read clouds' bills",
         put<&ReportQuery::focus>),
    takes("invoice", "FILE",
          "An invoice of one tenant (-t) and period (last-month unless given, because a bill is of "
          "what is over), as FILE.html or FILE.pdf",
          put<&ReportQuery::invoice>),
    flag("json", "As JSON, money in millionths", put<&ReportQuery::json>),
    flag("metrics", "Over all time, in the text format of Prometheus", put<&ReportQuery::metrics>),
    flag("noheader", 'n', "No header and no total", put<&ReportQuery::no_header>),
    takes("tenants", 't', "TENANT,...", "These tenants (or partitions)",
          put<&ReportQuery::tenants>),
    takes("users", 'u', "USER,...", "These users", put<&ReportQuery::users>),
};

// A line of the report. It sums all items of one group; GPUs are also kept by model.
struct Line {
  std::vector<std::string> keys;  // values of the columns that divide the report
  Held cpu, memory, scratch, gpu;
  std::map<std::string, Held> models;  // by model, "a100"; a slice counts as its part of the GPU
  std::map<std::string, Held> meters;  // by "storage-gib-month": amounts; and hours of rates
  Money cost, credit, list, waste, overhead;
  Held idle_cpu, idle_memory, idle_gpu;
  std::uint64_t runs = 0, starts = 0;
  Duration waited{};
  [[nodiscard]] Duration mean_wait() const {
    return Duration{starts == 0 ? 0 : waited.us / static_cast<std::int64_t>(starts)};
  }
};

// Prefixes of columns that are labels: of the tenant, and of its jobs.
constexpr std::string_view kLabel = "label:";
constexpr std::string_view kJobLabel = "job-label:";

struct Key {
  std::string_view name;
  std::string proto::LedgerRow::*member;
};
constexpr Key kKeys[] = {
    {"period", &proto::LedgerRow::period},     {"tenant", &proto::LedgerRow::tenant},
    {"project", &proto::LedgerRow::project},   {"user", &proto::LedgerRow::user},
    {"job_type", &proto::LedgerRow::job_type}, {"pool", &proto::LedgerRow::pool},
    {"item", &proto::LedgerRow::item},         {"plan", &proto::LedgerRow::plan},
    {"labels", &proto::LedgerRow::labels}};

void add(Line& line, const proto::LedgerRow& row) {
  add_held(line.cpu, row.cpu, kThousandthsUnit);
  add_held(line.memory, row.memory, kMebibyteUnit);
  add_held(line.scratch, row.scratch, kMebibyteUnit);
  add_held(line.gpu, row.gpu, kThousandthsUnit);
  if (row.item.starts_with("gpu:")) {
    const std::string model = row.item.substr(4, row.item.find(':', 4) - 4);
    add_held(line.models[model], row.gpu, kThousandthsUnit);
  }
  if (row.item.starts_with("meter:"))
    add_held(line.meters[row.item.substr(6)], row.metered, kThousandthsUnit);
  if (row.io != Held{}) add_held(line.meters["io-gb-per-s-hours"], row.io, kThousandthsUnit);
  if (row.net != Held{}) add_held(line.meters["net-gbit-per-s-hours"], row.net, kThousandthsUnit);
  line.cost += row.cost;
  line.credit += row.credit;
  line.list += row.list;
  line.waste += row.waste;
  line.overhead += row.overhead;
  add_held(line.idle_cpu, row.idle_cpu, kThousandthsUnit);
  add_held(line.idle_memory, row.idle_memory, kMebibyteUnit);
  add_held(line.idle_gpu, row.idle_gpu, kThousandthsUnit);
  line.runs += row.runs;
  line.starts += row.starts;
  line.waited = line.waited + row.waited;
}

std::vector<Line> lines_of(const std::vector<std::string>& by,
                           const std::vector<proto::LedgerRow>& rows) {
  std::map<std::vector<std::string>, Line> groups;
  for (const proto::LedgerRow& row : rows) {
    std::vector<std::string> keys;
    for (const std::string& name : by) {
      if (name.starts_with(kLabel)) keys.push_back(row.label);
      if (name.starts_with(kJobLabel)) keys.push_back(row.job_label);
      for (const Key& key : kKeys)
        if (key.name == name) keys.push_back(row.*key.member);
    }
    Line& line = groups[keys];
    line.keys = std::move(keys);
    add(line, row);
  }
  std::vector<Line> out;
  for (auto& [keys, line] : groups) out.push_back(std::move(line));
  return out;
}

// ---- CSV

// The GPU models and meters that have their own columns in this report.
struct Columns {
  std::set<std::string> models, meters;
  bool overhead = false;
};

Columns columns_of(const std::vector<Line>& lines) {
  Columns out;
  for (const Line& line : lines) {
    for (const auto& [model, held] : line.models) out.models.insert(model);
    for (const auto& [meter, held] : line.meters) out.meters.insert(meter);
    out.overhead = out.overhead || line.overhead != Money{};
  }
  return out;
}

std::string hours_of(const std::map<std::string, Held>& held, const std::string& name) {
  const auto it = held.find(name);
  return format_hours(it == held.end() ? Held{} : it->second, kThousandthsUnit);
}

void print_csv(const std::vector<std::string>& by, const std::vector<Line>& lines,
               const Columns& columns, const std::string& currency, bool header) {
  std::string out;
  if (header) {
    for (const std::string& name : by) out += name + ",";
    out += "gpu_hours,";
    for (const std::string& model : columns.models) out += csv_cell("gpu_hours_" + model) + ",";
    out += "cpu_hours,memory_gib_hours,scratch_gib_hours,";
    for (const std::string& meter : columns.meters) out += csv_cell(meter) + ",";
    out +=
        "cost,overhead,credit,net,list_cost,waste,idle_gpu_hours,idle_cpu_hours,"
        "idle_memory_gib_hours,"
        "currency,runs,starts,waited_seconds\n";
  }
  for (const Line& line : lines) {
    for (const std::string& key : line.keys) out += csv_cell(key) + ",";
    out += format_hours(line.gpu, kThousandthsUnit) + ",";
    for (const std::string& model : columns.models) out += hours_of(line.models, model) + ",";
    out += fmt::format("{},{},{},", format_hours(line.cpu, kThousandthsUnit),
                       format_hours(line.memory, kMebibyteUnit),
                       format_hours(line.scratch, kMebibyteUnit));
    for (const std::string& meter : columns.meters) out += hours_of(line.meters, meter) + ",";
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", format_money(line.cost, 6),
                       format_money(line.overhead, 6), format_money(line.credit, 6),
                       format_money(line.cost - line.credit, 6), format_money(line.list, 6),
                       format_money(line.waste, 6), format_hours(line.idle_gpu, kThousandthsUnit),
                       format_hours(line.idle_cpu, kThousandthsUnit),
                       format_hours(line.idle_memory, kMebibyteUnit), currency, line.runs,
                       line.starts, line.waited.us / 1'000'000);
  }
  fmt::print("{}", out);
}

// ---- table

class Sheet {
 public:
  Sheet(const std::vector<std::string>& by, const Columns& columns, const std::string& currency)
      : columns_(columns), priced_(!currency.empty()) {
    for (const std::string& name : by) column(name, false);
    for (const std::string& model : columns.models) column(model + "-hours", true);
    column("core-hours", true);
    column("GiB-hours", true);
    for (const std::string& meter : columns.meters) column(meter, true);
    column("runs", true);
    column("wait", true);
    if (!priced_) return;
    column("waste", true);
    if (columns.overhead) column("overhead", true);
    column("cost", true);
    column("credit", true);
    column("net " + currency, true);
  }

  void print(const std::vector<Line>& lines, const Line* total, bool header) {
    TableWriter table(std::move(layout_), {.header = header}, stdout);
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
    const auto held = [&](const std::map<std::string, Held>& by_name, const std::string& name) {
      cell(by_name.contains(name) ? hours_of(by_name, name) : "-");
    };
    for (const std::string& model : columns_.models) held(line.models, model);
    cell(format_hours(line.cpu, kThousandthsUnit));
    cell(format_hours(line.memory, kMebibyteUnit));
    for (const std::string& meter : columns_.meters) held(line.meters, meter);
    cell(std::to_string(line.runs));
    cell(line.starts == 0 ? "-" : format_duration(line.mean_wait()));
    if (!priced_) return;
    cell(format_money(line.waste, 4));
    if (columns_.overhead) cell(format_money(line.overhead, 4));
    cell(format_money(line.cost, 4));
    cell(format_money(line.credit, 4));
    cell(format_money(line.cost - line.credit, 4));
  }

  const Columns& columns_;
  bool priced_;
  Layout layout_;
};

void print_report(const ReportQuery& query, const proto::LedgerReply& reply) {
  const std::vector<Line> lines = lines_of(query.by, reply.rows);
  const Columns columns = columns_of(lines);
  if (query.csv) return print_csv(query.by, lines, columns, reply.currency, !query.no_header);
  Line total;
  for (const proto::LedgerRow& row : reply.rows) add(total, row);
  total.keys.assign(query.by.size(), "");
  if (!total.keys.empty()) total.keys.front() = "total";
  Sheet(query.by, columns, reply.currency)
      .print(lines, lines.size() > 1 && !query.no_header ? &total : nullptr, !query.no_header);
  if (query.no_header) return;
  for (const proto::Recovery& r : reply.recovery)
    fmt::print("{}: {} of {} {} that the platform costs recovered ({:.1f} %)\n", r.period,
               format_money(r.earned, 2), format_money(r.cost, 2), reply.currency,
               100.0 * static_cast<double>(r.earned.micros) / static_cast<double>(r.cost.micros));
}

// Prints every row of the ledger, divided by all of its columns, as FOCUS.
Result<int> run_focus(const Invocation& in, const ReportQuery& query,
                      const std::vector<std::string>& periods) {
  if (!query.by.empty())
    return fail(ErrorCode::usage, "--focus has columns of its own: leave out --by");
  proto::QueryLedger of;
  of.first = periods.empty() ? "this-month" : periods.front();
  of.last = periods.empty() ? "this-month" : periods.back();
  for (const Key& key : kKeys) of.by.emplace_back(key.name);
  of.tenants = query.tenants;
  of.projects = query.projects;
  of.users = query.users;
  ASSIGN(reply, ask<proto::LedgerReply>(in.program(), of));
  fmt::print("{}", focus_csv(*reply, !query.no_header));
  return 0;
}

// An unknown tenant or user in the request is an error: an empty report would claim that nothing
// was held.
Result<void> check_known(Session& session, const ReportQuery& query,
                         const proto::LedgerReply& reply) {
  std::set<std::string> tenants, users;
  for (const proto::LedgerRow& row : reply.rows) {
    tenants.insert(row.tenant);
    users.insert(row.user);
  }
  if (reply.rows.empty() || !tenants.contains(""))
    TRY(check_tenants(session, query.tenants, tenants));
  if (reply.rows.empty() || !users.contains("")) return check_users(query.users, users);
  return {};
}

Result<void> check_by(std::vector<std::string>& by) {
  if (by.empty()) by = {"period", "tenant"};
  for (std::size_t i = 0; i < by.size(); ++i) {
    const auto names = [&](std::string_view prefix) {
      return by[i].starts_with(prefix) && by[i].size() > prefix.size();
    };
    const bool label = names(kLabel) || names(kJobLabel);
    if (!label && std::none_of(std::begin(kKeys), std::end(kKeys),
                               [&](const Key& key) { return key.name == by[i]; }))
      return fail(ErrorCode::usage,
                  fmt::format("there is no column \"{}\"; use period, tenant, project, user, "
                              "job_type, pool, item, plan, labels, label:KEY or job-label:KEY",
                              by[i]));
    if (std::find(by.begin(), by.begin() + static_cast<std::ptrdiff_t>(i), by[i]) !=
        by.begin() + static_cast<std::ptrdiff_t>(i))
      return fail(ErrorCode::usage, fmt::format("--by names `{}` twice", by[i]));
  }
  return {};
}

// Prints metrics. A counter must never fall, so each one sums over all periods.
Result<int> run_metrics(const Invocation& in, const ReportQuery& query) {
  ASSIGN(session, Session::open(in.program()));
  proto::QueryLedger all;
  all.first = "0000-01";
  all.last = "9999-12";
  all.by = {"tenant", "job_type", "item"};
  all.tenants = query.tenants;
  ASSIGN(ledger, session->call<proto::LedgerReply>(all));
  ASSIGN(usage, session->call<proto::TenantUsageReply>(proto::TenantUsage{query.tenants}));
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
  of.by = {"period", "project", "user", "item", "label:cost-center"};
  of.tenants = query.tenants;
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(reply, session->call<proto::LedgerReply>(of));
  if (reply->rows.empty()) {
    TRY(check_tenants(*session, query.tenants, {}));
    return fail(ErrorCode::not_found,
                fmt::format("{} held nothing in {} that you may see{}", query.tenants[0], of.first,
                            periods.empty() ? "; name another period for its invoice" : ""));
  }
  Invoice invoice =
      make_invoice(query.tenants[0], reply->rows[0].period, session->config().cluster, *reply);
  invoice.exact = query.exact;
  const std::string text = pdf ? invoice_pdf(invoice) : invoice_page(invoice);
  TRY(write_file(query.invoice, text, kPrivateFile));
  fmt::print("{}: invoice {}, {} {}\n", query.invoice, invoice.number,
             shown_amount(invoice, invoice.cost - invoice.credit), invoice.currency);
  return 0;
}

Result<int> run_report(const Invocation& in) {
  ReportQuery query;
  OPERANDS(operands, in, &query, 0, 2);
  if (query.csv + query.focus + query.json + query.metrics + !query.invoice.empty() > 1)
    return fail(ErrorCode::usage, "use one of --csv, --focus, --invoice, --json and --metrics");
  if (query.exact && query.invoice.empty())
    return fail(ErrorCode::usage, "--exact is for --invoice; --csv is always exact");
  if (query.focus) return run_focus(in, query, **operands);
  if (!query.invoice.empty()) return run_invoice(in, query, **operands);
  if (query.metrics) {
    if (!(*operands)->empty() || !query.by.empty() || !query.projects.empty() ||
        !query.users.empty())
      return fail(ErrorCode::usage, "--metrics are over all time, and of tenants as a whole");
    return run_metrics(in, query);
  }
  TRY(check_by(query.by));
  const std::vector<std::string>& periods = **operands;
  proto::QueryLedger ask_for;
  ask_for.first = periods.empty() ? "this-month" : periods.front();
  ask_for.last = periods.empty() ? "this-month" : periods.back();
  ask_for.by = query.by;
  if (std::find(query.by.begin(), query.by.end(), "item") == query.by.end() && !query.json)
    ask_for.by.emplace_back("item");  // needed to tell GPU models apart
  ask_for.tenants = query.tenants;
  ask_for.projects = query.projects;
  ask_for.users = query.users;
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(reply, session->call<proto::LedgerReply>(ask_for));
  if (query.json)
    fmt::print("{}\n", codec::to_json(*reply, codec::JsonStyle::pretty));
  else
    print_report(query, *reply);
  std::fflush(stdout);
  TRY(check_known(*session, query, *reply));
  return 0;
}

}  // namespace

extern const Command kGreport;
const Command kGreport{
    {"greport", "What tenants held and what it cost, by month or week", "[PERIOD [PERIOD]]"},
    {.description =
         "From the first PERIOD to the second: months as 2026-11, ISO weeks as 2026-W47, or "
         "this-month, last-month, this-week, last-week; this month unless given, and last month "
         "for "
         "--invoice. Months and weeks "
         "end at midnight in the tenant's time zone. Jobs that run are counted up to now.\n\n"
         "What counts is what was held, from the start of a job until its nodes let go: hours of "
         "GPUs by model (a slice counts as its part of one), of cores, and of GiB of memory. WAIT "
         "is how long a job waited in the queue, on average. WASTE is the part of COST that "
         "attempts paid for GPUs, cores and memory that they did not use, known when they end. "
         "CREDIT "
         "is what is given back of COST for preempted work and faults; NET is what is left. COST "
         "has what was metered and the OVERHEAD that all tenants share in it. docs/money.md "
         "explains it.\n\n"
         "One sees what is one's own, all of tenants in which one has a role, and as an operator "
         "or administrator everything.",
     .options = kReportOptions,
     .examples = {{"greport", "This month, by tenant, up to now"},
                  {"greport last-month --csv > bill.csv", "Last month, for finance"},
                  {"greport 2026-W44 2026-W47 -t fraud -b period,project,user",
                   "Four weeks of a tenant, by project and user"},
                  {"greport -b item", "What it was spent on"},
                  {"greport last-month -b label:cost-center", "By the tenants' label, for finance"},
                  {"greport -b job-label:team,user",
                   "By a label of the jobs, of controller.report_labels"},
                  {"greport last-month --focus > focus.csv", "For a tool that reads clouds' bills"},
                  {"greport last-month -t fraud --invoice fraud.pdf", "The bill, to be filed"},
                  {"greport --metrics > /var/lib/prometheus/node-exporter/gantry.prom",
                   "For Prometheus, from a timer"}},
     .exits = {{"0", "fine"}, {"1", "no answer"}, {"2", "the command line is wrong"}},
     .run = run_report}};

}  // namespace gantry::cli::greport
