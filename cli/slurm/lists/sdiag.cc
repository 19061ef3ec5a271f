// sdiag: shows counters of the controller in the layout of Slurm's sdiag, which exporters read line
// by line. A value that Gantry does not count has no line.
#include <fmt/core.h>

#include "cli/slurm/frame.h"
#include "cli/slurm/records/history.h"

namespace gantry::cli::slurm {
namespace {

struct SdiagQuery {
  std::optional<std::string> clusters;
  bool reset = false;
  CallOrder order = CallOrder::count;
};
template <CallOrder Order>
Result<void> set_order(void* q, std::string_view) {
  static_cast<SdiagQuery*>(q)->order = Order;
  return {};
}

constexpr Option kSdiagOptions[] = {
    flag("all", 'a', "All statistics, which is always so", always),
    takes("cluster", 'M', "NAME", "Our own cluster's name is all that can be given",
          put<&SdiagQuery::clusters>),
    refuses("json", "use ginfo --stats --json"),
    flag("reset", 'r', "Let the counters begin anew; for operators", put<&SdiagQuery::reset>),
    flag("sort-by-id", 'i', "Requests in the order of their names (else by how many they are)",
         set_order<CallOrder::name>),
    flag("sort-by-time", 't', "Requests by the time of all together", set_order<CallOrder::time>),
    flag("sort-by-time2", 'T', "Requests by the time of one", set_order<CallOrder::mean>),
    refuses("yaml", "use ginfo --stats --json"),
};

Result<int> run_sdiag(const Invocation& call) {
  SdiagQuery q;
  int status = 0;
  const auto operands = parse_into(call, &q, status);
  if (!operands) return status;
  std::string named;
  if (!check_clusters(call, q.clusters, named, status)) return status;
  ASSIGN(session, Session::open("sdiag"));
  if (q.reset) {
    ASSIGN(done, session->call<proto::Ok>(proto::ResetStats{}));
    fmt::print("The reset request has been sent to the controller.\n");
    return 0;
  }
  ASSIGN(ping, session->call<proto::PingReply>(proto::Ping{}));
  ASSIGN(stats, session->call<proto::ShowStatsReply>(proto::ShowStats{true}));
  const auto value = [&](const std::string& name) {
    const auto found = stats->values.find(name);
    return found == stats->values.end() ? std::int64_t{0} : found->second;
  };
  const std::string stars(55, '*');
  fmt::print("{0}\nsdiag output at {1}\nData since      {2}\n{0}\n", stars, c_time(ping->now),
             c_time(stats->since));
  // These are always 0, because one thread handles each request to its end.
  fmt::print(
      "Server thread count:  0\nRPC queue enabled:    0\nAgent queue size:     0\n"
      "Agent count:          0\nAgent thread count:   0\nDBD Agent queue size: 0\n\n");
  fmt::print(
      "Jobs submitted: {}\nJobs started:   {}\nJobs completed: {}\nJobs canceled:  {}\n"
      "Jobs failed:    {}\n\n",
      value("submits_total"), value("starts_total"), value("jobs_completed_total"),
      value("jobs_cancelled_total"), value("jobs_failed_total"));
  fmt::print("Job states ts:  {}\nJobs pending:   {}\nJobs running:   {}\n\n", c_time(ping->now),
             ping->jobs_queued, ping->jobs_active);
  const std::int64_t cycles = value("plans_total");
  const std::int64_t minutes = std::max<std::int64_t>(1, (ping->now - stats->since).seconds() / 60);
  // Each plan counts in both statistics, because it is both the main scheduling and backfill.
  const std::int64_t some = std::max<std::int64_t>(1, cycles);
  const std::int64_t last = value("plan_us_last"), most = value("plan_us_most");
  const std::int64_t mean = value("plan_us_total") / some;
  const std::int64_t depth = value("plan_classes_total") / some;
  fmt::print(
      "Main schedule statistics (microseconds):\n\tLast cycle:   {}\n\tMax cycle:    {}\n"
      "\tTotal cycles: {}\n\tMean cycle:   {}\n\tMean depth cycle:  {}\n"
      "\tCycles per minute: {}\n\tLast queue length: {}\n",
      last, most, cycles, mean, depth, cycles / minutes, ping->jobs_queued);
  fmt::print(
      "\nBackfilling stats\n\tTotal backfilled jobs (since last slurm start): {}\n"
      "\tTotal cycles: {}\n\tLast cycle: {}\n\tMax cycle:  {}\n\tMean cycle: {}\n"
      "\tDepth Mean: {}\n\tLast queue length: {}\n",
      value("backfilled_total"), cycles, last, most, mean, depth, ping->jobs_queued);
  print_calls(*stats, q.order);
  return 0;
}

}  // namespace

extern const Command kSdiag;
const Command kSdiag{
    {"sdiag", "Show counters of the controller"},
    {.description =
         "Slurm's sdiag: what ginfo --stats knows, in Slurm's layout. There are no threads and "
         "agents to count, so those lines are 0; lines about what is not counted are left out.",
     .options = kSdiagOptions,
     .examples = {{"sdiag", "How busy the controller is"}},
     .exits = {{"0", "fine"}, {"1", "no answer, or the command line is wrong"}},
     .run = run_sdiag}};

}  // namespace gantry::cli::slurm
