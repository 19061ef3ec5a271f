// See quota_of.h.
#include "tests/sim/check/quota_of.h"

#include <algorithm>

#include <fmt/core.h>

#include "ctld/sched/tenancy.h"

namespace gantry::sim {
namespace {

using sched::kNoIndex;
using sched::kUnlimited;

std::int64_t plus(std::int64_t a, std::int64_t b) {
  if (a == kUnlimited || b == kUnlimited) return kUnlimited;
  return a + b;
}

}  // namespace

void QuotaOf::add(std::uint32_t tenant, std::uint32_t flavor, const Resources& amount, int sign) {
  for (const ResourceRow& row : kResourceTable) {
    used_[tenant * tenancy_->flavors.size()].row(row.id) += sign * amount[row.id];
    if (flavor != 0)
      used_[tenant * tenancy_->flavors.size() + flavor].row(row.id) += sign * amount[row.id];
  }
}

std::int64_t QuotaOf::subtree(std::uint32_t n, std::uint32_t f, std::size_t r) const {
  Amount sum = tenancy_->nodes[n].limits[f].nominal[r];
  for (std::uint32_t c = n + 1; c < tenancy_->nodes.size(); ++c) {
    if (tenancy_->nodes[c].parent != n) continue;
    const Amount all = subtree(c, f, r);
    if (all != kUnlimited) sum = plus(sum, all - local(c, f, r));
  }
  return sum;
}

std::int64_t QuotaOf::local(std::uint32_t n, std::uint32_t f, std::size_t r) const {
  const Amount lend = tenancy_->nodes[n].limits[f].lend[r];
  const Amount all = subtree(n, f, r);
  if (all == kUnlimited) return kUnlimited;
  return lend == kUnlimited ? 0 : std::max<Amount>(0, all - lend);
}

std::int64_t QuotaOf::usage(std::uint32_t n, std::uint32_t f, std::size_t r) const {
  Amount sum = used(n, f).raw()[r];
  for (std::uint32_t c = n + 1; c < tenancy_->nodes.size(); ++c) {
    if (tenancy_->nodes[c].parent != n) continue;
    const Amount kept = local(c, f, r);
    if (kept != kUnlimited) sum += std::max<Amount>(0, usage(c, f, r) - kept);
  }
  return sum;
}

std::int64_t QuotaOf::available(std::uint32_t n, std::uint32_t f, std::size_t r) const {
  const Amount all = subtree(n, f, r), kept = local(n, f, r), now = usage(n, f, r);
  if (all == kUnlimited) return kUnlimited;
  const std::uint32_t parent = tenancy_->nodes[n].parent;
  if (parent == kNoIndex) return all - now;
  const Amount own = std::max<Amount>(0, kept - now);
  const Amount over = std::max<Amount>(0, now - kept);
  const Amount borrow = tenancy_->nodes[n].limits[f].borrow[r];
  const Amount most = borrow == kUnlimited ? kUnlimited : all - kept - over + borrow;
  // A tenant may use what it does not lend, even if others use too much.
  return plus(own, std::max<Amount>(0, std::min(available(parent, f, r), most)));
}

std::string QuotaOf::objection(std::uint32_t tenant, std::uint32_t flavor,
                               const Resources& need) const {
  for (const ResourceRow& row : kResourceTable)
    for (std::uint32_t f : {std::uint32_t{0}, flavor}) {
      const auto r = static_cast<std::size_t>(row.id);
      const Amount left = available(tenant, f, r);
      if (need[row.id] > 0 && need[row.id] > left)
        return fmt::format("it takes {} of {} {} and {} are left", need[row.id], row.name,
                           tenancy_->flavors[f].name, left);
    }
  return "";
}

bool QuotaOf::borrows(std::uint32_t tenant, std::uint32_t flavor, const Resources& need,
                      bool anywhere) const {
  for (const ResourceRow& row : kResourceTable)
    for (std::uint32_t f : {std::uint32_t{0}, flavor}) {
      const auto r = static_cast<std::size_t>(row.id);
      Amount more = need[row.id];
      for (std::uint32_t n = tenant; n != kNoIndex; n = tenancy_->nodes[n].parent) {
        const Amount all = subtree(n, f, r), kept = local(n, f, r), now = usage(n, f, r);
        if (all == kUnlimited) break;
        if (need[row.id] >= 0 && now + more > all) return true;
        if (!anywhere) break;
        more = std::max<Amount>(0, now + more - kept) - std::max<Amount>(0, now - kept);
        if (more == 0 && need[row.id] > 0) break;
      }
    }
  return false;
}

bool QuotaOf::owns(std::uint32_t tenant, const Resources& need) const {
  for (const ResourceRow& row : kResourceTable)
    for (std::uint32_t f = 0; f < tenancy_->flavors.size(); ++f) {
      const auto r = static_cast<std::size_t>(row.id);
      const Amount all = subtree(tenant, f, r);
      if (all != kUnlimited && usage(tenant, f, r) + std::max<Amount>(1, need[row.id]) <= all)
        return true;
    }
  return false;
}

}  // namespace gantry::sim
