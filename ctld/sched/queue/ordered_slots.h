// An ordered list of slot numbers (u32) that knows positions: insert, erase and "how many are
// before" take O(log n) comparisons, appending and taking the first O(1) amortised; an element
// takes about 5 bytes. The records themselves lie elsewhere. Each call is given the order as
// less(slot, slot), a strict total order that must not change while a slot is in the list.
//
// Three fixed levels: groups of leaves of slots. A leaf holds kLeaf slots, a group kGroup leaves;
// groups are a plain vector, so a million elements are some 60 groups.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/assert.h"

namespace gantry::sched {

class OrderedSlots {
 public:
  static constexpr std::size_t kLeaf = 128;
  static constexpr std::size_t kGroup = 128;

  // A place in the list; valid until the next insert or erase.
  struct Cursor {
    std::uint32_t group = 0, leaf = 0, at = 0;
    friend bool operator==(Cursor, Cursor) = default;
  };

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::uint32_t front() const { return groups_[0].leaves[0][0]; }
  [[nodiscard]] std::uint32_t back() const { return groups_.back().leaves.back().back(); }
  [[nodiscard]] Cursor begin() const { return {}; }
  [[nodiscard]] bool at_end(Cursor c) const { return c.group >= groups_.size(); }
  [[nodiscard]] std::uint32_t operator[](Cursor c) const {
    return groups_[c.group].leaves[c.leaf][c.at];
  }
  // The slot `n` places further, or fewer if the leaf ends; for prefetching its record.
  [[nodiscard]] std::uint32_t soon(Cursor c, std::size_t n) const {
    const Leaf& leaf = groups_[c.group].leaves[c.leaf];
    return leaf[std::min(c.at + n, leaf.size() - 1)];
  }
  [[nodiscard]] Cursor next(Cursor c) const { return settle({c.group, c.leaf, c.at + 1}); }

  template <class Less>
  void insert(std::uint32_t slot, Less&& less) {
    ++size_;
    if (groups_.empty()) {
      groups_.push_back({{{slot}}, 1});
      return;
    }
    Cursor c = less(back(), slot)  // the usual case: the newest job comes last
                   ? end_of_last_leaf()
                   : find([&](std::uint32_t other) { return less(other, slot); });
    Group& group = groups_[c.group];
    Leaf& leaf = group.leaves[c.leaf];
    ++group.count;
    leaf.insert(leaf.begin() + c.at, slot);
    if (leaf.size() > kLeaf) split(c);
  }

  template <class Less>
  void erase(std::uint32_t slot, Less&& less) {
    GANTRY_ASSERT(size_ > 0, "erased from an empty order");
    const Cursor c = front() == slot
                         ? Cursor{}
                         : settle(find([&](std::uint32_t other) { return less(other, slot); }));
    GANTRY_ASSERT(c.group < groups_.size(), "erased what is not in the order");
    Group& group = groups_[c.group];
    Leaf& leaf = group.leaves[c.leaf];
    GANTRY_ASSERT(leaf[c.at] == slot, "erased what is not in the order");
    --size_;
    --group.count;
    leaf.erase(leaf.begin() + c.at);
    if (c.leaf + 1 < group.leaves.size() &&
        leaf.size() + group.leaves[c.leaf + 1].size() <= kLeaf / 2) {
      Leaf& after = group.leaves[c.leaf + 1];
      after.insert(after.begin(), leaf.begin(), leaf.end());
      leaf.clear();
    }
    if (leaf.empty()) group.leaves.erase(group.leaves.begin() + c.leaf);
    if (group.leaves.empty()) groups_.erase(groups_.begin() + c.group);
  }

  // The first element for which before(slot) is false; before() must be true for a prefix.
  template <class Before>
  [[nodiscard]] Cursor lower_bound(Before&& before) const {
    return groups_.empty() ? Cursor{} : settle(find(before));
  }

  // The number of elements in front of the place.
  [[nodiscard]] std::size_t position(Cursor c) const {
    std::size_t n = c.at;
    for (std::size_t g = 0; g < c.group; ++g) n += groups_[g].count;
    if (c.group < groups_.size())
      for (std::size_t l = 0; l < c.leaf; ++l) n += groups_[c.group].leaves[l].size();
    return n;
  }

 private:
  using Leaf = std::vector<std::uint32_t>;
  struct Group {
    std::vector<Leaf> leaves;  // none empty
    std::size_t count = 0;
  };

  // The first element that is not `before`, or the end of the last leaf. A place between two leaves
  // is returned as the end of the earlier one.
  template <class Before>
  Cursor find(Before&& before) const {
    const auto last_starting_before = [&](std::size_t n, auto&& first_of) {
      std::size_t low = 0, high = n;  // the last leaf whose first element is before; else 0
      while (high - low > 1) {
        const std::size_t mid = (low + high) / 2;
        (before(first_of(mid)) ? low : high) = mid;
      }
      return low;
    };
    const std::size_t g = last_starting_before(
        groups_.size(), [&](std::size_t i) { return groups_[i].leaves[0][0]; });
    const auto& leaves = groups_[g].leaves;
    const std::size_t l =
        last_starting_before(leaves.size(), [&](std::size_t i) { return leaves[i][0]; });
    const Leaf& leaf = leaves[l];
    const auto at = std::partition_point(leaf.begin(), leaf.end(), before) - leaf.begin();
    Cursor c{static_cast<std::uint32_t>(g), static_cast<std::uint32_t>(l),
             static_cast<std::uint32_t>(at)};
    return c;
  }

  [[nodiscard]] Cursor end_of_last_leaf() const {
    const auto& leaves = groups_.back().leaves;
    return {static_cast<std::uint32_t>(groups_.size() - 1),
            static_cast<std::uint32_t>(leaves.size() - 1),
            static_cast<std::uint32_t>(leaves.back().size())};
  }

  [[nodiscard]] Cursor settle(Cursor c) const {
    if (c.at < groups_[c.group].leaves[c.leaf].size()) return c;
    if (c.leaf + 1 < groups_[c.group].leaves.size()) return {c.group, c.leaf + 1, 0};
    return {c.group + 1, 0, 0};
  }

  // Lists mostly grow at their end, so a full leaf there stays full and a new one begins.
  template <class T>
  static std::size_t keep_of(const std::vector<T>& full, bool at_end) {
    return at_end ? full.size() - 1 : full.size() / 2;
  }

  void split(Cursor c) {
    Group& group = groups_[c.group];
    Leaf& leaf = group.leaves[c.leaf];
    const std::size_t keep = keep_of(leaf, c.at + 1 == leaf.size());
    Leaf tail(leaf.begin() + static_cast<std::ptrdiff_t>(keep), leaf.end());
    leaf.resize(keep);
    leaf.shrink_to_fit();
    group.leaves.insert(group.leaves.begin() + c.leaf + 1, std::move(tail));
    if (group.leaves.size() <= kGroup) return;
    const std::size_t stay = keep_of(group.leaves, c.leaf + 2 == group.leaves.size());
    Group rest;
    for (std::size_t l = stay; l < group.leaves.size(); ++l) {
      rest.count += group.leaves[l].size();
      rest.leaves.push_back(std::move(group.leaves[l]));
    }
    group.leaves.resize(stay);
    group.count -= rest.count;
    groups_.insert(groups_.begin() + c.group + 1, std::move(rest));
  }

  std::vector<Group> groups_;  // none empty
  std::size_t size_ = 0;
};

}  // namespace gantry::sched
