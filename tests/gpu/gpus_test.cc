// Tests noded/gpu/node/gpus.h, the daemon's side, with a loop and the stand-in driver: whatever the
// driver does or fails to do, the loop is never blocked.
#include "noded/gpu/node/gpus.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "noded/runtime/job_dir.h"
#include "tests/gpu/node_gpus.h"

namespace gantry::node {
namespace {

TEST_CASE("a driver that stops answering closes idle GPUs and does not block the loop") {
  GpuNode n(R"([{"model": "h100", "count": 3}])");
  n.start();
  n.watch();
  n.prepare(kJob, {whole(0)});
  REQUIRE(n.until([&] { return n.prepared.contains(kJob); }));
  REQUIRE(n.prepared.at(kJob));
  CHECK(n.prepared.at(kJob)->env.at("SLURM_JOB_GPUS") == "0");

  n.fake.control("slow nvmlDeviceGetMemoryInfo_v2 8000 1");
  REQUIRE(n.until([&] { return n.has(1, "gpu-no-answer: "); }));
  CHECK(n.turns > 50);  // the loop ran all the time
  CHECK(n.has(2, "gpu-no-answer: "));
  // The GPU stays open, because its job runs on.
  CHECK(n.has(0, "gpu-no-answer: ", FaultDomain::none));
  n.prepare(kOther, {whole(1)});
  REQUIRE(n.prepared.contains(kOther));
  CHECK_FALSE(n.prepared.at(kOther));
  n.gpus->released(kJob);  // the job ends, so its GPU is closed as well
  n.told.clear();
  REQUIRE(n.until([&] { return !n.has(1, "gpu-no-answer: "); }));
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(n.gpus->inventory().gpus[i].faults.empty());
}

TEST_CASE("a driver that does not answer when the daemon starts is used as soon as it answers") {
  GpuNode n(R"([{"model": "h100", "count": 2}])");
  n.fake.control("slow nvmlInit_v2 5000 1");
  n.start();
  CHECK(n.gpus->inventory().gpus.empty());
  CHECK(n.gpus->inventory().why_none == "the driver does not answer");
  n.watch();
  REQUIRE(n.until([&] {
    return n.gpus->inventory().gpus.size() == 2 && n.gpus->inventory().gpus[0].faults.empty();
  }));
}

TEST_CASE("a job that ends while its GPUs are prepared is forgotten") {
  GpuNode n(R"([{"model": "h100", "count": 1, "mig": true}])");
  n.start();
  n.watch();
  n.fake.control("slow nvmlDeviceCreateGpuInstanceWithPlacement 300 1");
  n.prepare(kJob, {slice(0, 19, 0, 133)});
  n.gpus->released(kJob);
  // this destroys the slice of the first job, which no job has now
  n.prepare(kOther, {slice(0, 9, 0, 464)});
  REQUIRE(n.until([&] { return n.prepared.contains(kOther); }));
  INFO((n.prepared.at(kOther) ? "" : n.prepared.at(kOther).error().message));
  CHECK(n.prepared.at(kOther));
  CHECK_FALSE(n.prepared.contains(kJob));
}

TEST_CASE("slices that were made by hand are used as they are, and no others are made") {
  GpuNode n(R"([{"model": "h100", "count": 1, "mig": true}])");
  n.declared.mig_by_hand = true;
  n.fake.control("make 0 9@0");
  n.start();
  n.watch();
  n.prepare(kJob, {slice(0, 19, 4, 133)});
  n.prepare(kOther, {slice(0, 9, 0, 464)});
  REQUIRE(n.until([&] { return n.prepared.size() == 2; }));
  CHECK_FALSE(n.prepared.at(kJob));
  CHECK(n.prepared.at(kOther));
  CHECK(n.gpus->inventory().gpus[0].slices.size() == 1);
}

TEST_CASE("faults from the time without a daemon are found in the kernel's log, once") {
  GpuNode n(R"([{"model": "h100", "count": 2, "links": "mesh"}])");
  const auto log = [&](Duration at, std::uint32_t gpu, std::uint32_t xid) {
    std::ofstream(n.fake.dir() + "/dev/kmsg", std::ios::app)
        << "6,1," << at.us
        << ",-;NVRM: Xid (PCI:" << n.gpus->inventory().gpus[gpu].pci.substr(0, 10 + 2)
        << "): " << xid << ", pid=1\n"
        << " SUBSYSTEM=pci\n";
  };
  n.start();
  n.watch();
  REQUIRE(n.until([&] { return !n.told.empty() && n.told.back().gpus.size() == 2; }));
  const Duration before = runtime::since_boot() - seconds(100);
  log(before, 0, 48);  // the first daemon ran then and has handled it
  log(runtime::since_boot() + seconds(1), 1, 79);
  log(runtime::since_boot() + seconds(1), 1, 13);  // this Xid is only reported
  n.stop();
  n.start();
  CHECK(n.gpus->inventory().gpus[0].faults.empty());
  REQUIRE(n.gpus->inventory().gpus[1].faults.size() == 1);
  CHECK(n.has(1, "gpu-xid-79: "));
  n.watch();
  // The GPU has proved that it works.
  REQUIRE(n.until([&] { return n.gpus->inventory().gpus[1].faults.empty(); }));
}

TEST_CASE("faults are kept when a slice is made, and over a restart") {
  GpuNode n(R"([{"model": "h100", "count": 2, "mig": true}])");
  n.fake.control("set 0 remap_failed=1");
  n.start({seconds(3600), seconds(3600), seconds(60)});
  CHECK(n.has(0, "gpu-row-remap: "));  // the fault is known before the first registration
  const Instant since = n.gpus->inventory().gpus[0].faults[0].since;
  n.watch();
  n.prepare(kJob, {slice(1, 19, 0, 133)});
  REQUIRE(n.until([&] { return n.gpus->inventory().gpus[1].slices.size() == 1; }));
  CHECK(n.has(0, "gpu-row-remap: ", FaultDomain::gpu));
  n.stop();
  n.start({seconds(3600), seconds(3600), seconds(60)});
  REQUIRE(n.has(0, "gpu-row-remap: "));
  CHECK(n.gpus->inventory().gpus[0].faults[0].since == since);
}

TEST_CASE("an Xid that harms jobs only is reported as a fault and withdrawn at once") {
  GpuNode n(R"([{"model": "h100", "count": 1}])");
  n.start();
  n.watch();
  n.prepare(kJob, {whole(0)});  // events are received once the job is prepared
  REQUIRE(n.until([&] { return n.prepared.contains(kJob); }));
  n.told.clear();
  n.fake.control("xid 0 94");
  REQUIRE(n.until([&] { return n.told.size() >= 2; }));
  REQUIRE(n.told[0].gpus[0].faults.size() == 1);
  CHECK(n.told[0].gpus[0].faults[0].cause == "gpu-xid-94: contained memory error");
  CHECK(n.told[1].gpus[0].faults.empty());
}

}  // namespace
}  // namespace gantry::node
