// Compares OrdinalSet and ArrayIndexes with a plain std::set.
#include <doctest/doctest.h>

#include <random>
#include <set>

#include "ctld/core/state/ordinal_set.h"

using namespace gantry;
using namespace gantry::core;

namespace {
std::set<std::uint32_t> elements(const OrdinalSet& set) {
  std::set<std::uint32_t> out;
  for (const Span s : set.spans())
    for (std::uint32_t i = s.first; i <= s.last; ++i) out.insert(i);
  return out;
}
}  // namespace

TEST_CASE("an OrdinalSet behaves as a std::set of numbers does") {
  std::mt19937 random(7);
  OrdinalSet set;
  std::set<std::uint32_t> model;
  for (int i = 0; i < 4000; ++i) {
    const std::uint32_t first = random() % 60;
    const std::uint32_t last = first + random() % 6;
    const bool insert = random() % 2 == 0;
    if (insert)
      set.insert(Span{first, last});
    else
      set.erase(Span{first, last});
    for (std::uint32_t k = first; k <= last; ++k) {
      if (insert)
        model.insert(k);
      else
        model.erase(k);
    }
    REQUIRE(elements(set) == model);
    REQUIRE(set.count() == model.size());
    for (std::size_t k = 1; k < set.spans().size(); ++k)
      REQUIRE(set.spans()[k].first > set.spans()[k - 1].last + 1);
    REQUIRE(set.contains(first) == model.contains(first));
  }
}

TEST_CASE("adding and removing a whole OrdinalSet has the effect of doing so element by element") {
  std::mt19937 random(11);
  const auto some = [&] {
    OrdinalSet set;
    for (std::uint32_t n = random() % 12; n > 0; --n) {
      const std::uint32_t first = random() % 50;
      const std::uint32_t last = first + random() % 5;
      set.insert(Span{first, last});
    }
    return set;
  };
  for (int i = 0; i < 4000; ++i) {
    const OrdinalSet a = some(), b = some();
    std::set<std::uint32_t> both = elements(a), left = elements(a);
    for (const std::uint32_t e : elements(b)) {
      both.insert(e);
      left.erase(e);
    }
    OrdinalSet joined = a, less = a;
    joined.insert(b);
    less.erase(b);
    REQUIRE(elements(joined) == both);
    REQUIRE(joined.count() == both.size());
    REQUIRE(elements(less) == left);
    REQUIRE(less.count() == left.size());
    for (const OrdinalSet* set : {&joined, &less})
      for (std::size_t k = 1; k < set->spans().size(); ++k)
        REQUIRE(set->spans()[k].first > set->spans()[k - 1].last + 1);
  }
}

TEST_CASE("sets are made from unsorted spans and intersected") {
  const OrdinalSet a = OrdinalSet::from_spans({{10, 20}, {0, 4}, {3, 6}});
  CHECK(a.spans() == std::vector<Span>{{0, 6}, {10, 20}});
  CHECK(a.count() == 18);
  CHECK(a.intersect(OrdinalSet::from_spans({{5, 12}})).spans() ==
        std::vector<Span>{{5, 6}, {10, 12}});
}

TEST_CASE("array indexes with steps map to ordinals and back") {
  const ArrayIndexes indexes({{1, 9, 2}, {20, 22, 1}, {100, 100, 1}});
  CHECK(indexes.count() == 9);
  for (std::uint32_t o = 0; o < indexes.count(); ++o)
    CHECK(indexes.ordinal_of(indexes.index_of(o)) == o);
  CHECK_FALSE(indexes.ordinal_of(2));
  CHECK_FALSE(indexes.ordinal_of(23));
  CHECK(indexes.select({{4, 21, 1}}).spans() == std::vector<Span>{{2, 6}});
  CHECK(indexes.select({{1, 100, 9}}).spans() == std::vector<Span>{{0, 0}, {8, 8}});
  const auto ranges = indexes.ranges_of(indexes.select({{4, 21, 1}}));
  CHECK(ranges == std::vector<IndexRange>{{5, 9, 2}, {20, 21, 1}});
  const auto pieces = indexes.ranges_of(OrdinalSet::from_spans({{0, 1}, {4, 5}, {8, 8}}));
  CHECK(pieces == std::vector<IndexRange>{{1, 3, 2}, {9, 9, 1}, {20, 20, 1}, {100, 100, 1}});
  CHECK(ArrayIndexes().ranges_of({}).empty());
}
