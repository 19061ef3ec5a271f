// Limits of use of QOS and associations, with what jobs use of them now: requests from clients to
// ctld. See ctld/core/limits.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/special_members.h"
#include "common/types.h"

namespace gantry::proto {

struct TresUse {
  std::string name;            // "cpu"
  std::int64_t held = 0;       // held by running jobs
  double used_minutes = 0;     // over time, decayed
  double running_minutes = 0;  // what running jobs may still use
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, held), FIELD(3, used_minutes), FIELD(4, running_minutes))
};

// The part that one user, or one account, has in the use of a QOS.
struct PartOfUse {
  std::string name;
  Uid uid{};  // of a user
  std::uint64_t submitted = 0, running = 0;
  std::vector<TresUse> tres;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, uid), FIELD(3, submitted), FIELD(4, running),
                FIELD(5, tres))
};

struct UseRow {
  GANTRY_SPECIAL_MEMBERS(UseRow)
  std::uint32_t id = 0;  // its index in the list, from 1
  std::string qos;       // set for a QOS
  // Set for an association: an account (a tenant or a project), and the user for a user's
  // association.
  std::string account, user, parent;
  Uid uid{};  // uid of the user, if a job of theirs is known
  std::uint32_t shares = 1;
  std::map<std::string, std::string> limits;  // by Slurm's names
  std::uint64_t submitted = 0, running = 0;
  double wall_minutes = 0;  // used up, decayed
  std::vector<TresUse> tres;
  std::vector<PartOfUse> users, accounts;  // of a QOS
  std::int32_t priority = 0;               // of a QOS
  GANTRY_FIELDS(FIELD(1, id), FIELD(2, qos), FIELD(3, account), FIELD(4, user), FIELD(5, parent),
                FIELD(6, uid), FIELD(7, shares), FIELD(8, limits), FIELD(9, submitted),
                FIELD(10, running), FIELD(11, wall_minutes), FIELD(12, tres), FIELD(13, users),
                FIELD(14, accounts), FIELD(15, priority))
};

// Answered by all QOS and associations, for operators; others get the associations of their
// tenants, and of the use of a QOS their own part.
struct ListUse {
  GANTRY_FIELDS()
};

struct UseReply {
  std::vector<UseRow> rows;
  GANTRY_FIELDS(FIELD(1, rows))
};

// Admin; answered by Ok. What the QOS, or the account with all its users, has used up is forgotten.
struct ResetUse {
  std::string qos;      // exactly one of the two is set
  std::string account;  // a tenant or a project
  std::string user;     // with an account: only for this user
  GANTRY_FIELDS(FIELD(1, qos), FIELD(2, account), FIELD(3, user))
};

}  // namespace gantry::proto
