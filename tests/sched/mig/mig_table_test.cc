// Tests the compiled MIG geometry: it has every legal layout and no other, reports what fits, the
// shares and the scores. Also tests the drawing. With GANTRY_LONG=1 random geometries are tried
// 10,000 times, otherwise 300.
#include <doctest/doctest.h>

#include <bit>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "common/resources/mig_draw.h"
#include "ctld/sched/gpu/mig_place.h"
#include "tests/sched/mig/mig_world.h"

namespace gantry::sched::mig_table_test {
namespace {

std::uint64_t cases(std::uint64_t few) {
  return std::getenv("GANTRY_LONG") != nullptr ? 10'000 : few;
}

std::vector<MigPlacementId> list(std::uint64_t bits) {
  std::vector<MigPlacementId> out;
  for (; bits != 0; bits &= bits - 1)
    out.push_back(static_cast<MigPlacementId>(std::countr_zero(bits)));
  return out;
}

// Decides by the driver's rules, from the instances alone.
bool legal(const MigTable& t, std::uint64_t layout) {
  std::uint32_t mask = 0, compute = 0, media = 0, most_media = 0;
  std::map<std::uint32_t, std::uint32_t> counts;
  for (const MigProfile& p : t.profiles())
    if (p.name.ends_with("+me")) most_media = std::max(most_media, p.max_instances);
  for (const MigPlacementId id : list(layout)) {
    const MigPlacement& at = t.placements()[id];
    const MigProfile& p = t.profiles()[at.profile];
    for (std::uint32_t m = at.start; m < at.start + p.memory_slices; ++m) {
      if (((mask >> m) & 1) != 0) return false;
      mask |= std::uint32_t{1} << m;
    }
    compute += p.compute_slices;
    media += p.name.ends_with("+me") ? 1 : 0;
    if (++counts[at.profile] > p.max_instances) return false;
  }
  return compute <= t.compute_slices() && media <= most_media;
}

// Finds every layout by adding one instance at a time, by the rules alone.
std::set<std::uint64_t> layouts(const MigTable& t) {
  std::set<std::uint64_t> known{0};
  std::vector<std::uint64_t> open{0};
  while (!open.empty()) {
    const std::uint64_t from = open.back();
    open.pop_back();
    for (std::size_t p = 0; p < t.placements().size(); ++p) {
      const std::uint64_t to = from | std::uint64_t{1} << p;
      if (to != from && !known.contains(to) && legal(t, to)) {
        known.insert(to);
        open.push_back(to);
      }
    }
  }
  return known;
}

std::uint32_t most_more(const MigTable& t, std::uint64_t layout, std::uint32_t profile) {
  std::uint32_t best = 0;
  for (const MigPlacementId p : list(t.placements_of(profile))) {
    const std::uint64_t to = layout | std::uint64_t{1} << p;
    if (to != layout && legal(t, to)) best = std::max(best, 1 + most_more(t, to, profile));
  }
  return best;
}

// Compares the table with the rules for every layout and for each step from it.
void compare(const MigTable& t, std::size_t every) {
  std::size_t n = 0;
  for (const std::uint64_t layout : layouts(t)) {
    const MigState s = t.state_of(layout);
    REQUIRE(s != kNoMigState);
    std::uint32_t compute = 0;
    for (const MigPlacementId p : list(layout))
      compute += t.profiles()[t.placements()[p].profile].compute_slices;
    REQUIRE(t.compute_used(s) == compute);
    for (std::size_t p = 0; p < t.placements().size(); ++p) {
      const std::uint64_t to = layout | std::uint64_t{1} << p;
      const bool can = to != layout && legal(t, to);
      REQUIRE((((t.legal(s) >> p) & 1) != 0) == can);
      const auto id = static_cast<MigPlacementId>(p);
      REQUIRE((t.with(s, id) != kNoMigState) == can);
      if (can) REQUIRE(t.with(s, id) == t.state_of(to));
      if (can) REQUIRE(t.without(t.state_of(to), id) == s);
    }
    if (n++ % every == 0)
      for (std::uint32_t p = 0; p < t.profiles().size(); ++p)
        REQUIRE(t.fits(s, p) == most_more(t, layout, p));
  }
}

struct Counts {
  std::size_t layouts = 0, multisets = 0, states = 0, pairs = 0;
  GpuThousandths most_weight;
};

Counts count(const MigTable& t) {
  Counts c;
  std::set<std::multiset<std::uint32_t>> multisets;
  std::set<MigState> states;
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const std::uint64_t layout : layouts(t)) {
    ++c.layouts;
    std::multiset<std::uint32_t> profiles;
    GpuThousandths sum;
    for (const MigPlacementId p : list(layout)) {
      profiles.insert(t.placements()[p].profile);
      sum += t.share(t.placements()[p].profile).thousandths();
    }
    c.most_weight = std::max(c.most_weight, sum);
    multisets.insert(profiles);
    const MigState s = t.state_of(layout);
    states.insert(s);
    pairs.emplace(t.mask(s), t.compute_used(s));
  }
  c.multisets = multisets.size();
  c.states = states.size();
  c.pairs = pairs.size();
  REQUIRE(c.states == t.states());
  return c;
}

TEST_CASE("an 8-slice GPU has 2,319 layouts, 128 different ones, and 336 states without +me") {
  const MigTable t = compiled(h100_geometry());
  const Counts c = count(t);
  CHECK(c.layouts == 2319);
  CHECK(c.multisets == 128);
  CHECK(c.pairs == 336);
  CHECK(c.states == 656);
  CHECK(c.most_weight == kOneGpu);
  compare(t, 5);
}

TEST_CASE("an A30 has 76 layouts, 20 different ones; at most one profile uses the media engines") {
  const MigTable t = compiled(a30_geometry());
  const Counts c = count(t);
  CHECK(c.layouts == 76);
  CHECK(c.multisets == 20);
  CHECK(c.pairs == 16);
  CHECK(c.states == 31);
  CHECK(c.most_weight == kOneGpu);
  compare(t, 1);
}

MigGeometry random_geometry(std::mt19937_64& random) {
  const auto pick = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
  MigGeometry g{"x", 1 + pick(7), 1 + pick(6), {}};
  for (std::uint32_t p = 0, n = 1 + pick(4); p < n; ++p) {
    MigProfile profile;
    profile.name = "p" + std::to_string(p) + (pick(4) == 0 ? "+me" : "");
    profile.id = p;
    profile.compute_slices = 1 + pick(g.compute_slices);
    profile.memory_slices = 1 + pick(g.memory_slices);
    profile.max_instances = 1 + pick(4);
    for (std::uint32_t s = 0; s + profile.memory_slices <= g.memory_slices; ++s)
      if (pick(3) != 0) profile.starts.push_back(s);
    if (profile.starts.empty()) profile.starts.push_back(0);
    g.profiles.push_back(profile);
  }
  return g;
}

TEST_CASE("for any geometry the states allow exactly what the driver's rules allow") {
  std::mt19937_64 random(1);
  for (std::uint64_t i = 0; i < cases(300); ++i) {
    CAPTURE(i);
    compare(compiled(random_geometry(random)), 3);
  }
}

TEST_CASE("geometries that make no sense are refused with the reason") {
  const auto why = [](auto&& change) {
    MigGeometry g = h100_geometry();
    change(g);
    const auto t = MigTable::compile(g);
    return t ? std::string() : t.error().message;
  };
  CHECK(why([](MigGeometry&) {}) == "");
  CHECK(why([](MigGeometry& g) { g.memory_slices = 0; }) ==
        "the MIG geometry of model \"h100\" cannot be used: 7 compute and 0 memory slices, not 1 "
        "to 16");
  CHECK(why([](MigGeometry& g) {
          g.profiles[2].starts = {0, 5};
        }).find("ends behind the GPU") != std::string::npos);
  CHECK(why([](MigGeometry& g) {
          // with the size of the slice the sum overflows and is small again
          g.profiles[2].starts = {0, UINT32_MAX};
        }).find("ends behind the GPU") != std::string::npos);
  CHECK(why([](MigGeometry& g) {
          g.profiles[3].starts = {4, 0};
        }).find("do not ascend") != std::string::npos);
  CHECK(why([](MigGeometry& g) { g.profiles[1].id = 0; }).find("is there twice") !=
        std::string::npos);
  CHECK(why([](MigGeometry& g) { g.profiles.clear(); }).find("0 profiles") != std::string::npos);
  CHECK(why([](MigGeometry& g) { g.profiles[5].compute_slices = 8; }).find("compute slices") !=
        std::string::npos);
}

TEST_CASE("a slice's share is exact for compute and memory, and their mean is in thousandths") {
  const MigTable t = compiled(h100_geometry());
  const auto of = [&](const char* name) { return t.share(*t.profile_named(name)); };
  CHECK(of("3g.40gb") == MigShare{3, 7, 4, 8});
  CHECK(of("7g.80gb").thousandths() == GpuThousandths{1000});
  CHECK(of("4g.40gb").thousandths() == GpuThousandths{535});
  CHECK(of("3g.40gb").thousandths() == GpuThousandths{464});
  CHECK(of("2g.20gb").thousandths() == GpuThousandths{267});
  CHECK(of("1g.20gb").thousandths() == GpuThousandths{196});
  CHECK(of("1g.10gb").thousandths() == GpuThousandths{133});
}

TEST_CASE(
    "the table says what still fits, which profile is largest, and which place spoils least") {
  const MigTable t = compiled(h100_geometry());
  const auto at = [&](const char* name, std::uint32_t start) {
    return *t.placement(*t.profile_named(name), start);
  };
  const std::uint32_t g3 = *t.profile_named("3g.40gb");
  // If 1g, 1g and 2g lie at the places that a driver would choose, no 3g fits any more. If all
  // three lie within one half of the GPU, a 3g still fits.
  CHECK(t.fits(t.state_of(std::vector{at("1g.10gb", 6), at("1g.10gb", 0), at("2g.20gb", 2)}), g3) ==
        0);
  CHECK(t.fits(t.state_of(std::vector{at("1g.10gb", 6), at("1g.10gb", 5), at("2g.20gb", 2)}), g3) ==
        0);
  CHECK(t.fits(t.state_of(std::vector{at("1g.10gb", 0), at("1g.10gb", 1), at("2g.20gb", 2)}), g3) ==
        1);
  CHECK(t.profiles()[*t.largest(0)].name == "7g.80gb");
  const MigState one = t.state_of(std::vector{at("1g.10gb", 6)});
  CHECK(t.profiles()[*t.largest(one)].name == "4g.40gb");
  CHECK(!t.largest(t.state_of(std::vector{at("7g.80gb", 0)})));
  const MigState both = t.state_of(std::vector{at("3g.40gb", 0), at("3g.40gb", 4)});
  CHECK(t.legal(both) == 0);  // the memory is full, and one compute slice is lost
  // A small slice is put where no 2g can be, so that large ones stay possible.
  const MigOrder order(t, std::vector<std::uint32_t>(t.profiles().size(), 1));
  CHECK(order.start(0, t.placements_of(*t.profile_named("1g.10gb")), 0) == at("1g.10gb", 6));
  CHECK(order.start(0, t.placements_of(g3), 0) == at("3g.40gb", 4));
  CHECK(order.start(0, t.placements_of(g3), std::uint64_t{1} << at("3g.40gb", 0)) ==
        at("3g.40gb", 0));
  CHECK(order.rank(0, g3) == order.ranks(g3) - 1);  // an empty GPU comes last
}

TEST_CASE("a GPU is drawn as wide as any other") {
  DrawnGpu gpu{8, {{0, 4, "4g.40gb job 17"}, {4, 1, "1g.10gb idle", true}, {6, 2, ""}}, 0};
  CHECK(draw_gpu(gpu, 10) ==
        "[4g.40gb job 17                        ](1g.10gb )..........[                  ]");
  gpu.unusable = 0b100000;
  CHECK(draw_gpu(gpu, 2) == "[4g.40g]()--[  ]");
  CHECK(draw_gpu({4, {}, 0b1000}, 3) == ".........---");
}

}  // namespace
}  // namespace gantry::sched::mig_table_test
