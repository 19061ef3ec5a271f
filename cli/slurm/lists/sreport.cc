// sreport: shows what accounts and users have used, as Slurm's does, summed from the accounting of
// jobs.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/help.h"
#include "cli/slurm/records/history.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

struct SreportCall {
  std::string unit = "minutes";  // unit of -t
  bool no_header = false;
  bool parsable = false;
  bool parsable2 = false;
};
Result<void> set_sreport_unit(SreportCall& c, std::string_view text) {
  const std::string word = lower_case(text);
  for (const std::string_view known : {"seconds", "minutes", "hours"})
    if (word.size() >= 3 && known.starts_with(word)) {
      c.unit = known;
      return {};
    }
  return fail(ErrorCode::invalid_argument,
              fmt::format("unknown time format {}: seconds, minutes or hours", text));
}

constexpr Option kSreportOptions[] = {
    flag("help", 'h', "Show this help", always),
    flag("local", "This cluster, which is always so", always),
    flag("noheader", 'n', "No header", put<&SreportCall::no_header>),
    flag("parsable", 'p', "Values parted by |, also behind the last", put<&SreportCall::parsable>),
    flag("parsable2", 'P', "Values parted by |", put<&SreportCall::parsable2>),
    flag("quiet", 'Q', "Say less, of which there is nothing", always),
    takes("unit", 't', "seconds|minutes|hours", "Unit of the times (default minutes)",
          call<set_sreport_unit>),
    flag("verbose", 'v', "List the options that are in force on standard error", always),
    refuses("all_clusters", 'a', "there is one cluster"),
    refuses("federation", "there is one cluster"),
    refuses("tres", 'T', "times are of cores; greport has every resource"),
};

struct UseLine {
  std::string cluster, account, login;
  std::int64_t used = 0;  // in the requested unit
  // For the sizes of jobs: use by kSizes, and the account's part of the total.
  std::array<std::int64_t, 5> by_size{};
  double part = 0;
};
// A job with fewer cores than this, and at least the previous size, is counted here.
constexpr std::array<std::uint32_t, 4> kSizes{50, 250, 500, 1000};

template <std::size_t Size>
void put_by_size(std::string& out, const UseLine& line) {
  out += std::to_string(line.by_size[Size]);
}
using U = const UseLine&;
using Out = std::string&;
constexpr Column<UseLine> kUseFields[] = {
    sized("Cluster", 9, [](Out o, U v) { o += v.cluster; }),
    sized("Account", 15, [](Out o, U v) { o += v.account; }),
    sized("Accounts", "Account", 15, [](Out o, U v) { o += v.account; }),
    sized("Login", 9, [](Out o, U v) { o += v.login; }),
    sized("Proper", "Proper Name", 15, [](Out o, U v) { o += v.login; }),
    sized("TresName", "TRES Name", 14, [](Out o, U) { o += "cpu"; }),
    sized("Used", 8, [](Out o, U v) { o += std::to_string(v.used); }),
    sized("Energy", 8, [](Out o, U) { o += "0"; }),
    sized("0-49 CPUs", 13, put_by_size<0>),
    sized("50-249 CPUs", 13, put_by_size<1>),
    sized("250-499 CPUs", 13, put_by_size<2>),
    sized("500-999 CPUs", 13, put_by_size<3>),
    sized(">= 1000 CPUs", 13, put_by_size<4>),
    sized("Part", "% of cluster", 12, [](Out o, U v) { o += fmt::format("{:.2f}%", v.part); }),
};

struct Report {
  std::string_view type, name, title, format;
  bool by_account;  // lines are by account first, else by user
};
constexpr Report kReports[] = {
    {"cluster", "accountutilizationbyuser", "Cluster/Account/User Utilization",
     "Cluster,Account%15,Login,Proper,Used,Energy", true},
    {"cluster", "userutilizationbyaccount", "Cluster/User/Account Utilization",
     "Cluster,Login,Proper,Account,Used,Energy", false},
    {"job", "sizesbyaccount", "Job Sizes",
     "Cluster,Account,0-49 CPUs,50-249 CPUs,250-499 CPUs,500-999 CPUs,>= 1000 CPUs,Part", true},
    {"user", "topusage", "Top Users", "Cluster,Login,Proper,Account,Used,Energy", false},
};

struct Span {
  Instant start, end;
  std::vector<std::string> users, accounts;
  std::string format;
  std::size_t top = 10;
};

Result<void> read_span(const std::vector<std::string>& words, Instant now, Span& span) {
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string key = lower_case(word.substr(0, equals));
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key.starts_with("start") || key.starts_with("end")) {
      ASSIGN(t, parse_time(value, now, TimeSense::latest));
      (key.starts_with("start") ? span.start : span.end) = *t;
    } else if (key.starts_with("user")) {
      span.users = split_list(value);
    } else if (key.starts_with("account")) {
      span.accounts = split_list(value);
    } else if (key.starts_with("format")) {
      span.format = value;
    } else if (key.starts_with("topcount")) {
      ASSIGN(n, parse_integer("topcount", value, 1, 1'000'000));
      span.top = static_cast<std::size_t>(*n);
    } else if (!key.starts_with("cluster")) {
      return fail(ErrorCode::invalid_argument, fmt::format("Unknown condition: {}", word));
    }
  }
  return {};
}

// Core seconds of each job within the span; parts of the job outside of the span are not counted.
std::vector<UseLine> uses_of(const History& history, const Span& span, std::string_view unit,
                             const std::string& cluster) {
  std::map<std::pair<std::string, std::string>, std::int64_t> seconds;
  for (const proto::HistoryRow& job : history.jobs) {
    if (!job.row.started) continue;
    const Instant begin = std::max(*job.row.started, span.start);
    const Instant end = std::min(job.row.ended.value_or(history.now), span.end);
    if (begin >= end) continue;
    seconds[{job.row.account, job.row.user}] += (end - begin).seconds() * job.row.cpus;
  }
  const std::int64_t divisor = unit == "seconds" ? 1 : unit == "minutes" ? 60 : 3600;
  std::vector<UseLine> out;
  for (const auto& [who, n] : seconds) out.push_back({cluster, who.first, who.second, n / divisor});
  return out;
}

// Core seconds by account and size of the job.
std::vector<UseLine> sizes_of(const History& history, const Span& span, std::string_view unit,
                              const std::string& cluster) {
  std::map<std::string, UseLine> accounts;
  std::int64_t whole = 0;
  for (const proto::HistoryRow& job : history.jobs) {
    if (!job.row.started) continue;
    const Instant begin = std::max(*job.row.started, span.start);
    const Instant end = std::min(job.row.ended.value_or(history.now), span.end);
    if (begin >= end) continue;
    const std::int64_t seconds = (end - begin).seconds() * job.row.cpus;
    const auto* size = std::upper_bound(kSizes.begin(), kSizes.end(), job.row.cpus);
    UseLine& line = accounts[job.row.account];
    line.by_size[static_cast<std::size_t>(size - kSizes.begin())] += seconds;
    line.used += seconds;
    whole += seconds;
  }
  const std::int64_t divisor = unit == "seconds" ? 1 : unit == "minutes" ? 60 : 3600;
  std::vector<UseLine> out;
  for (auto& [account, line] : accounts) {
    line.cluster = cluster;
    line.account = account.empty() ? "root" : account;
    line.part =
        whole == 0 ? 0 : 100.0 * static_cast<double>(line.used) / static_cast<double>(whole);
    for (std::int64_t& n : line.by_size) n /= divisor;
    out.push_back(std::move(line));
  }
  return out;
}

Result<int> run_report(const SreportCall& c, const Report& report, const Span& span) {
  std::vector<std::string> unknown;
  Layout layout = list_layout(span.format.empty() ? report.format : std::string_view(span.format),
                              infos<UseLine>(kUseFields), unknown);
  if (!unknown.empty()) return refused(" Unknown field '{}'\n", unknown.front());
  proto::QueryHistory query;
  query.start = span.start;
  query.end = span.end;
  query.filter.users = span.users;
  query.filter.accounts = span.accounts;
  query.duplicates = true;
  ASSIGN(session, Session::open("sreport"));
  ASSIGN(history, ask_history(*session, query));
  const auto lines_of = report.type == "job" ? sizes_of : uses_of;
  std::vector<UseLine> lines = lines_of(*history, span, c.unit, cluster_name());
  if (report.name == "topusage") {
    std::stable_sort(lines.begin(), lines.end(),
                     [](const UseLine& a, const UseLine& b) { return a.used > b.used; });
    if (lines.size() > span.top) lines.resize(span.top);
  } else if (!report.by_account) {
    std::stable_sort(lines.begin(), lines.end(),
                     [](const UseLine& a, const UseLine& b) { return a.login < b.login; });
  }
  const TableStyle style = list_style(c, layout);
  if (style.header) {
    const std::string rule(80, '-');
    fmt::print("{0}\n{1} {2} - {3} ({4} secs)\n{5} {6}{7}\n{0}\n", rule, report.title,
               format_time(span.start), format_time(span.end), (span.end - span.start).seconds(),
               report.type == "job" ? "Time reported in" : "Usage reported in CPU",
               upper_case(c.unit.substr(0, 1)), c.unit.substr(1));
    std::fflush(stdout);
  }
  TableWriter table(std::move(layout), style, stdout);
  for (const UseLine& line : lines) add_row<UseLine>(table, kUseFields, line);
  return 0;
}

// The names of the reports of a type; "" if the type does not exist.
std::string valid_reports(const std::string& type) {
  std::string text;
  for (const Report& report : kReports)
    if (report.type.starts_with(type))
      text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", report.name);
  return text;
}

Result<int> run_sreport(const Invocation& call) {
  SreportCall c;
  int status = 0;
  const auto operands = parse_into(call, &c, status);
  if (!operands) return status;
  if (!operands->empty() && lower_case(operands->front()) == "help") {
    fmt::print("{}", help_of(call.command()));
    return 0;
  }
  if (operands->empty())
    return complain(call,
                    "a report is missing: cluster AccountUtilizationByUser, cluster "
                    "UserUtilizationByAccount, job SizesByAccount or user TopUsage");
  const std::string type = lower_case((*operands)[0]);
  const std::string valid = valid_reports(type);
  if (valid.empty() || operands->size() < 2) {
    fmt::print(
        stderr, "{}{}\n",
        valid.empty() ? "invalid keyword: " : "too few arguments for keyword:", (*operands)[0]);
    return 1;
  }
  const std::string name = lower_case((*operands)[1]);
  const auto report = std::find_if(std::begin(kReports), std::end(kReports), [&](const Report& r) {
    return r.type.starts_with(type) && r.name.starts_with(name);
  });
  if (report == std::end(kReports))
    return refused("Not valid report {}\nValid {} reports are, {}; greport has more\n",
                   (*operands)[1], (*operands)[0], valid);
  const Instant now = system_now();
  Span span;
  // The default is yesterday, as in Slurm.
  ASSIGN(today, parse_time("today", now, TimeSense::latest));
  span.end = *today;
  span.start = *today - hours(24);
  if (auto done = read_span({operands->begin() + 2, operands->end()}, now, span); !done) {
    return complain(call, done.error().message);
  }
  return run_report(c, *report, span);
}

}  // namespace

std::vector<CommandWord> sreport_words() {
  std::vector<CommandWord> words;
  for (const Report& report : kReports)
    words.push_back({fmt::format("{} {}", report.type, report.name), std::string(report.title)});
  return words;
}

extern const Command kSreport;
const Command kSreport{
    {"sreport", "Report what accounts and users have used", "TYPE REPORT [CONDITION...]"},
    {.description =
         "Slurm's sreport: cluster AccountUtilizationByUser, cluster UserUtilizationByAccount, job "
         "SizesByAccount and user TopUsage, in time of cores, with start=, end=, users=, "
         "accounts=, "
         "topcount= and "
         "format=. Without a time it is about yesterday. greport has costs, GPUs and months.",
     .options = kSreportOptions,
     .examples = {{"sreport cluster AccountUtilizationByUser start=2026-01-01 end=now",
                   "Core minutes by account"},
                  {"sreport -nP -t hours user TopUsage topcount=5 start=now-30days end=now "
                   "format=Login,Used",
                   "Who used most"}},
     .exits = {{"0", "fine"}, {"1", "no answer, or the command line is wrong"}},
     .run = run_sreport}};

}  // namespace gantry::cli::slurm
