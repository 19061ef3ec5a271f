// squeue: shows the job queue as Slurm's does.
#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/slurm/frame.h"
#include "cli/slurm/lists/squeue_steps.h"
#include "cli/slurm/records/job_json.h"
#include "cli/slurm/records/queue.h"
#include "cli/submit/job_filter.h"
#include "cli/submit/job_refs.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::string_view kShortFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr std::string_view kLongFormat = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
constexpr std::string_view kStateFormat = "%.18i %.2t";
constexpr std::string_view kStartFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";

struct SqueueQuery {
  QueueQuestion question;
  std::string letters;
  std::string names;
  std::optional<std::string> clusters;
  std::string sort;
  bool each_partition = false;
  std::int64_t iterate = 0;  // seconds; 0 = once
  bool no_header = false;
  bool by_job = false;
  bool long_form = false;
  bool start = false;
  bool only_state = false;
  bool json = false;
  bool yaml = false;
  bool steps = false;  // -s
  std::vector<std::string> wanted_steps;

  proto::JobFilter& filter() { return question.list.filter; }
};

// Sets a filter. As in Slurm, a filter that is given twice has the second value, so that an alias
// of squeue with -u in it can be overruled.
template <auto Member>
Result<void> only_words(SqueueQuery& q, std::string_view text) {
  (q.filter().*Member).clear();
  return add_words<SqueueQuery, Member>(q, text);
}
Result<void> only_nodes(SqueueQuery& q, std::string_view text) {
  q.filter().nodes.clear();
  if (add_nodes(q, text)) return {};
  return fail(ErrorCode::invalid_argument, fmt::format("'{}' invalid entry for --nodelist", text));
}
Result<void> add_squeue_jobs(SqueueQuery& q, std::string_view text) {
  q.by_job = true;
  if (text.empty()) return {};
  q.filter().jobs.clear();
  if (!add_job_refs(q.filter().jobs, text))
    return fail(ErrorCode::invalid_argument, fmt::format("Invalid job id: {}", text));
  return {};
}
Result<void> add_squeue_states(SqueueQuery& q, std::string_view text) {
  q.filter().states.clear();
  return add_states(q.filter().states, text);
}
Result<void> add_squeue_users(SqueueQuery& q, std::string_view text) {
  q.filter().users.clear();
  for (const std::string& word : split_list(text)) {
    std::string name = word;
    const bool is_uid = word.find_first_not_of("0123456789") == std::string::npos;
    if (is_uid)
      if (const passwd* user = ::getpwuid(static_cast<uid_t>(std::atoi(word.c_str()))))
        name = user->pw_name;
    if (!is_uid && ::getpwnam(word.c_str()) == nullptr)
      fmt::print(stderr, "squeue: error: Invalid user: {}\n", word);
    q.filter().users.push_back(std::move(name));
  }
  return {};
}
Result<void> set_squeue_me(SqueueQuery& q, std::string_view) {
  q.filter().users = {login_name()};
  return {};
}
Result<void> set_squeue_notme(SqueueQuery& q, std::string_view) {
  q.question.not_of = login_name();
  return {};
}
Result<void> set_squeue_sort(SqueueQuery& q, std::string_view text) {
  if (auto known = check_queue_sort(text); !known) return known;
  q.sort = text;
  return {};
}
Result<void> add_squeue_licenses(SqueueQuery& q, std::string_view text) {
  q.question.licenses = split_list(text);
  return {};
}
Result<void> set_squeue_letters(SqueueQuery& q, std::string_view text) {
  if (!q.names.empty())
    return fail(ErrorCode::usage, "-o (--format) is incompatible with -O (--Format)");
  q.letters = text;
  return {};
}
Result<void> set_squeue_names(SqueueQuery& q, std::string_view text) {
  if (!q.letters.empty())
    return fail(ErrorCode::usage, "-O (--Format) is incompatible with -o (--format)");
  q.names = text;
  return {};
}
Result<void> set_squeue_iterate(SqueueQuery& q, std::string_view text) {
  const auto n = parse_integer("iterate", text, 1, 86'400);
  if (!n) return fail(ErrorCode::invalid_argument, fmt::format("--iterate={}", text));
  q.iterate = *n;
  return {};
}
template <bool SqueueQuery::*Shape>
Result<void> set_squeue_shape(SqueueQuery& q, std::string_view text) {
  if (!text.empty() && text != "list" && !text.starts_with("v0.0."))
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is no data_parser; leave it out", text));
  q.*Shape = true;
  return {};
}
Result<void> set_squeue_clusters(SqueueQuery& q, std::string_view text) {
  q.clusters = text;
  return {};
}
Result<void> add_squeue_qos(SqueueQuery& q, std::string_view text) {
  q.question.qos = split_list(text);
  return {};
}
Result<void> set_squeue_each(SqueueQuery& q, std::string_view) {
  q.question.each_task = true;
  return {};
}

Result<void> set_squeue_steps(SqueueQuery& q, std::string_view text) {
  q.steps = true;
  for (std::string& word : split_list(text)) q.wanted_steps.push_back(std::move(word));
  return {};
}

constexpr Option kSqueueOptions[] = {
    {.name = "account",
     .letter = 'A',
     .arg = Arg::required,
     .value = "NAME,...",
     .help = "Jobs of these accounts",
     .set = call<only_words<&proto::JobFilter::accounts>>,
     .env = "ACCOUNT"},
    {.name = "accounts",
     .arg = Arg::required,
     .value = "NAME,...",
     .help = "The same as --account",
     .set = call<only_words<&proto::JobFilter::accounts>>},
    {.name = "all",
     .letter = 'a',
     .help = "Hidden partitions as well, of which there are none",
     .set = always,
     .env = "ALL"},
    {.name = "array",
     .letter = 'r',
     .help = "One line for each array task",
     .set = call<set_squeue_each>,
     .env = "ARRAY"},
    {.name = "array-unique",
     .help = "One line for each array task",
     .set = call<set_squeue_each>,
     .env = "ARRAY_UNIQUE"},
    {.name = "cluster",
     .arg = Arg::required,
     .value = "NAMES",
     .help = "The same as --clusters",
     .set = call<set_squeue_clusters>},
    {.name = "clusters",
     .letter = 'M',
     .arg = Arg::required,
     .value = "NAMES",
     .help = "Our own cluster's name is all that can be given",
     .set = call<set_squeue_clusters>},
    {.name = "format",
     .letter = 'o',
     .arg = Arg::required,
     .value = "FORMAT",
     .help = "Fields as %[[.]WIDTH]LETTER with any text around them",
     .set = call<set_squeue_letters>,
     .env = "FORMAT"},
    {.name = "Format",
     .letter = 'O',
     .arg = Arg::required,
     .value = "NAME[:[.][WIDTH][TEXT]],...",
     .help = "Fields by name",
     .set = call<set_squeue_names>,
     .env = "FORMAT2"},
    {.name = "hide", .help = "No hidden partitions, of which there are none", .set = always},
    {.name = "iterate",
     .letter = 'i',
     .arg = Arg::required,
     .value = "SECONDS",
     .help = "Show the queue again and again",
     .set = call<set_squeue_iterate>},
    {.name = "job",
     .letter = 'j',
     .arg = Arg::optional,
     .value = "JOB,...",
     .help = "These jobs: 12, 12_3, 12_[1-4]",
     .set = call<add_squeue_jobs>},
    {.name = "jobs",
     .arg = Arg::optional,
     .value = "JOB,...",
     .help = "The same",
     .set = call<add_squeue_jobs>},
    {.name = "json",
     .arg = Arg::optional,
     .value = "data_parser",
     .help = "All fields as JSON",
     .set = call<set_squeue_shape<&SqueueQuery::json>>},
    {.name = "local",
     .help = "Jobs of this cluster, which is always so",
     .set = always,
     .env = "LOCAL"},
    {.name = "long",
     .letter = 'l',
     .help = "Show time limits as well",
     .set = put<&SqueueQuery::long_form>},
    {.name = "me", .help = "My jobs", .set = call<set_squeue_me>},
    {.name = "name",
     .letter = 'n',
     .arg = Arg::required,
     .value = "NAME,...",
     .help = "Jobs of these names",
     .set = call<only_words<&proto::JobFilter::names>>,
     .env = "NAMES"},
    {.name = "noconvert", .help = "Do not convert units, which is always so", .set = always},
    {.name = "nodelist",
     .letter = 'w',
     .arg = Arg::required,
     .value = "NODES",
     .help = "Jobs on these nodes",
     .set = call<only_nodes>},
    {.name = "node",
     .arg = Arg::required,
     .value = "NODES",
     .help = "The same as --nodelist",
     .set = call<only_nodes>},
    {.name = "nodes",
     .arg = Arg::required,
     .value = "NODES",
     .help = "The same as --nodelist",
     .set = call<only_nodes>},
    {.name = "noheader", .letter = 'h', .help = "No header", .set = put<&SqueueQuery::no_header>},
    {.name = "notme", .help = "Jobs of others", .set = call<set_squeue_notme>},
    {.name = "only-job-state",
     .help = "Show ids and states, unless -o or -O say more",
     .set = put<&SqueueQuery::only_state>},
    {.name = "partition",
     .letter = 'p',
     .arg = Arg::required,
     .value = "NAME,...",
     .help = "Jobs of these partitions",
     .set = call<only_words<&proto::JobFilter::partitions>>,
     .env = "PARTITION"},
    {.name = "partitions",
     .arg = Arg::required,
     .value = "NAME,...",
     .help = "The same as --partition",
     .set = call<only_words<&proto::JobFilter::partitions>>},
    {.name = "licenses",
     .letter = 'L',
     .arg = Arg::required,
     .value = "NAME,...",
     .help = "Jobs that ask for one of these licences, or hold it",
     .set = call<add_squeue_licenses>},
    {.name = "priority",
     .letter = 'P',
     .help = "A line for each partition that a waiting job may go to, with its priority there",
     .set = put<&SqueueQuery::each_partition>,
     .env = "PRIORITY"},
    {.name = "qos",
     .letter = 'q',
     .arg = Arg::required,
     .value = "NAME,...",
     .help = "Jobs of these priority classes; normal is the tenant's default one",
     .set = call<add_squeue_qos>,
     .env = "QOS"},
    {.name = "reservation",
     .letter = 'R',
     .arg = Arg::required,
     .value = "NAME",
     .help = "Jobs that name this reservation",
     .set = call<only_words<&proto::JobFilter::reservations>>},
    {.name = "sort",
     .letter = 'S',
     .arg = Arg::required,
     .value = "[+-]LETTER,...",
     .help = "Order of the lines, by letters of -o (default P,t,-p)",
     .set = call<set_squeue_sort>,
     .env = "SORT"},
    {.name = "start",
     .help = "Pending jobs with the time at which they are expected to start",
     .set = put<&SqueueQuery::start>},
    {.name = "states",
     .letter = 't',
     .arg = Arg::required,
     .value = "STATE,...",
     .help = "Jobs in these states, or all (default: all but ended ones)",
     .set = call<add_squeue_states>,
     .env = "STATES"},
    {.name = "steps",
     .letter = 's',
     .arg = Arg::optional,
     .value = "STEP,...",
     .help = "Running steps instead of jobs: 12.0, 12.batch, or 12 for all of a job's",
     .set = call<set_squeue_steps>},
    {.name = "user",
     .letter = 'u',
     .arg = Arg::required,
     .value = "USER,...",
     .help = "Jobs of these users",
     .set = call<add_squeue_users>,
     .env = "USERS"},
    {.name = "users",
     .arg = Arg::required,
     .value = "USER,...",
     .help = "The same as --user",
     .set = call<add_squeue_users>},
    {.name = "verbose",
     .letter = 'v',
     .help = "List the options that are in force on standard error",
     .set = always},
    {.name = "yaml",
     .arg = Arg::optional,
     .value = "data_parser",
     .help = "All fields as YAML",
     .set = call<set_squeue_shape<&SqueueQuery::yaml>>},
    {.name = "federation", .refused = "there is one cluster"},
    {.name = "sibling", .refused = "there is one cluster"},
};
constexpr std::string_view kSqueuePrefixes[] = {"SQUEUE_"};

Layout squeue_layout(const SqueueQuery& q, std::vector<std::string>& unknown) {
  const auto names = names_of(queue_fields());
  if (!q.names.empty()) return names_layout(q.names, names, unknown);
  std::string_view format = q.letters;
  if (format.empty())
    format = q.start        ? kStartFormat
             : q.long_form  ? kLongFormat
             : q.only_state ? kStateFormat
                            : kShortFormat;
  return letters_layout(format, names, unknown);
}

// The environment's SQUEUE_FORMAT, and without it SQUEUE_FORMAT2, only count if no typed option
// chooses a form.
bool outdone_in_squeue(std::span<const Given> typed, const Given& of_environment) {
  const std::string_view name = of_environment.option->name;
  if (name != "format" && name != "Format") return false;
  return was_typed(typed, {"format", "Format", "long", "start", "steps"}) ||
         (name == "Format" && std::getenv("SQUEUE_FORMAT") != nullptr);
}

// Prints an error of the controller, or of the connection to it, as libslurm does.
int load_error(const Error& error) {
  fmt::print(stderr, "slurm_load_jobs error: {}\n", words_for(error).text);
  return 1;
}

// Prints Slurm's message and returns false if one of these nodes does not exist.
Result<bool> knows_nodes(Session& session, const std::vector<std::string>& names) {
  if (names.empty()) return true;
  ASSIGN(known, session.call<proto::ListNodesReply>(proto::ListNodes{{}, {}, false}));
  for (const std::string& name : names) {
    const auto is = [&](const proto::NodeRow& node) { return node.name == name; };
    if (std::any_of(known->nodes.begin(), known->nodes.end(), is)) continue;
    fmt::print(stderr, "squeue: error: Invalid node name {}\n", name);
    return false;
  }
  return true;
}

int show_queue(SqueueQuery& q, const Layout& layout, const std::string& named) {
  auto session = Session::open("squeue");
  if (!session) return load_error(session.error());
  const auto known = knows_nodes(*session, q.filter().nodes);
  if (!known) return load_error(known.error());
  if (!*known) return 1;
  q.question.details = q.json || q.yaml || !q.question.qos.empty() ||
                       !q.question.licenses.empty() || needs_more(layout, queue_fields()) ||
                       sort_needs_detail(q.sort);
  auto rows = ask_queue(*session, q.question, cluster_name());
  if (!rows) return load_error(rows.error());
  if (q.each_partition) split_by_partition(*rows);
  sort_queue(*rows, q.sort.empty() ? (q.start ? "S,t,-p" : "P,t,-p") : q.sort);
  if (q.json || q.yaml) {
    print_document(q.json ? Shape::json : Shape::yaml, "squeue", {{"jobs", jobs_tree(*rows)}});
    return 0;
  }
  if ((q.long_form || q.iterate > 0) && !q.no_header) print_date();
  if (!named.empty() && !q.no_header) fmt::print("CLUSTER: {}\n", named);
  TableStyle style;
  style.header = !q.no_header;
  TableWriter table(layout, style, stdout);
  for (const QueueRow& row : *rows) put_row(table, queue_fields(), row);
  return 0;
}

Result<int> run_squeue(const Invocation& call) {
  SqueueQuery q;
  int status = 0;
  const auto operands = parse_into(call, &q, status, outdone_in_squeue);
  if (!operands) return status;
  if (q.long_form && !q.letters.empty()) {
    complain(call,
             "fatal: Options -o(--format) and -l(--long) are mutually exclusive. Please "
             "remove one and retry.");
    return 1;
  }
  // -j takes its value after = or joined to the letter. In `-j 12` the 12 is therefore left as an
  // operand, as in Slurm.
  std::size_t left = operands->size();
  if (left > 0 && q.by_job && q.filter().jobs.empty()) {
    if (!add_squeue_jobs(q, operands->front())) {
      complain(call, "Invalid job id: " + operands->front());
      return 1;
    }
    --left;
  }
  if (left > 0) {
    complain(call, "Unrecognized option: " + operands->back());
    fmt::print(stderr, "{}", usage_of(call.command()));
    return 1;
  }
  std::string named;
  if (!check_clusters(call, q.clusters, named, status)) return status;
  if (q.steps) {
    if (q.json || q.yaml) {
      complain(call, "--steps is a table; sacct --json has all of steps");
      return 1;
    }
    return show_steps(call, {q.filter(), q.wanted_steps, q.letters, q.names, q.no_header});
  }
  std::vector<std::string> unknown;
  const Layout layout = squeue_layout(q, unknown);
  for (const std::string& name : unknown)
    complain(call, "Invalid job format specification: " + name);
  if (q.filter().states.empty())
    q.filter().states = q.start ? std::vector<std::string>{"PENDING"}
                                : std::vector<std::string>{"PENDING", "CONFIGURING", "RUNNING",
                                                           "SUSPENDED", "COMPLETING"};
  q.question.one_job = q.filter().jobs.size() == 1;
  while (true) {
    const int shown = show_queue(q, layout, named);
    if (q.iterate == 0) return shown;
    fmt::print("\n");
    std::fflush(stdout);
    const timespec pause{q.iterate, 0};
    ::nanosleep(&pause, nullptr);
  }
}

constexpr Example kSqueueExamples[] = {
    {"squeue --me", "My jobs that wait or run"},
    {"squeue -h -j 12 -t all -o '%T %B'", "State and first node of job 12, for scripts"},
    {"squeue -O jobid:10,state:12,reasonlist:40", "Fields by name"},
};
constexpr ExitDoc kSqueueExits[] = {{"0", "fine, also when no job is listed"},
                                    {"1",
                                     "the one job asked for does not exist, no answer, or the "
                                     "command line is wrong"}};

}  // namespace

extern const Command kSqueue;
const Command kSqueue{
    .name = "squeue",
    .summary = "Show the job queue",
    .description =
        "Slurm's squeue, over gqueue: the same formats, fields, filters and texts. Jobs that have "
        "ended stay listed for the time that the controller keeps them, with -t all; sacct knows "
        "them for ever.",
    .options = kSqueueOptions,
    .examples = kSqueueExamples,
    .exits = kSqueueExits,
    .run = run_squeue,
    .env_prefixes = kSqueuePrefixes,
};

}  // namespace gantry::cli::slurm
