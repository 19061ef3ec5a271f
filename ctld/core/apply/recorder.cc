// Journals events and applies them; see recorder.h.
#include "ctld/core/recorder.h"

#include <algorithm>
#include <utility>

#include "common/codec/codec.h"
#include "config/config.h"
#include "ctld/core/apply.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/event/journal.h"
#include "ctld/core/notify/letters.h"
#include "ctld/core/notify/usage_events.h"
#include "ctld/core/partition/in_force.h"
#include "ctld/core/resources/licenses.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {

void Recorder::record(Instant now, EventRef event) {
  last_seq_ = EventSeq(last_seq_.value() + 1);
  turn_.append.events.push_back({last_seq_, encode_event(now, event)});
  if (config_.controller.usage_events.empty())
    apply(state_, now, event);
  else
    apply_and_tell(state_, last_seq_, now, event, config_.cluster, turn_.usage);
  if (!config_.controller.mail_program.empty()) write_letters(state_, now, event, turn_.letters);
}

void Recorder::record(Instant now, const event::JobSubmitted& event, Bytes spec) {
  turn_.append.specs.emplace_back(event.job, spec);
  state_.new_specs.emplace(event.job, std::move(spec));
  record(now, event);
}

void Recorder::set_tenancy(CompiledTenancy compiled) {
  state_.tenancy.compiled = std::move(compiled);
  set_shared_licenses(state_, config_.cluster);
  make_queues(state_);
}

void Recorder::fill_part(PartitionId part) {
  core::fill_part(state_, state_.partition(part));
}

void Recorder::set_partitions() {
  config_.partitions = partitions_in_force(file_partitions_, config_, state_);
  configure_partitions(state_, config_);
}

void Recorder::set_features() {
  for (std::size_t i = 0; i < config_.nodes.size();
       ++i) {  // in place, because State keeps pointers to them
    NodeConfig& node = config_.nodes[i];
    const Node* known = state_.node_named(node.name);
    node.features =
        known != nullptr && known->features_set ? *known->features_set : file_nodes_[i].features;
  }
}

bool Recorder::in_file(const std::string& partition) const {
  return std::any_of(file_partitions_.begin(), file_partitions_.end(),
                     [&](const PartitionConfig& p) { return p.name == partition; });
}

}  // namespace gantry::core
