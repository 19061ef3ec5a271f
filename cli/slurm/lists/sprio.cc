// sprio: shows how the priority of pending jobs is composed, as Slurm's does.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <map>

#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "cli/submit/job_refs.h"
#include "common/proto/job_text.h"
#include "common/proto/tenancy_view.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::string_view kPrioFormat = "%.15i %9r %.10Y %.10S %.10A %.10F %.10J %.10P %.10Q";
constexpr std::string_view kPrioNormFormat = "%.15i %9r %.10y %.10a %.10f %.10j %.10p %.10q";
constexpr std::string_view kPrioLongFormat =
    "%.15i %9r %.8u %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10Q %.11N %.20T";

struct SprioQuery {
  proto::PriorityTuples tuples;
  std::optional<std::string> clusters;
  std::string format;
  bool no_header = false;
  bool long_form = false;
  bool norm = false;
  bool weights = false;
  bool verbose = false;
  proto::JobFilter& filter() { return tuples.filter; }
};
Result<void> add_sprio_jobs(SprioQuery& q, std::string_view text) {
  if (add_job_refs(q.filter().jobs, text)) return {};
  return fail(ErrorCode::invalid_argument, fmt::format("Invalid job id: {}", text));
}
struct PrioLine {
  const proto::PriorityRow* row = nullptr;
  bool weights = false;  // the row is the line of weights (-w)
  std::string_view cluster;
};

const proto::PriorityTerm* term_of(const PrioLine& v, std::string_view name) {
  for (const proto::PriorityTerm& term : v.row->terms)
    if (term.name == name) return &term;
  return nullptr;
}
void put_points(std::string& out, const PrioLine& v, std::string_view name) {
  const proto::PriorityTerm* term = term_of(v, name);
  if (term == nullptr)
    out += '0';
  else
    out += v.weights ? std::to_string(term->weight) : std::to_string(term->points);
}
void put_factor(std::string& out, const PrioLine& v, std::string_view name) {
  const proto::PriorityTerm* term = term_of(v, name);
  out += fmt::format("{:.7f}", term == nullptr ? 0.0 : term->factor);
}
std::string prio_id(const PrioLine& v) {
  const proto::PriorityRow& row = *v.row;
  if (v.weights) return "Weights";
  if (row.array_job.value() == 0) return std::to_string(row.job.value());
  return row.array_tasks.empty() ? std::to_string(row.job.value())
                                 : fmt::format("{}_[{}]", row.array_job.value(), row.array_tasks);
}

using P = const PrioLine&;
using Out = std::string&;
constexpr Column<PrioLine> kPrioFields[] = {
    {'a', {}, "AGE", [](Out o, P v) { put_factor(o, v, "age"); }},
    {'A', {}, "AGE", [](Out o, P v) { put_points(o, v, "age"); }},
    {'b', {}, "ASSOC", [](Out o, P) { o += "0.0000000"; }},
    {'B', {}, "ASSOC", [](Out o, P) { o += "0"; }},
    {'c', {}, "CLUSTER", [](Out o, P v) { o += v.cluster; }},
    {'f', {}, "FAIRSHARE", [](Out o, P v) { put_factor(o, v, "fairshare"); }},
    {'F', {}, "FAIRSHARE", [](Out o, P v) { put_points(o, v, "fairshare"); }},
    {'i', {}, "JOBID", [](Out o, P v) { o += prio_id(v); }},
    {'j', {}, "JOBSIZE", [](Out o, P v) { put_factor(o, v, "jobsize"); }},
    {'J', {}, "JOBSIZE", [](Out o, P v) { put_points(o, v, "jobsize"); }},
    {'n', {}, "QOS_NAME", [](Out o, P v) { o += v.row->priority_class; }},
    {'N', {}, "NICE", [](Out o, P) { o += "0"; }},
    {'o', {}, "ACCOUNT", [](Out o, P v) { o += v.row->account; }},
    {'p', {}, "PARTITION", [](Out o, P v) { put_factor(o, v, "partition"); }},
    {'P', {}, "PARTITION", [](Out o, P v) { put_points(o, v, "partition"); }},
    {'q', {}, "QOS", [](Out o, P v) { put_factor(o, v, "class"); }},
    {'Q', {}, "QOS", [](Out o, P v) { put_points(o, v, "class"); }},
    {'r', {}, "PARTITION", [](Out o, P v) { o += v.weights ? "" : v.row->partition; }},
    {'S',
     {},
     "SITE",
     [](Out o, P v) { o += v.weights ? "1" : std::to_string(v.row->site_factor); }},
    {'t', {}, "TRES", [](Out, P) {}},
    {'T', {}, "TRES", [](Out, P) {}},
    {'u', {}, "USER", [](Out o, P v) { o += v.weights ? "" : v.row->user; }},
    {'y',
     {},
     "PRIORITY",
     [](Out o, P v) {
       o += fmt::format("{:.14f}", static_cast<double>(v.row->priority) / 4294967296.0);
     }},
    {'Y', {}, "PRIORITY", [](Out o, P v) {
       o += v.weights ? "" : std::to_string(v.row->priority);
     }}};

constexpr Option kSprioOptions[] = {
    takes("clusters", 'M', "NAMES", "Only this cluster's name is accepted",
          put<&SprioQuery::clusters>),
    takes("cluster", "NAME", "The same", put<&SprioQuery::clusters>),
    takes("format", 'o', "FORMAT", "Fields as %[[.]WIDTH]LETTER with any text around them",
          put<&SprioQuery::format>),
    takes("jobs", 'j', "JOB,...", "These jobs", call<add_sprio_jobs>),
    flag("local", "Jobs of this cluster, which is always so", always),
    flag("long", 'l', "More columns", put<&SprioQuery::long_form>),
    flag("noheader", 'h', "No header", put<&SprioQuery::no_header>),
    flag("norm", 'n', "Factors between 0 and 1, without their weights", put<&SprioQuery::norm>),
    takes("partition", 'p', "NAME,...", "Jobs of these partitions",
          call<add_words<SprioQuery, &proto::JobFilter::partitions>>),
    takes("user", 'u', "USER,...", "Jobs of these users",
          call<add_words<SprioQuery, &proto::JobFilter::users>>),
    takes("users", "USER,...", "The same", call<add_words<SprioQuery, &proto::JobFilter::users>>),
    flag("verbose", 'v', "List what was asked for on standard error", put<&SprioQuery::verbose>),
    flag("weights", 'w', "The weights instead of jobs", put<&SprioQuery::weights>),
    refuses("federation", "there is one cluster"),
    refuses("sibling", "there is one cluster"),
    refuses("sort", 'S', "jobs come in the order in which they are served"),
};
constexpr std::string_view kSprioPrefixes[] = {"SPRIO_"};

// Slurm's list of options for -v.
void say_query(const SprioQuery& q, std::string_view format) {
  std::string jobs;
  for (const proto::JobRef& ref : q.tuples.filter.jobs)
    jobs += (jobs.empty() ? "" : ",") + format_job_ref(ref);
  const auto joined = [](const std::vector<std::string>& words) {
    return fmt::format("{}", fmt::join(words, ","));
  };
  const std::string rule(29, '-');
  fmt::print(stderr,
             "{0}\nformat     = {1}\njob_flag   = {2:d}\njobs       = {3}\npartition  = {4}\n"
             "users      = {5}\nverbose    = 1\n{0}\n\n",
             rule, format, !jobs.empty(), jobs, joined(q.tuples.filter.partitions),
             joined(q.tuples.filter.users));
}

Result<int> run_sprio(const Invocation& call) {
  SprioQuery q;
  int status = 0;
  const auto operands = parse_into(call, &q, status);
  if (!operands) return status;
  if (!operands->empty()) return complain(call, "Unrecognized option: " + operands->front());
  std::string named;
  if (!check_clusters(call, q.clusters, named, status)) return status;
  std::string format(q.long_form ? kPrioLongFormat : q.norm ? kPrioNormFormat : kPrioFormat);
  // As in Slurm, -u adds a column of users after the partition.
  constexpr std::string_view kPartition = " %9r";
  if (!q.filter().users.empty() && !q.long_form)
    format.insert(format.find(kPartition) + kPartition.size(), " %.8u");
  if (!q.format.empty()) format = q.format;
  std::vector<std::string> unknown;
  const Layout layout = letters_layout(format, infos<PrioLine>(kPrioFields), unknown);
  for (const std::string& name : unknown)
    fmt::print(stderr, "Invalid job format specification: {}\n", name);
  if (q.verbose) say_query(q, format);
  ASSIGN(session, Session::open("sprio"));
  TableStyle style;
  style.header = !q.no_header;
  if (!named.empty() && style.header) fmt::print("CLUSTER: {}\n", named);
  std::fflush(stdout);
  const std::string cluster = cluster_name();
  TableWriter table(layout, style, stdout);
  ASSIGN(reply, session->call<proto::PriorityTuplesReply>(q.tuples));
  if (q.weights) {
    proto::PriorityRow row;
    row.terms = reply->weights;
    add_row<PrioLine>(table, kPrioFields, {&row, true, cluster});
    return 0;
  }
  for (const proto::PriorityRow& row : reply->rows)
    add_row<PrioLine>(table, kPrioFields, {&row, false, cluster});
  const auto& filter = q.tuples.filter;
  if (reply->rows.empty() && (!filter.jobs.empty() || !filter.users.empty()))
    fmt::print("Unable to find jobs matching user/id(s) specified\n");
  return 0;
}

}  // namespace

extern const Command kSprio;
const Command kSprio{
    {"sprio", "Show what the priority of pending jobs is made of"},
    {.description =
         "Slurm's sprio, over gprio. The factors have points where gantry.yaml sets weights for "
         "them; gprio shows the other things that order jobs: quota, tenants and classes.",
     .options = kSprioOptions,
     .examples = {{"sprio", "Pending jobs, the next one first"},
                  {"sprio -n -j 12,13", "What two jobs have of each factor"}},
     .exits = {{"0", "fine"}, {"1", "no answer, or the command line is wrong"}},
     .run = run_sprio,
     .env_prefixes = kSprioPrefixes}};

}  // namespace gantry::cli::slurm
