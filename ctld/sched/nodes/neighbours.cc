#include "ctld/sched/nodes/neighbours.h"

#include <algorithm>

namespace gantry::sched {

Neighbours::Neighbours(const Running& running, const Grid& grid, const JobClass& cls,
                       std::uint32_t user, std::optional<Instant> at)
    : running_(running),
      grid_(grid),
      shape_(cls.key.shape),
      owner_{cls.key.partition, user == kNoShare ? std::nullopt : std::optional(ShareId{user})},
      at_(at) {
  if (shape_.anti_affinity.empty()) return;
  level_ = grid_.levels().find(shape_.anti_affinity_level).value_or(grid_.levels().count());
  const auto count = [&](std::uint32_t n) {
    if (const std::uint32_t domain = grid_.levels().domain(level_, n); domain != kNoIndex)
      ++in_domain_[domain];
  };
  for (const std::uint32_t slot : running_.with_key(shape_.anti_affinity))
    if (!gone(running_[slot]))
      for (const Use& use : running_[slot].uses) count(use.node);
  for (const Guest& guest : running_.guests())
    if (guest.anti_affinity == shape_.anti_affinity) count(guest.node);
}

bool Neighbours::may_share(const Owner& other, NodeSharing theirs) const {
  const NodeSharing strictest = std::max(shape_.sharing, theirs, [](NodeSharing a, NodeSharing b) {
    const auto rank = [](NodeSharing s) {
      return s == NodeSharing::any ? 0 : s == NodeSharing::same_tenant ? 1 : 2;
    };
    return rank(a) < rank(b);
  });
  if (strictest == NodeSharing::any) return true;
  if (other.partition != owner_.partition) return false;
  return strictest == NodeSharing::same_tenant || (other.user && other.user == owner_.user);
}

bool Neighbours::allows(std::uint32_t n) const {
  if (!shape_.anti_affinity.empty())
    if (const auto it = in_domain_.find(grid_.levels().domain(level_, n));
        it != in_domain_.end() && it->second >= shape_.anti_affinity_most)
      return false;
  if (shape_.sharing == NodeSharing::any && !running_.any_locks()) return true;
  for (const std::uint32_t slot : running_.on_node(n))
    if (const Placement& p = running_[slot];
        !gone(p) && !may_share({p.partition, p.share}, p.sharing))
      return false;
  return std::all_of(running_.guests().begin(), running_.guests().end(),
                     [&](const Guest& g) { return g.node != n || may_share(g.owner, g.sharing); });
}

void Neighbours::trim(std::vector<Candidate>& candidates) const {
  if (shape_.anti_affinity.empty()) return;
  auto in_domain = in_domain_;
  std::erase_if(candidates, [&](const Candidate& c) {
    const std::uint32_t domain = grid_.levels().domain(level_, c.node);
    return domain != kNoIndex && ++in_domain[domain] > shape_.anti_affinity_most;
  });
}

}  // namespace gantry::sched
