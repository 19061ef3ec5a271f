// squeue: shows the job queue as Slurm's does.
#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/slurm/frame.h"
#include "cli/slurm/lists/squeue_steps.h"
#include "cli/slurm/records/job_json.h"
#include "cli/slurm/records/queue.h"
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

// Sets a filter. As in Slurm, a filter that is given twice has the second value, so that -u in an
// alias of squeue can be overridden.
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
Result<void> set_squeue_sort(SqueueQuery& q, std::string_view text) {
  TRY(check_queue_sort(text));
  q.sort = text;
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
Result<void> set_squeue_steps(SqueueQuery& q, std::string_view text) {
  q.steps = true;
  for (std::string& word : split_list(text)) q.wanted_steps.push_back(std::move(word));
  return {};
}

constexpr Option kSqueueOptions[] = {
    takes("account", 'A', "NAME,...", "Jobs of these accounts",
          call<only_words<&proto::JobFilter::accounts>>)
        .from_env("ACCOUNT"),
    takes("accounts", "NAME,...", "The same as --account",
          call<only_words<&proto::JobFilter::accounts>>),
    flag("all", 'a', "Hidden partitions as well, of which there are none", always).from_env("ALL"),
    flag("array", 'r', "One line for each array task", put<AT(SqueueQuery, question.each_task)>)
        .from_env("ARRAY"),
    flag("array-unique", "One line for each array task", put<AT(SqueueQuery, question.each_task)>)
        .from_env("ARRAY_UNIQUE"),
    takes("cluster", "NAMES", "The same as --clusters", put<&SqueueQuery::clusters>),
    takes("clusters", 'M', "NAMES", "Only this cluster's name is accepted",
          put<&SqueueQuery::clusters>),
    takes("format", 'o', "FORMAT", "Fields as %[[.]WIDTH]LETTER with any text around them",
          call<set_squeue_letters>)
        .from_env("FORMAT"),
    takes("Format", 'O', "NAME[:[.][WIDTH][TEXT]],...", "Fields by name", call<set_squeue_names>)
        .from_env("FORMAT2"),
    flag("hide", "No hidden partitions, of which there are none", always),
    takes("iterate", 'i', "SECONDS", "Show the queue again and again", call<set_squeue_iterate>),
    may_take("job", 'j', "JOB,...", "These jobs: 12, 12_3, 12_[1-4]", call<add_squeue_jobs>),
    may_take("jobs", "JOB,...", "The same", call<add_squeue_jobs>),
    may_take("json", "data_parser", "All fields as JSON",
             call<set_squeue_shape<&SqueueQuery::json>>),
    flag("local", "Jobs of this cluster, which is always so", always).from_env("LOCAL"),
    flag("long", 'l', "Show time limits as well", put<&SqueueQuery::long_form>),
    flag("me", "My jobs", does<[](SqueueQuery& q) { q.filter().users = {login_name()}; }>),
    takes("name", 'n', "NAME,...", "Jobs of these names",
          call<only_words<&proto::JobFilter::names>>)
        .from_env("NAMES"),
    flag("noconvert", "Do not convert units, which is always so", always),
    takes("nodelist", 'w', "NODES", "Jobs on these nodes", call<only_nodes>),
    takes("node", "NODES", "The same as --nodelist", call<only_nodes>),
    takes("nodes", "NODES", "The same as --nodelist", call<only_nodes>),
    flag("noheader", 'h', "No header", put<&SqueueQuery::no_header>),
    flag("notme", "Jobs of others", does<[](SqueueQuery& q) { q.question.not_of = login_name(); }>),
    flag("only-job-state", "Show ids and states, unless -o or -O say more",
         put<&SqueueQuery::only_state>),
    takes("partition", 'p', "NAME,...", "Jobs of these partitions",
          call<only_words<&proto::JobFilter::partitions>>)
        .from_env("PARTITION"),
    takes("partitions", "NAME,...", "The same as --partition",
          call<only_words<&proto::JobFilter::partitions>>),
    takes("licenses", 'L', "NAME,...", "Jobs that ask for one of these licences, or hold it",
          parsed<split_list, AT(SqueueQuery, question.licenses)>),
    flag("priority", 'P',
         "A line for each partition that a waiting job may go to, with its priority there",
         put<&SqueueQuery::each_partition>)
        .from_env("PRIORITY"),
    takes("qos", 'q', "NAME,...",
          "Jobs of these priority classes; normal is the tenant's default one",
          parsed<split_list, AT(SqueueQuery, question.qos)>)
        .from_env("QOS"),
    takes("reservation", 'R', "NAME", "Jobs that name this reservation",
          call<only_words<&proto::JobFilter::reservations>>),
    takes("sort", 'S', "[+-]LETTER,...", "Order of the lines, by letters of -o (default P,t,-p)",
          call<set_squeue_sort>)
        .from_env("SORT"),
    flag("start", "Pending jobs with the time at which they are expected to start",
         put<&SqueueQuery::start>),
    takes("states", 't', "STATE,...", "Jobs in these states, or all (default: all but ended ones)",
          call<add_squeue_states>)
        .from_env("STATES"),
    may_take("steps", 's', "STEP,...",
             "Running steps instead of jobs: 12.0, 12.batch, or 12 for all of a job's",
             call<set_squeue_steps>),
    takes("user", 'u', "USER,...", "Jobs of these users", call<add_squeue_users>).from_env("USERS"),
    takes("users", "USER,...", "The same as --user", call<add_squeue_users>),
    flag("verbose", 'v', "List the options that are in force on standard error", always),
    may_take("yaml", "data_parser", "All fields as YAML",
             call<set_squeue_shape<&SqueueQuery::yaml>>),
    refuses("federation", "there is one cluster"),
    refuses("sibling", "there is one cluster"),
};
constexpr std::string_view kSqueuePrefixes[] = {"SQUEUE_"};

Layout squeue_layout(const SqueueQuery& q, std::vector<std::string>& unknown) {
  const auto names = infos(queue_fields());
  if (!q.names.empty()) return names_layout(q.names, names, unknown);
  std::string_view format = q.letters;
  if (format.empty())
    format = q.start        ? kStartFormat
             : q.long_form  ? kLongFormat
             : q.only_state ? kStateFormat
                            : kShortFormat;
  return letters_layout(format, names, unknown);
}

// The environment's SQUEUE_FORMAT, or else SQUEUE_FORMAT2, is used only if no typed option chooses
// a format.
bool outdone_in_squeue(std::span<const Given> typed, const Given& of_environment) {
  const std::string_view name = of_environment.option->name;
  if (name != "format" && name != "Format") return false;
  return was_typed(typed, {"format", "Format", "long", "start", "steps"}) ||
         (name == "Format" && std::getenv("SQUEUE_FORMAT") != nullptr);
}

// Prints an error of the controller, or of the connection to it, as libslurm does.
int load_error(const Error& error) {
  return refused("slurm_load_jobs error: {}\n", words_for(error).text);
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
  TableWriter table(layout, {.header = !q.no_header}, stdout);
  for (const QueueRow& row : *rows) add_row(table, queue_fields(), row);
  return 0;
}

Result<int> run_squeue(const Invocation& call) {
  SqueueQuery q;
  int status = 0;
  const auto operands = parse_into(call, &q, status, outdone_in_squeue);
  if (!operands) return status;
  if (q.long_form && !q.letters.empty())
    return complain(call,
                    "fatal: Options -o(--format) and -l(--long) are mutually exclusive. Please "
                    "remove one and retry.");
  // -j takes its value after = or joined to the letter. In `-j 12` the 12 is therefore left as an
  // operand, as in Slurm.
  std::size_t left = operands->size();
  if (left > 0 && q.by_job && q.filter().jobs.empty()) {
    if (!add_squeue_jobs(q, operands->front()))
      return complain(call, "Invalid job id: " + operands->front());
    --left;
  }
  if (left > 0) {
    complain(call, "Unrecognized option: " + operands->back());
    return refused("{}", usage_of(call.command()));
  }
  std::string named;
  if (!check_clusters(call, q.clusters, named, status)) return status;
  if (q.steps) {
    if (q.json || q.yaml)
      return complain(call, "--steps is a table; sacct --json has all of steps");
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

}  // namespace

extern const Command kSqueue;
const Command kSqueue{
    {"squeue", "Show the job queue"},
    {.description =
         "Slurm's squeue, over gqueue: the same formats, fields, filters and texts. Jobs that have "
         "ended stay listed for the time that the controller keeps them, with -t all; sacct knows "
         "them for ever.",
     .options = kSqueueOptions,
     .examples = {{"squeue --me", "My jobs that wait or run"},
                  {"squeue -h -j 12 -t all -o '%T %B'",
                   "State and first node of job 12, for scripts"},
                  {"squeue -O jobid:10,state:12,reasonlist:40", "Fields by name"}},
     .exits = {{"0", "fine, also when no job is listed"},
               {"1",
                "the one job asked for does not exist, no answer, or the "
                "command line is wrong"}},
     .run = run_squeue,
     .env_prefixes = kSqueuePrefixes}};

}  // namespace gantry::cli::slurm
