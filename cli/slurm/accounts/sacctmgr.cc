// The command line of sacctmgr. Its listings are in sacctmgr_list.cc, its changes in
// sacctmgr_verbs.cc and sacctmgr_qos.cc.
#include <fmt/core.h>

#include <algorithm>

#include "cli/session.h"
#include "cli/slurm/accounts/entity_changes.h"
#include "cli/slurm/accounts/other_accounts.h"
#include "cli/slurm/accounts/sacctmgr_list.h"
#include "cli/slurm/accounts/sacctmgr_verbs.h"
#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/help.h"
#include "cli/slurm/records/history.h"
#include "common/proto/history.h"
#include "common/proto/job_change.h"
#include "common/proto/job_text.h"
#include "common/proto/tenancy.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr Option kSacctmgrOptions[] = {
    flag("associations", 's', "Users and accounts with their associations",
         put<&SacctmgrCall::associations>),
    flag("help", 'h', "Show this help", always),
    flag("immediate", 'i', "commit changes immediately, without a question",
         put<&SacctmgrCall::immediate>),
    flag("noheader", 'n', "No header", put<&SacctmgrCall::no_header>),
    flag("oneliner", 'o', "A line for each, which is always so", always),
    flag("parsable", 'p', "Values parted by |, also behind the last", put<&SacctmgrCall::parsable>),
    flag("parsable2", 'P', "Values parted by |", put<&SacctmgrCall::parsable2>),
    flag("quiet", 'Q', "Say less, of which there is nothing", always),
    flag("readonly", 'r', "Change nothing", put<&SacctmgrCall::read_only>),
    flag("verbose", 'v', "List the options that are in force on standard error", always),
    refuses("json", "use gtenant export"),
    refuses("yaml", "use gtenant export"),
};

Result<int> run_sacctmgr(const Invocation& call) {
  SacctmgrCall options;
  int status = 0;
  const auto operands = parse_into(call, &options, status);
  if (!operands) return status;
  if (operands->empty())
    return complain(call, "a command is missing: list, add, modify, delete, dump or load");
  const std::string verb = lower_case(operands->front());
  if (verb == "help") {
    fmt::print("{}", help_of(call.command()));
    return 0;
  }
  static constexpr std::pair<std::string_view, std::string_view> kChanges[] = {
      {"add", "add"},     {"create", "add"},    {"delete", "delete"}, {"dump", "dump"},
      {"load", "load"},   {"modify", "modify"}, {"remove", "delete"}, {"archive", "archive"},
      {"clear", "clear"}, {"problem", ""},      {"reconfigure", ""},  {"shutdown", ""}};
  if (std::string_view("list").starts_with(verb) || std::string_view("show").starts_with(verb))
    return list_entities(call, options, {operands->begin() + 1, operands->end()});
  for (const auto& [word, change] : kChanges) {
    if (verb.size() < 2 || !word.starts_with(verb)) continue;
    if (change == "archive")
      return complain(
          call,
          "archive is not supported: accounting is kept for good, with the controller's store; "
          "`gacct --allusers --json -S TIME -E TIME` prints its jobs for a file elsewhere, and a "
          "copy "
          "of the store (docs/store.md) is what can be loaded again");
    if (change.empty())
      return complain(call,
                      fmt::format("{} is not supported: accounts are documents, which gtenant "
                                  "history and rollback look after",
                                  word));
    if (options.read_only && change != "dump")
      return complain(call, fmt::format("--readonly: {} would change something", word));
    if (change == "clear") {
      if (operands->size() != 2 || lower_case((*operands)[1]) != "stats")
        return complain(call, "clear takes one word: stats");
      ASSIGN(session, Session::open("sacctmgr"));
      ASSIGN(done, session->call<proto::Ok>(proto::ResetStats{}));
      return 0;
    }
    return change_accounts(call, change, {operands->begin() + 1, operands->end()},
                           options.immediate);
  }
  return refused("invalid keyword: {}\n", operands->front());
}

}  // namespace

std::vector<CommandWord> sacctmgr_words() {
  return {{"list",
           "account, association, cluster, configuration, event, qos, reservation, resource, "
           "stats, transaction, tres or user; also as show"},
          {"add account", "NAME Cluster= Parent= Description= Organization= Fairshare= and limits"},
          {"add cluster", "NAME Description= and limits: another one; this is there by itself"},
          {"add coordinator", "NAME Account=: an admin of the account's tenant"},
          {"add qos",
           "NAME Description= Priority= GraceTime= Preempt= PreemptMode= Flags= UsageFactor= and "
           "limits"},
          {"add resource", "NAME Server= Count= Cluster= PercentAllowed= ServerType= Description="},
          {"add user", "NAME Account= Cluster= DefaultAccount= AdminLevel= Fairshare="},
          {"modify", "ENTITY where CONDITION... set KEY=VALUE..."},
          {"modify job", "job=ID set DerivedExitCode= Comment= AdminComment= SystemComment="},
          {"delete", "ENTITY where CONDITION...; also as remove"},
          {"dump", "CLUSTER File=: accounts and users as a file"},
          {"load", "FILE: what dump has written"},
          {"clear", "stats: let the counters of requests begin anew"},
          {"help", "this text"}};
}

extern const Command kSacctmgr;
const Command kSacctmgr{
    {"sacctmgr", "List and change users, accounts and QOS; list associations",
     "list|add|modify|delete|dump|load ..."},
    {.description =
         "Slurm's sacctmgr, over gtenant: tenants and their projects are accounts, who may submit "
         "to a tenant has an association with each of its projects, priority classes are QOS. "
         "Entities are users, accounts, associations, clusters, qos and tres, transactions "
         "(changes "
         "of "
         "the documents), events (nodes that are down or drained now) and reservations; conditions "
         "are names, user=, account=, cluster=, withassoc and format=.\n\n"
         "add, modify and delete change accounts, users and QOS: an account below root is a "
         "tenant, "
         "one below a tenant its project, and a user may charge every project of a tenant that one "
         "has a share in. A QOS has Description, Priority, GraceTime, Preempt, PreemptMode, "
         "PreemptExemptTime, UsageFactor, the flags DenyOnLimit, OverPartQOS and NoDecay, and "
         "limits "
         "of use (GrpTRES, MaxJobsPerUser, MaxWall and their like), which accounts and users have "
         "too; scontrol show assoc_mgr says what is used of them, and RawUsage=0 forgets it. QOS "
         "and "
         "DefaultQOS say which QOS jobs may name. add resource has licences that clusters share. "
         "dump writes accounts and users to a file, load reads one of ours or of Slurm's and "
         "names what has no counterpart. What else a tenant has is in documents: gtenant apply.\n\n"
         "add cluster registers another cluster. Its accounts and users have all limits of Slurm's "
         "associations; they are kept in its document, inherited and listed, and nothing of this "
         "cluster goes by them. Without cluster= a command means all clusters that are known. "
         "AdminLevel is the role operator or admin in the document of the user's tenant.",
     .options = kSacctmgrOptions,
     .examples = {{"sacctmgr -nP show users withassoc format=account,qos where user=$USER",
                   "Which accounts I may charge"},
                  {"sacctmgr list qos", "The priority classes"},
                  {"sacctmgr -i add account retraining parent=fraud fairshare=3",
                   "A project of tenant fraud"},
                  {"sacctmgr -i add user ann account=retraining",
                   "Let ann submit to fraud, with a share there"},
                  {"sacctmgr -i add qos high Priority=800 Preempt=normal,best-effort",
                   "A priority class that takes from lower ones"},
                  {"sacctmgr -i modify account fraud set QOS+=high", "Let its jobs say -q high"},
                  {"sacctmgr -i modify job job=12 set DerivedExitCode=256 Comment='diverged'",
                   "What the accounting says of a job that has ended"},
                  {"sacctmgr -i create cluster east MaxJobs=50",
                   "Another cluster, with a limit of its users"},
                  {"sacctmgr -i add account risk cluster=east MaxTRES=cpu=8",
                   "An account of that cluster"}},
     .exits = {{"0", "fine"}, {"1", "refused, no answer, or wrong words"}},
     .run = run_sacctmgr}};

// sacctmgr add, modify and delete cluster. This cluster always exists. Others can be registered, as
// documents, with their accounts, users and limits, which have no effect here: each cluster keeps
// its own accounting.
namespace {

struct ClusterWords {
  std::vector<std::string> names;
  std::optional<std::string> description;
  std::vector<RawSetting> settings;  // settings of the account root
  [[nodiscard]] bool has_settings() const { return description || !settings.empty(); }
};

Result<ClusterWords> read_cluster_words(std::string_view verb,
                                        const std::vector<std::string>& words) {
  ClusterWords out;
  bool setting = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string key = lower_case(words[i].substr(0, equals));
    const bool bare = equals == std::string::npos;
    if (bare && (key == "where" || key == "set")) {
      setting = key == "set";
      continue;
    }
    const std::string value = bare ? words[i] : words[i].substr(equals + 1);
    if (bare || key.starts_with("name") || key.starts_with("cluster")) {
      for (std::string& name : split_list(value)) out.names.push_back(std::move(name));
    } else if (verb != "add" && !setting) {
      return fail(ErrorCode::usage, fmt::format(" Unknown condition: {}", words[i]));
    } else if (key.starts_with("desc")) {
      out.description = value;
    } else {
      out.settings.push_back({key, value});
    }
  }
  if (out.names.empty())
    return fail(ErrorCode::usage, verb == "add" ? " Need name of cluster to add."
                                                : " No conditions given to remove, not executing.");
  return out;
}

class Clusters {
 public:
  explicit Clusters(const proto::TenancyDocuments& documents) : others_(documents) {
    changes_.base_revision = documents.revision;
    changes_.comment = "sacctmgr";
  }

  // Each returns a text about the change; "" if there is nothing to do.
  Result<std::string> add(const ClusterWords& words) {
    std::string text;
    for (const std::string& name : words.names) {
      if (name == own_ || others_.has_cluster(name)) {
        fmt::print(" This cluster {} already exists.  Not adding.\n", name);
        continue;
      }
      others_.add_cluster(name, words.description.value_or(""));
      TRY(others_.set_cluster(name, words.settings));
      text += fmt::format("  Name           = {}\n", name);
    }
    if (text.empty()) return "";
    return " Adding Cluster(s)\n" + text + settings_text(words);
  }

  Result<std::string> modify(const ClusterWords& words) {
    std::string text;
    for (const std::string& name : words.names) {
      if (name == own_)
        return fail(ErrorCode::unsupported,
                    fmt::format(" cluster {}: it is this cluster, in which limits and shares of "
                                "all accounts together do not exist; a tenant, the account below "
                                "root, has them",
                                name));
      if (!others_.has_cluster(name)) continue;
      if (words.description) others_.describe_cluster(name, *words.description);
      TRY(others_.set_cluster(name, words.settings));
      text += fmt::format("  {}\n", name);
    }
    return text.empty() ? "" : settings_text(words) + " Modified cluster...\n" + text;
  }

  Result<std::string> remove(const ClusterWords& words) {
    std::string text;
    for (const std::string& name : words.names) {
      if (name == own_)
        return fail(
            ErrorCode::unsupported,
            fmt::format(" cluster {}: it is this cluster, whose accounting is always there", name));
      if (!others_.has_cluster(name)) continue;
      others_.remove_cluster(name);
      text += fmt::format("  {}\n", name);
    }
    return text.empty() ? "" : " Deleting clusters...\n" + text;
  }

  [[nodiscard]] proto::ApplyTenancy changes() const {
    proto::ApplyTenancy out = changes_;
    others_.add_changes(out);
    return out;
  }

 private:
  static std::string settings_text(const ClusterWords& words) {
    if (!words.has_settings()) return "";
    std::string out = " Setting\n Default Limits =\n";
    if (words.description) out += fmt::format("  Description    = {}\n", *words.description);
    for (const RawSetting& setting : words.settings)
      out += fmt::format("  {:<14} = {}\n", setting.key, setting.value);
    return out;
  }

  std::string own_ = cluster_name();
  OtherAccounts others_;
  proto::ApplyTenancy changes_;
};

}  // namespace

bool names_clusters(const std::vector<std::string>& words) {
  const std::string word = words.empty() ? "" : lower_case(words.front());
  return word.size() >= 2 && std::string_view("clusters").starts_with(word);
}

Result<int> change_clusters(const Invocation& call, std::string_view verb,
                            const std::vector<std::string>& words, bool immediate) {
  const auto read = read_cluster_words(verb, words);
  if (!read) return say_refusal(read.error());
  if (verb == "modify" && !read->has_settings())
    return say_refusal({ErrorCode::usage, " You didn't give me anything to set"});
  ASSIGN(session, Session::open(call.program()));
  ASSIGN(documents, session->call<proto::TenancyDocuments>(proto::GetTenancy{}));
  Clusters clusters(*documents);
  Result<std::string> text = verb == "add"      ? clusters.add(*read)
                             : verb == "modify" ? clusters.modify(*read)
                                                : clusters.remove(*read);
  if (!text) return say_refusal(text.error());
  if (text->empty()) {
    if (verb != "add") fmt::print(" Nothing {}\n", verb == "delete" ? "deleted" : "modified");
    return 1;
  }
  fmt::print("{}", *text);
  if (!immediate && !person_agrees()) {
    fmt::print(" Changes Discarded\n");
    return 0;
  }
  ASSIGN(done, session->call<proto::TenancyPlanned>(clusters.changes()));
  return 0;
}

// sacctmgr modify job: changes notes about jobs in the accounting, even long after their end.
namespace {

// As in Slurm the number is a status of wait(): 22 is signal 22, 256 is exit code 1.
Result<ExitStatus> derived_exit(const std::string& text) {
  ASSIGN(n, parse_integer("DerivedExitCode", text, 0, 0xffff));
  const auto status = static_cast<std::int32_t>(*n);
  if (const std::int32_t signal = status & 0x7f; signal != 0) {
    if (signal > 64)
      return fail(ErrorCode::usage,
                  fmt::format(" DerivedExitCode={}: there is no signal {}", text, signal));
    return ExitStatus{0, signal};
  }
  return ExitStatus{status >> 8, 0};
}

Result<void> read_setting(const std::string& key, const std::string& value, proto::NoteJobs& out) {
  if (key == "derivedexitcode" || key == "dec") {
    ASSIGN(exit, derived_exit(value));
    out.derived_exit = *exit;
  } else if (key == "comment" || key == "derivedexitstring" || key == "des") {
    out.comment = value;
  } else if (key == "admincomment") {
    out.admin_comment = value;
  } else if (key == "systemcomment") {
    out.system_comment = value;
  } else {
    return fail(ErrorCode::usage,
                fmt::format(" Unknown option: {}={}\n Of a job can be set: DerivedExitCode, "
                            "Comment, AdminComment and SystemComment",
                            key, value));
  }
  return {};
}

// "12", "12_3" or "12+1".
std::string name_of(const proto::JobRow& row) {
  if (row.het) return format_job_ref({row.het->leader, {}, row.het->offset});
  if (!row.array_task) return format_job_ref({row.job, {}, {}});
  return format_job_ref({row.array_job, {{*row.array_task, *row.array_task, 1}}, {}});
}

// "job=12", "jobid=12,13", and after `set` the settings.
Result<proto::NoteJobs> read_words(const std::vector<std::string>& words) {
  proto::NoteJobs out;
  bool setting = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string key = lower_case(words[i].substr(0, equals));
    if (equals == std::string::npos) {
      if (key != "where" && key != "set")
        return fail(ErrorCode::usage, fmt::format(" Unknown condition: {}", words[i]));
      setting = key == "set";
      continue;
    }
    const std::string value = unquoted(words[i].substr(equals + 1));
    if (setting) {
      TRY(read_setting(key, value, out));
    } else if (key == "job" || key == "jobs" || key == "jobid" || key == "jobids") {
      for (const std::string& name : split_list(value)) {
        const auto ref = parse_job_ref(name);
        if (!ref) return fail(ErrorCode::usage, fmt::format(" Invalid job id {}", name));
        out.jobs.push_back(*ref);
      }
    } else {
      return fail(ErrorCode::usage,
                  fmt::format(" Unknown condition: {}\n Jobs are named by job=ID,...", words[i]));
    }
  }
  if (out.jobs.empty()) return fail(ErrorCode::usage, " Need a job id to modify: job=ID,...");
  if (!out.derived_exit && !out.comment && !out.admin_comment && !out.system_comment)
    return fail(ErrorCode::usage, " You didn't give me anything to set");
  return out;
}

}  // namespace

bool names_jobs(const std::vector<std::string>& words) {
  const std::string word = words.empty() ? "" : lower_case(words.front());
  return word == "job" || word == "jobs";
}

Result<int> change_jobs(const Invocation& call, std::string_view verb,
                        const std::vector<std::string>& words, bool immediate) {
  if (verb != "modify")
    return say_refusal(
        {ErrorCode::usage, fmt::format(" {} of a job: jobs can only be modified", verb)});
  const auto note = read_words(words);
  if (!note) return say_refusal(note.error());
  ASSIGN(session, Session::open(call.program()));
  proto::QueryHistory query;
  query.filter.jobs = note->jobs;
  const auto history = ask_history(*session, std::move(query));
  if (!history) return say_refusal(history.error());
  if (history->jobs.empty()) {
    fmt::print(" Nothing modified\n");
    return 1;
  }
  fmt::print(" Modified jobs...\n");
  for (const proto::HistoryRow& job : history->jobs)
    fmt::print("  {} submitted at {}\n", name_of(job.row), shown_time(job.row.submitted));
  if (!immediate && !person_agrees()) {
    fmt::print(" Changes Discarded\n");
    return 0;
  }
  const auto done = session->call<proto::JobsDone>(*note);
  if (!done) return say_refusal(done.error());
  for (const proto::JobRef& ref : done->not_active)
    fmt::print(stderr, " {}: there is no such job that you may modify\n", format_job_ref(ref));
  for (const proto::JobsDone::Refused& one : done->refused)
    fmt::print(stderr, " {}\n", one.error.message);
  return done->not_active.empty() && done->refused.empty() ? 0 : 1;
}

}  // namespace gantry::cli::slurm
