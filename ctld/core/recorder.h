// Recorder: the one way from a handler to State. It journals an event and applies it at once, so
// nothing changes without being in the journal. The exceptions below change no facts; they only
// recompute what follows from documents and configuration.
#pragma once

#include <vector>

#include "config/config.h"
#include "ctld/core/core.h"
#include "ctld/core/event/event.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {

namespace event {
struct JobSubmitted;
}

class Recorder {
 public:
  // All references must outlive the Recorder. `last_seq` is the newest event's number; new events
  // get the numbers after it. `config` is that of gantry.yaml; set_partitions() and set_features()
  // change it.
  Recorder(MutableState& state, Config& config, Turn& turn, EventSeq& last_seq)
      : state_(state),
        config_(config),
        file_partitions_(config.partitions),
        file_nodes_(config.nodes),
        turn_(turn),
        last_seq_(last_seq) {}

  void record(Instant now, EventRef event);
  // `spec` is the job's encoded StoredSpec; it is stored in the same transaction.
  void record(Instant now, const event::JobSubmitted& event, Bytes spec);

  // Replaces the compiled documents, and gives each tenant's queue its nodes and limits
  // (tenancy/queues.h).
  void set_tenancy(CompiledTenancy compiled);
  // The same for one partition that has just been declared.
  void fill_part(PartitionId part);
  // Makes Config and State say which partitions are in force (partition/in_force.h). Tenants'
  // queues may not be used until set_tenancy() has made them again.
  void set_partitions();
  [[nodiscard]] bool in_file(const std::string& partition) const;
  // Sets in Config which features nodes have, by gantry.yaml and by operators.
  void set_features();

 private:
  MutableState& state_;
  Config& config_;
  std::vector<PartitionConfig> file_partitions_;  // partitions as in gantry.yaml
  std::vector<NodeConfig> file_nodes_;            // nodes as in gantry.yaml
  Turn& turn_;
  EventSeq& last_seq_;
};

}  // namespace gantry::core
