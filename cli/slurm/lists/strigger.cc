// strigger: manages programs that the controller runs on events. The list has Slurm's columns.
#include <fmt/core.h>
#include <pwd.h>
#include <sys/stat.h>

#include <algorithm>

#include "cli/session.h"
#include "cli/slurm/frame.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

using proto::TriggerOn;

struct StriggerRequest {
  bool set = false, get = false, clear = false;
  bool no_header = false, quiet = false, verbose = false;
  bool node = false;
  proto::Trigger trigger;
  proto::TriggerFilter filter;
  std::optional<std::string> clusters;
};

template <TriggerOn On>
Result<void> set_strigger_event(StriggerRequest& r, std::string_view) {
  r.trigger.on.push_back(On);
  return {};
}
Result<void> set_strigger_id(StriggerRequest& r, std::string_view text) {
  const auto id = parse_integer("the trigger", text, 1, UINT32_MAX);
  if (!id) return fail(ErrorCode::invalid_argument, fmt::format("Invalid id {}", text));
  r.filter.id = TriggerId(static_cast<std::uint32_t>(*id));
  return {};
}
Result<void> set_strigger_job(StriggerRequest& r, std::string_view text) {
  const auto id = parse_integer("the job", text, 1, INT64_MAX);
  if (!id) return fail(ErrorCode::invalid_argument, fmt::format("Invalid jobid {}", text));
  r.filter.job = r.trigger.job = JobId(static_cast<std::uint64_t>(*id));
  return {};
}
Result<void> set_strigger_node(StriggerRequest& r, std::string_view text) {
  r.node = true;
  r.trigger.nodes.clear();
  if (text.empty() || text == "*") return {};
  ASSIGN(nodes, expand_hostlist(text));
  r.trigger.nodes = std::move(*nodes);
  return {};
}
Result<void> set_strigger_offset(StriggerRequest& r, std::string_view text) {
  const auto offset = parse_integer("the offset", text, -32'000, 32'000);
  if (!offset)
    return fail(ErrorCode::invalid_argument, "The --offset parameter must be between +/-32000");
  r.trigger.offset = seconds(*offset);
  return {};
}
Result<void> set_strigger_flags(StriggerRequest& r, std::string_view text) {
  if (text != "PERM" && text != "perm")
    return fail(ErrorCode::invalid_argument, fmt::format("Invalid flags {}", text));
  r.trigger.permanent = true;
  return {};
}
Result<void> set_strigger_user(StriggerRequest& r, std::string_view text) {
  const auto uid = parse_integer("the user", text, 0, UINT32_MAX - 1);
  const passwd* user = uid ? nullptr : ::getpwnam(std::string(text).c_str());
  if (!uid && user == nullptr)
    return fail(ErrorCode::invalid_argument, fmt::format("Invalid user {}", text));
  r.filter.uid = Uid(uid ? static_cast<std::uint32_t>(*uid) : user->pw_uid);
  return {};
}

constexpr std::string_view kNoBackup =
    "there is one controller, and it runs no program about itself";
constexpr std::string_view kNoDatabase = "there is no accounting daemon and no database beside it";

constexpr Option kStriggerOptions[] = {
    flag("clear", "Take triggers away", put<&StriggerRequest::clear>),
    takes("clusters", 'M', "NAME", "This cluster's own name; there is no other",
          put<&StriggerRequest::clusters>),
    flag("down", 'd', "A node goes down or is lost", call<set_strigger_event<TriggerOn::down>>),
    flag("drained", 'D', "Nothing runs any more on a node that takes no jobs",
         call<set_strigger_event<TriggerOn::drained>>),
    flag("fini", 'f', "The job is over", call<set_strigger_event<TriggerOn::fini>>),
    takes("flags", "PERM", "The trigger stays when it has fired", call<set_strigger_flags>),
    flag("get", "List triggers", put<&StriggerRequest::get>),
    flag("help", "Show this help", always),
    takes("id", 'i', "ID", "This trigger", call<set_strigger_id>),
    flag("idle", 'I', "Nothing has run on a node for --offset seconds",
         call<set_strigger_event<TriggerOn::idle>>),
    takes("jobid", 'j', "JOB", "Of this job; with --down and --up of its nodes",
          call<set_strigger_job>),
    may_take("node", 'n', "NODES", "Of these nodes, or of all", call<set_strigger_node>),
    flag("noheader", 'N', "No header", put<&StriggerRequest::no_header>),
    takes("offset", 'o', "SECONDS", "So long after the event; below 0, before a job's time limit",
          call<set_strigger_offset>),
    takes("program", 'p', "PATH",
          "What to run, with the job's id or the list of nodes as its argument",
          put<AT(StriggerRequest, trigger.program)>),
    flag("quiet", 'Q', "Nothing to clear is no error", put<&StriggerRequest::quiet>),
    flag("reconfig", 'r', "The controller has read its configuration again",
         call<set_strigger_event<TriggerOn::reconfig>>),
    flag("set", "Set a trigger", put<&StriggerRequest::set>),
    flag("time", 't', "The job's time limit", call<set_strigger_event<TriggerOn::time>>),
    flag("up", 'u', "A node that was down is back", call<set_strigger_event<TriggerOn::up>>),
    takes("user", "USER", "Triggers of this user", call<set_strigger_user>),
    flag("verbose", 'v', "Say what was done", put<&StriggerRequest::verbose>),
    refuses("backup_slurmctld_assumed_control", 'C', kNoBackup),
    refuses("backup_slurmctld_failure", 'B', kNoBackup),
    refuses("backup_slurmctld_resumed_operation", 'c', kNoBackup),
    refuses("block_err", "there are no blocks"),
    refuses("burst_buffer", "there are no burst buffers"),
    refuses("draining", "use --drained"),
    refuses("fail", 'F', "no node is marked as failing: use --down or --drained"),
    refuses("front_end", "there are no front ends"),
    refuses("primary_database_failure", 'h', kNoDatabase),
    refuses("primary_database_resumed_operation", 'H', kNoDatabase),
    refuses("primary_slurmctld_acct_buffer_full", 'e', kNoDatabase),
    refuses("primary_slurmctld_failure", 'a', kNoBackup),
    refuses("primary_slurmctld_resumed_control", 'b', kNoBackup),
    refuses("primary_slurmctld_resumed_operation", 'A', kNoBackup),
    refuses("primary_slurmdbd_failure", 'g', kNoDatabase),
    refuses("primary_slurmdbd_resumed_operation", 'G', kNoDatabase),
    refuses("resume", 'R', "nodes are not powered up and down"),
};

bool of_job(const proto::Trigger& t) {
  return std::any_of(t.on.begin(), t.on.end(),
                     [](TriggerOn on) { return on == TriggerOn::fini || on == TriggerOn::time; });
}

std::string wrong_with(const StriggerRequest& r) {
  if (int{r.set} + int{r.get} + int{r.clear} != 1)
    return "You must use exactly one of the following options: --set, --get or --clear";
  if (r.clear && !r.filter.uid && !r.filter.id && !r.filter.job)
    return "You must specify a --id, --jobid, or --user to clear";
  if (r.set && r.trigger.on.empty())
    return "You must specify a trigger (--down, --drained, --idle, --up, --time, --fini, "
           "--reconfig)";
  if (r.set && (r.filter.id || r.filter.uid))
    return "--id and --user are for --get and --clear: a trigger is given its id, and is yours";
  if (!r.set &&
      (!r.trigger.program.empty() || r.trigger.permanent || r.trigger.offset != Duration{}))
    return "--program, --offset and --flags are for --set";
  if (r.clear && (!r.trigger.on.empty() || r.node)) return "--clear takes --id, --jobid and --user";
  if (r.set && r.trigger.program.empty()) return "You must specify a --program value";
  if (of_job(r.trigger) && !r.trigger.job && r.set) return "You must specify a --jobid value";
  if (r.trigger.job && r.node) return "--jobid and --node exclude each other";
  if (!r.set) return {};
  if (r.trigger.program[0] != '/') return "The --program value must start with \"/\"";
  struct stat program {};
  if (::stat(r.trigger.program.c_str(), &program) != 0)
    return "Invalid --program value, file not found";
  if (!S_ISREG(program.st_mode)) return "Invalid --program value, not regular file";
  return {};
}

std::string types_of(const proto::Trigger& t) {
  std::string text;
  for (const auto& [on, name] : enum_names(TriggerOn{}))
    if (std::find(t.on.begin(), t.on.end(), on) != t.on.end())
      text += (text.empty() ? "" : ",") + std::string(name);
  return text;
}

std::string_view kind_of(const proto::Trigger& t) {
  return t.job ? "job" : "node";  // also for --reconfig, as in Slurm
}

std::string resource_of(const proto::Trigger& t) {
  if (t.job) return std::to_string(t.job->value());
  return t.nodes.empty() ? "*" : compress_hostlist(t.nodes);
}

// --get filters by exactly these events, and by kinds of resources.
bool is_shown(const StriggerRequest& r, const proto::Trigger& t) {
  if (!r.trigger.on.empty() &&
      std::any_of(r.trigger.on.begin(), r.trigger.on.end(), [&](TriggerOn on) {
        return std::find(t.on.begin(), t.on.end(), on) == t.on.end();
      }))
    return false;
  if (!r.node) return true;
  if (t.job) return false;
  return r.trigger.nodes.empty() || t.nodes.empty() ||
         std::any_of(r.trigger.nodes.begin(), r.trigger.nodes.end(), [&](const std::string& name) {
           return std::find(t.nodes.begin(), t.nodes.end(), name) != t.nodes.end();
         });
}

void print_triggers(const StriggerRequest& r, const proto::TriggerList& list) {
  bool first = !r.no_header;
  for (const proto::Trigger& t : list.triggers) {
    if (!is_shown(r, t)) continue;
    if (first)
      fmt::print("TRIG_ID RES_TYPE   RES_ID {:<35} OFFSET USER     FLAGS PROGRAM\n", "TYPE");
    first = false;
    fmt::print("{:>7} {:<9} {:>7} {:<35} {:>6} {:<8} {:<5} {}\n", t.id.value(), kind_of(t),
               resource_of(t), types_of(t), t.offset.us / 1'000'000, t.user,
               t.permanent ? "PERM" : "", t.program);
  }
}

void say_cleared(const proto::TriggerFilter& filter) {
  const std::string what = filter.job   ? fmt::format("triggers for job {}", filter.job->value())
                           : filter.uid ? fmt::format("triggers for user {}", filter.uid->value())
                                        : fmt::format("trigger {}", filter.id->value());
  fmt::print(stderr, "strigger: {} cleared\n", what);
}

Result<int> run_strigger(const Invocation& call) {
  StriggerRequest r;
  int status = 0;
  const auto operands = parse_into(call, &r, status);
  if (!operands) return status;
  std::string wrong = wrong_with(r);
  if (!operands->empty()) wrong = fmt::format("Unrecognized parameter: {}", operands->front());
  if (!wrong.empty()) return complain(call, wrong);
  std::string named;
  if (!check_clusters(call, r.clusters, named, status)) return status;
  const auto failed = [&](const char* what, const Error& error) {
    const Words words = words_for(error);
    fmt::print(stderr, "{} error: {}\n", what, words.text);
    if (!words.detail.empty()) complain(call, words.detail);
    return 1;
  };
  if (r.set) {
    const auto done = ask<proto::TriggerList>("strigger", proto::SetTrigger{r.trigger});
    if (!done) return failed("slurm_set_trigger", done.error());
    if (r.verbose) fmt::print(stderr, "strigger: trigger set\n");
    return 0;
  }
  if (r.get) {
    const auto list = ask<proto::TriggerList>("strigger", proto::ListTriggers{r.filter});
    if (!list) return failed("slurm_get_triggers", list.error());
    if (r.verbose) fmt::print(stderr, "strigger: Read {} trigger records\n", list->triggers.size());
    print_triggers(r, *list);
    return 0;
  }
  const auto gone = ask<proto::TriggerList>("strigger", proto::ClearTriggers{r.filter});
  if (!gone && r.quiet && gone.error().code == ErrorCode::not_found) return 0;
  if (!gone) return failed("slurm_clear_trigger", gone.error());
  if (r.verbose) say_cleared(r.filter);
  return 0;
}

}  // namespace

extern const Command kStrigger;
const Command kStrigger{
    {"strigger", "Run programs on events", "--set|--get|--clear"},
    {.description =
         "Slurm's strigger. The controller runs a program, on its own machine and as the user who "
         "set the trigger, when a job is over or near its time limit, when nodes go down, come "
         "back, are drained or idle, or when the configuration has been read again. Its argument "
         "is "
         "the job's id, the list of nodes or *; its output is thrown away, and after 300 seconds "
         "it "
         "is killed. A trigger fires once, unless "
         "--flags=PERM; the program is run once or, should the controller die in that moment, not "
         "at all.\n\n"
         "Operators set triggers; users only where controller.user_triggers is on, and for their "
         "own jobs.",
     .options = kStriggerOptions,
     .examples = {{"strigger --set --jobid=12 --time --offset=-600 --program=/usr/local/bin/warn",
                   "Run it ten minutes before job 12 reaches its time limit"},
                  {"strigger --set --node --down --flags=PERM --program=/usr/local/sbin/node-down",
                   "Each time that nodes go down (operators)"},
                  {"strigger --get", "My triggers; an operator's: all"},
                  {"strigger --clear --id=3", "Take one away"}},
     .exits = {{"0", "done"},
               {"1",
                "there is no such trigger or job, it is not yours, or the command line is wrong"}},
     .run = run_strigger}};

}  // namespace gantry::cli::slurm
