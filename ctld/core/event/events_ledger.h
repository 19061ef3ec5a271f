// Events of the ledger; see events.h. There is no event for what jobs cost, because that is derived
// from the events of jobs. These events bring other charges: what was metered elsewhere, and shared
// costs when a month is over.
#pragma once

#include <string>
#include <vector>

#include "common/proto/ledger.h"
#include "ctld/core/event/event_fields.h"

namespace gantry::core::event {

struct ChargesPosted {
  proto::PostedBatch batch;  // a batch of this name was not posted before
  std::vector<proto::PostedCharge> charges;
  GANTRY_EVENT(65, "charges_posted") { FIELD(1, batch), FIELD(2, charges); }
};

}  // namespace gantry::core::event
