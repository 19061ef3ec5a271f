// Requests, across partitions. Classes that ask the same of the same nodes share one demand id,
// whoever owns them; with the same limit and flavor they also share one request. What a plan has
// found out for one of them is valid for all.
//
// A request that found no place stays failed until resources become free on a node; reopen() is
// told which. The failure counts for jobs at the place in the order (partition priority, rank)
// where it was noted, and for lower places, which more reservations block. Higher places are
// perhaps blocked by fewer.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ctld/sched/bits.h"
#include "ctld/sched/queue/geometry.h"
#include "ctld/sched/tenant/quota.h"

namespace gantry::sched {

// Partition priority and rank: reservations of a higher place come before everything of a lower
// one.
using Place = std::pair<std::uint32_t, std::int32_t>;

struct RequestKey {
  std::uint32_t demand_id = 0;
  std::uint32_t nodes = 0;  // see nodes_of()
  Demand demand;
  std::optional<Duration> limit;  // unset = unlimited
  QuotaNeed need;                 // the least need of its classes
  bool failed = false;
  Place failed_at;
};

class RequestKeys {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // Numbers stay valid until begin() gets another generation.
  void begin(std::uint64_t generation);  // generation of Eligible: its sets and their numbers
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

  // The number of the set's nodes: equal for sets with equal nodes.
  std::uint32_t nodes_of(std::uint32_t node_set, const Bits& nodes);
  std::uint32_t number_of(std::uint32_t nodes, const Demand& demand, std::optional<Duration> limit,
                          const QuotaNeed& need);
  [[nodiscard]] const RequestKey& key(std::uint32_t request) const { return requests_[request]; }
  [[nodiscard]] std::size_t demand_ids() const { return demand_ids_.size(); }

  void forget_failures();
  void failed(std::uint32_t request, Place place);
  [[nodiscard]] std::uint64_t failures() const { return count_; }  // failures noted so far
  // True if a failure of the request itself was noted, at this place or at a higher one.
  [[nodiscard]] bool fails(std::uint32_t request, Place place) const {
    return requests_[request].failed && place <= requests_[request].failed_at;
  }
  // True if a failure of the request, or of one that asks for no more, was noted.
  bool known_to_fail(std::uint32_t request, Place place);

  // Resources became free on the node: clears the failures of requests on it for which
  // could(request) is true; returns true if there were any.
  template <class Could>
  bool reopen(std::uint32_t node, Could&& could) {
    bool some = false;
    for (RequestKey& r : requests_)
      if (r.failed && nodes_[r.nodes].test(node) && could(std::as_const(r))) {
        r.failed = false;
        some = true;
      }
    return some;
  }

 private:
  static constexpr std::size_t kMaxFailures = 64;  // for each set of nodes
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                         std::uint32_t, std::uint32_t, bool, MemoryRule, std::int64_t, std::int64_t,
                         std::uint32_t, bool, bool, GresAmounts, std::int64_t, std::int64_t,
                         std::uint32_t, std::int64_t>;
  std::uint64_t generation_ = 0;
  std::vector<std::uint32_t> nodes_by_set_;
  std::multimap<std::uint64_t, std::uint32_t> by_hash_;
  std::vector<Bits> nodes_;
  std::map<Key, std::uint32_t> demand_ids_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, std::uint32_t> by_key_;
  std::vector<RequestKey> requests_;
  std::uint64_t count_ = 0;
  std::vector<std::vector<std::uint32_t>>
      failures_;  // failed requests, by nodes; some may be open again
};

}  // namespace gantry::sched
