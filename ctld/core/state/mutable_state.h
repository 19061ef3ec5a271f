// MutableState: State as apply() and loading have it. They may change it, and note each change in
// lists: Touched for settle, Unfolded for the fold. All other code reads a const State&
// (context.h). The lists are not durable and no part of State.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ctld/core/state/state.h"
#include "ctld/sched/change.h"
#include "ctld/store/store.h"

namespace gantry::core {

// Jobs, nodes and more that settle has to look at after this input. Handlers may add to them.
struct Touched {
  std::vector<JobId> jobs;
  std::vector<NodeId> nodes;
  std::vector<NodeId> trigger_nodes;   // nodes that changed, or whose held resources changed
  std::vector<sched::ShareId> shares;  // shares of which the scheduler has to be told
  std::vector<std::string> budgets;    // budgets that may have more left now
  bool uses = false;                   // jobs started or stopped counting for limits of use
  void clear() {
    jobs.clear();
    nodes.clear();
    trigger_nodes.clear();
    shares.clear();
    budgets.clear();
    uses = false;
  }
};

// Changes since the last fold, including removed entries, by table (store.h). The fold empties the
// list. If an entry of State has a `fold_due`, this flag is set while the entry is listed here.
struct Unfolded {
  bool meta = false;
  std::vector<JobId> jobs;
  std::vector<NodeId> nodes;
  std::vector<PartitionId> partitions;
  std::vector<std::string> user_keys;
  std::vector<NodeId> node_keys;
  std::vector<DocumentKey> documents;
  std::vector<sched::ShareId> shares;
  std::vector<std::string> reservations;
  std::vector<std::uint64_t> revisions;
  std::vector<std::uint64_t> alerts;
  std::vector<std::string> sums;   // sums of the ledger
  std::vector<std::string> books;  // books of budgets
  std::vector<std::uint64_t> increases;
  std::vector<std::string> posted;
  std::vector<TriggerId> triggers;
  std::vector<std::string> used;  // records of use
  // Tenant and name; with an empty name, the record of what the tenant has removed.
  std::vector<std::pair<std::string, std::string>> secrets;
  std::vector<std::string> services;
  std::vector<std::string> enroll_tokens;  // hashes of the tokens
  std::vector<JobId> forgotten_specs;
  std::vector<store::HistoryEntry> history;
};

struct MutableState : State {
  Touched touched;
  Unfolded unfolded;
  std::unordered_map<JobId, Bytes> new_specs;  // specs of submits that are about to be applied
};

}  // namespace gantry::core
