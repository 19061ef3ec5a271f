// Tests the stand-in driver against what is known of hardware: its tables, and the behaviour of
// NVML on which Gantry relies.
#include <doctest/doctest.h>
#include <time.h>

#include <fstream>
#include <sstream>

#include "common/codec/json_io.h"
#include "tests/gpu/fake_node.h"
#include "tests/nvml/rules.h"
#include "tests/places.h"

namespace gantry::gpu {
namespace {

// Reads the collected facts if they are beside the checkout; without them nothing is compared.
std::string collected_facts() {
  std::ifstream in(source_dir() + "/../shared/mig-profiles.json");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::uint32_t number(codec::JsonNode node, std::string_view key) {
  const auto value = node.find(key);
  return value ? static_cast<std::uint32_t>(value->uint().value_or(0)) : 0;
}

void compare(codec::JsonNode facts, const fake::Model& model) {
  CHECK(number(facts, "compute_slices") == model.compute_slices);
  CHECK(number(facts, "memory_slices") == model.memory_slices);
  const auto profiles = *facts.find("profiles");
  REQUIRE(profiles.size() == model.profiles.size());
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const auto fact = profiles.item(i);
    const fake::ProfileModel& own = model.profiles[i];
    INFO(std::string(model.key), " ", std::string(own.name));
    CHECK(fact.find("name")->string() == own.name);
    CHECK(number(fact, "nvml_profile_index") == own.index);
    CHECK(number(fact, "gi_profile_id") == own.id);
    CHECK(number(fact, "compute_slices") == own.compute_slices);
    CHECK(number(fact, "memory_slices") == own.memory_slices);
    CHECK(number(fact, "max_instances") == own.most);
    const auto starts = *fact.find("placement_starts");
    REQUIRE(starts.size() == own.starts.size());
    for (std::size_t k = 0; k < starts.size(); ++k) CHECK(starts.item(k).uint() == own.starts[k]);
    if (const auto gib = fact.find("memory_gib_lgip")->real())
      CHECK(own.memory_mib / 1024.0 == doctest::Approx(*gib).epsilon(0.05));
  }
}

TEST_CASE("the stand-in's models agree with the collected facts") {
  const std::string text = collected_facts();
  if (text.empty()) return;
  const auto document = codec::JsonDocument::parse(text);
  REQUIRE(document);
  const auto gpus = *document->root().find("gpus");
  std::size_t compared = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (const fake::Model& model : fake::models()) {
      const auto names = *gpus.item(i).find("names");
      for (std::size_t k = 0; k < names.size(); ++k)
        if (names.item(k).string() == model.name) {
          compare(gpus.item(i), model);
          ++compared;
        }
    }
  CHECK(compared == 6);
}

TEST_CASE("GPU instances get the ids that they get on hardware") {
  FakeNode node(R"([{"model": "h100", "mig": true}])");
  const auto id_at = [&](std::uint32_t profile, std::uint32_t start) {
    fake::InstanceState* made = nullptr;
    REQUIRE(fake::create_instance(node.state(), node.state().gpus[0], profile, start, made) ==
            nvml::Return::success);
    const std::uint32_t id = made->id;
    CHECK(fake::destroy_instance(node.state().gpus[0], *made) == nvml::Return::success);
    return id;
  };
  CHECK(id_at(0, 0) == 0);
  CHECK(id_at(9, 4) == 1);
  CHECK(id_at(9, 0) == 2);
  CHECK(id_at(5, 0) == 2);
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(id_at(14, 2 * i) == 3 + i);
  CHECK(id_at(15, 6) == 6);
  for (std::uint32_t i = 0; i < 7; ++i) CHECK(id_at(19, i) == 7 + i);
}

TEST_CASE("as in NVIDIA's guide, the order of placements decides what still fits") {
  FakeNode node(R"([{"model": "a100", "mig": true}])");
  fake::GpuState& gpu = node.state().gpus[0];
  const auto make = [&](std::uint32_t profile, std::uint32_t start) {
    fake::InstanceState* made = nullptr;
    return fake::create_instance(node.state(), gpu, profile, start, made);
  };
  CHECK(make(19, 0) == nvml::Return::success);
  CHECK(make(19, 4) == nvml::Return::success);  // after this neither place of a 3g slice is free
  CHECK(make(14, 2) == nvml::Return::success);
  CHECK(make(9, 0) == nvml::Return::insufficient_resources);
  CHECK(make(9, 4) == nvml::Return::insufficient_resources);
  fake::reset(gpu);
  CHECK(make(9, 4) == nvml::Return::success);
  CHECK(make(19, 0) == nvml::Return::success);
  CHECK(make(14, 2) == nvml::Return::success);
  CHECK(make(19, 1) == nvml::Return::success);
  CHECK(make(20, 1) == nvml::Return::insufficient_resources);
}

TEST_CASE("the stand-in answers as NVML does in unusual cases") {
  FakeNode node(R"([{"model": "h100", "mig": true}])");
  const Nvml& nvml = node.open();
  const nvml::Device gpu = *nvml.device(0);
  CHECK(nvml.device(1).error().code == nvml::Return::invalid_argument);
  // 3 is the index of a profile, not its id.
  CHECK(nvml.placements(gpu, 3).error().code == nvml::Return::not_supported);
  // The GPU is in MIG mode.
  CHECK(nvml.utilization(gpu).error().code == nvml::Return::not_supported);
  CHECK(nvml.create(gpu, 9, {2, 4}).error().code == nvml::Return::invalid_argument);
  CHECK(nvml.create(gpu, 9, {4, 3}).error().code == nvml::Return::invalid_argument);
  const auto instance = nvml.create(gpu, 9, {4, 4});
  REQUIRE(instance);
  CHECK(nvml.create(gpu, 19, {5, 1}).error().code == nvml::Return::insufficient_resources);
  const auto compute = nvml.create(*instance, nvml.compute_profiles(*instance)->back().id);
  REQUIRE(compute);
  CHECK(nvml.destroy(*instance).error().code == nvml::Return::in_use);
  REQUIRE(nvml.destroy(*compute));
  CHECK(nvml.info(*compute).error().code == nvml::Return::not_found);  // the handle is stale
  REQUIRE(nvml.destroy(*instance));
  const auto again = nvml.create(gpu, 9, {4, 4});
  REQUIRE(again);
  CHECK(nvml.info(*instance).error().code == nvml::Return::not_found);
  CHECK(nvml.info(*again)->id == 1);
}

TEST_CASE(
    "the MIG mode changes at once or at a reset, depending on the model, never while in use") {
  FakeNode node(R"([{"model": "h100"}, {"model": "a30"}])");
  CHECK(node.control("mig 0 on").empty());
  CHECK(node.control("mig 1 on") == "the GPU has to be reset\n");
  node.control("make 0 19@0");
  CHECK(node.control("mig 0 off") == "it is in use\n");
  const Nvml& nvml = node.open();
  CHECK(nvml.mig_mode(*nvml.device(0))->now);
  CHECK_FALSE(nvml.mig_mode(*nvml.device(1))->now);
  CHECK(nvml.mig_mode(*nvml.device(1))->after_reset);
}

TEST_CASE("slices outlive the process that made them") {
  FakeNode node(R"([{"model": "h100", "mig": true}])");
  node.open();
  node.control("make 0 9@0");
  const auto before = node.look().inventory.gpus;
  node.close();  // the daemon is restarted
  node.open();
  CHECK(node.look().inventory.gpus == before);
  node.control("reset 0");
  CHECK(node.look().inventory.gpus[0].slices.empty());
}

TEST_CASE("calls can be made to fail or to take long") {
  FakeNode node(R"([{"model": "h100", "count": 2}])");
  const Nvml& nvml = node.open();
  const nvml::Device first = *nvml.device(0), second = *nvml.device(1);
  node.control("fail nvmlDeviceGetPowerUsage 999 2 1");  // only GPU 1 fails
  CHECK(nvml.power_mw(first) == 70'000);
  CHECK_FALSE(nvml.power_mw(second));
  CHECK_FALSE(nvml.power_mw(second));
  CHECK(nvml.power_mw(second));
  node.control("slow nvmlDeviceGetPowerUsage 30 1");
  const auto now_ms = [] {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1'000'000;
  };
  const auto start = now_ms();
  CHECK(nvml.power_mw(first));
  CHECK(now_ms() - start >= 29);
  CHECK_FALSE(fake::control(node.state(), "explode 0"));
  CHECK_FALSE(fake::control(node.state(), "xid 0"));
  CHECK_FALSE(fake::control(node.state(), "xid 9 79"));
  CHECK_FALSE(fake::control(node.state(), "set 0 speed=1"));
}

TEST_CASE("the command show draws the layout of each GPU") {
  FakeNode node(R"([{"model": "h100", "mig": true}, {"model": "t4"}])");
  node.control("make 0 9@4");
  node.control("make 0 15@0");
  node.control("make 0 19@3 0");
  node.control("set 1 utilization=50 power=40");
  CHECK(node.control("show") ==
        "GPU 0   h100       00:18 nvidia3     0%      0 MiB   70 W  "
        "[1g.20gb-].....[???][3g.40gb-----------]\n"
        "GPU 1   t4         00:19 nvidia2    50%      0 MiB   40 W  whole\n");
  node.control("xid 1 79");
  CHECK(node.control("show").ends_with("off the bus\n"));
}

}  // namespace
}  // namespace gantry::gpu
