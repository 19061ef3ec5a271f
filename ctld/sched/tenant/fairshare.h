// Fair share inside a tenant: usage that decays, and the order of projects and users by it.
//
// Decay is exact, without a periodic pass: decay.h.
//
// The order is Fair Tree (Slurm's documentation, "Fair Tree Fairshare Algorithm"): siblings by
//
//   LF = (shares / shares of all siblings) / (usage / usage of the parent)
//
// the higher first; no shares gives 0, no usage infinity. Who beats a sibling beats everyone below
// it. Equal siblings: users share a rank; the children of equal accounts are ranked together; a
// user equal to an account has the rank of the account's best user.
//
// Usage here is the decayed amount plus the present rate times kEntryCharge, so that a burst of
// starts is seen at once; when a job ends, that part is gone again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ctld/sched/change.h"
#include "ctld/sched/tenant/decay.h"
#include "ctld/sched/tenant/quota.h"

namespace gantry::sched {

inline constexpr Duration kEntryCharge = minutes(5);  // Kueue's and Slurm's sampling period

// Charge units per second of a job that takes this; charges of its flavor.
double charge_rate(const Tenancy& tenancy, const QuotaNeed& need);

struct FairRank {
  ShareId leaf;
  std::uint32_t rank = 0;  // of n leaves: n is the best; equal ones share the better one
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
  // Of changes in the tree below (and at) this root.
  [[nodiscard]] std::uint64_t version(ShareId root) const { return at(root).version; }

  // Usage for the order, as of `now`.
  [[nodiscard]] double usage(ShareId id, Instant now) const;
  // shares / usage: orders siblings as LF does.
  [[nodiscard]] double among_siblings(ShareId id, Instant now) const;
  // LF; comparable between children of different parents.
  [[nodiscard]] double level(ShareId id, Instant now) const;

  // A plan in the making: the leaf and all above it have this much more rate, until forget_plan().
  void charge(ShareId leaf, double rate);
  void forget_plan();

  // Every leaf below `root`, best first. For display and for tests; O(n log n).
  [[nodiscard]] std::vector<FairRank> ranking(ShareId root, Instant now) const;
  // Is `leaf` among the best leaves below these, by LF alone? Needed where a user equals an
  // account.
  [[nodiscard]] bool is_best(ShareId leaf, const std::vector<ShareId>& accounts, Instant now) const;

 private:
  struct Node {
    bool known = false;
    std::optional<ShareId> parent;
    std::uint32_t shares = 1;
    std::uint64_t shares_below = 0;  // of its children
    DecayedUsage usage;
    double planned = 0;         // rate added by charge()
    std::uint64_t version = 0;  // of a root
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
  std::vector<ShareId> charged_;  // leaves
  Duration half_life_ = hours(7 * 24);
};

}  // namespace gantry::sched
