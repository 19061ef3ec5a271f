// Journals events and applies them; see recorder.h.
#include "ctld/core/recorder.h"

#include <utility>

#include "common/codec/codec.h"
#include "ctld/core/apply.h"
#include "ctld/core/notify/letters.h"
#include "ctld/core/notify/usage_events.h"
#include "ctld/core/tenancy/queues.h"

namespace gantry::core {

void Recorder::record(Instant now, Event event) {
  last_seq_ = EventSeq(last_seq_.value() + 1);
  const JournalEvent entry{now, std::move(event)};
  turn_.append.events.push_back({last_seq_, codec::encode(entry)});
  if (config_.controller.usage_events.empty())
    apply(state_, now, entry.event);
  else
    apply_and_tell(state_, last_seq_, now, entry.event, config_.cluster, turn_.usage);
  if (!config_.controller.mail_program.empty())
    write_letters(state_, now, entry.event, turn_.letters);
}

void Recorder::record(Instant now, event::JobSubmitted event, Bytes spec) {
  turn_.append.specs.emplace_back(event.job, spec);
  state_.new_specs.emplace(event.job, std::move(spec));
  record(now, Event(std::move(event)));
}

void Recorder::set_tenancy(CompiledTenancy compiled) {
  state_.tenancy.compiled = std::move(compiled);
  make_queues(state_);
}

void Recorder::fill_part(PartitionId part) {
  core::fill_part(state_, state_.partition(part));
}

}  // namespace gantry::core
