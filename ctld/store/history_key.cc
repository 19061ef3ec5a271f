// Encoding of history keys and of a scan's bounds; see the header.
#include "ctld/store/history_key.h"

#include <algorithm>

#include "common/assert.h"

namespace gantry::store {

Bytes history_key(const HistoryPosition& position) {
  return ordered_key(static_cast<std::uint64_t>(position.end.us)) +
         ordered_key(position.job.value());
}

HistoryPosition history_position(std::string_view key) {
  GANTRY_ASSERT(key.size() == kHistoryKeyBytes, "a history key has sixteen octets");
  return {Instant{static_cast<std::int64_t>(ordered_key_value(key.substr(0, 8)))},
          JobId{ordered_key_value(key.substr(8))}};
}

Bytes history_index_key(JobId id, const HistoryPosition& position) {
  return ordered_key(id.value()) + history_key(position);
}

HistoryBounds history_bounds(const HistoryScan& scan) {
  GANTRY_ASSERT(scan.limit >= 1 && scan.limit <= kMaxHistoryPage, "history page size");
  HistoryBounds bounds{Bytes(kHistoryKeyBytes, '\0'), Bytes(kHistoryKeyBytes, '\xff')};
  // Times before 1970 cannot be stored. A lower bound before 1970 is therefore no bound, and an
  // upper bound before 1970 selects nothing.
  if (scan.from) bounds.lo = history_key({std::max(*scan.from, Instant{}), JobId{}});
  if (scan.to) bounds.hi = history_key({std::max(*scan.to, Instant{}), JobId{}});
  if (scan.resume) {
    Bytes at = history_key(*scan.resume);
    if (scan.order == HistoryOrder::newest_first) {
      bounds.hi = std::min(bounds.hi, at);
    } else {
      bounds.lo = std::max(bounds.lo, at + '\0');  // one key after the key of `at`
    }
  }
  if (scan.id) {
    Bytes prefix = ordered_key(scan.id->value());
    bounds.lo.insert(0, prefix);
    bounds.hi.insert(0, prefix);
  }
  return bounds;
}

}  // namespace gantry::store
