// The command line of sacctmgr. Its listings are in sacctmgr_list.cc, its changes in
// sacctmgr_verbs.cc and sacctmgr_qos_verbs.cc.
#include <fmt/core.h>

#include "cli/slurm/accounts/sacctmgr_list.h"
#include "cli/slurm/accounts/sacctmgr_verbs.h"
#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/help.h"

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

}  // namespace gantry::cli::slurm
