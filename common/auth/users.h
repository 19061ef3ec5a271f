// Users as the operating system knows them (from files, LDAP, sssd or whatever NSS is configured
// for).
//
// A lookup may block on a directory service. UserCache keeps answers for a while, and returns an
// old answer while the service does not respond.
#pragma once

#include <string>
#include <unordered_map>

#include "common/job/job_spec.h"
#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::auth {

// Errors: not_found: there is no such user; io_error: the user database did not answer.
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
