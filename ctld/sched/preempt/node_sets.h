// Chooses victims node by node, and asks the rules about every set on the way.
//
// A job of another tenant may leave only while that tenant exceeds its quota, so which nodes can be
// cleared together is a knapsack problem: each tenant has an excess, and each node takes a part of
// it. The search tries all sets of nodes and, on each node, all sets of jobs of which none is
// superfluous. It drops a branch as soon as too few nodes are left whose jobs may leave beside
// those chosen. So it finds a set whenever there is one, up to a bound on the number of sets that
// it asks the rules about.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ctld/sched/preempt/cheapest.h"

namespace gantry::sched {

class NodeSets {
 public:
  using Set = std::vector<const Suspect*>;
  // Says if this set of victims, which may leave together, is enough. It may make the set larger.
  using Accept = std::function<bool(Set&)>;

  NodeSets(const PreemptRequest& request, const NodePrices& prices, PreemptRules& rules,
           bool rule_b)
      : r_(request), prices_(prices), rules_(rules), rule_b_(rule_b) {}

  // Finds victims on `count` of these nodes, among them the required ones. Cheap nodes are tried
  // first.
  std::optional<Set> find(const std::vector<std::uint32_t>& nodes, std::uint32_t count,
                          const Accept& accept);

 private:
  // The rules are asked about so many sets in a search; each takes about a microsecond for each
  // victim.
  static constexpr std::size_t kMaxChecks = 4096;
  // A suspect as the rules see it: one of the same kind on another node is just as good.
  struct Kind {
    std::uint32_t quota_node = kNoIndex;
    VictimRule rule = VictimRule::none;
    std::int32_t class_value = 0;
    std::uint32_t flavor = 0;
    std::array<std::int64_t, kResourceCount> use{};
    auto operator<=>(const Kind&) const = default;
  };
  struct Candidate {
    std::uint32_t node = 0;
    bool required = false;
    bool many = false;   // too many jobs to look at every set of them
    bool known = false;  // `ways` and `kinds` are filled
    std::int64_t cost = 0, used = 0;
    std::vector<Set> ways;  // each makes room on the node, and nothing in it is superfluous
    std::vector<std::vector<Kind>> kinds;  // of the ways; empty: no other node is like this
  };
  struct Able {
    Candidate* candidate = nullptr;
    Set set;  // with the victims on the candidate
  };

  [[nodiscard]] std::optional<Candidate> candidate(std::uint32_t node);
  void add_ways(Candidate& c);
  void note_kinds(Candidate& c) const;
  void extend(Candidate& c, const Set& set, std::vector<Able>& able);
  [[nodiscard]] std::optional<Set> clear(std::uint32_t node, const Set& set);
  bool descend(std::span<Candidate* const> among, const Set& set, std::uint32_t count);
  [[nodiscard]] bool spent() { return ++checks_ > kMaxChecks; }

  const PreemptRequest& r_;
  const NodePrices& prices_;
  PreemptRules& rules_;
  const bool rule_b_;
  std::size_t checks_ = 0;
  const Accept* accept_ = nullptr;
  std::optional<Set> found_;
};

}  // namespace gantry::sched
