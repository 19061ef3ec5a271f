// Computes fair shares: divides the cluster among the present demands, by weight, down the quota
// tree ("water-filling").
//
// At each node of the tree, from the top, every child first gets what it demands of its own quota,
// min(demand, subtree quota). The rest of the node's amount is distributed to the children that
// want more, so that (extra / weight) is equal for all of them. Demands end at the borrowing
// limits, and what a child does not lend (lending limit) goes to no other child. Without quota the
// whole amount is distributed by weight.
#pragma once

#include <vector>

#include "ctld/sched/tenancy.h"
#include "ctld/sched/tenant/quota.h"

namespace gantry::replay {

// Distributes `amount` over demands by weight, beyond a base for each, so that (x - base) / weight
// is equal for all.
std::vector<double> pour(const std::vector<double>& demands, const std::vector<double>& bases,
                         const std::vector<double>& weights, double amount);

class FairShares {
 public:
  // `nodes` has the quota node of each tenant; kNoIndex means none, with weight 1. `total` and all
  // results are in units of 1 / `scale` of the resource.
  FairShares(sched::TenancyPtr tenancy, std::vector<std::uint32_t> nodes, Resource resource,
             std::int64_t scale, double total);

  [[nodiscard]] std::vector<double> divide(const std::vector<double>& demands) const;
  // The nominal quota; kUnlimited / scale if there is none.
  [[nodiscard]] double nominal(std::size_t tenant) const { return nominal_[tenant]; }
  [[nodiscard]] bool has_quota(std::size_t tenant) const { return limited_[tenant]; }

 private:
  struct Node {
    double base = 0, limit = 0, kept = 0, weight = 1;
    std::vector<std::size_t> children;
    std::size_t tenant = 0;  // for a leaf
    bool leaf = false;
  };
  double demand_of(std::size_t node, const std::vector<double>& demands,
                   std::vector<double>& of_nodes) const;
  void give(const std::vector<std::size_t>& nodes, double amount,
            const std::vector<double>& of_nodes, std::vector<double>& out) const;

  std::vector<Node> nodes_;
  std::vector<std::size_t> tops_;
  std::vector<double> nominal_;
  std::vector<bool> limited_;
  double total_ = 0;
};

}  // namespace gantry::replay
