// sdiag: counters of the controller in the layout of Slurm's, which exporters read line by line.
// Of what Gantry does not count the value is 0.
#include <fmt/core.h>

#include <ctime>

#include "cli/slurm/frame.h"

namespace gantry::cli::slurm {
namespace {

struct SdiagQuery {
  std::optional<std::string> clusters;
};
Result<void> set_sdiag_clusters(SdiagQuery& q, std::string_view text) {
  q.clusters = text;
  return {};
}

constexpr Option kSdiagOptions[] = {
    {.name = "all", .letter = 'a', .help = "All statistics, which is always so", .set = always},
    {.name = "cluster",
     .letter = 'M',
     .arg = Arg::required,
     .value = "NAME",
     .help = "Our own cluster's name is all that can be given",
     .set = call<set_sdiag_clusters>},
    {.name = "json", .refused = "use ginfo --stats --json"},
    {.name = "reset", .letter = 'r', .refused = "counters run from the controller's start on"},
    {.name = "sort-by-id", .letter = 'i', .refused = "requests are not counted by kind"},
    {.name = "sort-by-time", .letter = 't', .refused = "requests are not counted by kind"},
    {.name = "sort-by-time2", .letter = 'T', .refused = "requests are not counted by kind"},
    {.name = "yaml", .refused = "use ginfo --stats --json"},
};

std::string c_time(Instant t) {
  const std::time_t seconds = static_cast<std::time_t>(t.us / 1'000'000);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%a %b %d %H:%M:%S %Y", &parts);
  return fmt::format("{} ({})", text.data(), static_cast<std::int64_t>(seconds));
}

Result<int> run_sdiag(const Invocation& call) {
  SdiagQuery q;
  int status = 0;
  const auto operands = parse_into(call, &q, status);
  if (!operands) return status;
  std::string named;
  if (!check_clusters(call, q.clusters, named, status)) return status;
  auto session = Session::open("sdiag");
  if (!session) return tl::unexpected(session.error());
  const auto ping = session->call<proto::PingReply>(proto::Ping{});
  if (!ping) return tl::unexpected(ping.error());
  const auto stats = session->call<proto::ShowStatsReply>(proto::ShowStats{});
  if (!stats) return tl::unexpected(stats.error());
  const auto value = [&](const std::string& name) {
    const auto found = stats->values.find(name);
    return found == stats->values.end() ? std::int64_t{0} : found->second;
  };
  const std::string stars(55, '*');
  fmt::print("{0}\nsdiag output at {1}\nData since      {2}\n{0}\n", stars, c_time(ping->now),
             c_time(ping->started));
  fmt::print(
      "Jobs submitted: {}\nJobs started:   {}\nJobs completed: {}\nJobs canceled:  {}\n"
      "Jobs failed:    {}\n\n",
      value("submits_total"), value("starts_total"), value("jobs_completed_total"),
      value("jobs_cancelled_total"), value("jobs_failed_total"));
  fmt::print("Job states ts:  {}\nJobs pending:   {}\nJobs running:   {}\n\n", c_time(ping->now),
             ping->jobs_queued, ping->jobs_active);
  const std::int64_t cycles = value("plans_total");
  const std::int64_t minutes =
      std::max<std::int64_t>(1, (ping->now - ping->started).seconds() / 60);
  fmt::print(
      "Main schedule statistics (microseconds):\n\tTotal cycles: {}\n\tMean depth cycle:  {}\n"
      "\tCycles per minute: {}\n\tLast queue length: {}\n",
      cycles, value("plan_classes_total") / std::max<std::int64_t>(1, cycles), cycles / minutes,
      ping->jobs_queued);
  fmt::print(
      "\nBackfilling stats\n\tTotal backfilled jobs (since last slurm start): {}\n"
      "\tTotal cycles: {}\n\tLast queue length: {}\n",
      value("backfilled_total"), cycles, ping->jobs_queued);
  return 0;
}

constexpr Example kSdiagExamples[] = {{"sdiag", "How busy the controller is"}};
constexpr ExitDoc kSdiagExits[] = {{"0", "fine"}, {"1", "no answer, or the command line is wrong"}};

}  // namespace

extern const Command kSdiag;
const Command kSdiag{
    .name = "sdiag",
    .summary = "Show counters of the controller",
    .description =
        "Slurm's sdiag: what ginfo --stats knows, in Slurm's layout. Lines about what Gantry does "
        "not count or does not have (threads, agents, cycle times, requests by kind) are left out.",
    .options = kSdiagOptions,
    .examples = kSdiagExamples,
    .exits = kSdiagExits,
    .run = run_sdiag,
};

}  // namespace gantry::cli::slurm
