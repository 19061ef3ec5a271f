// scontrol: shows and changes jobs, nodes, partitions and reservations, as Slurm's does. Each verb
// has a shortest abbreviation. Verbs that Gantry does not have are in the same table, with the
// reason.
#include "cli/slurm/control/scontrol.h"

#include <fmt/core.h>

#include <iterator>

#include "cli/slurm/format.h"
#include "cli/slurm/help.h"

namespace gantry::cli::slurm {
namespace {

struct ScontrolCall : Control {
  std::optional<std::string> clusters;
};

constexpr Option kScontrolOptions[] = {
    flag("all", 'a', "Hidden partitions as well, of which there are none", always),
    takes("cluster", 'M', "NAME", "Only this cluster's name is accepted",
          put<AT(ScontrolCall, clusters)>),
    takes("clusters", "NAME", "The same", put<AT(ScontrolCall, clusters)>),
    flag("details", 'd', "Where a job has its cores, memory and GPUs",
         does<[](ScontrolCall& c) { ++c.details; }>),
    flag("help", 'h', "Show this help", always),
    flag("hide", "No hidden partitions, of which there are none", always),
    may_take("json", "data_parser", "Records as JSON", put<AT(ScontrolCall, json)>),
    flag("local", "This cluster, which is always so", always),
    flag("oneliner", 'o', "One line for each record", put<AT(ScontrolCall, oneline)>),
    flag("quiet", 'Q', "Print nothing but errors", put<AT(ScontrolCall, quiet)>),
    flag("verbose", 'v',
         "List the options that are in force on standard error; show says when it was asked",
         put<AT(ScontrolCall, verbose)>),
    may_take("yaml", "data_parser", "Records as YAML", put<AT(ScontrolCall, yaml)>),
    refuses("federation", "there is one cluster"),
    refuses("future", 'F', "there are no nodes of the future"),
    refuses("sibling", "there is one cluster"),
    refuses("uid", 'u', "you act as who you are"),
};

struct Verb {
  std::string_view name;
  std::size_t least;  // shortest abbreviation, in characters
  int (*run)(const Control&, const Arguments&) = nullptr;
  std::string_view what;  // description in one line, or the reason for refusing the verb
};

int nothing_to_do(const Control&, const Arguments&) {
  return 0;
}
int print_version(const Control&, const Arguments&) {
  fmt::print("{}\n", kSlurmVersion);
  return 0;
}

constexpr Verb kVerbs[] = {
    {"show", 2, control_show, "job, node, partition, config, reservation, step, hostnames, ..."},
    {"hold", 4, control_hold, "keep pending jobs from starting"},
    {"uhold", 2, control_hold, "the same, as the jobs' owner"},
    {"holdu", 5, control_hold, "the same"},
    {"release", 3, control_release, "let held jobs start"},
    {"suspend", 2, control_suspend, "stop running jobs where they are (operators)"},
    {"resume", 3, control_resume, "let suspended jobs go on (operators)"},
    {"requeue", 7, control_requeue, "put running or ended jobs back into the queue"},
    {"requeuehold", 8, control_requeuehold, "the same, and hold them"},
    {"update", 1, control_update, "change a job, node or partition: KEY=VALUE..."},
    {"create", 2, control_create, "create a partition or reservation: KEY=VALUE..."},
    {"delete", 3, control_delete, "delete PartitionName=NAME or ReservationName=NAME"},
    {"ping", 2, control_ping, "whether the controller answers"},
    {"wait_job", 4, control_wait_job, "wait until a job has its nodes"},
    {"write", 2, control_write, "write batch_script JOB [FILE|-]; write config [FILE]"},
    {"completing", 3, control_completing, "jobs that are ending"},
    {"notify", 1, control_notify, "notify JOB TEXT...: a line in the job's standard error"},
    {"listpids", 2, control_listpids, "listpids [JOB[.STEP] [NODE]]: processes on this machine"},
    {"pidinfo", 2, control_pidinfo, "pidinfo PID: whose it is, and until when"},
    {"reconfigure", 3, control_reconfigure, "read the configuration again (administrators)"},
    {"token", 2, control_token, "token [username=NAME] [lifespan=SECONDS]: for SLURM_JWT"},
    {"top", 3, control_top, "put pending jobs in front of their owner's others"},
    {"version", 4, print_version, "the version"},
    {"all", 3, nothing_to_do, "show hidden partitions, of which there are none"},
    {"hide", 4, nothing_to_do, "do not show hidden partitions"},
    {"local", 3, nothing_to_do, "show this cluster"},
    {"abort", 5, nullptr, "stop gantry-ctld as a service"},
    {"cancel_reboot", 5, nullptr, "nodes are never rebooted"},
    {"errnumstr", 2, nullptr, "errors have no numbers of Slurm's"},
    {"fsdampeningfactor", 2, nullptr, "use controller.fair_share_half_life"},
    {"power", 3, nullptr, "power is not managed"},
    {"reboot", 3, nullptr, "nodes are never rebooted"},
    {"schedloglevel", 2, nullptr, "gantry-ctld has --log-level"},
    {"setdebug", 4, nullptr, "gantry-ctld has --log-level"},
    {"setdebugflags", 9, nullptr, "gantry-ctld has --log-level"},
    {"shutdown", 3, nullptr, "stop gantry-ctld as a service"},
    {"takeover", 4, nullptr, "there is one controller"},
};

const Verb* find_verb(std::string_view word) {
  const std::string wanted = lower_case(word);
  const Verb* found = nullptr;
  for (const Verb& verb : kVerbs) {
    if (verb.name == wanted) return &verb;
    if (found == nullptr && wanted.size() >= verb.least && verb.name.starts_with(wanted))
      found = &verb;
  }
  return found;
}

int run_verb(const Control& c, Arguments words) {
  const Verb* verb = find_verb(words[0]);
  if (verb == nullptr) return refused("invalid keyword: {}\n", words[0]);
  if (verb->run == nullptr)
    return refused("scontrol: error: {} is not supported: {}\n", verb->name, verb->what);
  words.erase(words.begin());
  return verb->run(c, words);
}

// Reads lines of words from standard input until the input ends or a line is exit. The line !!
// repeats the previous one.
int run_interactive(const Control& c) {
  int status = 0;
  std::string line, before;  // `before` is what !! repeats
  while (true) {
    fmt::print("scontrol: ");
    std::fflush(stdout);
    line.clear();
    int ch = 0;
    while ((ch = std::getchar()) != EOF && ch != '\n') line += static_cast<char>(ch);
    if (line == "!!")
      line = before;
    else
      before = line;
    Arguments words;
    std::string_view rest = line;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      if (end > 0) words.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    const bool ends = !words.empty() && (words[0] == "exit" || words[0] == "quit");
    if (!words.empty() && !ends) status = run_verb(c, std::move(words));
    if (ends || ch == EOF) break;
  }
  fmt::print("\n");
  return status;
}

Result<int> run_scontrol(const Invocation& call) {
  ScontrolCall c;
  int status = 0;
  auto operands = parse_into(call, &c, status);
  if (!operands) return status;
  std::string named;
  if (!check_clusters(call, c.clusters, named, status)) return status;
  if (operands->empty()) return run_interactive(c);
  if (lower_case(operands->front()) == "help") {
    fmt::print("{}", help_of(call.command()));
    return 0;
  }
  return run_verb(c, std::move(*operands));
}

// The text about the verbs, for --help and the manual page.
const std::string& description() {
  static const std::string text = [] {
    std::string out = "Slurm's scontrol, over gctl. The verbs, which may be shortened:\n\n";
    for (const Verb& verb : kVerbs)
      if (verb.run != nullptr) out += fmt::format("{}: {}.\n\n", verb.name, verb.what);
    out += "Refused, because Gantry has no such thing:";
    for (const Verb& verb : kVerbs)
      if (verb.run == nullptr) out += fmt::format(" {} ({}).", verb.name, verb.what);
    return out;
  }();
  return text;
}

}  // namespace

std::vector<CommandWord> scontrol_words() {
  std::vector<CommandWord> words;
  for (const Verb& verb : kVerbs)
    if (verb.run != nullptr) words.push_back({std::string(verb.name), std::string(verb.what)});
  return words;
}

bool has_arguments(const Arguments& args, std::string_view keyword, std::size_t least) {
  const bool enough = args.size() >= least;
  if (!enough) fmt::print(stderr, "too few arguments for keyword:{}\n", keyword);
  return enough;
}

int control_error(std::string_view prefix, const Error& error) {
  const Words words = words_for(error);
  fmt::print(stderr, "{}: {}\n", prefix, words.text);
  if (!words.detail.empty() && words.detail != words.text && error.code != ErrorCode::not_found &&
      error.code != ErrorCode::unavailable)
    fmt::print(stderr, "scontrol: {}\n", words.detail);
  return 1;
}

KeyValue key_value(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) return {"", word};
  return {lower_case(word.substr(0, equals)), word.substr(equals + 1)};
}

extern const Command kScontrol;
const Command kScontrol{
    {"scontrol", "Show and change jobs, nodes, partitions and reservations", "VERB [ARGUMENT...]"},
    {.description = description(),
     .options = kScontrolOptions,
     .examples = {{"scontrol show job 12", "Everything about a job"},
                  {"scontrol show hostnames 'n[01-03]'", "The names in a host list, one a line"},
                  {"scontrol update NodeName=n01 State=DRAIN Reason='new memory'",
                   "Give a node no new jobs"},
                  {"scontrol create PartitionName=night Nodes=n[01-03] MaxTime=8:00:00",
                   "A new partition"},
                  {"scontrol requeue $SLURM_JOB_ID", "In a job: start again from the queue"}},
     .exits = {{"0", "done"}, {"1", "refused, not found, or no answer"}},
     .run = run_scontrol}};

}  // namespace gantry::cli::slurm
