// Fair share inside a tenant: usage that decays (exactly, without a periodic pass: decay.h), and
// the order of projects and users by that usage.
//
// The order is Fair Tree (Slurm's documentation, "Fair Tree Fairshare Algorithm"). Siblings have
//
//   LF = (shares / shares of all siblings) / (usage / usage of the parent)
//
// and the higher LF comes first. A node without shares has 0, a node without usage infinity. A node
// that beats a sibling beats all nodes below that sibling. Equal siblings: users share a rank; the
// children of equal accounts are ranked together; a user equal to an account has the rank of the
// account's best user.
//
// Usage here is the decayed amount plus the present rate times kEntryCharge, so that a burst of
// starts counts at once; that part disappears when a job ends.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ctld/sched/change.h"
#include "ctld/sched/tenant/decay.h"
#include "ctld/sched/tenant/quota.h"

namespace gantry::sched {

inline constexpr Duration kEntryCharge = minutes(5);  // Kueue's and Slurm's sampling period

// The charge units per second of a job with this need, by the charges of its flavor.
double charge_rate(const Tenancy& tenancy, const QuotaNeed& need);

struct FairRank {
  ShareId leaf;
  std::uint32_t rank = 0;  // n (the number of leaves) is the best; equal ones share the better rank
  double level = 0;        // LF among its siblings
};

// All tenants' trees. Nodes are never removed.
class ShareTree {
 public:
  void change(const ShareChanged& change);
  void set_half_life(Duration half_life) { half_life_ = half_life; }

  [[nodiscard]] bool knows(ShareId id) const {
    return id.value() < nodes_.size() && nodes_[id.value()].known;
  }
  [[nodiscard]] std::optional<ShareId> parent(ShareId id) const { return at(id).parent; }
  [[nodiscard]] const std::vector<ShareId>& children(ShareId id) const { return at(id).children; }
  [[nodiscard]] ShareId root_of(ShareId id) const;
  // Counts the changes of nodes in the tree with this root.
  [[nodiscard]] std::uint64_t version(ShareId root) const { return at(root).version; }

  // The usage by which nodes are ordered, as of `now`.
  [[nodiscard]] double usage(ShareId id, Instant now) const;
  // shares / usage: it orders siblings as LF does.
  [[nodiscard]] double among_siblings(ShareId id, Instant now) const;
  // LF; comparable between children of different parents.
  [[nodiscard]] double level(ShareId id, Instant now) const;

  // For a plan that is being made: adds the rate to the leaf and all nodes above it, until
  // forget_plan().
  void charge(ShareId leaf, double rate);
  void forget_plan();

  // Every leaf below `root`, best first. It is for display and for tests; O(n log n).
  [[nodiscard]] std::vector<FairRank> ranking(ShareId root, Instant now) const;
  // True if `leaf` is one of the best leaves below `accounts`, by LF alone.
  [[nodiscard]] bool is_best(ShareId leaf, const std::vector<ShareId>& accounts, Instant now) const;

 private:
  struct Node {
    bool known = false;
    std::optional<ShareId> parent;
    std::uint32_t shares = 1;
    std::uint64_t shares_below = 0;  // sum of its children's shares
    DecayedUsage usage;
    double planned = 0;         // rate added by charge()
    std::uint64_t version = 0;  // number of changes, if it is a root
    std::vector<ShareId> children;
  };
  struct Ranked {
    double level = 0;
    ShareId id;
  };
  [[nodiscard]] const Node& at(ShareId id) const { return nodes_[id.value()]; }
  Node& reach(ShareId id);
  [[nodiscard]] std::vector<Ranked> sorted_below(const std::vector<ShareId>& parents,
                                                 Instant now) const;
  void rank_below(const std::vector<ShareId>& parents, Instant now,
                  std::vector<FairRank>& out) const;

  std::vector<Node> nodes_;       // by id
  std::vector<ShareId> charged_;  // leaves charged by the plan
  Duration half_life_ = hours(7 * 24);
};

}  // namespace gantry::sched
