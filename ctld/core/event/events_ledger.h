// Events of the ledger; see events.h. What jobs cost needs none: it is derived from theirs. These
// bring what is charged besides: what was metered elsewhere, and shared costs when a month is over.
#pragma once

#include <string>
#include <vector>

#include "common/proto/ledger.h"
#include "ctld/core/event/event_fields.h"

namespace gantry::core::event {

struct ChargesPosted {
  proto::PostedBatch batch;  // its name has not been there before
  std::vector<proto::PostedCharge> charges;
  GANTRY_EVENT(65, "charges_posted") {
    v(1, "batch", s.batch);
    v(2, "charges", s.charges);
  }
};

}  // namespace gantry::core::event
