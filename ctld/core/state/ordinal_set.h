// OrdinalSet: a set of small numbers, kept as sorted, disjoint, non-touching spans, so that a
// million waiting array tasks cost a few bytes. ArrayIndexes maps the indexes that a user gave
// ("0-99:3") to ordinals 0, 1, 2... and back, so that indexes with a step still form few spans.
//
// Costs grow with the number of spans, not of elements, and never with a product of two such
// numbers, because users decide into how many spans an array falls. Nothing here checks an index or
// ordinal against the total; that is up to callers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"

namespace gantry::core {

struct Span {  // inclusive
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  friend bool operator==(const Span&, const Span&) = default;
  GANTRY_FIELDS(FIELD(1, first), FIELD(2, last))
};

class OrdinalSet {
 public:
  OrdinalSet() = default;
  static OrdinalSet first_n(std::uint32_t n);
  static OrdinalSet from_spans(std::vector<Span> spans);  // in any order; spans may overlap

  [[nodiscard]] bool empty() const { return spans_.empty(); }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] bool contains(std::uint32_t ordinal) const;
  [[nodiscard]] bool meets(Span span) const;  // is some number of the span in the set?
  [[nodiscard]] std::uint32_t front() const;  // the smallest number; asserts that there is one
  [[nodiscard]] const std::vector<Span>& spans() const { return spans_; }

  void insert(std::uint32_t ordinal) { insert(Span{ordinal, ordinal}); }
  void insert(Span span);
  void insert(const OrdinalSet& other);
  void erase(std::uint32_t ordinal) { erase(Span{ordinal, ordinal}); }
  void erase(Span span);
  void erase(const OrdinalSet& other);
  [[nodiscard]] OrdinalSet intersect(const OrdinalSet& other) const;

 private:
  static OrdinalSet joined(const std::vector<Span>& sorted);  // sorted by `first`; may overlap
  std::vector<Span> spans_;
  std::uint32_t count_ = 0;
};

// The indexes of one array: ranges ascending and disjoint, as checked at submit.
class ArrayIndexes {
 public:
  ArrayIndexes() = default;
  explicit ArrayIndexes(const std::vector<IndexRange>& ranges);
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] std::uint32_t index_of(std::uint32_t ordinal) const;
  [[nodiscard]] std::optional<std::uint32_t> ordinal_of(std::uint32_t index) const;
  // The ordinals of those indexes that lie in `ranges`. O(ranges + spans made).
  [[nodiscard]] OrdinalSet select(const std::vector<IndexRange>& ranges) const;
  // The indexes of the ordinals in `set`. O(spans + ranges made).
  [[nodiscard]] std::vector<IndexRange> ranges_of(const OrdinalSet& set) const;
  [[nodiscard]] const std::vector<IndexRange>& ranges() const { return ranges_; }

 private:
  std::vector<IndexRange> ranges_;
  std::vector<std::uint32_t> starts_;  // ordinal of each range's first index
  std::uint32_t count_ = 0;
};

}  // namespace gantry::core
