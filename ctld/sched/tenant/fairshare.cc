#include "ctld/sched/tenant/fairshare.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gantry::sched {
double charge_rate(const Tenancy& tenancy, const QuotaNeed& need) {
  const auto flavor = need.flavor < tenancy.flavors.size() ? need.flavor : 0;
  if (tenancy.flavors.empty()) return 0;
  double rate = 0;
  for (std::size_t r = 0; r < kResourceCount; ++r)
    rate += tenancy.flavors[flavor].charge[r] * static_cast<double>(need.amount.raw()[r]);
  return rate;
}

ShareTree::Node& ShareTree::reach(ShareId id) {
  if (nodes_.size() <= id.value()) nodes_.resize(id.value() + 1);
  return nodes_[id.value()];
}

void ShareTree::change(const ShareChanged& change) {
  if (change.parent) reach(*change.parent);
  Node& node = reach(change.share);
  const auto parent_of = [this](const Node& n) { return n.parent ? &reach(*n.parent) : nullptr; };
  if (Node* old = parent_of(node); node.known && old != nullptr) {
    old->shares_below -= node.shares;
    if (node.parent != change.parent) std::erase(old->children, change.share);
  }
  const bool moved = !node.known || node.parent != change.parent;
  node.known = true;
  node.parent = change.parent;
  node.shares = change.shares;
  node.usage = change.usage;
  if (Node* parent = parent_of(node); parent != nullptr) {
    parent->shares_below += node.shares;
    if (moved)
      parent->children.insert(
          std::lower_bound(parent->children.begin(), parent->children.end(), change.share),
          change.share);
  }
  ++nodes_[root_of(change.share).value()].version;
}

ShareId ShareTree::root_of(ShareId id) const {
  while (at(id).parent) id = *at(id).parent;
  return id;
}

double ShareTree::usage(ShareId id, Instant now) const {
  const Node& n = at(id);
  return amount_at(n.usage, now, half_life_) +
         (n.usage.rate + n.planned) * static_cast<double>(kEntryCharge.seconds());
}

double ShareTree::among_siblings(ShareId id, Instant now) const {
  const Node& n = at(id);
  if (n.shares == 0) return 0;
  const double used = usage(id, now);
  return used > 0 ? n.shares / used : std::numeric_limits<double>::infinity();
}

double ShareTree::level(ShareId id, Instant now) const {
  const Node& n = at(id);
  const double own = among_siblings(id, now);
  if (!n.parent || own == 0 || std::isinf(own)) return own;
  const Node& parent = at(*n.parent);
  return own * usage(*n.parent, now) / static_cast<double>(parent.shares_below);
}

void ShareTree::charge(ShareId leaf, double rate) {
  charged_.push_back(leaf);
  for (std::optional<ShareId> id = leaf; id; id = at(*id).parent)
    nodes_[id->value()].planned += rate;
}

void ShareTree::forget_plan() {
  for (const ShareId leaf : charged_)
    for (std::optional<ShareId> id = leaf; id; id = at(*id).parent) nodes_[id->value()].planned = 0;
  charged_.clear();
}

std::vector<ShareTree::Ranked> ShareTree::sorted_below(const std::vector<ShareId>& parents,
                                                       Instant now) const {
  std::vector<Ranked> below;
  for (const ShareId parent : parents)
    for (const ShareId child : at(parent).children) below.push_back({level(child, now), child});
  std::sort(below.begin(), below.end(), [](const Ranked& a, const Ranked& b) {
    return a.level != b.level ? a.level > b.level : a.id < b.id;
  });
  return below;
}

// Appends the leaves below `parents`, best first; `rank` counts from 0 for the best so far.
void ShareTree::rank_below(const std::vector<ShareId>& parents, Instant now,
                           std::vector<FairRank>& out) const {
  const std::vector<Ranked> below = sorted_below(parents, now);
  for (std::size_t i = 0, end = 0; i < below.size(); i = end) {
    const auto rank = static_cast<std::uint32_t>(out.size());
    std::vector<ShareId> accounts;
    for (end = i; end < below.size() && below[end].level == below[i].level; ++end) {
      if (at(below[end].id).children.empty())
        out.push_back({below[end].id, rank, below[end].level});
      else
        accounts.push_back(below[end].id);
    }
    if (accounts.empty()) continue;
    const std::size_t first = out.size();
    rank_below(accounts, now, out);
    for (std::size_t k = first; k < out.size() && out[k].rank == first; ++k)
      out[k].rank = rank;  // equal to the users beside the accounts
  }
}

std::vector<FairRank> ShareTree::ranking(ShareId root, Instant now) const {
  std::vector<FairRank> out;
  if (at(root).children.empty()) return {{root, 1, level(root, now)}};
  rank_below({root}, now, out);
  const auto n = static_cast<std::uint32_t>(out.size());
  for (FairRank& r : out) r.rank = n - r.rank;
  return out;
}

bool ShareTree::is_best(ShareId leaf, const std::vector<ShareId>& accounts, Instant now) const {
  std::vector<FairRank> out;
  rank_below(accounts, now, out);
  for (const FairRank& r : out) {
    if (r.rank != out[0].rank) return false;
    if (r.leaf == leaf) return true;
  }
  return false;
}

}  // namespace gantry::sched
