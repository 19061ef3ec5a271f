// sacctmgr add, modify and delete of accounts, users and coordinators, in this cluster and in the
// others that are known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/slurm/accounts/change_words.h"
#include "cli/slurm/accounts/other_accounts.h"
#include "cli/slurm/accounts/sacctmgr_change.h"

namespace gantry::cli::slurm {

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

// Works the change out. `verb` is add, modify or delete. Names that do not exist are passed over,
// as in Slurm; the caller says so if nothing is left.
Result<AccountChange> change_entities(std::string_view verb, ChangedEntity entity,
                                      const ChangeWords& words, AllAccounts all);

}  // namespace gantry::cli::slurm
