// What a placement can tell apart, across partitions: classes that ask the same of the same nodes
// are of one kind, whoever they belong to; with the same limit and flavor they have one wish. What
// one of them has learnt in a plan holds for all.
//
// That a wish found no place stays true until room grows on some node: reopen() says where. It is
// known for jobs of the place in the order (partition priority, rank) that it failed at, and of
// lower ones: of those more promises stand in the way, of higher ones perhaps fewer.
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

// Partition priority and rank: promises of a higher place stand before everything of a lower one.
using Place = std::pair<std::uint32_t, std::int32_t>;

struct Wish {
  std::uint32_t kind = 0;
  std::uint32_t nodes = 0;  // see nodes_of()
  Demand demand;
  std::optional<Duration> limit;  // unset = unlimited
  QuotaNeed need;                 // at least
  bool failed = false;
  Place failed_at;
};

class Kinds {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // Numbers are valid until begin() says otherwise.
  void begin(std::uint64_t generation);  // of Eligible: its sets and their numbers
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

  // The number of the set's nodes: equal for sets with equal nodes.
  std::uint32_t nodes_of(std::uint32_t node_set, const Bits& nodes);
  std::uint32_t wish_of(std::uint32_t nodes, const Demand& demand, std::optional<Duration> limit,
                        const QuotaNeed& need);
  [[nodiscard]] const Wish& wish(std::uint32_t wish) const { return wishes_[wish]; }
  [[nodiscard]] std::size_t kinds() const { return kinds_.size(); }

  void forget_failures();
  void failed(std::uint32_t wish, Place place);
  [[nodiscard]] std::uint64_t failures() const { return count_; }  // noted so far
  // Noted of the wish itself.
  [[nodiscard]] bool fails(std::uint32_t wish, Place place) const {
    return wishes_[wish].failed && place <= wishes_[wish].failed_at;
  }
  // Of the wish, or of one that asks for no more.
  bool known_to_fail(std::uint32_t wish, Place place);

  // Room has grown on the node: of which wishes that are noted to fail could(wish) be?
  template <class Could>
  bool reopen(std::uint32_t node, Could&& could) {
    bool some = false;
    for (Wish& w : wishes_)
      if (w.failed && nodes_[w.nodes].test(node) && could(std::as_const(w))) {
        w.failed = false;
        some = true;
      }
    return some;
  }

 private:
  static constexpr std::size_t kMaxFailures = 64;  // by nodes
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                         std::uint32_t, MemoryRule, std::int64_t, std::int64_t, std::uint32_t, bool,
                         GresAmounts>;
  std::uint64_t generation_ = 0;
  std::vector<std::uint32_t> nodes_by_set_;
  std::multimap<std::uint64_t, std::uint32_t> by_hash_;
  std::vector<Bits> nodes_;
  std::map<Key, std::uint32_t> kinds_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, std::uint32_t> wish_by_key_;
  std::vector<Wish> wishes_;
  std::uint64_t count_ = 0;
  std::vector<std::vector<std::uint32_t>> failures_;  // wishes, by nodes; some may be open again
};

}  // namespace gantry::sched
