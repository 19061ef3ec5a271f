// Users as the operating system knows them (files, LDAP, sssd: whatever NSS is set up for).
//
// A lookup may block on a directory service; UserCache keeps answers for a while, and keeps giving
// an old one while the service does not answer.
#pragma once

#include <string>
#include <unordered_map>

#include "common/job/job_spec.h"
#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::auth {

// not_found: no such user. io_error: the user database could not be asked.
Result<Owner> find_user(Uid uid);
Result<Owner> find_user(const std::string& name);

class UserCache {
 public:
  explicit UserCache(Duration keep = seconds(60)) : keep_(keep) {}
  Result<Owner> find(Uid uid, Instant now);

 private:
  struct Entry {
    Owner owner;
    Instant at{};
  };
  Duration keep_;
  std::unordered_map<Uid, Entry> entries_;
};

inline constexpr std::size_t kMaxCachedUsers = 65'536;

}  // namespace gantry::auth
