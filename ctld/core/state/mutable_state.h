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
  std::vector<sched::ShareId> shares;  // the scheduler has to hear of these
  std::vector<std::string> budgets;    // there may be more left of these
  bool uses = false;                   // jobs began or ended to count for limits of use
  void clear() {
    jobs.clear();
    nodes.clear();
    trigger_nodes.clear();
    shares.clear();
    budgets.clear();
    uses = false;
  }
};

// Changes since the last fold, removed things too, by table (store.h). The fold takes the
// list. If an entry of State has a `fold_due`, that flag says that the entry is listed here.
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
  // Tenant and name; no name: what the tenant has removed.
  std::vector<std::pair<std::string, std::string>> secrets;
  std::vector<std::string> services;
  std::vector<std::string> enroll_tokens;  // hashes
  std::vector<JobId> forgotten_specs;
  std::vector<store::HistoryEntry> history;
};

struct MutableState : State {
  Touched touched;
  Unfolded unfolded;
  std::unordered_map<JobId, Bytes> new_specs;  // specs of submits that are about to be applied
};

}  // namespace gantry::core
