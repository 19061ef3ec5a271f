#include "cli/slurm/accounts/entity_changes.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "common/text/split.h"

namespace gantry::cli::slurm {
namespace {

// Whether the words mean this cluster, and which other ones.
struct Scope {
  std::string own;  // the name of this cluster
  bool here = true;
  std::vector<std::string> others;
};
Result<Scope> clusters_meant(const ChangeWords& words, const OtherAccounts& others) {
  Scope out{cluster_name(), true, {}};
  out.here = words.means_cluster(out.own);
  for (const std::string& name : words.clusters)
    if (name != out.own && !others.has_cluster(name))
      return fail(ErrorCode::not_found,
                  fmt::format(" This cluster '{}' doesn't exist.\n"
                              "        Contact your admin to add it to accounting.",
                              name));
  for (const std::string& name : others.clusters())
    if (words.means_cluster(name)) out.others.push_back(name);
  return out;
}

// The accounts that a user's change concerns; "" stands for all accounts of the user.
std::vector<std::string> accounts_or_all(const ChangeWords& words) {
  return words.accounts.empty() ? std::vector<std::string>{""} : words.accounts;
}

std::string text_of_setting(const ChangeWords& words, std::string_view key,
                            const std::string& fallback) {
  for (const RawSetting& setting : words.settings)
    if (setting.key.size() >= 3 && key.starts_with(setting.key)) return setting.value;
  return fallback;
}

Error account_is_missing(const std::string& account) {
  return {ErrorCode::not_found, fmt::format(" This account '{}' doesn't exist.\n"
                                            "        Contact your admin to add this account.\n"
                                            " No associations or wckeys created.",
                                            account)};
}

Result<AccountChange> add_accounts(const ChangeWords& words, const Scope& scope, AllAccounts all) {
  AccountChange act{
      " Adding Account(s)",
      {},
      fmt::format(" Settings\n  Description     = {}\n  Organization    = {}\n Associations\n",
                  text_of_setting(words, "description", "Account Name"),
                  text_of_setting(words, "organization", "Parent/Account Name"))};
  for (const std::string& name : words.names) {
    bool fresh = false;
    if (scope.here) {
      ASSIGN(settings, words.own_settings());
      ASSIGN(added, all.own.add_account(name, *settings));
      fresh = *added;
      if (fresh) act.details += fmt::format("  A = {:<10.10} C = {:<10.10}\n", name, scope.own);
    }
    for (const std::string& cluster : scope.others) {
      ASSIGN(added, all.others.add_account(cluster, name, words.settings));
      fresh = fresh || *added;
      if (*added) act.details += fmt::format("  A = {:<10.10} C = {:<10.10}\n", name, cluster);
    }
    if (fresh) act.names.push_back(name);
  }
  return act;
}

// An association of a user is made in each cluster that has the account.
Result<void> check_accounts_exist(const ChangeWords& words, const Scope& scope, AllAccounts all) {
  for (const std::string& account : words.accounts) {
    bool found = scope.here && all.own.has_account(account);
    for (const std::string& cluster : scope.others)
      found = found || all.others.has_account(cluster, account);
    if (!found) return tl::unexpected(account_is_missing(account));
  }
  return {};
}

Result<void> add_own_user(const std::string& name, const ChangeWords& words, const Scope& scope,
                          AllAccounts all, AccountChange& act) {
  for (const std::string& account : words.accounts) {
    if (!all.own.has_account(account)) continue;
    ASSIGN(settings, words.own_settings());
    ASSIGN(added, all.own.add_user(name, account, *settings));
    if (settings->admin_level) TRY(all.own.put_admin_level(name, *settings->admin_level));
    if (*added)
      act.details +=
          fmt::format("  U = {:<9.9} A = {:<10.10} C = {:<10.10}\n", name, account, scope.own);
  }
  const std::string by_default = words.default_account();
  if (!by_default.empty() && all.own.has_account(by_default))
    return all.own.put_default_account(name, by_default);
  return {};
}

Result<AccountChange> add_users(const ChangeWords& words, const Scope& scope, AllAccounts all) {
  AccountChange act{" Adding User(s)", {}, " Associations =\n"};
  TRY(check_accounts_exist(words, scope, all));
  for (const std::string& name : words.names) {
    bool known = all.own.has_user(name, "");
    for (const std::string& cluster : all.others.clusters())
      known = known || all.others.has_user(cluster, name, "");
    if (scope.here) TRY(add_own_user(name, words, scope, all, act));
    for (const std::string& cluster : scope.others)
      for (const std::string& account : words.accounts) {
        if (!all.others.has_account(cluster, account)) continue;
        ASSIGN(added, all.others.add_user(cluster, name, account, words.settings));
        if (*added)
          act.details +=
              fmt::format("  U = {:<9.9} A = {:<10.10} C = {:<10.10}\n", name, account, cluster);
      }
    if (!known) act.names.push_back(name);
  }
  if (const std::string account = words.default_account(); !account.empty())
    act.details = fmt::format(" Settings =\n  Default Account = {}\n{}", account, act.details);
  if (act.names.empty()) act.title.clear();  // known users only get more associations
  return act;
}

// Slurm's messages differ for a change of the user or account itself, of its associations, or of
// both.
struct ChangedParts {
  bool itself = false, associations = false;
};
ChangedParts parts_of(const ChangeWords& words) {
  ChangedParts out;
  for (const RawSetting& setting : words.settings) {
    const auto subject = subject_of(setting);
    out.itself = out.itself || subject == SettingSubject::itself;
    out.associations = out.associations || subject != SettingSubject::itself;
  }
  return out;
}

struct Modified {
  std::vector<std::string> names;
  std::string associations;  // lines about them
};

std::string modified_text(bool users, const ChangeWords& words, const Modified& modified) {
  const ChangedParts parts = parts_of(words);
  std::string itself, associations;
  if (parts.itself) {
    itself = users ? " Modified users...\n" : " Modified accounts...\n";
    for (const std::string& name : modified.names) itself += fmt::format("  {}\n", name);
  }
  if (parts.associations)
    associations =
        (users ? " Modified user associations...\n" : " Modified account associations...\n") +
        modified.associations;
  return users ? associations + itself : itself + associations;
}

Result<AccountChange> modify_accounts(const ChangeWords& words, const Scope& scope,
                                      AllAccounts all) {
  Modified modified;
  for (const std::string& name : words.names) {
    bool found = false;
    if (scope.here && all.own.has_account(name)) {
      ASSIGN(settings, words.own_settings());
      for (const std::string& user : words.users) {
        if (!all.own.has_user(user, name)) continue;
        TRY(all.own.modify_user(user, name, *settings));
        modified.associations +=
            fmt::format("  C = {:<10} A = {:<20} U = {:<9}\n", scope.own, name, user);
        found = true;
      }
      if (found) modified.names.push_back(name);
      if (!words.users.empty()) continue;
      TRY(all.own.modify_account(name, *settings));
      const std::string above = all.own.tenant_above(name);
      modified.associations += fmt::format("  C = {:<10} A = {} of {}\n", scope.own, name,
                                           above.empty() ? "root" : above);
      found = true;
    }
    for (const std::string& cluster : scope.others) {
      if (!all.others.has_account(cluster, name)) continue;
      TRY(all.others.modify_account(cluster, name, words.settings));
      modified.associations += fmt::format("  C = {:<10} A = {} of {}\n", cluster, name,
                                           all.others.parent_of(cluster, name));
      found = true;
    }
    if (found) modified.names.push_back(name);
  }
  AccountChange act{"", {}};
  if (!modified.names.empty()) act.details = modified_text(false, words, modified);
  return act;
}

Result<bool> modify_own_user(const std::string& name, const ChangeWords& words, const Scope& scope,
                             AllAccounts all, Modified& modified) {
  bool changed = false;
  for (const std::string& account : accounts_or_all(words)) {
    if (!all.own.has_user(name, account)) continue;
    ASSIGN(settings, words.own_settings());
    TRY(all.own.modify_user(name, account, *settings));
    changed = true;
  }
  if (!changed) return false;
  for (const std::string& account : all.own.accounts_of(name))
    if (words.accounts.empty() ||
        std::find(words.accounts.begin(), words.accounts.end(), account) != words.accounts.end())
      modified.associations +=
          fmt::format("  C = {:<10} A = {:<20} U = {:<9}\n", scope.own, account, name);
  return true;
}

Result<AccountChange> modify_users(const ChangeWords& words, const Scope& scope, AllAccounts all) {
  Modified modified;
  for (const std::string& name : words.names) {
    bool found = false;
    if (scope.here) {
      ASSIGN(changed, modify_own_user(name, words, scope, all, modified));
      found = *changed;
    }
    for (const std::string& cluster : scope.others)
      for (const std::string& account : accounts_or_all(words)) {
        if (!all.others.has_user(cluster, name, account)) continue;
        TRY(all.others.modify_user(cluster, name, account, words.settings));
        for (const std::string& one : all.others.accounts_of(cluster, name))
          if (account.empty() || one == account)
            modified.associations +=
                fmt::format("  C = {:<10} A = {:<20} U = {:<9}\n", cluster, one, name);
        found = true;
      }
    if (found) modified.names.push_back(name);
  }
  AccountChange act{"", {}};
  if (!modified.names.empty()) act.details = modified_text(true, words, modified);
  return act;
}

Result<AccountChange> remove_accounts(const ChangeWords& words, const Scope& scope,
                                      AllAccounts all) {
  AccountChange act{
      words.clusters.empty() ? " Deleting accounts..." : " Deleting account associations...", {}};
  for (const std::string& name : words.names) {
    bool found = false;
    if (scope.here && all.own.has_account(name)) {
      TRY(all.own.remove_account(name));
      found = true;
      if (!words.clusters.empty())
        act.names.push_back(fmt::format("C = {:<10} A = {}", scope.own, name));
    }
    for (const std::string& cluster : scope.others) {
      if (!all.others.has_account(cluster, name)) continue;
      all.others.remove_account(cluster, name);
      found = true;
      if (!words.clusters.empty())
        act.names.push_back(fmt::format("C = {:<10} A = {}", cluster, name));
    }
    if (found && words.clusters.empty()) act.names.push_back(name);
  }
  return act;
}

Result<AccountChange> remove_users(const ChangeWords& words, const Scope& scope, AllAccounts all) {
  const bool whole = words.accounts.empty() && words.clusters.empty();
  AccountChange act{whole ? " Deleting users..." : " Deleting user associations...", {}};
  const auto say = [&](const std::string& cluster, const std::string& account,
                       const std::string& name) {
    std::string line = whole ? name
                       : account.empty()
                           ? fmt::format("C = {:<10} U = {:<9}", cluster, name)
                           : fmt::format("C = {:<10} A = {:<20} U = {:<9}", cluster, account, name);
    if (std::find(act.names.begin(), act.names.end(), line) == act.names.end())
      act.names.push_back(std::move(line));
  };
  for (const std::string& name : words.names) {
    for (const std::string& account : accounts_or_all(words)) {
      if (!scope.here || !all.own.has_user(name, account)) continue;
      TRY(all.own.remove_user(name, account));
      say(scope.own, account, name);
    }
    for (const std::string& cluster : scope.others) {
      // The default account comes last, because it may be removed only together with all others.
      std::vector<std::string> accounts = accounts_or_all(words);
      const std::string last = all.others.default_account_of(cluster, name);
      std::stable_partition(accounts.begin(), accounts.end(),
                            [&](const std::string& account) { return account != last; });
      for (const std::string& account : accounts) {
        if (!all.others.has_user(cluster, name, account)) continue;
        TRY(all.others.remove_user(cluster, name, account));
        say(cluster, account, name);
      }
    }
  }
  return act;
}

// A coordinator of an account below root is an admin of its tenant here.
Result<AccountChange> change_coordinators(bool adding, const ChangeWords& words, AllAccounts all) {
  AccountChange act{adding ? " Adding Coordinator User(s)" : " Deleting coordinators...",
                    words.names, adding ? " To Account(s) and all sub-accounts\n" : ""};
  for (const std::string& account : words.accounts) {
    bool found = false;
    for (const std::string& name : words.names) {
      found = all.others.put_coordinator(account, name, adding) || found;
      if (!all.own.has_account(account)) continue;
      found = true;
      TRY(all.own.put_coordinator(account, name, adding));
    }
    if (!found) return tl::unexpected(account_is_missing(account));
    act.details += fmt::format("  {}\n", account);
  }
  return act;
}

}  // namespace

Result<AccountChange> change_entities(std::string_view verb, ChangedEntity entity,
                                      const ChangeWords& words, AllAccounts all) {
  ASSIGN(scope, clusters_meant(words, all.others));
  const bool users = entity == ChangedEntity::user;
  if (entity == ChangedEntity::coordinator) {
    if (verb == "modify")
      return fail(ErrorCode::usage, " Coordinators are added and deleted, not modified.");
    return change_coordinators(verb == "add", words, all);
  }
  if (verb == "add")
    return users ? add_users(words, *scope, all) : add_accounts(words, *scope, all);
  if (verb == "modify")
    return users ? modify_users(words, *scope, all) : modify_accounts(words, *scope, all);
  return users ? remove_users(words, *scope, all) : remove_accounts(words, *scope, all);
}

namespace {

void put_names(std::vector<std::string>& out, std::string_view text) {
  for (std::string& word : split_list(text)) out.push_back(std::move(word));
}

bool is_name_key(ChangedEntity entity, const std::string& key) {
  if (key.starts_with("name")) return true;
  return key.starts_with(entity == ChangedEntity::account ? "acc" : "user");
}

class Reader {
 public:
  Reader(ChangedEntity entity, bool adding) : entity_(entity), adding_(adding) {}

  Result<void> read(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string key = lower_case(word.substr(0, equals));
    const std::string value = equals == std::string::npos ? "" : unquoted(word.substr(equals + 1));
    const bool condition = adding_ || !setting_;
    if (key == "where" || key == "set")
      setting_ = key == "set";
    else if (equals == std::string::npos && condition)
      put_names(words_.names, word);
    else if (condition && is_name_key(entity_, key))
      put_names(words_.names, value);
    else if (condition && entity_ != ChangedEntity::account && key.starts_with("acc"))
      put_names(words_.accounts, value);
    else if (condition && !adding_ && entity_ == ChangedEntity::account && key.starts_with("user"))
      put_names(words_.users, value);
    else if (condition && key.size() >= 1 && std::string_view("clusters").starts_with(key))
      put_names(words_.clusters, value);
    else if (equals == std::string::npos || (!adding_ && !setting_))
      return fail(ErrorCode::usage, fmt::format(" Unknown condition: {}", word));
    else
      words_.settings.push_back({key, value});
    return {};
  }
  ChangeWords take() { return std::move(words_); }

 private:
  ChangedEntity entity_;
  bool adding_, setting_ = false;
  ChangeWords words_;
};

}  // namespace

std::string unquoted(const std::string& text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

std::optional<ChangedEntity> entity_of(const std::vector<std::string>& words) {
  const std::string word = words.empty() ? "" : lower_case(words.front());
  const auto is = [&](std::string_view name, std::size_t least) {
    return word.size() >= least && name.starts_with(word);
  };
  if (is("users", 1)) return ChangedEntity::user;
  if (is("accounts", 2)) return ChangedEntity::account;
  if (is("coordinators", 2)) return ChangedEntity::coordinator;
  if (is("qos", 1)) return ChangedEntity::qos;
  return std::nullopt;
}

Result<Accounts::Settings> ChangeWords::own_settings() const {
  Accounts::Settings out;
  for (const RawSetting& setting : settings) TRY(read_setting(setting.key, setting.value, out));
  return out;
}

std::string ChangeWords::default_account() const {
  for (const RawSetting& setting : settings)
    if (setting.key.size() >= 8 && std::string_view("defaultaccount").starts_with(setting.key))
      return setting.value;
  return "";
}

bool ChangeWords::means_cluster(const std::string& name) const {
  return clusters.empty() || std::find(clusters.begin(), clusters.end(), name) != clusters.end();
}

Result<ChangeWords> read_change_words(ChangedEntity entity, const std::vector<std::string>& words,
                                      std::string_view verb) {
  const bool adding = verb == "add";
  Reader reader(entity, adding);
  for (std::size_t i = 1; i < words.size(); ++i) TRY(reader.read(words[i]));
  ChangeWords out = reader.take();
  if (out.names.empty())
    return fail(ErrorCode::usage,
                fmt::format(" Need name of {} to act on.",
                            entity == ChangedEntity::account ? "account" : "user"));
  if (entity == ChangedEntity::user && adding) {
    if (const std::string account = out.default_account();
        !account.empty() &&
        std::find(out.accounts.begin(), out.accounts.end(), account) == out.accounts.end())
      out.accounts.push_back(account);
    if (out.accounts.empty())
      return fail(ErrorCode::usage, " Need name of account to add user to.");
  }
  if (entity == ChangedEntity::coordinator && out.accounts.empty())
    return fail(ErrorCode::usage, " You need to specify the account list to give coordinators.");
  if (verb == "modify" && out.settings.empty())
    return fail(ErrorCode::usage, " You didn't give me anything to set");
  return out;
}

}  // namespace gantry::cli::slurm
