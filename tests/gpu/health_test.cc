// Tests Xids, checks and probes against the stand-in driver.
#include "noded/gpu/health/health.h"

#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>

#include "tests/gpu/fake_node.h"

namespace gantry::gpu {
namespace {

constexpr Instant kNow{1'000'000};

std::vector<std::string> causes(const std::vector<GpuFault>& faults) {
  std::vector<std::string> out;
  for (const GpuFault& one : faults)
    out.push_back(fmt::format("{} {}", static_cast<int>(one.domain), one.cause));
  return out;
}
using Causes = std::vector<std::string>;

TEST_CASE("each Xid has the domain of its fault, and says whether jobs end") {
  const auto rules = xid_rules();
  for (std::size_t i = 1; i < rules.size(); ++i) CHECK(rules[i - 1].xid < rules[i].xid);
  for (const std::uint32_t xid : {13u, 31u, 43u, 45u, 68u, 109u}) {
    CHECK(judge({xid, {}}, kNow).fault.domain == FaultDomain::none);
    CHECK_FALSE(judge({xid, {}}, kNow).end_jobs);
  }
  for (const std::uint32_t xid :
       {79u, 48u, 64u, 74u, 95u, 119u, 120u, 46u, 92u, 110u, 140u, 143u}) {
    CHECK(judge({xid, 5}, kNow).fault.domain == FaultDomain::gpu);
    CHECK(judge({xid, {}}, kNow).end_jobs);
  }
  const XidOutcome bus = judge({79, {}}, kNow);
  CHECK(bus.fault.cause == "gpu-xid-79: fallen off the bus");
  CHECK(bus.fault.since == kNow);
  const XidOutcome contained = judge({94, 3}, kNow);
  CHECK(contained.end_jobs);
  CHECK(contained.fault.domain == FaultDomain::none);
  CHECK(contained.fault.gpu_instance == 3);
  CHECK(judge({151, {}}, kNow).fault.domain == FaultDomain::node);
}

TEST_CASE("an unknown Xid closes the GPU or slice that it names") {
  CHECK(judge({999, {}}, kNow).fault.domain == FaultDomain::gpu);
  const XidOutcome slice = judge({777, 4}, kNow);
  CHECK(slice.fault.domain == FaultDomain::slice);
  CHECK(slice.fault.gpu_instance == 4);
  CHECK(slice.fault.cause == "gpu-xid-777: not known to Gantry");
}

TEST_CASE("Xids are read from lines of the kernel's log, and malformed lines are ignored") {
  const auto found =
      parse_xid_line("NVRM: Xid (PCI:0000:3B:00): 79, pid=1234, GPU has fallen off the bus");
  REQUIRE(found);
  CHECK(found->pci == "0000:3b:00.0");
  CHECK(found->xid == 79);
  CHECK(parse_xid_line("NVRM: Xid (PCI:0000:3b:00.0): 13, Graphics")->pci == "0000:3b:00.0");
  CHECK(parse_xid_line("NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 94, x")->gpu_instance == 5);
  CHECK_FALSE(parse_xid_line("NVRM: Xid (PCI:0000:3b:00 GPU-I:x): 94, x"));
  CHECK_FALSE(parse_xid_line("NVRM: Xid (PCI:0000:3b:00): x"));
  CHECK_FALSE(parse_xid_line("NVRM: Xid (PCI:../../etc): 79"));
  CHECK_FALSE(parse_xid_line("NVRM: Xid (PCI:0000:3b:00"));
  CHECK_FALSE(parse_xid_line("usb 1-1: new device"));
  // A user can cause this line of the kernel by a mount in a user namespace.
  CHECK_FALSE(parse_xid_line("tmpfs: Unknown parameter 'NVRM: Xid (PCI:0000:3b:00): 79, x'"));
}

TEST_CASE("an event from before the reader was opened is not reported") {
  FakeNode node(R"([{"model": "h100", "count": 8, "mig": true}])");
  node.control("make 2 9@4");
  node.control("xid 1 48");  // this event comes before the reader exists
  const Nvml& nvml = node.open();
  const Discovery found = node.look();
  const auto reader = EventReader::open(nvml, found);
  REQUIRE(reader);
  CHECK_FALSE((*(*reader)->wait(0)).has_value());
}

TEST_CASE("events name their GPU and slice, in the order in which they come") {
  FakeNode node(R"([{"model": "h100", "count": 8, "mig": true}])");
  node.control("make 2 9@4");
  const Nvml& nvml = node.open();
  const Discovery found = node.look();
  const auto reader = EventReader::open(nvml, found);
  REQUIRE(reader);
  node.control("xid 2 94 1 0");
  node.control("xid 5 79");
  auto first = (*reader)->wait(1000);
  REQUIRE(first);
  REQUIRE(*first);
  CHECK((*first)->gpu == 2);
  CHECK((*first)->xid.xid == 94);
  CHECK((*first)->xid.gpu_instance == 1);
  auto second = (*reader)->wait(1000);
  REQUIRE(*second);
  CHECK((*second)->gpu == 5);
  CHECK((*second)->xid.xid == 79);
  CHECK_FALSE((*second)->xid.gpu_instance);
  CHECK(causes(check(nvml, found.devices[5], {}, kNow)) ==
        Causes{"2 gpu-lost: fallen off the bus"});
  CHECK(check(nvml, found.devices[4], {}, kNow).empty());
  CHECK_FALSE((*(*reader)->wait(0)).has_value());
}

TEST_CASE("a GPU that is lost without an event is reported once") {
  FakeNode node(R"([{"model": "h100", "count": 4}])");
  const Nvml& nvml = node.open();
  const Discovery found = node.look();
  const auto reader = EventReader::open(nvml, found);
  REQUIRE(reader);
  node.control("lost 3");
  node.control("fail nvmlEventSetWait_v2 15 2");
  const auto event = (*reader)->wait(10);
  REQUIRE(event);
  REQUIRE(*event);
  CHECK((*event)->gpu == 3);
  CHECK((*event)->lost);
  CHECK_FALSE((*reader)->wait(10));  // this error is about the driver as a whole
  CHECK((*reader)->wait(0).has_value());
}

TEST_CASE("the event thread passes events on, and ends when the driver fails") {
  FakeNode node(R"([{"model": "h100", "count": 4}])");
  const Nvml& nvml = node.open();
  const Discovery found = node.look();
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<GpuEvent> seen;
  bool ended = false;
  const auto wait_until = [&](auto condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(30), condition);
  };
  auto reader = EventReader::open(nvml, found);
  REQUIRE(reader);
  EventThread thread(
      std::move(*reader),
      [&](const GpuEvent& event) {
        const std::scoped_lock lock(mutex);
        seen.push_back(event);
        changed.notify_all();
      },
      [&](const Failure&) {
        const std::scoped_lock lock(mutex);
        ended = true;
        changed.notify_all();
      });
  node.control("xid 1 31");
  REQUIRE(wait_until([&] { return seen.size() == 1; }));
  CHECK(seen[0].gpu == 1);
  node.control("fail nvmlEventSetWait_v2 999");
  node.control("xid 1 31");  // this event wakes the thread
  REQUIRE(wait_until([&] { return ended; }));
}

TEST_CASE("each sign of a bad GPU gives its fault, and none when it is over") {
  FakeNode node(R"([{"model": "h100", "count": 2}, {"model": "v100"}])");
  const Nvml& nvml = node.open();
  const Discovery found = node.look();
  const HealthBaseline baseline = HealthBaseline::of(nvml, found.devices[0]);
  CHECK(baseline.links == 18);
  const auto now_of = [&](std::size_t i) {
    return causes(check(nvml, found.devices[i], i == 0 ? baseline : HealthBaseline{}, kNow));
  };
  CHECK(now_of(0).empty());
  CHECK(now_of(2).empty());
  struct Case {
    const char* set;
    std::size_t gpu;
    std::string fault;
  };
  const Case cases[] = {
      {"remap_pending=1", 0, "2 gpu-row-remap: a memory row waits for a reset to be remapped"},
      {"remap_failed=1", 0, "2 gpu-row-remap: no spare memory row is left for a broken one"},
      {"recovery=1", 0, "2 gpu-recovery: the driver asks for a reset"},
      {"recovery=2", 0, "3 gpu-recovery: the driver asks for a restart of the node"},
      {"temperature=93", 0, "2 gpu-thermal: 93 C, and it switches itself off at 92 C"},
      {"clocks=64", 0, "0 gpu-thermal: slowed down at 34 C"},
      {"clocks=128", 0, "0 gpu-power-brake: slowed down by the power supply"},
      {"ecc_uncorrected=1", 0, "0 gpu-ecc: 1 uncorrected memory error since the last reset"},
      {"links_down=2", 0, "2 gpu-nvlink: 2 of 18 links are down"},
      {"retired_pending=1", 2, "2 gpu-retired-pages: memory pages wait for a reset to be retired"},
  };
  for (const Case& one : cases) {
    node.control(fmt::format("set {} {}", one.gpu, one.set));
    CHECK(now_of(one.gpu) == Causes{one.fault});
    const std::string key = std::string(one.set).substr(0, std::string(one.set).find('='));
    node.control(fmt::format("set {} {}={}", one.gpu, key, key == "temperature" ? 34 : 0));
    CHECK(now_of(one.gpu).empty());
  }
  node.control("fail nvmlDeviceGetMemoryInfo_v2 999");
  node.control("fail nvmlDeviceGetMemoryInfo 999");
  CHECK(now_of(0) == Causes{"2 gpu-no-answer: nvmlDeviceGetMemoryInfo: the driver reports an "
                            "unknown error"});
}

TEST_CASE("a GPU without memory of its own is not faulty") {
  FakeNode node(R"([{"model": "h100"}])");
  const Nvml& nvml = node.open();
  node.control("fail nvmlDeviceGetMemoryInfo_v2 3");
  node.control("fail nvmlDeviceGetMemoryInfo 3");
  CHECK(check(nvml, *nvml.device(0), {}, kNow).empty());
  CHECK(probe(nvml, *nvml.device(0), {}, nullptr, kNow).ok(0));
}

TEST_CASE("a probe reports processes, memory and faults that are left on a GPU or slice") {
  FakeNode node(R"([{"model": "h100", "count": 2}, {"model": "h100", "mig": true}])");
  node.control("make 2 9@4");
  node.control("make 2 9@0");
  const Nvml& nvml = node.open();
  const Discovery found = node.look();
  const auto gpu = [&](std::size_t i) {
    return probe(nvml, found.devices[i], HealthBaseline{}, nullptr, kNow).why(kIdleMemory);
  };
  CHECK(gpu(0).empty());
  node.control("process 0 4711 2048");
  node.control("process 0 4712 1 mps");
  CHECK(gpu(0) == "process 4711 is left on it; process 4712 is left on it");
  node.control("end 0 4711");
  node.control("end 0 4712");
  node.control("set 0 memory=5000");
  CHECK(gpu(0) == "5000 MiB of its memory are in use by no process");
  node.control("set 1 remap_pending=1");
  CHECK(gpu(1) == "gpu-row-remap: a memory row waits for a reset to be remapped");

  const auto slice = [&](std::size_t i) {
    return probe(nvml, found.devices[2], HealthBaseline{}, &found.inventory.gpus[2].slices[i], kNow)
        .why(kIdleMemory);
  };
  CHECK(slice(0).empty());
  node.control("process 2/1 99 3000");  // the process is in the slice at place 4
  CHECK(slice(0).empty());
  CHECK(slice(1) == "process 99 is left on it");
  MigSlice gone = found.inventory.gpus[2].slices[0];
  gone.uuid = "MIG-gone";
  CHECK(probe(nvml, found.devices[2], HealthBaseline{}, &gone, kNow).faults.at(0).domain ==
        FaultDomain::slice);
}

}  // namespace
}  // namespace gantry::gpu
