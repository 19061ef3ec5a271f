// NeighbourMemory: jobs that are kept off each other's nodes; see apart.h. A restart empties it.
#pragma once

#include <map>
#include <string>

#include "common/time/time.h"
#include "ctld/sched/change.h"

namespace gantry::core {

// Jobs of one user and name.
struct ApartJobs {
  std::string user, name, payer;
};
struct Apart {
  Instant until{};
  ApartJobs first, second;  // ordered by their numbers
};

struct NeighbourMemory {
  std::map<sched::NamesakePair, Apart> apart;
};

}  // namespace gantry::core
