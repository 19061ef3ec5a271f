// GPUs of a running daemon: indexes that stay, faults that come and go.
#include "noded/gpu/watch.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <fstream>

#include "noded/gpu/known.h"
#include "tests/gpu/fake_node.h"

namespace gantry::gpu {
namespace {

constexpr Instant kNow{5'000'000}, kLater{9'000'000};

std::vector<std::string> faults_of(const GpuInventory& inventory, std::size_t gpu) {
  std::vector<std::string> out;
  for (const GpuFault& one : inventory.gpus.at(gpu).faults)
    out.push_back(fmt::format("{} {}", static_cast<int>(one.domain), one.cause));
  return out;
}
using Texts = std::vector<std::string>;

bool nobody(std::uint32_t) {
  return false;
}

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
  CHECK(faults_of(found.inventory, 1) == Texts{"2 gpu-lost: fallen off the bus"});
  CHECK(found.inventory.gpus[2].nvlinks == std::vector<std::uint32_t>{2, 0, 0, 2});

  known.gpus = found.inventory.gpus;
  Discovery again = node.look();
  keep_indexes(again, known, kLater);
  CHECK(again.inventory.gpus[1].faults.at(0).since == kNow);  // since it was first missed
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

TEST_CASE("a GPU that is new comes behind") {
  FakeNode node(R"([{"model": "t4", "count": 3}])");
  node.open();
  Discovery found = node.look();
  KnownGpus known{"boot-1", {found.inventory.gpus[2], found.inventory.gpus[0]}};
  keep_indexes(found, known, kNow);
  CHECK(found.inventory.gpus[0].pci == "0000:1a:00.0");
  CHECK(found.inventory.gpus[1].pci == "0000:18:00.0");
  CHECK(found.inventory.gpus[2].pci == "0000:19:00.0");
}

TEST_CASE("what is known is kept for one boot") {
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

TEST_CASE("incidents wake the daemon") {
  FakeNode node(R"([{"model": "h100", "count": 2, "mig": true}])");
  node.control("make 1 9@4");
  const Nvml& nvml = node.open();
  const Discovery found = node.look();
  auto watch = GpuWatch::start(nvml, found);
  REQUIRE(watch);
  pollfd woken{(*watch)->descriptor(), POLLIN, 0};
  CHECK(::poll(&woken, 1, 0) == 0);
  node.control("xid 1 777 1 0");
  REQUIRE(::poll(&woken, 1, 30'000) == 1);
  const auto incidents = (*watch)->take(found.inventory, kNow);
  REQUIRE(incidents.size() == 1);
  CHECK(incidents[0].gpu == 1);
  CHECK(incidents[0].outcome.end_jobs);
  CHECK(::poll(&woken, 1, 0) == 0);
  GpuInventory told = found.inventory;
  (*watch)->faults().fill(told, nobody);
  CHECK(faults_of(told, 1) == Texts{"1 gpu-xid-777: not known to Gantry"});
  CHECK(faults_of(told, 0).empty());
  CHECK((*watch)->why_deaf().empty());
}

TEST_CASE("faults stay until they are cleared; those of a slice go with it") {
  FakeNode node(R"([{"model": "h100", "count": 1, "mig": true}])");
  node.control("make 0 9@4");
  node.open();
  const GpuInventory inventory = node.look().inventory;
  FaultBook book;
  GpuEvent event;
  event.xid = {777, 1};
  book.event(event, inventory, kNow);
  book.event(event, inventory, kLater);  // a storm is one fault
  GpuInventory told = inventory;
  book.fill(told, nobody);
  REQUIRE(told.gpus[0].faults.size() == 1);
  CHECK(told.gpus[0].faults[0].since == kNow);
  CHECK(told.gpus[0].faults[0].gpu_instance == 1);

  GpuInventory other = inventory;  // the same place and id, made anew
  other.gpus[0].slices[0].uuid = "MIG-other";
  book.fill(other, nobody);
  CHECK(other.gpus[0].faults.empty());

  event.xid = {79, {}};
  CHECK(book.event(event, inventory, kNow).outcome.fault.domain == FaultDomain::gpu);
  event.xid = {94, 1};
  const GpuIncident contained = book.event(event, inventory, kNow);
  CHECK(contained.outcome.end_jobs);
  told = inventory;
  book.fill(told, nobody);
  CHECK(faults_of(told, 0) ==
        Texts{"1 gpu-xid-777: not known to Gantry", "2 gpu-xid-79: fallen off the bus"});
  FaultBook restarted;
  restarted.restore(told.gpus);
  GpuInventory again = inventory;
  restarted.fill(again, nobody);
  CHECK(again == told);
  book.clear(0);
  told = inventory;
  book.fill(told, nobody);
  CHECK(told.gpus[0].faults.empty());
}

TEST_CASE("checks: what can wait does not end a job") {
  FakeNode node(R"([{"model": "h100", "count": 2}])");
  const Nvml& nvml = node.open();
  const Discovery found = node.look();
  auto watch = GpuWatch::start(nvml, found);
  REQUIRE(watch);
  CHECK_FALSE((*watch)->check(kNow));
  node.control("set 0 remap_pending=1");
  node.control("set 1 temperature=95");
  CHECK((*watch)->check(kNow));
  CHECK_FALSE((*watch)->check(kLater));
  GpuInventory told = found.inventory;
  (*watch)->faults().fill(told, [](std::uint32_t) { return true; });
  CHECK(faults_of(told, 0) ==
        Texts{"0 gpu-row-remap: a memory row waits for a reset to be remapped"});
  CHECK(faults_of(told, 1) == Texts{"2 gpu-thermal: 95 C, and it switches itself off at 92 C"});
  told = found.inventory;
  (*watch)->faults().fill(told, nobody);
  CHECK(told.gpus[0].faults.at(0).domain == FaultDomain::gpu);
  CHECK(told.gpus[0].faults.at(0).since == kNow);
  node.control("reset 0");
  node.control("set 0 remap_pending=0");
  node.control("set 1 temperature=50");
  CHECK((*watch)->check(kLater));
  told = found.inventory;
  (*watch)->faults().fill(told, nobody);
  CHECK(told == found.inventory);
}

TEST_CASE("a lost GPU is told once, whoever notices") {
  FakeNode node(R"([{"model": "h100", "count": 2}])");
  const Nvml& nvml = node.open();
  Discovery found = node.look();
  const KnownGpus known{"b", found.inventory.gpus};
  node.control("lost 1");
  found = node.look();
  keep_indexes(found, known, kNow);
  auto watch = GpuWatch::start(nvml, found);
  REQUIRE(watch);
  CHECK((*watch)->check(kNow));
  GpuEvent event;
  event.gpu = 1;
  event.lost = true;
  (*watch)->faults().event(event, found.inventory, kNow);
  GpuInventory told = found.inventory;
  (*watch)->faults().fill(told, nobody);
  CHECK(faults_of(told, 1) == Texts{"2 gpu-lost: fallen off the bus"});
}

}  // namespace
}  // namespace gantry::gpu
