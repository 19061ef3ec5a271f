// Quota by its definition (Kueue's, as in ctld/sched/tenant/quota.h) and nothing kept: what each
// tenant uses is added up from its placements whenever somebody asks. Slow, and so the measure of
// the tree that the controller and the scheduler keep.
#pragma once

#include <vector>

#include "ctld/sched/tenancy.h"

namespace gantry::sim {

class QuotaOf {
 public:
  explicit QuotaOf(sched::TenancyPtr tenancy)
      : tenancy_(std::move(tenancy)), used_(tenancy_->nodes.size() * tenancy_->flavors.size()) {}

  // A placement of this tenant on nodes of this flavor; 0: of none.
  void add(std::uint32_t tenant, std::uint32_t flavor, const Resources& amount, int sign = 1);

  // What lacks, if the tenant may not take so much more: beyond nominal and borrowing limit
  // somewhere on the way up, or what somebody keeps by a lending limit. "" = it may.
  [[nodiscard]] std::string objection(std::uint32_t tenant, std::uint32_t flavor,
                                      const Resources& need) const;
  // Would it use more than its own (on any level, if `anywhere`; else its very own)?
  [[nodiscard]] bool borrows(std::uint32_t tenant, std::uint32_t flavor, const Resources& need,
                             bool anywhere) const;
  // Would it use no more than its very own, with so much more, of some resource that has a quota?
  [[nodiscard]] bool owns(std::uint32_t tenant, const Resources& need) const;
  // Could it ever, if nothing ran?
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
  std::vector<Resources> used_;  // by node and flavor; of tenants only
};

}  // namespace gantry::sim
