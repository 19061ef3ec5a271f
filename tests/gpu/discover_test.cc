// Tests discovery against the stand-in driver: which GPUs there are, in which order, into which
// slices they can be partitioned, and the reason if there is none or if one does not answer.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "noded/gpu/devices.h"
#include "tests/gpu/fake_node.h"

namespace gantry::gpu {
namespace {

const MigProfile& profile_named(const MigGeometry& geometry, std::string_view name) {
  for (const MigProfile& one : geometry.profiles)
    if (one.name == name) return one;
  FAIL("no profile " << std::string(name));
  return geometry.profiles.front();
}

TEST_CASE("a GPU's model is derived from the name that the driver gives") {
  CHECK(model_of("NVIDIA H100 80GB HBM3") == "h100");
  CHECK(model_of("NVIDIA H100 PCIe") == "h100");
  CHECK(model_of("NVIDIA H200 NVL") == "h200");
  CHECK(model_of("NVIDIA B200") == "b200");
  CHECK(model_of("NVIDIA GB200") == "gb200");
  CHECK(model_of("NVIDIA GH200 144G HBM3e") == "gh200");
  CHECK(model_of("NVIDIA A100-SXM4-40GB") == "a100");
  CHECK(model_of("NVIDIA A100 80GB PCIe") == "a100");
  CHECK(model_of("NVIDIA A30") == "a30");
  CHECK(model_of("NVIDIA L40S") == "l40s");
  CHECK(model_of("NVIDIA A10G") == "a10g");
  CHECK(model_of("Tesla V100-SXM2-16GB") == "v100");
  CHECK(model_of("Tesla T4") == "t4");
  CHECK(model_of("Tesla P100-PCIE-16GB") == "p100");
  CHECK(model_of("NVIDIA GeForce RTX 4090") == "rtx-4090");
  CHECK(model_of("NVIDIA RTX 6000 Ada Generation") == "rtx-6000-ada");
  CHECK(model_of("Quadro RTX 8000") == "rtx-8000");
  CHECK(model_of("NVIDIA TITAN V") == "titan-v");
  CHECK(model_of("Some_New Accelerator!") == "some-new-accelerator");
  CHECK(model_of("") == "gpu");
}

TEST_CASE("all properties of eight H100 are found") {
  FakeNode node(R"([{"model": "h100", "count": 8, "mig": true}])");
  node.open();
  const Discovery found = node.look();
  CHECK(found.warnings == std::vector<std::string>{});
  CHECK(found.inventory.driver == "550.54.15");
  CHECK(found.inventory.cuda == "12.4");
  CHECK(found.inventory.why_none.empty());
  REQUIRE(found.inventory.gpus.size() == 8);
  for (std::uint32_t i = 0; i < 8; ++i) {
    const GpuDevice& gpu = found.inventory.gpus[i];
    CHECK(gpu.index == i);
    CHECK(gpu.name == "NVIDIA H100 80GB HBM3");
    CHECK(gpu.model == "h100");
    CHECK(gpu.pci == fmt::format("0000:{:02x}:00.0", 0x18 + i));
    CHECK(gpu.minor == (i ^ 3));  // the minor differs from the index
    CHECK(gpu.numa == (i < 4 ? 0 : 1));
    CHECK(gpu.memory == std::int64_t{81559} << 20);
    CHECK(gpu.mig);
    CHECK(gpu.slices.empty());
    CHECK(gpu.uuid.starts_with("GPU-"));
    std::vector<std::uint32_t> links(8, 18);
    links[i] = 0;
    CHECK(gpu.nvlinks == links);
  }
  CHECK(found.inventory.gpus[0].uuid != found.inventory.gpus[1].uuid);
  REQUIRE(found.inventory.geometries.size() == 1);
  const MigGeometry& geometry = found.inventory.geometries[0];
  CHECK(geometry.model == "h100");
  CHECK(geometry.compute_slices == 7);
  CHECK(geometry.memory_slices == 8);
  CHECK(geometry.profiles.size() == 7);
  const MigProfile& three = profile_named(geometry, "3g.40gb");
  CHECK(three.id == 9);
  CHECK(three.compute_slices == 3);
  CHECK(three.memory_slices == 4);
  CHECK(three.starts == std::vector<std::uint32_t>{0, 4});
  CHECK(three.max_instances == 2);
  CHECK(profile_named(geometry, "1g.20gb").starts == std::vector<std::uint32_t>{0, 2, 4, 6});
}

TEST_CASE("a node with several models reports each model, and the links of a mesh") {
  FakeNode node(R"([{"model": "v100", "count": 4, "links": "mesh"}, {"model": "t4"},
                    {"model": "a30", "links": "none", "mig": true}])");
  node.open();
  const Discovery found = node.look();
  REQUIRE(found.inventory.gpus.size() == 6);
  CHECK(found.inventory.gpus[0].model == "v100");
  CHECK(found.inventory.gpus[0].nvlinks == std::vector<std::uint32_t>{0, 2, 2, 2, 0, 0});
  CHECK(found.inventory.gpus[4].model == "t4");
  CHECK(found.inventory.gpus[4].nvlinks == std::vector<std::uint32_t>{0, 0, 0, 0, 0, 0});
  REQUIRE(found.inventory.geometries.size() == 1);
  CHECK(found.inventory.geometries[0].model == "a30");
  CHECK(found.inventory.geometries[0].compute_slices == 4);
  CHECK(found.inventory.geometries[0].memory_slices == 4);
}

TEST_CASE("two sizes of one model have a geometry each") {
  FakeNode node(R"([{"model": "a100", "count": 2, "mig": true}, {"model": "a100-80gb"}])");
  node.open();
  const Discovery found = node.look();
  REQUIRE(found.inventory.gpus.size() == 3);
  CHECK(found.inventory.gpus[1].model == "a100");
  CHECK(found.inventory.gpus[2].model == "a100-80gb");
  REQUIRE(found.inventory.geometries.size() == 2);
  CHECK(find_geometry(found.inventory, "a100")->profiles[0].name == "7g.40gb");
  CHECK(find_geometry(found.inventory, "a100-80gb")->profiles[0].name == "7g.80gb");
  CHECK(found.warnings.size() == 1);
}

TEST_CASE("a driver with only old function names, and without names of profiles, is usable") {
  FakeNode node(R"([{"model": "h200", "count": 2, "mig": true}])", "old");
  node.control("make 0 9@4");
  node.open();
  const Discovery found = node.look();
  CHECK(found.warnings == std::vector<std::string>{});
  REQUIRE(found.inventory.gpus.size() == 2);
  CHECK(found.inventory.gpus[0].numa == 0);  // read from the kernel's files
  REQUIRE(found.inventory.geometries.size() == 1);
  std::vector<std::string> names;
  for (const MigProfile& one : found.inventory.geometries[0].profiles) names.push_back(one.name);
  CHECK(names == std::vector<std::string>{"7g.141gb", "4g.71gb", "3g.71gb", "2g.35gb", "1g.35gb",
                                          "1g.18gb", "1g.18gb+me"});
  REQUIRE(found.inventory.gpus[0].slices.size() == 1);
  CHECK(found.inventory.gpus[0].slices[0].start == 4);
}

TEST_CASE("slices made by hand are found, incomplete ones are named") {
  FakeNode node(R"([{"model": "h100", "count": 1, "mig": true}])");
  node.control("make 0 9@4");     // a complete slice
  node.control("make 0 14@0 1");  // it has only half of its compute slices
  node.control("make 0 19@2 0");  // it has no compute instance
  node.open();
  const Discovery found = node.look();
  const GpuDevice& gpu = found.inventory.gpus.at(0);
  REQUIRE(gpu.slices.size() == 1);
  CHECK(gpu.slices[0].profile == 9);
  CHECK(gpu.slices[0].start == 4);
  CHECK(gpu.slices[0].gpu_instance == 1);  // ids are given as on hardware
  CHECK(gpu.slices[0].compute_instance == 0);
  CHECK(gpu.slices[0].uuid.starts_with("MIG-"));
  REQUIRE(found.warnings.size() == 2);
  CHECK(found.warnings[0].find("2g.20gb at 0) has compute instances with parts of it") !=
        std::string::npos);
  CHECK(found.warnings[1].find("1g.10gb at 2) has no compute instance") != std::string::npos);
}

TEST_CASE("a pending change of the MIG mode is reported") {
  FakeNode node(R"([{"model": "a100", "count": 1}])");
  CHECK(node.control("mig 0 on") == "the GPU has to be reset\n");
  node.open();
  CHECK_FALSE(node.look().inventory.gpus.at(0).mig);
  REQUIRE(node.look().warnings.size() == 1);
  CHECK(node.look().warnings[0].find("MIG mode changes to on when it is reset") !=
        std::string::npos);
  node.control("reset 0");
  CHECK(node.look().inventory.gpus.at(0).mig);
}

TEST_CASE("one GPU that does not answer does not hide the others") {
  FakeNode node(R"([{"model": "h100", "count": 4}])");
  node.control("lost 1");
  node.open();
  const Discovery found = node.look();
  REQUIRE(found.inventory.gpus.size() == 3);
  CHECK(found.inventory.gpus[1].pci == "0000:1a:00.0");
  REQUIRE(found.warnings.size() == 1);
  CHECK(found.warnings[0] ==
        "the driver's GPU 1 does not answer: nvmlDeviceGetHandleByIndex_v2: the GPU has fallen off "
        "the bus");
  for (int i : {0, 2, 3}) node.control("lost " + std::to_string(i));
  CHECK(node.look().inventory.why_none == "none of the driver's 4 GPUs answers");
}

TEST_CASE("if a GPU does not support a query, only that property is left out") {
  FakeNode node(R"([{"model": "h100", "count": 2}])");
  node.control("fail nvmlDeviceGetMemoryInfo_v2 3");
  node.control("fail nvmlDeviceGetMemoryInfo 3");
  node.control("fail nvmlDeviceGetGpuInstancePossiblePlacements_v2 3");
  node.open();
  const Discovery found = node.look();
  CHECK(found.warnings == std::vector<std::string>{});
  REQUIRE(found.inventory.gpus.size() == 2);
  CHECK(found.inventory.gpus[0].memory == 0);
  CHECK(found.inventory.geometries.empty());
}

TEST_CASE("without a driver or GPUs the reason is given") {
  const auto missing = Nvml::open("libnvidia-ml.so.nowhere");
  REQUIRE_FALSE(missing);
  CHECK(no_gpus(missing.error()).why_none == "libnvidia-ml.so.nowhere not found");

  const auto foreign = Nvml::open("libm.so.6");
  REQUIRE_FALSE(foreign);
  CHECK(foreign.error().message == "libm.so.6 has no nvmlInit_v2");

  FakeNode node("[]");
  node.open();
  CHECK(node.look().inventory.why_none == "the NVIDIA driver finds no GPU");
  node.close();

  node.control("fail nvmlInit_v2 18 1");
  const auto mismatch = Nvml::open(FakeNode::library());
  REQUIRE_FALSE(mismatch);
  CHECK(mismatch.error().message.find("are of different versions") != std::string::npos);

  node.control("fail nvmlInit_v2 9 1");
  const auto unloaded = Nvml::open(FakeNode::library());
  REQUIRE_FALSE(unloaded);
  CHECK(unloaded.error().message == "the NVIDIA driver is not loaded");
}

TEST_CASE("a GPU and a slice have the device files that the kernel's numbers give") {
  FakeNode node(R"([{"model": "h100", "count": 2, "mig": true}])");
  node.control("make 1 19@6");
  node.open();
  const Discovery found = node.look();
  const auto numbers = read_device_numbers(node.roots());
  REQUIRE(numbers);
  const auto common = common_device_files(*numbers);
  REQUIRE(common);
  CHECK(*common == std::vector<DeviceFile>{{"/dev/nvidiactl", 195, 255, "rw"},
                                           {"/dev/nvidia-uvm", 508, 0, "rw"},
                                           {"/dev/nvidia-uvm-tools", 508, 1, "rw"}});
  const GpuDevice& gpu = found.inventory.gpus.at(1);
  const auto whole = device_files(*numbers, gpu);
  REQUIRE(whole);
  CHECK(*whole == std::vector<DeviceFile>{{"/dev/nvidia2", 195, 2, "rw"}});
  const auto slice = device_files(*numbers, gpu, gpu.slices.at(0));
  REQUIRE(slice);
  const std::uint32_t cap = 3 + 135 * 2 + 9 * 13;  // the instance at place 6 is GPU instance 13
  CHECK(*slice == std::vector<DeviceFile>{
                      {"/dev/nvidia2", 195, 2, "rw"},
                      {fmt::format("/dev/nvidia-caps/nvidia-cap{}", cap), 511, cap, "r"},
                      {fmt::format("/dev/nvidia-caps/nvidia-cap{}", cap + 1), 511, cap + 1, "r"}});
}

TEST_CASE("an error names the device number that the kernel's lists lack") {
  const auto none = parse_device_numbers("Block devices:\n195 nvidia\n", "");
  REQUIRE_FALSE(common_device_files(none));
  CHECK(common_device_files(none).error().message.find("kernel module is not loaded") !=
        std::string::npos);
  const auto no_uvm = parse_device_numbers("Character devices:\n195 nvidia-frontend\n", "");
  CHECK(common_device_files(no_uvm).error().message ==
        "/proc/devices lists no nvidia-uvm: load the kernel module nvidia-uvm");
  const auto no_caps =
      parse_device_numbers("Character devices:\n195 nvidia-frontend\n511 nvidia-caps\n",
                           "config 1\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\n");
  GpuDevice gpu;
  MigSlice slice;
  slice.gpu_instance = 1;
  REQUIRE(device_files(no_caps, gpu, slice));
  CHECK(device_files(no_caps, gpu, slice)->at(2).minor == 13);
  slice.gpu_instance = 2;
  CHECK(device_files(no_caps, gpu, slice).error().message ==
        "/proc/driver/nvidia-caps/mig-minors has no gpu0/gi2/access");
}

TEST_CASE("wanted slices are compared with existing ones by UUID") {
  const MigSlice a{19, 0, 7, 0, "MIG-a"}, b{19, 1, 8, 0, "MIG-b"}, c{9, 4, 1, 0, "MIG-c"};
  // this slice has the same place, but was made anew, so it is not the wanted one
  MigSlice b_again = b;
  b_again.uuid = "MIG-x";
  const Difference diff = reconcile({a, b}, {a, b_again, c});
  CHECK(diff.kept == std::vector<MigSlice>{a});
  CHECK(diff.missing == std::vector<MigSlice>{b});
  CHECK(diff.foreign == std::vector<MigSlice>{b_again, c});
}

TEST_CASE("ten thousand GPUs can be listed") {
  FakeNode node(R"([{"model": "h100", "count": 10000, "mig": true, "links": "none"}])");
  Nvml& nvml = node.open();
  CHECK(nvml.count() == 10'000);
  CHECK(nvml.uuid(*nvml.device(9'999)).has_value());
}

}  // namespace
}  // namespace gantry::gpu
