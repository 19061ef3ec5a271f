// The row that the history keeps for good, of a job, or of array tasks that were cancelled while
// pending. It is a store::HistoryEntry with an encoded proto::HistoryRow; only row.uid and those
// with rights to its jobs may read it.
#pragma once

#include "common/proto/history.h"
#include "ctld/core/state/state.h"
#include "ctld/store/store.h"

namespace gantry::core {

// The accounting row of any known job, ended or not, with its cost up to `now`.
proto::HistoryRow history_row(const State& state, const Job& job, Instant now);

// Adds the usage that the nodes of a running job reported last; see runtime.h.
struct Runtime;
void put_live_usage(const Runtime& rt, const Job& job, proto::HistoryRow& row);

store::HistoryEntry history_of(const State& state, const Job& job);
// The row of a run that is over and will be followed by another.
store::HistoryEntry history_of_run(const State& state, const Job& job, Instant end,
                                   Outcome outcome);
store::HistoryEntry history_of_tasks(const State& state, const Job& array, const OrdinalSet& tasks,
                                     Instant end, Outcome outcome, const std::string& cause);

}  // namespace gantry::core
