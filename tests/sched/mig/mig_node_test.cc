// Tests MigNode: slices that jobs get are legal, never overlap, and are returned. GANTRY_LONG=1
// gives and takes 10,000 times, otherwise 3,000.
#include <doctest/doctest.h>

#include <map>
#include <random>

#include "ctld/sched/gpu/mig_node.h"
#include "tests/sched/cases.h"
#include "tests/sched/mig/mig_world.h"

namespace gantry::sched::mig_node_test {
namespace {

std::vector<GpuView> devices(const std::string& model, std::uint32_t count) {
  std::vector<GpuView> out;
  for (std::uint32_t i = 0; i < count; ++i)
    out.push_back({static_cast<std::uint16_t>(2 * i), -1, true, model, {}, false, {}});
  return out;
}

// Checks by the rules of the geometry alone: places, overlap, compute slices, the most of each
// profile.
void check_legal(const MigGeometry& geometry, const std::vector<GpuGrant>& held) {
  std::map<std::uint16_t, std::pair<std::uint64_t, std::uint32_t>> used;
  for (const GpuGrant& d : held) {
    REQUIRE(d.profile);
    const auto p = std::find_if(geometry.profiles.begin(), geometry.profiles.end(),
                                [&](const MigProfile& m) { return m.id == *d.profile; });
    REQUIRE(p != geometry.profiles.end());
    CHECK(std::find(p->starts.begin(), p->starts.end(), d.start) != p->starts.end());
    auto& [mask, compute] = used[d.gpu];
    const std::uint64_t own = ((std::uint64_t{1} << p->memory_slices) - 1) << d.start;
    CHECK((mask & own) == 0);
    mask |= own;
    compute += p->compute_slices;
    CHECK(compute <= geometry.compute_slices);
  }
}

}  // namespace

TEST_CASE("slices given and taken back at random are always legal") {
  for (const MigGeometry& geometry : {h100_geometry(), a30_geometry()}) {
    std::mt19937_64 random(7);
    MigShapes shapes;
    MigNode rack;
    rack.set(devices(geometry.model, 3), {geometry}, shapes);
    CHECK(rack.compute_slices() == 3 * geometry.compute_slices);
    std::vector<std::vector<GpuGrant>> jobs;
    for (int turn = 0; turn < cases(3000); ++turn) {
      const MigProfile& p = geometry.profiles[random() % geometry.profiles.size()];
      const auto count = static_cast<std::uint32_t>(1 + random() % 3);
      if (rack.fits({p.name}) >= count && random() % 3 != 0) {
        jobs.push_back(rack.choose({p.name}, count));
        CHECK(jobs.back().size() == count);
        CHECK(jobs.back()[0].thousandths == rack.thousandths(p.name));
        CHECK(rack.compute_of(jobs.back()) ==
              thousandths_of(ComputeSlices{p.compute_slices}) * Times{count});
        rack.mark(jobs.back(), {}, true);
      } else if (!jobs.empty()) {
        std::swap(jobs[random() % jobs.size()], jobs.back());
        rack.mark(jobs.back(), {}, false);
        jobs.pop_back();
      }
      std::vector<GpuGrant> held;
      GpuThousandths sum;
      for (const auto& job : jobs) held.insert(held.end(), job.begin(), job.end());
      for (const GpuGrant& d : held) sum += d.thousandths;
      check_legal(geometry, held);
      CHECK(sum <= kOneGpu * Times{3});
    }
    for (const auto& job : jobs) rack.mark(job, {}, false);
    for (const MigProfile& p : geometry.profiles) CHECK(rack.fits({p.name}) == 3 * p.max_instances);
  }
}

TEST_CASE("the fullest GPU is filled first, and a large slice stays possible") {
  const MigGeometry geometry = h100_geometry();
  MigShapes shapes;
  MigNode rack;
  rack.set(devices(geometry.model, 2), {geometry}, shapes);
  for (int i = 0; i < 3; ++i) {  // at 4, 5 and 6, as no small slice can start at 7
    const auto given = rack.choose({"1g.10gb"}, 1);
    CHECK(given[0].gpu == 0);
    rack.mark(given, {}, true);
  }
  CHECK(rack.fits({"3g.40gb"}) == 3);  // one beside the small slices, two on the other GPU
  CHECK(rack.fits({"4g.40gb"}) == 2);
  CHECK(rack.fits({"7g.80gb"}) == 1);
  CHECK_FALSE(rack.has("5g.60gb"));
  CHECK(rack.fits({"5g.60gb"}) == 0);
}

TEST_CASE("the name of a profile says its compute slices") {
  CHECK(compute_slices_of("1g.10gb") == 1);
  CHECK(compute_slices_of("3g.40gb+me") == 3);
  for (const char* text : {"", "g.10gb", "h100", "99999999999g.1gb", "1", "1x.10gb", "40g.1gb"})
    CHECK(compute_slices_of(text) == 0);
}

TEST_CASE("on GPUs that are cut by hand only existing slices are given") {
  const MigGeometry geometry = h100_geometry();
  const auto id = [&](const char* name) {
    return std::find_if(geometry.profiles.begin(), geometry.profiles.end(),
                        [&](const MigProfile& p) { return p.name == name; })
        ->id;
  };
  auto gpus = devices(geometry.model, 2);
  gpus[0].by_hand = true;
  gpus[0].slices = {{id("3g.40gb"), 4, 0, 0, "a"}, {id("1g.10gb"), 1, 0, 0, "b"}};
  gpus[1].by_hand = true;
  MigShapes shapes;
  MigNode rack;
  rack.set(gpus, {geometry}, shapes);
  CHECK(rack.fits({"3g.40gb"}) == 1);
  CHECK(rack.fits({"1g.10gb"}) == 1);
  CHECK(rack.fits({"7g.80gb"}) == 0);
  const auto given = rack.choose({"1g.10gb"}, 1);
  CHECK(given[0].gpu == 0);
  CHECK(given[0].start == 1);
  rack.mark(given, {}, true);
  CHECK(rack.fits({"1g.10gb"}) == 0);
  rack.mark(given, {}, false);
  CHECK(rack.fits({"1g.10gb"}) == 1);
}

TEST_CASE("a kept place is given to its class, and to jobs that end before it is needed") {
  const MigGeometry geometry = h100_geometry();
  MigShapes shapes;
  MigNode rack;
  rack.set(devices(geometry.model, 1), {geometry}, shapes);
  const auto seven = *rack.gpus()[0].shape->table.profile_named("7g.80gb");
  const auto at = *rack.gpus()[0].shape->table.placement(seven, 0);
  const auto small = rack.choose({"1g.10gb"}, 1);
  rack.mark(small, {}, true);
  const Instant from{1000};
  rack.hold(0, {JobId{7}, at, from, 3}, {{rack.find(small[0])->second, from, false}});
  CHECK(rack.fits({"1g.10gb", Instant{900}, 5}) == 6);
  CHECK(rack.fits({"1g.10gb", Instant{1000}, 5}) == 6);
  CHECK(rack.fits({"1g.10gb", Instant{1001}, 5}) == 0);
  CHECK(rack.fits({"1g.10gb", kMigNever, 5}) == 0);
  CHECK(rack.fits({"7g.80gb", kMigNever, 3}) == 0);  // the place is not free yet
  rack.mark(small, {}, false);
  CHECK(rack.fits({"7g.80gb", kMigNever, 3}) == 1);
  rack.drop_holds();
  CHECK(rack.fits({"1g.10gb", kMigNever, 5}) == 7);
}

}  // namespace gantry::sched::mig_node_test
