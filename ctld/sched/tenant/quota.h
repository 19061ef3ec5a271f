// Quota of tenants in cohorts: nominal quota, borrowing limit, lending limit, as Kueue defines them
// (Kueue KEP-79, "hierarchical cohorts"; pkg/cache/scheduler/resource_node.go). For each tree node
// n and cell (flavor, resource), where usage(n) counts what the nodes below n do not cover
// themselves:
//
//   local(n)     = lending limit set ? max(0, subtree(n) - lending limit) : 0   kept from others
//   subtree(n)   = nominal(n) + sum over children c of (subtree(c) - local(c))
//   usage(n)     = own use, or sum over children c of max(0, usage(c) - local(c))
//   local_free   = max(0, local(n) - usage(n))
//   available(n) = a root: subtree(n) - usage(n); otherwise
//                  local_free + min(available(parent), subtree(n) - local(n)
//                                   - max(0, usage(n) - local(n)) + borrowing limit)
//
// A negative available() is no error: the quota was cut below what runs. What a node keeps to
// itself can be used even then. A node without a limit in a cell keeps the cell to itself: it
// neither lends nor borrows there. Amounts are integers that saturate at kUnlimited; adding and
// removing cost O(depth) per cell.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ctld/sched/tenancy.h"

namespace gantry::sched {

// The amount that a job takes or would take. It also counts in flavor 0, "all": see FlavorLimits.
struct QuotaNeed {
  std::uint32_t flavor = 0;  // the flavor of all its nodes; 0 = only "all flavors"
  Resources amount;
  friend bool operator==(const QuotaNeed&, const QuotaNeed&) = default;
};

struct QuotaCell {
  std::uint32_t node = kNoIndex;  // the node on the path to the root where the need does not fit
  std::uint32_t flavor = 0;
  Resource resource = Resource::gpu;
};

// Whether a need fits a tenant's quota, and what it would borrow.
struct QuotaFit {
  bool fits = false;
  bool borrows = false;           // borrows at one node of the path at least
  std::uint32_t levels = 0;       // bit 31 - k: borrows k steps below the root; less is better
  std::optional<QuotaCell> cell;  // the first cell in which it does not fit
  std::int64_t would_use = 0;     // usage of that cell at that node, with the need
  std::int64_t limit = 0;         // the most that may be used there (nominal plus borrowing)
  bool tenant_limit = false;      // the limit is the tenant's own, not a cohort's
};

class QuotaTree {
 public:
  explicit QuotaTree(TenancyPtr tenancy);

  [[nodiscard]] const Tenancy& tenancy() const { return *tenancy_; }
  [[nodiscard]] std::size_t size() const { return tenancy_->nodes.size(); }
  [[nodiscard]] std::uint32_t depth(std::uint32_t node) const {
    return depth_[node];
  }  // 0 = a root

  void add(std::uint32_t node, const QuotaNeed& need);     // for a tenant's node
  void remove(std::uint32_t node, const QuotaNeed& need);  // exact inverse of add()

  [[nodiscard]] std::int64_t available(std::uint32_t node, std::uint32_t flavor, Resource r) const;
  // available() as if no job ran anywhere; a larger need can never start.
  [[nodiscard]] std::int64_t potential(std::uint32_t node, std::uint32_t flavor, Resource r) const;
  [[nodiscard]] std::int64_t usage(std::uint32_t node, std::uint32_t flavor, Resource r) const;
  [[nodiscard]] std::int64_t subtree(std::uint32_t node, std::uint32_t flavor, Resource r) const;
  [[nodiscard]] std::int64_t local(std::uint32_t node, std::uint32_t flavor, Resource r) const;

  [[nodiscard]] QuotaFit fit(std::uint32_t tenant, const QuotaNeed& need) const;
  // The first cell in which the need is more than potential(); nullopt if it can fit when others
  // leave.
  [[nodiscard]] std::optional<QuotaCell> never_fits(std::uint32_t tenant,
                                                    const QuotaNeed& need) const;

  // The part of the lendable quota that the node would borrow, in millionths, divided by its
  // weight:
  //   max over r of borrowed(n, r) / lendable(r), borrowed = sum over flavors of
  //   max(0, usage + need - subtree), lendable = sum over flavors of potential(parent)
  // 0 = it borrows nothing. A node of weight 0 has a larger value than all others; two such nodes
  // compare without their weights.
  [[nodiscard]] std::int64_t share_value(std::uint32_t node, const QuotaNeed& need) const;
  // Fills `values` with the share values of the nodes from the root's child down to the tenant;
  // stops when `values` is full.
  void share_values(std::uint32_t tenant, const QuotaNeed& need,
                    std::span<std::int64_t> values) const;

  // Grows with every change of usage at the tenant or in a cohort above it, except the root. While
  // it does not change, QuotaFit::levels and share_values() do not change either.
  [[nodiscard]] std::uint64_t stamp(std::uint32_t tenant) const;

  // Checks that the usage of every node is the sum over `uses`; returns "" or the first difference.
  [[nodiscard]] std::string audit(
      const std::vector<std::pair<std::uint32_t, QuotaNeed>>& uses) const;

 private:
  struct Cell {
    std::int64_t local = 0, subtree = 0, usage = 0, borrow = kUnlimited;
  };
  [[nodiscard]] std::size_t index(std::uint32_t node, std::uint32_t flavor, std::size_t r) const {
    return (node * tenancy_->flavors.size() + flavor) * kResourceCount + r;
  }
  [[nodiscard]] const Cell& cell(std::uint32_t node, std::uint32_t flavor, std::size_t r) const {
    return cells_[index(node, flavor, r)];
  }
  void count_lendable();
  void change(std::uint32_t node, std::uint32_t flavor, std::size_t r, std::int64_t by);
  [[nodiscard]] std::int64_t available(std::uint32_t node, std::uint32_t flavor, std::size_t r,
                                       bool potential) const;
  void fit_cell(std::uint32_t tenant, std::uint32_t flavor, std::size_t r, std::int64_t need,
                QuotaFit& fit) const;

  TenancyPtr tenancy_;
  std::vector<Cell> cells_;             // by node, flavor, resource
  std::vector<std::int64_t> lendable_;  // by node, resource: the most that its parent can lend
  std::vector<std::uint32_t> depth_;
  std::vector<std::uint64_t> stamps_;  // by node: when its usage changed last
  std::uint64_t changes_ = 0;
};

}  // namespace gantry::sched
