// The owner of a job, decoded from its stored spec without the rest. Each message from inside a job
// needs the owner, and a spec may have a million bytes.
#pragma once

#include "common/fields.h"
#include "common/job/job_spec.h"

namespace gantry::core {

struct SpecOwner {  // field numbers as in StoredSpec
  Owner owner;
  GANTRY_FIELDS(FIELD(2, owner))
};

}  // namespace gantry::core
