// Computes quota by its definition (Kueue's, as in ctld/sched/tenant/quota.h) without stored sums:
// the use of each tenant is added up from its placements for every question. It is slow, and serves
// to check the tree that the controller and the scheduler keep.
#pragma once

#include <vector>

#include "ctld/sched/tenancy.h"

namespace gantry::sim {

class QuotaOf {
 public:
  explicit QuotaOf(sched::TenancyPtr tenancy)
      : tenancy_(std::move(tenancy)), used_(tenancy_->nodes.size() * tenancy_->flavors.size()) {}

  // Adds a placement of this tenant on nodes of this flavor; flavor 0 means none.
  void add(std::uint32_t tenant, std::uint32_t flavor, const Resources& amount, int sign = 1);

  // Returns which limit forbids the tenant to take `need` more: a nominal or borrowing limit on the
  // way up, or a lending limit of another tenant. "" = the tenant may.
  [[nodiscard]] std::string objection(std::uint32_t tenant, std::uint32_t flavor,
                                      const Resources& need) const;
  // Returns true if the tenant would borrow with `need` more, at any level if `anywhere`, else
  // beyond its own quota.
  [[nodiscard]] bool borrows(std::uint32_t tenant, std::uint32_t flavor, const Resources& need,
                             bool anywhere) const;
  // Returns true if the tenant with `need` more would stay within its own quota of some resource
  // that has a quota.
  [[nodiscard]] bool owns(std::uint32_t tenant, const Resources& need) const;
  // Returns true if the tenant could not take `need` even if nothing ran.
  [[nodiscard]] bool never(std::uint32_t tenant, std::uint32_t flavor,
                           const Resources& need) const {
    return !QuotaOf(tenancy_).objection(tenant, flavor, need).empty();
  }

 private:
  using Amount = std::int64_t;
  [[nodiscard]] Amount subtree(std::uint32_t n, std::uint32_t f, std::size_t r) const;
  [[nodiscard]] Amount local(std::uint32_t n, std::uint32_t f, std::size_t r) const;
  [[nodiscard]] Amount usage(std::uint32_t n, std::uint32_t f, std::size_t r) const;
  [[nodiscard]] Amount available(std::uint32_t n, std::uint32_t f, std::size_t r) const;
  [[nodiscard]] const Resources& used(std::uint32_t n, std::uint32_t f) const {
    return used_[n * tenancy_->flavors.size() + f];
  }

  sched::TenancyPtr tenancy_;
  std::vector<Resources> used_;  // by node and flavor; only tenants have entries
};

}  // namespace gantry::sim
