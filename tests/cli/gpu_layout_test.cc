// Tests how ginfo draws GPUs, and how it finds differences between expected and found GPUs.
#include "cli/cluster/daemons.h"
#include "cli/columns/gpu_columns.h"

#include <doctest/doctest.h>

using namespace gantry;
using namespace gantry::cli;

namespace {

GpuThousandths::in<std::uint16_t> weight(std::uint16_t thousandths) {
  return GpuThousandths::in<std::uint16_t>(thousandths);
}

proto::NodeRow node(const std::string& name) {
  proto::NodeRow row;
  row.name = name;
  row.total.row(Resource::gpu) = 2 * kGpuUnit;
  row.gpus.driver = "550.54";
  row.gpus.cuda = "12.4";
  row.gpus.geometries = {
      {"h100",
       7,
       8,
       {{"1g.10gb", 19, 1, 1, 0, 7, {0, 1, 2, 3, 4, 5, 6}}, {"3g.40gb", 9, 3, 4, 0, 2, {0, 4}}}}};
  for (std::uint32_t i = 0; i < 2; ++i) {
    GpuDevice gpu;
    gpu.index = i;
    gpu.model = "h100";
    gpu.mig = i == 1;
    row.gpus.gpus.push_back(gpu);
  }
  return row;
}

}  // namespace

TEST_CASE("the slices of GPUs are drawn below each other") {
  auto one = node("n1"), two = node("node2");
  one.gpus.gpus[1].slices = {{9, 0, 1, 0, "a"}, {19, 4, 2, 0, "b"}};
  one.holders = {{{0, std::nullopt, 0}, JobId{5}, "main"},
                 {{1, 9, 0, weight(464)}, JobId{17}, "main"}};
  two.gpus.gpus[0].faults = {{FaultDomain::gpu, "gpu-xid-79: fallen off the bus", 0, Instant{}}};
  two.holders = {{{1, 19, 6, weight(133)}, JobId{}, ""}};
  const auto lines = layout_lines({one, two}, 60);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "n1      0 h100  [job 5 main                            ]");
  CHECK(lines[1] == "n1      1 h100  [3g.40gb job 17 mai](1g.)...............");
  CHECK(lines[2] == "node2   0 h100  out of service: gpu-xid-79: fallen off the bus");
  CHECK(lines[3] == "node2   1 h100  ..............................[1g.].....");
}

TEST_CASE("a drained GPU shows its job until the job ends, and then who drained it and why") {
  auto one = node("n1");
  one.gpus.gpus[0].uuid = "GPU-0";
  one.gpus.gpus[1].uuid = "GPU-1";
  one.holders = {{{0, std::nullopt, 0}, JobId{5}, "main"}};
  one.drained_gpus = {{"GPU-0", "a noisy fan", "root", Instant{}},
                      {"GPU-1", "new thermal paste", "bob", Instant{}}};
  const auto lines = layout_lines({one}, 60);
  CHECK(lines == std::vector<std::string>{"n1     0 h100  [job 5 main                            ]",
                                          "n1     1 h100  drained by bob: new thermal paste"});
  const auto column = [](const GpuRow& row, std::string_view name) {
    std::string out;
    for (const Column<GpuRow>& c : gpu_columns())
      if (c.name == name) c.put(out, row);
    return out;
  };
  const std::vector<proto::NodeRow> nodes{one};
  const auto rows = gpu_rows(nodes);
  REQUIRE(rows.size() == 2);
  CHECK(column(rows[0], "State") == "draining");
  CHECK(column(rows[1], "State") == "drained");
  CHECK(column(rows[1], "Cause") == "drained by bob: new thermal paste since 1970-01-01T00:00:00");
  one.gpus.gpus[1].faults = {{FaultDomain::gpu, "gpu-lost: x", 0, Instant{}}};
  const std::vector<proto::NodeRow> failed{one};
  const auto both = gpu_rows(failed);
  CHECK(column(both[1], "State") == "failed");
  CHECK(column(both[1], "Cause") ==
        "gpu-lost: x since 1970-01-01T00:00:00; drained by bob: new "
        "thermal paste since 1970-01-01T00:00:00");
}

TEST_CASE(
    "drift lists the devices that no job needs, those that are missing, and the faulty ones") {
  auto one = node("n1"), two = node("n2"), three = node("n3");
  CHECK(drift_of({one, two, three}).empty());
  one.gpus.gpus[1].slices = {{19, 4, 2, 0, "b"}};
  one.holders = {{{1, 9, 0, weight(464)}, JobId{17}, "main"}};
  two.gpus.driver = "535.1";
  two.gpus.gpus[0].faults = {{FaultDomain::gpu, "gpu-lost: x", 0, Instant{}}};
  three.gpus = {};
  three.gpus.why_none = "the driver is not loaded";
  const auto drift = drift_of({one, two, three, node("n4")});
  CHECK(drift == std::vector<Drift>{
                     {"n1", "1", "-", "1g.10gb@4 idle"},
                     {"n1", "1", "3g.40gb@0 of job 17", "-"},
                     {"n2", "", "driver 550.54", "driver 535.1"},
                     {"n2", "0", "sound", "gpu-lost: x"},
                     {"n3", "", "2 GPUs", "none: the driver is not loaded"},
                 });
}

TEST_CASE("gantry check says why a node has no GPUs, and does not complain about idle slices") {
  auto one = node("n1"), two = node("n2");
  one.health = two.health = NodeHealth::up;
  one.gpus.gpus[1].slices = {{19, 4, 2, 0, "b"}};
  CHECK(check_cluster({one, two}).empty());
  two.gpus = {};
  two.gpus.why_none = "libnvidia-ml.so.1 is not there";
  one.intent = NodeIntent::drain;
  one.reason = "gpu-xid-151: x";
  CHECK(check_cluster({one, two}) ==
        std::vector<std::string>{"n1: drain: gpu-xid-151: x",
                                 "n2: no GPUs, 2 GPUs declared: libnvidia-ml.so.1 is not there"});
}

TEST_CASE("gantry check says where which layers of isolation are off") {
  auto one = node("n1"), two = node("n2"), three = node("n3");
  one.layers_off = two.layers_off = {"networks of jobs: the kernel has no VXLAN"};
  two.layers_off.push_back("device filter: no cgroup may be made");
  CHECK(layers_that_are_off({one, two, three}) ==
        std::vector<std::string>{"n2: device filter: no cgroup may be made",
                                 "n[1-2]: networks of jobs: the kernel has no VXLAN"});
  CHECK(layers_that_are_off({three}).empty());
}
