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
#include "cli/slurm/accounts/sacctmgr_change.h"
#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr int kSecondsToDecide = 30;

enum class ChangedEntity : std::uint8_t { account, user, qos };

std::optional<ChangedEntity> entity_of(const std::vector<std::string>& words) {
  const std::string word = words.empty() ? "" : lower_case(words.front());
  if (word.size() >= 1 && std::string_view("users").starts_with(word)) return ChangedEntity::user;
  if (word.size() >= 2 && std::string_view("accounts").starts_with(word))
    return ChangedEntity::account;
  if (word.size() >= 1 && std::string_view("qos").starts_with(word)) return ChangedEntity::qos;
  return std::nullopt;
}

struct ChangeWords {
  std::vector<std::string> names, accounts;
  Accounts::Settings settings;
  bool has_settings = false;
};

void add_words_of(std::vector<std::string>& out, std::string_view text) {
  for (std::string& word : split_list(text)) out.push_back(std::move(word));
}

// Splits the words: conditions come before `set` and settings after it. For `add` both may stand in
// any order.
Result<ChangeWords> read_change_words(ChangedEntity entity, const std::vector<std::string>& words,
                                      std::string_view verb) {
  const bool adding = verb == "add";
  ChangeWords out;
  bool setting = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string key = lower_case(words[i].substr(0, equals));
    const std::string value = equals == std::string::npos ? "" : words[i].substr(equals + 1);
    if (key == "where" || key == "set") {
      setting = key == "set";
    } else if (equals == std::string::npos) {
      add_words_of(out.names, words[i]);
    } else if (!setting && (key.starts_with("name") ||
                            key.starts_with(entity == ChangedEntity::user ? "user" : "acc"))) {
      add_words_of(out.names, value);
    } else if (!setting && entity == ChangedEntity::user && key.starts_with("acc")) {
      add_words_of(out.accounts, value);
    } else if (!setting && !adding && !key.starts_with("cluster")) {
      return fail(ErrorCode::usage, fmt::format(" Unknown condition: {}", words[i]));
    } else if (adding || setting) {
      if (const auto read = read_setting(key, value, out.settings); !read)
        return tl::unexpected(read.error());
      out.has_settings = true;
    }
  }
  if (out.names.empty())
    return fail(ErrorCode::usage, fmt::format(" Need name of {} to act on.",
                                              entity == ChangedEntity::user ? "user" : "account"));
  if (!out.settings.default_account.empty() && adding && entity == ChangedEntity::user)
    out.accounts.push_back(out.settings.default_account);
  if (verb == "add" && entity == ChangedEntity::user && out.accounts.empty())
    return fail(ErrorCode::usage, " Need name of account to add user to.");
  if (verb == "modify" && !out.has_settings)
    return fail(ErrorCode::usage, " You didn't give me anything to set");
  return out;
}

struct AccountChange {
  std::string title;  // " Adding Account(s)"
  std::vector<std::string> names;
  std::string details = {};  // settings and associations, which follow the names
};

// The accounts that a user's change is about; "" stands for all accounts of the user.
std::vector<std::string> accounts_or_all(const ChangeWords& words) {
  return words.accounts.empty() ? std::vector<std::string>{""} : words.accounts;
}

std::string settings_text(const Accounts::Settings& settings) {
  return fmt::format(" Settings\n  Description     = {}\n  Organization    = {}\n Associations\n",
                     settings.description.value_or("Account Name"),
                     settings.organization.value_or("Parent/Account Name"));
}

Error account_is_missing(const std::string& account) {
  return {ErrorCode::not_found, fmt::format(" This account '{}' doesn't exist.\n"
                                            "        Contact your admin to add this account.\n"
                                            " No associations or wckeys created.",
                                            account)};
}

Result<AccountChange> add_accounts(const ChangeWords& words, Accounts& accounts) {
  AccountChange act{" Adding Account(s)", {}, settings_text(words.settings)};
  const std::string cluster = cluster_name();
  for (const std::string& name : words.names) {
    const auto added = accounts.add_account(name, words.settings);
    if (!added) return tl::unexpected(added.error());
    if (!*added) continue;
    act.names.push_back(name);
    act.details += fmt::format("  A = {:<10.10} C = {:<10.10}\n", name, cluster);
  }
  return act;
}

Result<AccountChange> add_users(const ChangeWords& words, Accounts& accounts) {
  AccountChange act{" Adding User(s)", {}, " Associations =\n"};
  const std::string cluster = cluster_name();
  for (const std::string& account : words.accounts)
    if (!accounts.has_account(account)) return tl::unexpected(account_is_missing(account));
  for (const std::string& name : words.names) {
    const bool known = accounts.has_user(name, "");
    for (const std::string& account : words.accounts) {
      const auto added = accounts.add_user(name, account, words.settings);
      if (!added) return tl::unexpected(added.error());
      if (!*added) continue;
      act.details +=
          fmt::format("  U = {:<9.9} A = {:<10.10} C = {:<10.10}\n", name, account, cluster);
    }
    if (!known) act.names.push_back(name);
    if (!words.settings.default_account.empty())
      if (const auto put = accounts.put_default_account(name, words.settings.default_account); !put)
        return tl::unexpected(put.error());
  }
  if (const std::string& account = words.settings.default_account; !account.empty())
    act.details = fmt::format(" Settings =\n  Default Account = {}\n{}", account, act.details);
  if (act.names.empty()) act.title.clear();  // known users get more associations
  return act;
}

// Slurm tells changes apart: of the user or account itself, of its associations, or of both.
struct ChangedParts {
  bool itself = false, associations = false;
};
ChangedParts parts_of(const Accounts::Settings& s) {
  return {s.description || s.organization || !s.default_account.empty(),
          s.fairshare || !s.limits.empty() || s.qos || s.default_qos || !s.parent.empty()};
}

// The texts that follow the names of what was modified.
std::string modified_text(ChangedEntity entity, const ChangeWords& words,
                          const std::vector<std::string>& names, Accounts& accounts) {
  const bool users = entity == ChangedEntity::user;
  const ChangedParts parts = parts_of(words.settings);
  const std::string cluster = cluster_name();
  std::string out;
  if (parts.itself) {
    out += users ? " Modified users...\n" : " Modified accounts...\n";
    for (const std::string& name : names) out += fmt::format("  {}\n", name);
  }
  if (!parts.associations) return out;
  out += users ? " Modified user associations...\n" : " Modified account associations...\n";
  for (const std::string& name : names) {
    if (!users) {
      const std::string above = accounts.tenant_above(name);
      out +=
          fmt::format("  C = {:<10} A = {} of {}\n", cluster, name, above.empty() ? "root" : above);
      continue;
    }
    for (const std::string& account : accounts.accounts_of(name))
      if (words.accounts.empty() ||
          std::find(words.accounts.begin(), words.accounts.end(), account) != words.accounts.end())
        out += fmt::format("  C = {:<10} A = {:<20} U = {:<9}\n", cluster, account, name);
  }
  return out;
}

// Names that do not exist are passed over, as in Slurm; the caller says so if nothing is left.
Result<AccountChange> modify_entities(ChangedEntity entity, const ChangeWords& words,
                                      Accounts& accounts) {
  AccountChange act{"", {}};
  std::vector<std::string> modified;
  for (const std::string& name : words.names) {
    if (entity == ChangedEntity::account) {
      if (!accounts.has_account(name)) continue;
      if (const auto done = accounts.modify_account(name, words.settings); !done)
        return tl::unexpected(done.error());
      modified.push_back(name);
      continue;
    }
    bool changed = false;
    for (const std::string& account : accounts_or_all(words)) {
      if (!accounts.has_user(name, account)) continue;
      if (const auto done = accounts.modify_user(name, account, words.settings); !done)
        return tl::unexpected(done.error());
      changed = true;
    }
    if (changed) modified.push_back(name);
  }
  if (!modified.empty()) act.details = modified_text(entity, words, modified, accounts);
  return act;
}

Result<AccountChange> remove_entities(ChangedEntity entity, const ChangeWords& words,
                                      Accounts& accounts) {
  const bool users = entity == ChangedEntity::user;
  const std::string cluster = cluster_name();
  AccountChange act{!users                   ? " Deleting accounts..."
                    : words.accounts.empty() ? " Deleting users..."
                                             : " Deleting user associations...",
                    {}};
  for (const std::string& name : words.names) {
    if (!users) {
      if (!accounts.has_account(name)) continue;
      if (const auto done = accounts.remove_account(name); !done)
        return tl::unexpected(done.error());
      act.names.push_back(name);
      continue;
    }
    for (const std::string& account : accounts_or_all(words)) {
      if (!accounts.has_user(name, account)) continue;
      if (const auto done = accounts.remove_user(name, account); !done)
        return tl::unexpected(done.error());
      act.names.push_back(
          account.empty() ? name
                          : fmt::format("C = {:<10} A = {:<20} U = {:<9}", cluster, account, name));
    }
  }
  return act;
}

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
  if (const auto done = load_dump(text, accounts, ignored); !done)
    return tl::unexpected(done.error());
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
    auto text = dump_text(words);
    if (!text) return tl::unexpected(text.error());
    plan.text = std::move(*text);
    return plan;
  }
  const auto entity = entity_of(words);
  if (!entity)
    return fail(ErrorCode::usage,
                fmt::format(" No valid entity in {} command\n Input line must include "
                            "\"account\", \"user\" or \"qos\"",
                            verb));
  auto read = read_change_words(*entity, words, verb);
  if (!read) return tl::unexpected(read.error());
  plan.entity = *entity;
  plan.words = std::move(*read);
  return plan;
}

Result<AccountChange> change_with(std::string_view verb, const ChangePlan& plan,
                                  Accounts& accounts) {
  if (verb == "load") return load_entities(plan.text, accounts);
  if (verb == "add")
    return plan.entity == ChangedEntity::user ? add_users(plan.words, accounts)
                                              : add_accounts(plan.words, accounts);
  if (verb == "modify") return modify_entities(plan.entity, plan.words, accounts);
  return remove_entities(plan.entity, plan.words, accounts);
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
  fmt::print(stderr, "{}{}\n", error.message.starts_with(' ') ? "" : " ", error.message);
  return 1;
}

Result<int> change_accounts(const Invocation& call, std::string_view verb,
                            const std::vector<std::string>& words, bool immediate) {
  if (verb != "dump" && verb != "load" && names_clusters(words))
    return change_clusters(call, verb, words, immediate);
  if (verb != "dump" && verb != "load" && entity_of(words) == ChangedEntity::qos)
    return change_qos(call, verb, words, immediate);
  const auto plan = read_plan(verb, words);
  if (!plan) return say_refusal(plan.error());
  auto session = Session::open(call.program());
  if (!session) return tl::unexpected(session.error());
  const auto documents = session->call<proto::TenancyDocuments>(proto::GetTenancy{});
  if (!documents) return tl::unexpected(documents.error());
  Accounts accounts(*documents);
  if (verb == "dump") return dump_entities(words, accounts);
  const auto act = change_with(verb, *plan, accounts);
  if (!act) return say_refusal(act.error());
  const auto changes = accounts.changes();
  if (changes.documents.empty() && changes.removals.empty()) {
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
  const auto done = session->call<proto::TenancyPlanned>(changes);
  if (!done) return tl::unexpected(done.error());
  for (const std::string& warning : done->warnings) fmt::print(stderr, " {}\n", warning);
  return 0;
}

}  // namespace gantry::cli::slurm
