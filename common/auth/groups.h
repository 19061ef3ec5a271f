// Names of the operating system's groups, cached for a while. Roles may be granted to groups.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "common/job/job_spec.h"
#include "common/time/time.h"

namespace gantry::auth {

class GroupNames {
 public:
  explicit GroupNames(Duration keep = seconds(60)) : keep_(keep) {}
  // The names of the owner's primary and supplementary groups, sorted. Groups without a name are
  // left out.
  std::vector<std::string> of(const Owner& owner, Instant now);

 private:
  struct Entry {
    std::string name;  // "" = the group has no name
    Instant at{};
  };
  const std::string& name_of(Gid gid, Instant now);
  Duration keep_;
  std::unordered_map<Gid, Entry> entries_;
};

}  // namespace gantry::auth
