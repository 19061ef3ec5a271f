// Tests fair shares: water-filling against its definition on random input, and the integrals of the
// meter.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "ctld/replay/meter.h"
#include "ctld/sched/tenancy.h"

namespace gantry::replay {
namespace {

TEST_CASE("pour() gives all of the amount, none above demand, and one level to all who want more") {
  std::mt19937_64 random(7);
  const auto draw = [&](int n) {
    return static_cast<double>(std::uniform_int_distribution<int>(0, n)(random));
  };
  for (int round = 0; round < 10'000; ++round) {
    const auto n = static_cast<std::size_t>(1 + draw(6));
    std::vector<double> demands, bases, weights;
    for (std::size_t i = 0; i < n; ++i) {
      demands.push_back(draw(50));
      bases.push_back(draw(20));
      weights.push_back(1 + draw(3));
    }
    const double amount = draw(150);
    const auto x = pour(demands, bases, weights, amount);
    const double sum = std::accumulate(x.begin(), x.end(), 0.0);
    const double wanted = std::accumulate(demands.begin(), demands.end(), 0.0);
    REQUIRE(sum == doctest::Approx(std::min(amount, wanted)));
    double least = 0;
    for (std::size_t i = 0; i < n; ++i) least += std::min(demands[i], bases[i]);
    double level = -1;
    for (std::size_t i = 0; i < n; ++i) {
      REQUIRE(x[i] <= demands[i] + 1e-9);
      if (least > amount) continue;
      REQUIRE(x[i] >= std::min(demands[i], bases[i]) - 1e-9);
      if (x[i] < demands[i] - 1e-9) {  // it wants more, and all such entries must be at one level
        const double mine = (x[i] - std::min(demands[i], bases[i])) / weights[i];
        if (level >= 0) REQUIRE(mine == doctest::Approx(level));
        level = mine;
      }
    }
    for (std::size_t i = 0; i < n && level >= 0; ++i)  // no entry may be above that level
      REQUIRE((x[i] - std::min(demands[i], bases[i])) / weights[i] <= level + 1e-6);
  }
}

sched::TenancyPtr two_tenants(std::int64_t a, std::int64_t b, std::int64_t a_lends) {
  auto tenancy = std::make_shared<sched::Tenancy>();
  tenancy->flavors.emplace_back();
  tenancy->classes.emplace_back();
  const auto g = static_cast<std::size_t>(Resource::gpu);
  for (int n = 0; n < 3; ++n) {
    sched::QuotaNode node;
    node.limits.resize(1);
    for (auto* amounts : {&node.limits[0].borrow, &node.limits[0].lend})
      amounts->fill(sched::kUnlimited);
    if (n > 0) node.parent = 0;
    node.tenant = n > 0;
    node.limits[0].nominal[g] = n == 1 ? a : n == 2 ? b : 0;
    if (n == 1) node.limits[0].lend[g] = a_lends;
    tenancy->nodes.push_back(node);
  }
  return tenancy;
}

TEST_CASE("fair shares give nominal quota first and the rest by weight, except what is not lent") {
  const FairShares fair(two_tenants(6, 2, 3), {1, 2}, Resource::gpu, 1, 8);
  CHECK(fair.divide({8, 8}) == std::vector<double>{6, 2});
  CHECK(fair.divide({1, 8}) ==
        // a lends only 3 of its 6: of the 3 others it uses 1, so 2 stay idle
        std::vector<double>{1, 5});
  CHECK(fair.divide({8, 1}) == std::vector<double>{7, 1});
  const FairShares none(std::make_shared<sched::Tenancy>(), {sched::kNoIndex, sched::kNoIndex},
                        Resource::gpu, 1, 8);
  CHECK(none.divide({8, 2}) == std::vector<double>{6, 2});
  CHECK(none.divide({8, 8}) == std::vector<double>{4, 4});
}

TEST_CASE("the meter counts violation from the deadline on, and the error while a tenant waits") {
  const auto tenancy = two_tenants(4, 4, 4);
  Meter meter(FairShares(tenancy, {1, 2}, Resource::gpu, 1, 8), 2, 8, seconds(30), hours(24), {});
  meter.queued(0, 8, {0, 0});
  meter.unqueued(0, 8, {0, 0});
  meter.started(0, 8);
  meter.advance(Instant{seconds(100).us});
  meter.queued(1, 2, {1, 1});
  meter.advance(Instant{seconds(120).us});
  CHECK(meter.tenants()[1].violation == 0);
  CHECK(meter.tenants()[1].below == 20);
  meter.advance(Instant{seconds(150).us});
  CHECK(meter.tenants()[1].violation == 20);
  CHECK(meter.tenants()[1].error == 50 * 2);  // its fair share would be 2 of 8
  CHECK(meter.tenants()[0].error == 0);       // this tenant does not wait
  meter.ended(0, 8);
  meter.unqueued(1, 2, {1, 1});
  meter.started(1, 2);
  meter.advance(Instant{seconds(200).us});
  CHECK(meter.tenants()[1].violation == 20);
  CHECK(meter.tenants()[1].backlogged == 50);
  CHECK(meter.tenants()[0].use == 8 * 150);
}

TEST_CASE("the meter gives each claim its own deadline, and a start meets the oldest claim") {
  const auto tenancy = two_tenants(4, 4, 4);
  Meter meter(FairShares(tenancy, {1, 2}, Resource::gpu, 1, 8), 2, 8, seconds(30), hours(24), {});
  const auto until = [&](int at) { meter.advance(Instant{seconds(at).us}); };
  meter.started(0, 8);
  meter.queued(1, 1, {1, 1});
  until(20);
  meter.queued(1, 1, {2, 2});
  until(25);
  meter.unqueued(1, 1, {1, 1});
  meter.started(1, 1);
  until(50);
  CHECK(meter.tenants()[1].below == 50);
  CHECK(meter.tenants()[1].violation == 0);
  until(60);
  CHECK(meter.tenants()[1].violation == 10);
  meter.unqueued(1, 1, {2, 2});
  meter.started(1, 1);
  until(70);
  CHECK(meter.tenants()[1].violation == 10);
  REQUIRE(meter.violations().size() == 1);
  CHECK(meter.violations()[0].since == Instant{seconds(20).us});
  CHECK(meter.violations()[0].until == Instant{seconds(60).us});
}

}  // namespace
}  // namespace gantry::replay
