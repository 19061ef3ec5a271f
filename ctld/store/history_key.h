// Keys of the history tables, shared by the implementations.
//
// `history` holds the records by (end, job): 16 octets, big-endian, so that key order is time
// order. `history_index` holds empty values by (id, end, job), 24 octets, once for the job's own id
// and once for its array's, so that one range finds a job, or all elements of an array.
#pragma once

#include "ctld/store/store.h"

namespace gantry::store {

inline constexpr std::size_t kHistoryKeyBytes = 16;

Bytes history_key(const HistoryPosition& position);
HistoryPosition history_position(std::string_view key);  // of a history key; asserts on its length
Bytes history_index_key(JobId id, const HistoryPosition& position);

// Keys of `scan` (in history_index if it names an id, else in history): lo <= key < hi.
struct HistoryBounds {
  Bytes lo;
  Bytes hi;
};
HistoryBounds history_bounds(const HistoryScan& scan);  // asserts on a limit out of range

}  // namespace gantry::store
