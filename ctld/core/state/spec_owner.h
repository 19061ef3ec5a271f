// Whose a job is, read out of its stored spec without the rest: it is asked for each message that
// comes out of a job, and a spec may have a million bytes.
#pragma once

#include "common/job/job_spec.h"

namespace gantry::core {

struct SpecOwner {  // the number is StoredSpec's
  Owner owner;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(2, "owner", s.owner);
  }
};

}  // namespace gantry::core
