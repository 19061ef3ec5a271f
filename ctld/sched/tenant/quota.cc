#include "ctld/sched/tenant/quota.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/assert.h"

namespace gantry::sched {
namespace {

// Adds amounts: kUnlimited stays kUnlimited, and an overflow saturates.
std::int64_t plus(std::int64_t a, std::int64_t b) {
  if (a == kUnlimited || b == kUnlimited) return kUnlimited;
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a > 0 ? kUnlimited : -kUnlimited;
  return sum;
}
// The part of a use that exceeds what a node keeps to itself.
std::int64_t beyond(std::int64_t usage, std::int64_t local) {
  return local == kUnlimited ? 0 : std::max<std::int64_t>(0, usage - local);
}

}  // namespace

QuotaTree::QuotaTree(TenancyPtr tenancy) : tenancy_(std::move(tenancy)) {
  const auto& nodes = tenancy_->nodes;
  const std::size_t flavors = tenancy_->flavors.size();
  cells_.resize(nodes.size() * flavors * kResourceCount);
  depth_.resize(nodes.size(), 0);
  stamps_.resize(nodes.size(), 0);
  for (std::size_t n = 0; n < nodes.size(); ++n)
    if (nodes[n].parent != kNoIndex) depth_[n] = depth_[nodes[n].parent] + 1;
  // Children have greater indexes, so the sum over the tree starts at the end.
  for (std::size_t n = nodes.size(); n-- > 0;) {
    const QuotaNode& node = nodes[n];
    GANTRY_ASSERT(node.limits.size() == flavors, "a quota node without limits for each flavor");
    for (std::uint32_t f = 0; f < flavors; ++f)
      for (std::size_t r = 0; r < kResourceCount; ++r) {
        Cell& c = cells_[index(static_cast<std::uint32_t>(n), f, r)];
        const FlavorLimits& limits = node.limits[f];
        c.subtree = plus(c.subtree, limits.nominal[r]);
        c.borrow = limits.borrow[r];
        if (c.subtree == kUnlimited)
          c.local = kUnlimited;
        else if (limits.lend[r] != kUnlimited)
          c.local = std::max<std::int64_t>(0, c.subtree - limits.lend[r]);
        if (node.parent == kNoIndex) continue;
        Cell& parent = cells_[index(node.parent, f, r)];
        if (c.local != kUnlimited) parent.subtree = plus(parent.subtree, c.subtree - c.local);
      }
  }
  count_lendable();
}

void QuotaTree::count_lendable() {
  lendable_.resize(tenancy_->nodes.size() * kResourceCount, 0);
  for (std::uint32_t n = 0; n < tenancy_->nodes.size(); ++n) {
    const std::uint32_t parent = tenancy_->nodes[n].parent;
    if (parent == kNoIndex) continue;
    for (std::size_t r = 0; r < kResourceCount; ++r)
      for (std::uint32_t f = 0; f < tenancy_->flavors.size(); ++f)
        if (cell(n, f, r).local != kUnlimited)
          lendable_[n * kResourceCount + r] =
              plus(lendable_[n * kResourceCount + r], available(parent, f, r, true));
  }
}

void QuotaTree::change(std::uint32_t node, std::uint32_t flavor, std::size_t r, std::int64_t by) {
  ++changes_;
  while (by != 0 && node != kNoIndex) {
    stamps_[node] = changes_;
    Cell& c = cells_[index(node, flavor, r)];
    const std::int64_t before = beyond(c.usage, c.local);
    c.usage += by;
    GANTRY_ASSERT(c.usage >= 0, "more was given back to a quota than taken");
    by = beyond(c.usage, c.local) - before;
    node = tenancy_->nodes[node].parent;
  }
}

void QuotaTree::add(std::uint32_t node, const QuotaNeed& need) {
  for (std::size_t r = 0; r < kResourceCount; ++r) {
    change(node, 0, r, need.amount.raw()[r]);
    if (need.flavor != 0) change(node, need.flavor, r, need.amount.raw()[r]);
  }
}

void QuotaTree::remove(std::uint32_t node, const QuotaNeed& need) {
  for (std::size_t r = 0; r < kResourceCount; ++r) {
    change(node, 0, r, -need.amount.raw()[r]);
    if (need.flavor != 0) change(node, need.flavor, r, -need.amount.raw()[r]);
  }
}

std::int64_t QuotaTree::available(std::uint32_t n, std::uint32_t f, std::size_t r,
                                  bool potential) const {
  const Cell& c = cell(n, f, r);
  if (c.local == kUnlimited) return kUnlimited;
  const std::int64_t usage = potential ? 0 : c.usage;
  const std::uint32_t parent = tenancy_->nodes[n].parent;
  if (parent == kNoIndex) return c.subtree - usage;
  const std::int64_t ceiling = plus(c.subtree - c.local - beyond(usage, c.local), c.borrow);
  return plus(std::max<std::int64_t>(0, c.local - usage),
              std::min(available(parent, f, r, potential), ceiling));
}

std::int64_t QuotaTree::available(std::uint32_t node, std::uint32_t flavor, Resource r) const {
  return available(node, flavor, static_cast<std::size_t>(r), false);
}
std::int64_t QuotaTree::potential(std::uint32_t node, std::uint32_t flavor, Resource r) const {
  return available(node, flavor, static_cast<std::size_t>(r), true);
}
std::int64_t QuotaTree::usage(std::uint32_t node, std::uint32_t flavor, Resource r) const {
  return cell(node, flavor, static_cast<std::size_t>(r)).usage;
}
std::int64_t QuotaTree::subtree(std::uint32_t node, std::uint32_t flavor, Resource r) const {
  return cell(node, flavor, static_cast<std::size_t>(r)).subtree;
}
std::int64_t QuotaTree::local(std::uint32_t node, std::uint32_t flavor, Resource r) const {
  return cell(node, flavor, static_cast<std::size_t>(r)).local;
}

void QuotaTree::fit_cell(std::uint32_t tenant, std::uint32_t flavor, std::size_t r,
                         std::int64_t need, QuotaFit& fit) const {
  if (need == 0) return;
  std::int64_t here = need;  // the part of the need that reaches this node from below
  for (std::uint32_t n = tenant; n != kNoIndex && here > 0; n = tenancy_->nodes[n].parent) {
    const Cell& c = cell(n, flavor, r);
    if (c.local == kUnlimited) return;
    const bool root = tenancy_->nodes[n].parent == kNoIndex;
    const std::int64_t most = root ? c.subtree : plus(c.subtree, c.borrow);
    if (plus(c.usage, here) > c.subtree && !root) {
      fit.borrows = true;
      fit.levels |= 1u << (31 - std::min<std::uint32_t>(depth_[n], 31));
    }
    if (plus(c.usage, here) > most) {
      if (!fit.cell) {
        fit.cell = QuotaCell{n, flavor, static_cast<Resource>(r)};
        fit.would_use = plus(c.usage, here);
        fit.limit = most;
        fit.tenant_limit = n == tenant;
      }
      fit.fits = false;
      return;
    }
    here = beyond(c.usage + here, c.local) - beyond(c.usage, c.local);
  }
}

QuotaFit QuotaTree::fit(std::uint32_t tenant, const QuotaNeed& need) const {
  QuotaFit fit;
  fit.fits = true;
  for (std::size_t r = 0; r < kResourceCount; ++r) {
    fit_cell(tenant, 0, r, need.amount.raw()[r], fit);
    if (need.flavor != 0) fit_cell(tenant, need.flavor, r, need.amount.raw()[r], fit);
  }
  return fit;
}

std::optional<QuotaCell> QuotaTree::never_fits(std::uint32_t tenant, const QuotaNeed& need) const {
  for (std::size_t r = 0; r < kResourceCount; ++r) {
    const std::int64_t amount = need.amount.raw()[r];
    if (amount == 0) continue;
    for (const std::uint32_t f : {std::uint32_t{0}, need.flavor})
      if (amount > available(tenant, f, r, true))
        return QuotaCell{tenant, f, static_cast<Resource>(r)};
  }
  return std::nullopt;
}

std::int64_t QuotaTree::share_value(std::uint32_t n, const QuotaNeed& need) const {
  const QuotaNode& node = tenancy_->nodes[n];
  if (node.parent == kNoIndex) return 0;
  const auto flavors = static_cast<std::uint32_t>(tenancy_->flavors.size());
  std::int64_t value = 0;
  for (std::size_t r = 0; r < kResourceCount; ++r) {
    std::int64_t borrowed = 0;
    for (std::uint32_t f = 0; f < flavors; ++f) {
      const Cell& c = cell(n, f, r);
      if (c.local == kUnlimited) continue;
      const bool asked = f == 0 || f == need.flavor;
      borrowed += beyond(c.usage + (asked ? need.amount.raw()[r] : 0), c.subtree);
    }
    const std::int64_t lendable = lendable_[n * kResourceCount + r];
    if (borrowed == 0 || lendable == kUnlimited || lendable <= 0) continue;
    value = std::max(
        value, static_cast<std::int64_t>(static_cast<__int128>(borrowed) * 1'000'000 / lendable));
  }
  if (value == 0) return 0;
  if (node.weight == 0) return kUnlimited / 2 + std::min(value, kUnlimited / 2);
  return static_cast<std::int64_t>(
      std::min<__int128>(static_cast<__int128>(value) * 1000 / node.weight, kUnlimited / 2 - 1));
}

void QuotaTree::share_values(std::uint32_t tenant, const QuotaNeed& need,
                             std::span<std::int64_t> values) const {
  for (std::uint32_t n = tenant; depth_[n] > 0; n = tenancy_->nodes[n].parent)
    if (depth_[n] <= values.size()) values[depth_[n] - 1] = share_value(n, need);
}

std::uint64_t QuotaTree::stamp(std::uint32_t tenant) const {
  std::uint64_t last = stamps_[tenant];
  for (std::uint32_t n = tenant; depth_[n] > 0; n = tenancy_->nodes[n].parent)
    last = std::max(last, stamps_[n]);
  return last;
}

std::string QuotaTree::audit(const std::vector<std::pair<std::uint32_t, QuotaNeed>>& uses) const {
  QuotaTree fresh(tenancy_);
  for (const auto& [node, need] : uses) fresh.add(node, need);
  for (std::size_t i = 0; i < cells_.size(); ++i)
    if (cells_[i].usage != fresh.cells_[i].usage)
      return fmt::format("{} uses {}, its jobs {}",
                         tenancy_->nodes[i / kResourceCount / tenancy_->flavors.size()].name,
                         cells_[i].usage, fresh.cells_[i].usage);
  return "";
}

}  // namespace gantry::sched
