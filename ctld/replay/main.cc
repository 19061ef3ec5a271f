// gantry-replay: runs a trace, or a cluster's own history, through the scheduler in virtual time.
// `gantry replay` is the same.
#include <fcntl.h>
#include <fmt/core.h>
#include <getopt.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>

#include "common/version.h"
#include "config/values.h"
#include "ctld/replay/report.h"
#include "ctld/replay/vary.h"

namespace {

using namespace gantry;

constexpr const char* kUsage =
    R"(usage: gantry replay --trace FILE --cluster FILE
                     [--policy POLICY [--policy2 POLICY]] [OPTIONS]

Runs a trace of jobs, or this cluster's own recorded history, through the
scheduler in virtual time and says what came of it: utilisation, waits,
slowdown, fairness, quota, preemption. With two policies, both side by side.

The trace:
  --trace FILE       *.swf, *.csv or *.json, also with .gz; - is standard input,
                     as JSON
  --format FORMAT    swf, csv or json, whatever the trace's name is
  --history          the trace is what `gacct --json` prints (default: standard
                     input)
  --tenant-by FIELD  of SWF: group (default), user or queue
  --vary VARIATION   changes the trace; the parts are separated by commas:
                     seed=N; permute (run times are dealt out anew);
                     arrivals=X (0.8: a fifth more load);
                     from=T, length=T (a part of it);
                     large=X (so many of the jobs with one GPU ask for 8 to 32
                     instead, for the same work)
  --estimates F      limits of jobs without one: run x U(1, 1 + F), rounded up
                     to what people ask for, instead of exactly the run
  --checkpoint T     jobs that do not say save their state so often (1h, 30m)

The cluster and its policies:
  --cluster FILE     gantry.yaml, or in short 90x8gpu (nodes x GPUs) or 1x100cpu
  --policy POLICY    files and folders of tenants' documents and switches,
                     separated by commas. Without documents all jobs share one
                     queue. Default: EASY. The switches:
                     reservations=N|all (1 = EASY), ahead=N,
                     fair_share=on|off, quota=on|off, preemption=on|off,
                     balance=30m|on|off (takes from who borrows more what has
                     run no longer since its last checkpoint; on: however long),
                     promises=on|off, half_life=7d, oldest_first_after=72h|off,
                     deadlines=on|off (jobs that are due are given up when they
                     cannot end by then),
                     tenants=mean (nominal quota = mean use in the trace),
                     draw=N (times a number of 0.25 to 2 that is drawn by that
                     seed)
  --policy2 POLICY   another one, beside it

The report:
  --json             as JSON
  --svg FILE         draw use over time by tenant, and waits
  --timeline[=TENANT,...]
                     every submit, start, preemption and end; of these tenants,
                     and of whoever has to leave for them
  --violations       every claim to nominal quota that was not met in time
  --jobs FILE        a CSV line for each job and policy: when it was first told
                     that it would start, and when it did
  --brief            no lines of single tenants
  --quiet            no progress
  --version, --help

Examples:
  gantry replay --trace kth.swf --cluster 1x100cpu
      A public log on 100 cores, by EASY backfill
  gacct -a -S 2026-01-01 --json | gantry replay --history --cluster gantry.yaml
      What this cluster's jobs of the year would have had
  gantry replay --trace week.csv --cluster 90x8gpu --policy tenants/
                --policy2 tenants/,preemption=off --svg week.svg
      With and without preemption, side by side

Exit status: 0 done, 1 the input is wrong, 2 wrong command line.
)";

struct Arguments {
  std::string trace, cluster, policy, svg, jobs;
  std::optional<std::string> policy2;
  replay::TraceOptions trace_options;
  std::optional<double> estimates;
  std::optional<replay::Variation> variation;
  std::optional<Duration> checkpoint;
  std::optional<std::vector<std::string>> timeline;  // show jobs of these tenants
  bool violations = false, json = false, brief = false, quiet = false, history = false;
};

int complain(const Error& error) {
  std::fprintf(stderr, "gantry replay: error: %s\n", error.message.c_str());
  return exit_status_of(error.code);
}

template <class T>
Result<T> one_of(std::string_view option, std::string_view text,
                 std::initializer_list<std::pair<std::string_view, T>> words) {
  std::string allowed;
  for (const auto& [name, value] : words) {
    if (text == name) return value;
    allowed += (allowed.empty() ? "" : ", ") + std::string(name);
  }
  return fail(ErrorCode::usage,
              fmt::format("{}: must be one of {}, not \"{}\"", option, allowed, text));
}

std::vector<std::string> names_in(const char* list) {
  std::vector<std::string> names;
  std::string_view rest = list == nullptr ? "" : list;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    if (end > 0) names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

Result<void> set_value(Arguments& args, int option, const char* value) {
  const std::string_view text = value == nullptr ? "" : value;
  using replay::TenantField;
  using replay::TraceFormat;
  if (option == 'F') {
    ASSIGN(format, one_of<TraceFormat>("--format", text,
                                       {{"swf", TraceFormat::swf},
                                        {"csv", TraceFormat::csv},
                                        {"json", TraceFormat::json}}));
    args.trace_options.format = *format;
  } else if (option == 'T') {
    ASSIGN(field, one_of<TenantField>("--tenant-by", text,
                                      {{"group", TenantField::group},
                                       {"user", TenantField::user},
                                       {"queue", TenantField::queue}}));
    args.trace_options.tenant = *field;
  } else if (option == 'e') {
    double factor = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), factor);
    if (error != std::errc{} || end != text.data() + text.size() || factor < 0 || factor > 1000)
      return fail(ErrorCode::usage,
                  fmt::format("--estimates: must be a number of 0 to 1000, not \"{}\"", text));
    args.estimates = factor;
  } else if (option == 'y') {
    ASSIGN(variation, replay::parse_variation(std::string(text)));
    args.variation = *variation;
  } else if (option == 'k') {
    const auto every = config::parse_length(text);
    if (!every)
      return fail(ErrorCode::usage, fmt::format("--checkpoint: {}", every.error().message));
    args.checkpoint = *every;
  }
  return {};
}

// Fills `args`. Returns an exit status if the program has nothing more to do.
std::optional<int> parse(int argc, char** argv, Arguments& args) {
  const option options[] = {{"trace", required_argument, nullptr, 't'},
                            {"format", required_argument, nullptr, 'F'},
                            {"history", no_argument, nullptr, 'H'},
                            {"tenant-by", required_argument, nullptr, 'T'},
                            {"cluster", required_argument, nullptr, 'c'},
                            {"vary", required_argument, nullptr, 'y'},
                            {"policy", required_argument, nullptr, 'p'},
                            {"policy2", required_argument, nullptr, 'P'},
                            {"estimates", required_argument, nullptr, 'e'},
                            {"checkpoint", required_argument, nullptr, 'k'},
                            {"json", no_argument, nullptr, 'j'},
                            {"svg", required_argument, nullptr, 's'},
                            {"jobs", required_argument, nullptr, 'J'},
                            {"timeline", optional_argument, nullptr, 'l'},
                            {"violations", no_argument, nullptr, 'v'},
                            {"brief", no_argument, nullptr, 'b'},
                            {"quiet", no_argument, nullptr, 'q'},
                            {"version", no_argument, nullptr, 'V'},
                            {"help", no_argument, nullptr, 'h'},
                            {nullptr, 0, nullptr, 0}};
  for (int c = 0; (c = getopt_long(argc, argv, "h", options, nullptr)) != -1;) {
    switch (c) {
      case 't': args.trace = optarg; break;
      case 'c': args.cluster = optarg; break;
      case 'p': args.policy = optarg; break;
      case 'P': args.policy2 = optarg; break;
      case 's': args.svg = optarg; break;
      case 'J': args.jobs = optarg; break;
      case 'H': args.history = true; break;
      case 'j': args.json = true; break;
      case 'l': args.timeline = names_in(optarg); break;
      case 'v': args.violations = true; break;
      case 'b': args.brief = true; break;
      case 'q': args.quiet = true; break;
      case 'V': fmt::print("gantry-replay {}\n", kVersion); return 0;
      case 'h': std::fputs(kUsage, stdout); return 0;
      case '?': std::fputs(kUsage, stderr); return 2;
      default:
        if (auto set = set_value(args, c, optarg); !set) return complain(set.error());
    }
  }
  if (optind != argc)
    return complain({ErrorCode::usage,
                     fmt::format("'{}': no arguments are taken, only options", argv[optind])});
  if (args.history) {
    if (args.trace.empty()) args.trace = "-";
    args.trace_options.format = replay::TraceFormat::json;
  }
  if (args.trace.empty() || args.cluster.empty())
    return complain({ErrorCode::usage, "--trace and --cluster are needed; see --help"});
  return std::nullopt;
}

Result<void> save(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
  std::FILE* file = fd < 0 ? nullptr : ::fdopen(fd, "w");
  bool good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) good = std::fclose(file) == 0 && good;
  if (good) return {};
  return fail(ErrorCode::io_error, fmt::format("{}: cannot be written", path));
}

Result<int> run(const Arguments& args) {
  ASSIGN(trace, replay::read_trace(args.trace, args.trace_options));
  if (args.variation) TRY(replay::vary(*trace, *args.variation));
  if (args.estimates) replay::draw_limits(*trace, *args.estimates);
  ASSIGN(cluster, replay::read_cluster(args.cluster));
  std::vector<std::string> notes = trace->notes;
  std::vector<replay::Site> sites;
  std::vector<std::string> policies{args.policy};
  if (args.policy2) policies.push_back(*args.policy2);
  for (const std::string& text : policies) {
    ASSIGN(policy, replay::parse_policy(text));
    ASSIGN(site, replay::make_site(*cluster, *policy, *trace));
    notes.insert(notes.end(), site->notes.begin(), site->notes.end());
    sites.push_back(std::move(*site));
  }
  replay::Yardstick yardstick;
  for (const replay::Site& site : sites)
    if (site.has_tenants && yardstick.nodes.empty()) yardstick = replay::yardstick_of(site);
  std::vector<replay::Outcome> sides;
  std::vector<replay::Report> reports;
  for (const replay::Site& site : sites) {
    replay::ReplayOptions options;
    options.happenings = args.timeline.has_value();
    options.checkpoint_every = args.checkpoint;
    if (!args.quiet && ::isatty(STDERR_FILENO) == 1)
      options.progress = [&](std::size_t done, std::size_t all) {
        fmt::print(stderr, "\r{}: {:3} %, {} of {} jobs{}", site.label, 100 * done / all, done, all,
                   done == all ? "\n" : "");
      };
    ASSIGN(outcome,
           replay::replay(*trace, *cluster, site,
                          site.has_tenants ? replay::yardstick_of(site) : yardstick, options));
    if (!outcome->audit.empty())
      return fail(ErrorCode::internal,
                  fmt::format("the scheduler's view is wrong: {}", outcome->audit));
    notes.insert(notes.end(), outcome->notes.begin(), outcome->notes.end());
    reports.push_back(replay::summarise(*outcome, *trace));
    sides.push_back(std::move(*outcome));
  }
  if (args.timeline)
    for (const replay::Outcome& o : sides)
      fmt::print("{}\n{}\n", o.label,
                 replay::to_timeline(o, *trace, cluster->unit, *args.timeline));
  if (args.violations)
    for (const replay::Outcome& o : sides)
      fmt::print("{}\n{}\n", o.label, replay::to_violations(o, cluster->unit));
  fmt::print("{}", args.json ? replay::to_json(reports, *trace, *cluster)
                             : replay::to_table(reports, cluster->unit, !args.brief));
  for (const std::string& note : notes) fmt::print(stderr, "note: {}\n", note);
  if (!args.jobs.empty()) TRY(save(args.jobs, replay::to_jobs(sides, *trace)));
  if (!args.svg.empty()) TRY(save(args.svg, replay::to_svg(sides, *trace, *cluster)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments args;
  if (const auto status = parse(argc, argv, args)) return *status;
  const auto done = run(args);
  if (!done) return complain(done.error());
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? *done : 1;
}
