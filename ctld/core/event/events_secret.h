// Events of secrets; see events.h. No event has the content of a secret: the controller seals it
// before the core sees it.
#pragma once

#include <string>
#include <vector>

#include "common/job/job_access.h"
#include "common/types.h"
#include "ctld/core/event/event_fields.h"

namespace gantry::core::event {

struct SecretSet {
  std::string tenant;
  std::string name;
  std::uint32_t version = 0;
  Bytes sealed;
  std::string by;          // user
  std::uint32_t keep = 0;  // versions before the newest `keep` ones are removed
  GANTRY_EVENT(81, "secret_set") {
    FIELD(1, tenant), FIELD(2, name), FIELD(3, version), FIELD(4, sealed), FIELD(5, by),
        FIELD(6, keep);
  }
};

struct SecretRemoved {
  std::string tenant;
  std::string name;
  std::uint32_t version = 0;  // 0 = the whole secret
  GANTRY_EVENT(82, "secret_removed") { FIELD(1, tenant), FIELD(2, name), FIELD(3, version); }
};

struct SecretsTaken {  // with JobPlaced: which versions this attempt gets
  JobId job{};
  std::string tenant;
  std::vector<SecretUse> uses;  // with version numbers resolved and file names set
  GANTRY_EVENT(83, "secrets_taken") { FIELD(1, job), FIELD(2, tenant), FIELD(3, uses); }
};

}  // namespace gantry::core::event
