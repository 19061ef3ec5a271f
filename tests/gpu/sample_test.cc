// Tests the series of a job's GPU use, and the sampler against the stand-in driver.
#include "noded/gpu/health/sample.h"

#include <doctest/doctest.h>

#include <random>

#include "common/codec/codec.h"
#include "tests/gpu/fake_node.h"

namespace gantry::gpu {
namespace {

constexpr Instant kStart{1'000'000'000};
constexpr Duration kInterval = seconds(5);

Reading reading(std::uint32_t busy, std::uint64_t mib, std::uint32_t watts) {
  return {busy, mib << 20, watts * 1000};
}

TEST_CASE("a series of any length has a bounded number of points and exact means") {
  UsageSeries series(kStart, kInterval);
  std::uint64_t busy = 0;
  constexpr int kSteps = 17'280;  // a day at one step every 5 s
  for (int i = 0; i < kSteps; ++i) {
    const auto value = static_cast<std::uint32_t>(i % 101);
    busy += value;
    series.add(kStart + kInterval * i, reading(value, i == 9'000 ? 70'000 : 100, 300));
  }
  const auto points = series.points();
  CHECK(points.size() <= kSeriesPoints);
  CHECK(points.size() > kSeriesPoints / 2);
  CHECK(series.interval() == seconds(640));
  std::uint32_t peak = 0;
  for (const auto& point : points) {
    REQUIRE(point);
    CHECK(point->power_w == 300);
    peak = std::max(peak, point->memory_mib);
  }
  CHECK(peak == 70'000);  // a short peak is still visible
  const GpuUsage usage = series.stored("GPU-x", "h100");
  CHECK(usage.samples == kSteps);
  CHECK(usage.busy_permille == busy * 10 / kSteps);
  CHECK(usage.memory_peak_mib == 70'000);
  CHECK(usage.energy_j == 300u * 5 * (kSteps - 1));
  CHECK(usage.data.size() < 1024);
  const auto back = decode_points(usage.data, usage.points);
  REQUIRE(back);
  CHECK(*back == points);
}

TEST_CASE("gaps and unknown values differ from zero") {
  UsageSeries series(kStart, kInterval);
  series.add(kStart, reading(0, 0, 0));
  series.add(kStart + kInterval * 3, Reading{std::nullopt, 5 << 20, std::nullopt});
  const auto points = series.points();
  REQUIRE(points.size() == 4);
  CHECK(points[0]->busy == 0);
  CHECK(points[0]->power_w == 0);
  CHECK_FALSE(points[1]);
  CHECK_FALSE(points[2]);
  CHECK_FALSE(points[3]->busy);
  CHECK_FALSE(points[3]->power_w);
  CHECK(*decode_points(encode_points(points), 4) == points);
}

TEST_CASE("a stored series that is damaged is refused") {
  UsageSeries series(kStart, kInterval);
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i)
    series.add(kStart + kInterval * i, reading(random() % 101, random() % 80'000, random() % 700));
  const GpuUsage usage = series.stored("GPU-x", "h100");
  for (std::size_t cut = 0; cut < usage.data.size(); ++cut)
    CHECK_FALSE(decode_points(usage.data.substr(0, cut), usage.points));
  CHECK_FALSE(decode_points(usage.data + "x", usage.points));
  CHECK_FALSE(decode_points("", 1'000'000));
  for (int i = 0; i < 2000; ++i) {
    std::string noise = usage.data;
    noise[random() % noise.size()] = static_cast<char>(random());
    if (const auto points = decode_points(noise, usage.points))
      CHECK(points->size() == usage.points);
  }
  const auto coded = codec::decode<GpuUsage>(codec::encode(usage));
  REQUIRE(coded);
  CHECK(coded->data == usage.data);
}

TEST_CASE("whole GPUs have measured utilisation, memory and energy") {
  FakeNode node(R"([{"model": "h100", "count": 2}])");
  const Nvml& nvml = node.open();
  const Discovery found = node.look();
  GpuSampler sampler(nvml, found, kInterval);
  const auto job = sampler.begin(1, nullptr, kStart);
  const auto sharing = sampler.begin(1, nullptr, kStart);
  REQUIRE(job);
  REQUIRE(sharing);
  CHECK_FALSE(sampler.begin(2, nullptr, kStart));
  sampler.step(kStart + seconds(5));
  CHECK_FALSE(sampler.activity()[0].last_busy);
  CHECK_FALSE(sampler.activity()[0].last_process);
  node.control("set 1 utilization=80 memory=1000 power=500");
  node.control("process 1 42 24");
  for (int i = 2; i <= 8; ++i) sampler.step(kStart + seconds(5) * i);
  const auto now = sampler.activity();
  REQUIRE(now.size() == 2);
  CHECK(now[0].reading->busy == 80);
  CHECK(now[0].reading->memory == std::uint64_t{1024} << 20);
  CHECK(now[0].last_busy == kStart + seconds(40));
  CHECK(now[0].last_process == kStart + seconds(35));
  const auto usage = sampler.end(*job);
  REQUIRE(usage);
  CHECK(usage->name == "h100");
  CHECK(usage->uuid == found.inventory.gpus[1].uuid);
  CHECK(usage->busy_permille == 700);
  CHECK(usage->memory_peak_mib == 1024);
  CHECK(usage->energy_j == 70 * 5 + 500 * 35);
  CHECK_FALSE(sampler.end(*job));
  CHECK(sampler.activity().size() == 1);
}

TEST_CASE("each slice has its own utilisation and memory, and its share of the power") {
  FakeNode node(R"([{"model": "h100", "mig": true}])");
  node.control("make 0 9@4");
  node.control("make 0 14@0");
  const Nvml& nvml = node.open();
  const Discovery found = node.look();
  const auto& slices = found.inventory.gpus[0].slices;
  GpuSampler sampler(nvml, found, kInterval);
  const auto two = sampler.begin(0, &slices[0], kStart);
  const auto three = sampler.begin(0, &slices[1], kStart);
  REQUIRE(two);
  REQUIRE(three);
  node.control("set 0/1 utilization=60 memory=3000");
  node.control("set 0 power=350");
  for (int i = 1; i <= 3; ++i) sampler.step(kStart + kInterval * i);
  const auto now = sampler.activity();
  CHECK(now[0].reading->busy == 0);
  CHECK(now[1].reading->busy == 60);
  CHECK(now[1].reading->memory == std::uint64_t{3000} << 20);
  CHECK(now[0].reading->power_mw == 100'000);  // the GPU's power times 2 of 7 compute slices
  CHECK(now[1].reading->power_mw == 150'000);
  const auto usage = sampler.so_far(*three);
  CHECK(usage->name == "h100 3g.40gb");
  CHECK(usage->busy_permille == 600);
  CHECK(usage->busy_samples == 2);  // the first step has nothing to compare with

  node.control("lost 0");
  sampler.step(kStart + kInterval * 4);
  CHECK_FALSE(sampler.activity()[0].reading);
  CHECK(sampler.end(*three)->samples == 3);
  MigSlice gone = slices[0];
  gone.uuid = "MIG-gone";
  CHECK_FALSE(sampler.begin(0, &gone, kStart));
}

TEST_CASE("the utilisation of slices is unknown on a GPU without GPM") {
  FakeNode node(R"([{"model": "a100", "mig": true}])");
  node.control("make 0 9@4");
  const Nvml& nvml = node.open();
  const Discovery found = node.look();
  GpuSampler sampler(nvml, found, kInterval);
  const auto track = sampler.begin(0, &found.inventory.gpus[0].slices[0], kStart);
  REQUIRE(track);
  for (int i = 1; i <= 3; ++i) sampler.step(kStart + kInterval * i);
  const auto usage = sampler.end(*track);
  CHECK(usage->samples == 3);
  CHECK(usage->busy_samples == 0);
}

}  // namespace
}  // namespace gantry::gpu
