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

OrdinalSet OrdinalSet::joined(const std::vector<Span>& sorted) {
  OrdinalSet out;
  for (const Span span : sorted) {
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

OrdinalSet OrdinalSet::from_spans(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](Span a, Span b) { return a.first < b.first; });
  return joined(spans);
}

bool OrdinalSet::contains(std::uint32_t ordinal) const {
  const auto it = std::upper_bound(spans_.begin(), spans_.end(), ordinal,
                                   [](std::uint32_t o, Span s) { return o < s.first; });
  return it != spans_.begin() && ordinal <= std::prev(it)->last;
}

bool OrdinalSet::meets(Span span) const {
  const auto it = std::lower_bound(spans_.begin(), spans_.end(), span.first,
                                   [](Span s, std::uint32_t o) { return s.last < o; });
  return it != spans_.end() && it->first <= span.last;
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

void OrdinalSet::insert(const OrdinalSet& other) {
  if (other.spans_.size() == 1) return insert(other.spans_.front());
  std::vector<Span> all = spans_;
  all.insert(all.end(), other.spans_.begin(), other.spans_.end());
  std::inplace_merge(all.begin(), all.begin() + std::ssize(spans_), all.end(),
                     [](Span a, Span b) { return a.first < b.first; });
  *this = joined(all);
}

void OrdinalSet::erase(Span span) {
  const auto from = std::lower_bound(spans_.begin(), spans_.end(), span.first,
                                     [](Span s, std::uint32_t o) { return s.last < o; });
  const auto to = std::upper_bound(from, spans_.end(), span.last,
                                   [](std::uint32_t o, Span s) { return o < s.first; });
  if (from == to) return;
  const Span low = *from, high = *std::prev(to);
  for (auto it = from; it != to; ++it) count_ -= it->last - it->first + 1;
  auto at = spans_.erase(from, to);
  if (span.last < high.last) {
    at = spans_.insert(at, Span{span.last + 1, high.last});
    count_ += at->last - at->first + 1;
  }
  if (low.first < span.first) {
    at = spans_.insert(at, Span{low.first, span.first - 1});
    count_ += at->last - at->first + 1;
  }
}

void OrdinalSet::erase(const OrdinalSet& other) {
  if (other.spans_.size() == 1) return erase(other.spans_.front());
  OrdinalSet left;
  auto gone = other.spans_.begin();
  for (Span span : spans_) {
    const auto keep = [&left](std::uint32_t first, std::uint32_t last) {
      left.spans_.push_back({first, last});
      left.count_ += last - first + 1;
    };
    while (gone != other.spans_.end() && gone->last < span.first) ++gone;
    bool over = false;  // true if nothing of the span is left
    for (; gone != other.spans_.end() && gone->first <= span.last; ++gone) {
      if (span.first < gone->first) keep(span.first, gone->first - 1);
      over = gone->last >= span.last;
      if (over) break;  // it may overlap the next span
      span.first = gone->last + 1;
    }
    if (!over) keep(span.first, span.last);
  }
  *this = std::move(left);
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
    const auto first = std::upper_bound(starts_.begin(), starts_.end(), span.first);
    auto i = static_cast<std::size_t>(first - starts_.begin());
    for (i -= i > 0 ? 1 : 0; i < ranges_.size() && starts_[i] <= span.last; ++i) {
      const IndexRange& r = ranges_[i];
      const std::uint32_t size = (r.last - r.first) / r.step + 1;
      if (starts_[i] + size <= span.first) continue;
      const std::uint32_t low = std::max(span.first, starts_[i]) - starts_[i];
      const std::uint32_t high = std::min(span.last, starts_[i] + size - 1) - starts_[i];
      out.push_back({r.first + low * r.step, r.first + high * r.step, low == high ? 1 : r.step});
    }
  }
  return out;
}

}  // namespace gantry::core
