// sacctmgr add, modify, delete, dump and load. A change is read, worked out on the tenants'
// documents, confirmed by the user, and applied to the revision that was read.
#include "cli/slurm/accounts/sacctmgr_verbs.h"

#include <fmt/core.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>

#include <algorithm>

#include "cli/files.h"
#include "cli/session.h"
#include "cli/slurm/accounts/entity_changes.h"
#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "common/proto/use.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr int kSecondsToDecide = 30;

Result<std::string> dump_text(const std::vector<std::string>& words) {
  std::string path = words.empty() ? "" : words.front();
  if (path.starts_with("file=")) path = path.substr(5);
  const auto text = path.empty() ? Result<std::optional<std::string>>(std::nullopt)
                                 : read_small_file(path, kLargeFile);
  if (!text || !*text)
    return fail(ErrorCode::not_found, fmt::format(" Unable to open file \"{}\"", path));
  return **text;
}

Result<AccountChange> load_entities(const std::string& text, Accounts& accounts) {
  std::vector<std::string> ignored;
  TRY(load_dump(text, accounts, ignored));
  for (const std::string& line : ignored) fmt::print(" No counterpart: {}\n", line);
  AccountChange act{" Loading Tenant(s)", {}};
  const auto changes = accounts.changes();
  for (const tenancy::Document& document : changes.documents)
    act.names.push_back(tenancy::name_of(document));
  return act;
}

Result<int> dump_entities(const std::vector<std::string>& words, const Accounts& accounts) {
  std::string path;
  for (const std::string& word : words)
    if (word.starts_with("file=") || word.starts_with("File=")) path = word.substr(5);
  const std::string cluster = cluster_name();
  if (path.empty()) path = fmt::format("{}.cfg", cluster);
  if (!write_file(path, accounts.dump(cluster), kPrivateFile))
    return fail(ErrorCode::io_error, fmt::format(" Can't save cluster to \"{}\"", path));
  fmt::print(" Cluster information dumped to {}\n", path);
  return 0;
}

// While an object of this class lives, the terminal delivers every key at once, because Slurm's
// question is answered by a single key.
class KeyByKey {
 public:
  KeyByKey() : changed_(::tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!changed_) return;
    termios each_key = before_;
    each_key.c_lflag &= ~static_cast<tcflag_t>(ICANON);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &each_key);
  }
  ~KeyByKey() {
    if (changed_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  KeyByKey(const KeyByKey&) = delete;
  KeyByKey& operator=(const KeyByKey&) = delete;

 private:
  termios before_{};
  bool changed_;
};

// The change that the words ask for, before the user is asked to confirm it.
struct ChangePlan {
  ChangedEntity entity = ChangedEntity::account;
  ChangeWords words;
  std::string text;  // text of the file, for load
};
Result<ChangePlan> read_plan(std::string_view verb, const std::vector<std::string>& words) {
  ChangePlan plan;
  if (verb == "dump") return plan;
  if (verb == "load") {
    ASSIGN(text, dump_text(words));
    plan.text = std::move(*text);
    return plan;
  }
  const auto entity = entity_of(words);
  if (!entity)
    return fail(ErrorCode::usage,
                fmt::format(" No valid entity in {} command\n Input line must include "
                            "\"account\", \"coordinator\", \"user\" or \"qos\"",
                            verb));
  ASSIGN(read, read_change_words(*entity, words, verb));
  plan.entity = *entity;
  plan.words = std::move(*read);
  return plan;
}

bool resets_usage(const ChangeWords& words) {
  const auto settings = words.own_settings();
  return settings && settings->reset_usage;
}

// Makes the controller reset what the accounts, or the users in them, have used up.
Result<void> reset_usage(Session& session, const ChangePlan& plan) {
  const bool users = plan.entity == ChangedEntity::user;
  const auto& accounts = users ? plan.words.accounts : plan.words.names;
  const auto& names = users ? plan.words.names : plan.words.users;
  if (accounts.empty())
    return fail(ErrorCode::usage, " RawUsage: say of which account, with where account=NAME");
  for (const std::string& account : accounts) {
    for (const std::string& user : names)
      TRY(session.call<proto::Ok>(proto::ResetUse{"", account, user}));
    if (!names.empty()) continue;
    TRY(session.call<proto::Ok>(proto::ResetUse{"", account, ""}));
  }
  return {};
}

}  // namespace

bool person_agrees(const std::string& question) {
  fmt::print("{} (You have 30 seconds to decide)\n", question);
  const KeyByKey terminal;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (true) {
    fmt::print("(N/y): ");
    std::fflush(stdout);
    char answer = 0;
    if (::poll(&input, 1, kSecondsToDecide * 1000) <= 0) {
      fmt::print("timeout\n");
      return false;
    }
    const bool at_end = ::read(STDIN_FILENO, &answer, 1) != 1;
    fmt::print("\n");
    // The newline after the answer is read too, so that it does not answer the next question.
    if (char rest = 0; !at_end && answer != '\n' && ::poll(&input, 1, 0) > 0) [[maybe_unused]]
      const ssize_t size = ::read(STDIN_FILENO, &rest, 1);
    if (at_end || answer == 'n' || answer == 'N' || answer == '\n') return false;
    if (answer == 'y' || answer == 'Y') return true;
    fmt::print("Y or N please\n");
  }
}

int say_refusal(const Error& error) {
  return refused("{}{}\n", error.message.starts_with(' ') ? "" : " ", error.message);
}

Result<int> change_accounts(const Invocation& call, std::string_view verb,
                            const std::vector<std::string>& words, bool immediate) {
  if (verb != "dump" && verb != "load" && names_clusters(words))
    return change_clusters(call, verb, words, immediate);
  if (verb != "dump" && verb != "load" && names_resources(words))
    return change_resources(call, verb, words, immediate);
  if (verb != "dump" && verb != "load" && names_jobs(words))
    return change_jobs(call, verb, words, immediate);
  if (verb != "dump" && verb != "load" && entity_of(words) == ChangedEntity::qos)
    return change_qos(call, verb, words, immediate);
  const auto plan = read_plan(verb, words);
  if (!plan) return say_refusal(plan.error());
  ASSIGN(session, Session::open(call.program()));
  ASSIGN(documents, session->call<proto::TenancyDocuments>(proto::GetTenancy{}));
  Accounts accounts(*documents);
  OtherAccounts others(*documents);
  if (verb == "dump") return dump_entities(words, accounts);
  const auto act = verb == "load"
                       ? load_entities(plan->text, accounts)
                       : change_entities(verb, plan->entity, plan->words, {accounts, others});
  if (!act) return say_refusal(act.error());
  proto::ApplyTenancy changes = accounts.changes();
  others.add_changes(changes);
  const bool resets = verb == "modify" && resets_usage(plan->words);
  // As in Slurm, changing something to its present value counts as a change.
  const bool found = verb == "modify" && !act->details.empty();
  if (changes.documents.empty() && changes.removals.empty() && !resets && !found) {
    fmt::print("{}\n", verb == "add" || verb == "load" ? " Nothing new added."
                       : verb == "delete"              ? " Nothing deleted"
                                                       : " Nothing modified");
    return 1;
  }
  if (!act->title.empty()) fmt::print("{}\n", act->title);
  for (const std::string& name : act->names) fmt::print("  {}\n", name);
  fmt::print("{}", act->details);
  if (!immediate && !person_agrees()) {
    fmt::print(" Changes Discarded\n");
    return 0;
  }
  if (resets)
    if (const auto reset = reset_usage(*session, *plan); !reset) return say_refusal(reset.error());
  if (changes.documents.empty() && changes.removals.empty()) return 0;
  ASSIGN(done, session->call<proto::TenancyPlanned>(changes));
  for (const std::string& warning : done->warnings) fmt::print(stderr, " {}\n", warning);
  return 0;
}

}  // namespace gantry::cli::slurm
