// Tests the numbers of GPUs, which do not change while the machine is up.
#include "noded/gpu/nvml/discover.h"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/gpu/fake_node.h"

namespace gantry::gpu {
namespace {

constexpr Instant kNow{5'000'000}, kLater{9'000'000};

TEST_CASE("a lost GPU keeps its index, and so do its neighbours") {
  FakeNode node(R"([{"model": "v100", "count": 4, "links": "mesh"}])");
  node.open();
  Discovery found = node.look();
  KnownGpus known{"boot-1", found.inventory.gpus};
  const auto before = found.inventory.gpus;
  keep_indexes(found, known, kNow);
  CHECK(found.inventory.gpus == before);

  node.control("lost 1");
  found = node.look();
  REQUIRE(found.inventory.gpus.size() == 3);
  keep_indexes(found, known, kNow);
  REQUIRE(found.inventory.gpus.size() == 4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    CHECK(found.inventory.gpus[i].index == i);
    CHECK(found.inventory.gpus[i].uuid == before[i].uuid);
    CHECK((found.devices[i] == nullptr) == (i == 1));
  }
  REQUIRE(found.inventory.gpus[1].faults.size() == 1);
  CHECK(found.inventory.gpus[1].faults[0].domain == FaultDomain::gpu);
  CHECK(found.inventory.gpus[1].faults[0].cause == "gpu-lost: fallen off the bus");
  CHECK(found.inventory.gpus[2].nvlinks == std::vector<std::uint32_t>{2, 0, 0, 2});

  known.gpus = found.inventory.gpus;
  Discovery again = node.look();
  keep_indexes(again, known, kLater);
  // The fault keeps the time at which the GPU was first missed.
  CHECK(again.inventory.gpus[1].faults.at(0).since == kNow);
  node.control("reset 1");
  again = node.look();
  keep_indexes(again, known, kLater);
  CHECK(again.inventory.gpus == before);

  for (int i = 0; i < 4; ++i) node.control("lost " + std::to_string(i));
  again = node.look();
  keep_indexes(again, known, kLater);
  CHECK(again.inventory.gpus.size() == 4);
  CHECK(again.inventory.why_none.empty());
}

TEST_CASE("a new GPU gets a number after those that are known") {
  FakeNode node(R"([{"model": "t4", "count": 3}])");
  node.open();
  Discovery found = node.look();
  KnownGpus known{"boot-1", {found.inventory.gpus[2], found.inventory.gpus[0]}};
  keep_indexes(found, known, kNow);
  CHECK(found.inventory.gpus[0].pci == "0000:1a:00.0");
  CHECK(found.inventory.gpus[1].pci == "0000:18:00.0");
  CHECK(found.inventory.gpus[2].pci == "0000:19:00.0");
}

TEST_CASE("the numbers of GPUs are kept until the next boot") {
  FakeNode node(R"([{"model": "t4", "count": 2}])");
  node.open();
  const std::string dir = node.dir() + "/state";
  CHECK(load_known(dir, "boot-1")->gpus.empty());
  REQUIRE(store_known(dir, {"boot-1", node.look().inventory.gpus}));
  CHECK(load_known(dir, "boot-1")->gpus == node.look().inventory.gpus);
  CHECK(load_known(dir, "boot-2")->gpus.empty());
  std::ofstream(dir + "/gpus.msgpack") << "damaged";
  CHECK_FALSE(load_known(dir, "boot-1"));
}

}  // namespace
}  // namespace gantry::gpu
