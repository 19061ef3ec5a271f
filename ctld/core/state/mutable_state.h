// MutableState: State as apply() and loading have it. It may be changed, and each change is noted
// in lists that others take: settle, and the fold. Whoever else reads has a const State&
// (context.h); the lists are not durable, and no part of State.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ctld/core/state/state.h"
#include "ctld/store/store.h"

namespace gantry::core {

// What has to be looked at, by settle after every input. Handlers may add to it.
struct Touched {
  std::vector<JobId> jobs;
  std::vector<NodeId> nodes;
  std::vector<NodeId> trigger_nodes;   // touched, or something began or ended to be held there
  std::vector<sched::ShareId> shares;  // the scheduler has to hear of these
  std::vector<std::string> budgets;    // there may be more left of these
  void clear() {
    jobs.clear();
    nodes.clear();
    trigger_nodes.clear();
    shares.clear();
    budgets.clear();
  }
};

// What changed since the last fold, by table (store.h), removed ones too; the fold takes it. Where
// an entry of State has a `fold_due`, that says that it is in here.
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
  std::vector<std::string> sums;   // of the ledger
  std::vector<std::string> books;  // of budgets
  std::vector<std::uint64_t> increases;
  std::vector<std::string> posted;
  std::vector<TriggerId> triggers;
  std::vector<JobId> forgotten_specs;
  std::vector<store::HistoryEntry> history;
};

struct MutableState : State {
  Touched touched;
  Unfolded unfolded;
  std::unordered_map<JobId, Bytes> new_specs;  // of submits that are about to be applied
};

}  // namespace gantry::core
