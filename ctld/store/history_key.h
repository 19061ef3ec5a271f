// Keys of the history tables, shared by both implementations.
//
// `history` has the records by (end, job): 16 octets, big-endian, so that the order of keys is the
// order of time. `history_index` has empty values by (id, end, job), 24 octets, once for the job's
// own id and once for its array's id, so that one range finds a job, or all tasks of an array.
#pragma once

#include "ctld/store/store.h"

namespace gantry::store {

inline constexpr std::size_t kHistoryKeyBytes = 16;

Bytes history_key(const HistoryPosition& position);
HistoryPosition history_position(std::string_view key);  // of a history key; asserts on its length
Bytes history_index_key(JobId id, const HistoryPosition& position);

// The keys that `scan` selects (in history_index if it names an id, else in history): lo <= key <
// hi.
struct HistoryBounds {
  Bytes lo;
  Bytes hi;
};
HistoryBounds history_bounds(const HistoryScan& scan);  // asserts on a limit out of range

}  // namespace gantry::store
