// Chooses victims node by node, and asks the rules about every set on the way.
//
// A job of another tenant may leave only while that tenant exceeds its quota, so finding nodes that
// can be emptied together is a knapsack problem: each tenant has an excess, and each node takes a
// part of it. The search tries all sets of nodes and, on each node, all sets of jobs of which none
// is superfluous. It drops a branch as soon as too few nodes are left whose jobs may leave together
// with those chosen. So it finds a set whenever there is one, up to a bound on the number of sets
// that it asks the rules about.
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
  // Returns whether these victims, which may leave together, are enough. It may add victims.
  using Accept = std::function<bool(Set&)>;

  NodeSets(const PreemptRequest& request, const NodePrices& prices, PreemptRules& rules,
           bool rule_b)
      : r_(request), prices_(prices), rules_(rules), rule_b_(rule_b) {}

  // Finds victims on `count` of these nodes, among them the required ones. Cheap nodes are tried
  // first.
  std::optional<Set> find(const std::vector<std::uint32_t>& nodes, std::uint32_t count,
                          const Accept& accept);

 private:
  // The limit on sets about which one search asks the rules; each question takes about a
  // microsecond per victim.
  static constexpr std::size_t kMaxChecks = 4096;
  // A suspect as the rules see it: a suspect of the same kind on another node is equivalent.
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
    bool many = false;   // too many jobs to try every set of them
    bool known = false;  // true if `ways` and `kinds` are filled
    std::int64_t cost = 0, used = 0;
    std::vector<Set> ways;  // sets that make room on the node, in which no job is superfluous
    std::vector<std::vector<Kind>> kinds;  // kinds of each way; empty: no other node is like this
  };
  struct Able {
    Candidate* candidate = nullptr;
    Set set;  // the victims so far and those on the candidate
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
