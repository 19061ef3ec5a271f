// The daemon's side of a node's GPUs, with a loop and the stand-in driver, for tests.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "noded/gpu/node/gpus.h"
#include "tests/gpu/fake_node.h"

namespace gantry::node {

inline constexpr GpuTimes kQuick{milliseconds(50), milliseconds(200), milliseconds(1500),
                                 milliseconds(50), milliseconds(300)};
inline const AttemptKey kJob{JobId(7), Attempt(1)}, kOther{JobId(8), Attempt(1)};

class GpuNode {
 public:
  explicit GpuNode(const std::string& gpus)
      : fake(gpus), log(*Logger::open({"test", fake.dir() + "/log", LogLevel::error})) {
    static_cast<void>(fake.roots());
    declared.name = "n1";
    config.gpu_library = gpu::FakeNode::library();
    config.gpu_root = fake.dir();
    config.state_dir = fake.dir() + "/state";
    config.run_dir = fake.dir() + "/run";
  }
  ~GpuNode() { stop(); }

  static std::string bin_dir() {
    return std::filesystem::path(gpu::FakeNode::library()).parent_path().parent_path() / "bin";
  }
  void start(GpuTimes times = kQuick) {
    gpus = std::make_unique<Gpus>(config, declared, "boot-1", bin_dir(), loop, log, times);
  }
  void watch() {
    gpus->watch([this](const GpuInventory& now) { told.push_back(now); });
  }
  void stop() { gpus.reset(); }

  bool until(const std::function<bool()>& done) {
    bool came = false;
    const auto look = loop.every(milliseconds(10), [&] {
      ++turns;
      if (done()) came = true, loop.stop();
    });
    const auto end = loop.after(seconds(60), [&] { loop.stop(); });
    loop.run();
    return came;
  }

  void prepare(const AttemptKey& key, std::vector<GpuGrant> grants) {
    runtime::LaunchRequest request;
    request.key = key;
    request.sharing.tenant = tenant;
    request.container.image = image;
    gpus->prepare(key, grants, request, [this, key](auto&& r) { prepared.emplace(key, r); });
  }
  bool has(std::uint32_t gpu, std::string_view cause, FaultDomain domain = FaultDomain::gpu) const {
    for (const GpuFault& f : gpus->inventory().gpus.at(gpu).faults)
      if (f.cause.starts_with(cause) && f.domain == domain) return true;
    return false;
  }

  gpu::FakeNode fake;
  NodedConfig config;
  NodeConfig declared;
  Logger log;
  loop::Loop loop;
  std::unique_ptr<Gpus> gpus;
  std::vector<GpuInventory> told;
  std::map<AttemptKey, Result<runtime::LaunchRequest>> prepared;
  std::string tenant = "physics", image;  // tenant and image of the jobs that are prepared next
  int turns = 0;
};

inline GpuGrant whole(std::uint16_t gpu) {
  return {gpu, std::nullopt, 0};
}
// `thousandths` is the slice's weight in thousandths of the GPU.
inline GpuGrant slice(std::uint16_t gpu, std::uint32_t profile, std::uint16_t start,
                      std::uint16_t thousandths) {
  return {gpu, profile, start, GpuThousandths::in<std::uint16_t>(thousandths)};
}

}  // namespace gantry::node
