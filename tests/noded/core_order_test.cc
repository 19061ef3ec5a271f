// Tests the order in which the tasks of a step get the cores of two and three sockets.
#include <doctest/doctest.h>

#include "noded/core/task_places.h"

using namespace gantry;
using node::order_cores;

namespace {

using CoreList = std::vector<std::uint16_t>;

// The cores are numbered socket by socket, as on most machines.
const std::map<std::uint16_t, std::uint32_t> kTwo{{0, 0}, {1, 0}, {2, 0}, {3, 0},
                                                  {4, 1}, {5, 1}, {6, 1}, {7, 1}};
const CoreList kAll{0, 1, 2, 3, 4, 5, 6, 7};

}  // namespace

TEST_CASE("block gives cores in the order of their numbers") {
  CHECK(order_cores(CoreOrder::block, kAll, kTwo, 4) == kAll);
}

TEST_CASE("cyclic puts consecutive tasks on consecutive sockets") {
  CHECK(order_cores(CoreOrder::cyclic, kAll, kTwo, 8) == CoreList{0, 4, 1, 5, 2, 6, 3, 7});
  CHECK(order_cores(CoreOrder::cyclic, kAll, kTwo, 4) == CoreList{0, 1, 4, 5, 2, 3, 6, 7});
  CHECK(order_cores(CoreOrder::cyclic, kAll, kTwo, 2) == kAll);
  CHECK(order_cores(CoreOrder::cyclic, {0, 1, 2, 4, 5, 6}, kTwo, 6) == CoreList{0, 4, 1, 5, 2, 6});
}

TEST_CASE("fcyclic takes each core from the next socket") {
  CHECK(order_cores(CoreOrder::fcyclic, kAll, kTwo, 4) == CoreList{0, 4, 1, 5, 2, 6, 3, 7});
  CHECK(order_cores(CoreOrder::fcyclic, kAll, kTwo, 2) == CoreList{0, 4, 1, 5, 2, 6, 3, 7});
}

TEST_CASE("with sockets of unequal size a task stays on one socket as long as one has room") {
  // The first socket has five cores and the second has three: no socket has room for the fourth
  // pair.
  const std::map<std::uint16_t, std::uint32_t> of{{0, 0}, {1, 0}, {2, 0}, {3, 0},
                                                  {4, 0}, {5, 1}, {6, 1}, {7, 1}};
  CHECK(order_cores(CoreOrder::cyclic, kAll, of, 4) == CoreList{0, 1, 5, 6, 2, 3, 7, 4});
  CHECK(order_cores(CoreOrder::fcyclic, kAll, of, 4) == CoreList{0, 5, 1, 6, 2, 7, 3, 4});
  // A task that is wider than any socket also gets cores of the next ones.
  CHECK(order_cores(CoreOrder::cyclic, kAll, of, 1) == kAll);
}

TEST_CASE("cores that no task gets come last, and too few cores keep their order") {
  CHECK(order_cores(CoreOrder::cyclic, {0, 1, 2, 4, 5}, kTwo, 2) == CoreList{0, 1, 4, 5, 2});
  CHECK(order_cores(CoreOrder::cyclic, {0, 4}, kTwo, 3) == CoreList{0, 4});
  CHECK(order_cores(CoreOrder::cyclic, {}, kTwo, 0).empty());
}

TEST_CASE("without known sockets all cores count as one socket") {
  CHECK(order_cores(CoreOrder::cyclic, kAll, {}, 4) == kAll);
}

TEST_CASE("every order holds each core exactly once") {
  const std::map<std::uint16_t, std::uint32_t> three{{0, 2}, {1, 0}, {2, 1}, {3, 2}, {4, 0},
                                                     {5, 1}, {6, 0}, {7, 2}, {8, 2}};
  const CoreList nine{0, 1, 2, 3, 4, 5, 6, 7, 8};
  for (const auto order : {CoreOrder::block, CoreOrder::cyclic, CoreOrder::fcyclic})
    for (std::size_t tasks = 1; tasks < 11; ++tasks) {
      CoreList out = order_cores(order, nine, three, tasks);
      std::sort(out.begin(), out.end());
      CHECK(out == nine);
    }
}
