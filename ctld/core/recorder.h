// Recorder: the one way from a handler to State. It journals an event and applies it at once, so
// nothing changes without being in the journal; the exceptions are below, and are no facts but what
// follows from documents and configuration.
#pragma once

#include "ctld/core/core.h"
#include "ctld/core/event/events.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

class Recorder {
 public:
  // All of them outlive it. `last_seq` is the newest event's number, and counts on.
  Recorder(MutableState& state, const Config& config, Turn& turn, EventSeq& last_seq)
      : state_(state), config_(config), turn_(turn), last_seq_(last_seq) {}

  void record(Instant now, Event event);
  // With the encoded StoredSpec of the job, which is stored in the same transaction.
  void record(Instant now, event::JobSubmitted event, Bytes spec);

  // The documents compiled anew: takes their place, and each tenant's queue gets its nodes and
  // limits (tenancy/queues.h).
  void set_tenancy(CompiledTenancy compiled);
  // The same for one partition that has just been declared.
  void fill_part(PartitionId part);

 private:
  MutableState& state_;
  const Config& config_;
  Turn& turn_;
  EventSeq& last_seq_;
};

}  // namespace gantry::core
