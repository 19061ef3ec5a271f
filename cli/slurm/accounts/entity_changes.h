// sacctmgr add, modify and delete of accounts, users and coordinators, in this cluster and in other
// known ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/slurm/accounts/other_accounts.h"
#include "cli/slurm/accounts/sacctmgr_change.h"
#include "common/result.h"

namespace gantry::cli::slurm {

// The words of sacctmgr add, modify and delete for accounts, users and coordinators.

// The text without surrounding quotes, which a shell script may have passed on.
std::string unquoted(const std::string& text);

enum class ChangedEntity : std::uint8_t { account, user, qos, coordinator };
// nullopt if the first word names none of them.
std::optional<ChangedEntity> entity_of(const std::vector<std::string>& words);

struct ChangeWords {
  std::vector<std::string> names, accounts;
  std::vector<std::string>
      users;  // for a change of accounts: change only these users' associations
  std::vector<std::string> clusters;  // empty = all known ones
  std::vector<RawSetting> settings;

  // The settings that apply in this cluster; an error if this cluster has no such setting.
  [[nodiscard]] Result<Accounts::Settings> own_settings() const;
  // The value of DefaultAccount= for users; "" = not given.
  [[nodiscard]] std::string default_account() const;
  // Without cluster=, all clusters are meant.
  [[nodiscard]] bool means_cluster(const std::string& name) const;
};

// Splits the words: conditions come before `set` and settings after it, and conditions again after
// `where`. For `add` both may stand in any order.
Result<ChangeWords> read_change_words(ChangedEntity entity, const std::vector<std::string>& words,
                                      std::string_view verb);

// The accounts of all clusters: this one's are parts of the tenants' documents.
struct AllAccounts {
  Accounts& own;
  OtherAccounts& others;
};

struct AccountChange {
  std::string title;  // " Adding Account(s)"; "" = none
  std::vector<std::string> names;
  std::string details = {};  // settings and associations, which follow the names
};

// Works the change out. `verb` is add, modify or delete. Names that do not exist are skipped, as in
// Slurm; the caller reports it if nothing is left.
Result<AccountChange> change_entities(std::string_view verb, ChangedEntity entity,
                                      const ChangeWords& words, AllAccounts all);

}  // namespace gantry::cli::slurm
