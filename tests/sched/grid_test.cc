// Tests each view of the grid alone: sets of nodes for searches, topology, and the choice of CPUs.
#include <doctest/doctest.h>

#include <vector>

#include "ctld/sched/nodes/devices.h"

namespace gantry::sched {
namespace {

TEST_CASE("the sets of nodes by free cores, idle nodes and spread nodes follow each change") {
  SearchSets sets;
  sets.resize(70);
  sets.make_room_for(4);
  CHECK(sets.most_cpus() == 4);
  CHECK(sets.words() == 2);
  CHECK(sets.set_free(1, 4, 4));  // the node becomes idle
  CHECK(sets.set_free(65, 4, 4));
  CHECK_FALSE(sets.set_free(2, 3, 4));  // the node was in use before and still is
  const std::uint64_t one = 2, two = 4;
  CHECK(sets.at_least(1, 0) == (one | two));
  CHECK(sets.at_least(3, 0) == (one | two));
  CHECK(sets.at_least(4, 0) == one);
  CHECK(sets.at_least(4, 1) == 2);
  CHECK(sets.at_least(5, 0) == 0);
  CHECK(sets.idle_word(0) == one);
  CHECK(sets.count_with(4) == 2);
  CHECK(sets.count_with(3) == 1);
  CHECK(sets.set_free(1, 2, 4));
  CHECK(sets.idle_word(0) == 0);
  CHECK(sets.at_least(3, 0) == two);
  CHECK(sets.count_with(2) == 1);
  CHECK(sets.set_free(65, 0, 4));  // the node takes no work any more
  CHECK(sets.at_least(1, 1) == 0);
  std::vector<std::int32_t> free(70, 0), of(70, 4);
  free[1] = 2;
  free[2] = 3;
  CHECK(sets.audit(free, of) == "");
  free[2] = 4;
  CHECK(sets.audit(free, of) != "");
  CHECK_FALSE(sets.any_spread());
  sets.set_spread(65, true);
  sets.set_spread(65, true);
  CHECK(sets.any_spread());
  CHECK(sets.spread_word(1) == 2);
  sets.set_spread(65, false);
  CHECK_FALSE(sets.any_spread());
}

TEST_CASE("domains have their nodes by level, and leaves know their idle nodes") {
  TopologyLevels levels;
  levels.resize(4);
  Bits idle;
  idle.resize(4);
  levels.set({{"block", {}}, {"leaf", {}}}, idle);
  for (std::uint32_t n = 0; n < 3; ++n) levels.place(n, {0, n / 2});  // node 3 is in no domain
  CHECK(levels.count() == 2);
  CHECK(levels.find("leaf") == 1);
  CHECK(levels.find("node") == 2);
  CHECK_FALSE(levels.find("rack"));
  CHECK(levels.domain(0, 2) == 0);
  CHECK(levels.domain(1, 2) == 1);
  CHECK(levels.domain(2, 2) == 2);  // at the level of nodes each node is a domain
  CHECK(levels.domain(1, 3) == kNoIndex);
  CHECK(levels.leaf(3) == kNoIndex);
  for (const std::uint32_t n : {0u, 1u, 3u}) {
    idle.set(n);
    levels.note_idle(n, true);
  }
  CHECK(levels.idle_in_leaf(0) == 2);
  CHECK(levels.idle_in_leaf(1) == 0);
  CHECK(levels.idle_in_leaf(7) == 0);
  CHECK(levels.audit(idle) == "");
  levels.note_idle(1, false);
  CHECK(levels.idle_in_leaf(0) == 1);
  CHECK(levels.audit(idle) != "");
  // With other levels everything is counted anew.
  levels.set({{"block", {}}}, idle);
  CHECK(levels.leaf(2) == 0);
  CHECK(levels.idle_in_leaf(0) == 2);
  levels.set({}, idle);
  CHECK(levels.leaf(0) == kNoIndex);
  CHECK(levels.domain(0, 3) == 3);
}

TEST_CASE(
    "CPUs come from one socket, the fullest with enough of them; free resources are counted") {
  Grid grid;
  NodeChanged change;
  change.node = NodeId{0};
  change.name = "n0";
  change.available = true;
  change.cpus = {0, 1, 2, 3, 4, 5, 6, 7};
  change.sockets = 2;
  grid.change(change);
  const std::vector<std::uint16_t> one{1};
  const std::vector<GresGrant> net{{"net", {0}}};
  grid.take(0, {0, 0, 1}, {one, {}, net, {}});
  using Cpus = std::vector<std::uint16_t>;
  CHECK(choose_cpus(grid.node(0), 3) == Cpus{0, 2, 3});  // these remain free on the first socket
  CHECK(choose_cpus(grid.node(0), 4) == Cpus{4, 5, 6, 7});
  CHECK(choose_cpus(grid.node(0), 5) == Cpus{0, 2, 3, 4, 5});
  const std::vector<GresCount> wanted{{"net", 2}};
  CHECK(choose_gres(grid.node(0), wanted).at(0).devices == Cpus{1, 2});
  CHECK(grid.node(0).position(5) == 5);
  CHECK_FALSE(grid.node(0).position(9));
  const Cpus some{7, 8, 9};
  CHECK(grid.node(0).count_known(some) == 1);
  CHECK(grid.audit() == "");
  grid.give(0, {0, 0, 1}, {one, {}, net, {}});
  CHECK(grid.idle(0));
  CHECK(choose_gres(grid.node(0), wanted).at(0).devices == Cpus{0, 1});
}

}  // namespace
}  // namespace gantry::sched
