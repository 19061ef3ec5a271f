// Span arithmetic of OrdinalSet and ArrayIndexes; see the header.
#include "ctld/core/state/ordinal_set.h"

#include <algorithm>

#include "common/assert.h"

namespace gantry::core {

OrdinalSet OrdinalSet::first_n(std::uint32_t n) {
  OrdinalSet out;
  if (n > 0) out.insert(Span{0, n - 1});
  return out;
}

OrdinalSet OrdinalSet::from_spans(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](Span a, Span b) { return a.first < b.first; });
  OrdinalSet out;
  for (const Span span : spans) {
    if (!out.spans_.empty() && span.first <= out.spans_.back().last + 1) {
      Span& back = out.spans_.back();
      if (span.last <= back.last) continue;
      out.count_ += span.last - back.last;
      back.last = span.last;
    } else {
      out.spans_.push_back(span);
      out.count_ += span.last - span.first + 1;
    }
  }
  return out;
}

bool OrdinalSet::contains(std::uint32_t ordinal) const {
  const auto it = std::upper_bound(spans_.begin(), spans_.end(), ordinal,
                                   [](std::uint32_t o, Span s) { return o < s.first; });
  return it != spans_.begin() && ordinal <= std::prev(it)->last;
}

std::uint32_t OrdinalSet::front() const {
  GANTRY_ASSERT(!spans_.empty(), "front() of an empty set");
  return spans_.front().first;
}

void OrdinalSet::insert(Span span) {
  // The first span that touches or follows the new one.
  auto from = std::lower_bound(
      spans_.begin(), spans_.end(), span.first,
      [](Span s, std::uint32_t o) { return static_cast<std::uint64_t>(s.last) + 1 < o; });
  auto to = from;
  Span merged = span;
  std::uint32_t covered = 0;
  while (to != spans_.end() && to->first <= static_cast<std::uint64_t>(span.last) + 1) {
    merged.first = std::min(merged.first, to->first);
    merged.last = std::max(merged.last, to->last);
    covered += to->last - to->first + 1;
    ++to;
  }
  count_ += merged.last - merged.first + 1 - covered;
  if (from == to) {
    spans_.insert(from, merged);
  } else {
    *from = merged;
    spans_.erase(from + 1, to);
  }
}

void OrdinalSet::erase(Span span) {
  auto it = std::lower_bound(spans_.begin(), spans_.end(), span.first,
                             [](Span s, std::uint32_t o) { return s.last < o; });
  while (it != spans_.end() && it->first <= span.last) {
    const Span old = *it;
    const std::uint32_t cut_first = std::max(old.first, span.first);
    const std::uint32_t cut_last = std::min(old.last, span.last);
    count_ -= cut_last - cut_first + 1;
    const bool left = old.first < cut_first;
    const bool right = cut_last < old.last;
    if (left && right) {
      it->last = cut_first - 1;
      spans_.insert(it + 1, Span{cut_last + 1, old.last});
      return;
    }
    if (left) {
      it->last = cut_first - 1;
      ++it;
    } else if (right) {
      it->first = cut_last + 1;
      return;
    } else {
      it = spans_.erase(it);
    }
  }
}

void OrdinalSet::erase(const OrdinalSet& other) {
  for (const Span span : other.spans_) erase(span);
}

OrdinalSet OrdinalSet::intersect(const OrdinalSet& other) const {
  OrdinalSet out;
  auto a = spans_.begin();
  auto b = other.spans_.begin();
  while (a != spans_.end() && b != other.spans_.end()) {
    const std::uint32_t first = std::max(a->first, b->first);
    const std::uint32_t last = std::min(a->last, b->last);
    if (first <= last) out.insert(Span{first, last});
    if (a->last < b->last)
      ++a;
    else
      ++b;
  }
  return out;
}

ArrayIndexes::ArrayIndexes(const std::vector<IndexRange>& ranges) : ranges_(ranges) {
  starts_.reserve(ranges_.size());
  for (const IndexRange& r : ranges_) {
    starts_.push_back(count_);
    count_ += (r.last - r.first) / r.step + 1;
  }
}

std::uint32_t ArrayIndexes::index_of(std::uint32_t ordinal) const {
  GANTRY_ASSERT(ordinal < count_, "ordinal beyond the array");
  const auto it = std::prev(std::upper_bound(starts_.begin(), starts_.end(), ordinal));
  const IndexRange& r = ranges_[static_cast<std::size_t>(it - starts_.begin())];
  return r.first + (ordinal - *it) * r.step;
}

std::optional<std::uint32_t> ArrayIndexes::ordinal_of(std::uint32_t index) const {
  const auto it = std::lower_bound(ranges_.begin(), ranges_.end(), index,
                                   [](const IndexRange& r, std::uint32_t i) { return r.last < i; });
  if (it == ranges_.end() || index < it->first || (index - it->first) % it->step != 0)
    return std::nullopt;
  return starts_[static_cast<std::size_t>(it - ranges_.begin())] + (index - it->first) / it->step;
}

OrdinalSet ArrayIndexes::select(const std::vector<IndexRange>& wanted) const {
  std::vector<Span> spans;
  for (const IndexRange& w : wanted) {
    auto it = std::lower_bound(ranges_.begin(), ranges_.end(), w.first,
                               [](const IndexRange& r, std::uint32_t i) { return r.last < i; });
    for (; it != ranges_.end() && it->first <= w.last; ++it) {
      const IndexRange& r = *it;
      const std::uint32_t start = starts_[static_cast<std::size_t>(it - ranges_.begin())];
      const std::uint32_t low = w.first <= r.first ? 0 : (w.first - r.first + r.step - 1) / r.step;
      const std::uint32_t high = (std::min(w.last, r.last) - r.first) / r.step;
      if (low > high) continue;
      if (w.step == 1) {  // one span of ordinals
        spans.push_back({start + low, start + high});
        continue;
      }
      for (std::uint32_t o = low; o <= high; ++o)
        if ((r.first + o * r.step - w.first) % w.step == 0) spans.push_back({start + o, start + o});
    }
  }
  return OrdinalSet::from_spans(std::move(spans));
}

std::vector<IndexRange> ArrayIndexes::ranges_of(const OrdinalSet& set) const {
  std::vector<IndexRange> out;
  for (const Span span : set.spans()) {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const IndexRange& r = ranges_[i];
      const std::uint32_t size = (r.last - r.first) / r.step + 1;
      if (span.last < starts_[i] || starts_[i] + size <= span.first) continue;
      const std::uint32_t low = std::max(span.first, starts_[i]) - starts_[i];
      const std::uint32_t high = std::min(span.last, starts_[i] + size - 1) - starts_[i];
      out.push_back({r.first + low * r.step, r.first + high * r.step, low == high ? 1 : r.step});
    }
  }
  return out;
}

}  // namespace gantry::core
