// Limits of use of QOS and associations, with what jobs use of them now: requests from clients to
// ctld. See ctld/core/limits.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/types.h"

namespace gantry::proto {

struct TresUse {
  std::string name;            // "cpu"
  std::int64_t held = 0;       // by running jobs
  double used_minutes = 0;     // over time, decayed
  double running_minutes = 0;  // that running jobs may still use
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "held", s.held);
    v(3, "used_minutes", s.used_minutes);
    v(4, "running_minutes", s.running_minutes);
  }
};

// The part that one user, or one account, has in the use of a QOS.
struct PartOfUse {
  std::string name;
  Uid uid{};  // of a user
  std::uint64_t submitted = 0, running = 0;
  std::vector<TresUse> tres;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "uid", s.uid);
    v(3, "submitted", s.submitted);
    v(4, "running", s.running);
    v(5, "tres", s.tres);
  }
};

struct UseRow {
  std::uint32_t id = 0;  // its place in the list, from 1
  std::string qos;       // set for a QOS
  // Set for an association: an account (a tenant or a project) and, for one of a user, the user.
  std::string account, user, parent;
  Uid uid{};  // of the user, if a job of theirs is known
  std::uint32_t shares = 1;
  std::map<std::string, std::string> limits;  // by Slurm's names
  std::uint64_t submitted = 0, running = 0;
  double wall_minutes = 0;  // used up, decayed
  std::vector<TresUse> tres;
  std::vector<PartOfUse> users, accounts;  // of a QOS
  std::int32_t priority = 0;               // of a QOS
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "id", s.id);
    v(2, "qos", s.qos);
    v(3, "account", s.account);
    v(4, "user", s.user);
    v(5, "parent", s.parent);
    v(6, "uid", s.uid);
    v(7, "shares", s.shares);
    v(8, "limits", s.limits);
    v(9, "submitted", s.submitted);
    v(10, "running", s.running);
    v(11, "wall_minutes", s.wall_minutes);
    v(12, "tres", s.tres);
    v(13, "users", s.users);
    v(14, "accounts", s.accounts);
    v(15, "priority", s.priority);
  }
};

// Answered by all QOS and associations, for operators; others get the associations of their
// tenants, and of the use of a QOS their own part.
struct ListUse {
  template <class Self, class V>
  static void fields(Self&, V&&) {}
};

struct UseReply {
  std::vector<UseRow> rows;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
  }
};

// Admin; answered by Ok. What the QOS, or the account with all its users, has used up is forgotten.
struct ResetUse {
  std::string qos;      // exactly one of the two is set
  std::string account;  // a tenant or a project
  std::string user;     // with an account: of this user alone
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "qos", s.qos);
    v(2, "account", s.account);
    v(3, "user", s.user);
  }
};

}  // namespace gantry::proto
