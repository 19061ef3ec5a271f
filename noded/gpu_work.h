// What asks the driver, on a thread for that alone (noded/gpu/driver_thread.h): looking, checking,
// slices, what a job is given. It decides nothing: what follows from what is found is gpus.h's.
//
// Made anywhere; every other call comes from the driver's thread, in the order in which gpus.h
// posts them. What is found is published as a Sight, on that thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/log.h"
#include "noded/gpu/devices.h"
#include "noded/gpu/health.h"
#include "noded/gpu/known.h"
#include "noded/gpu/mig.h"
#include "noded/gpu_holders.h"
#include "noded/runtime/launch.h"

namespace gantry::node {

using proto::AttemptKey;

// One look at everything.
struct GpuSight {
  GpuInventory inventory;  // its faults are those that discovery tells
  // By index, what checks found; unset: only looked at, the last checks hold.
  std::optional<std::vector<std::vector<GpuFault>>> checks;
  std::vector<std::uint32_t> links;  // by index, KnownGpus::links
};

class GpuWork {
 public:
  struct Options {
    std::string library;  // of NVML; %n is replaced already
    std::string state_dir, files_dir;
    gpu::Roots roots;
    bool by_hand = false;  // slices are used as they are found
    GpuHolders::Options holders{};
  };
  using Publish = std::function<void(GpuSight&&)>;
  GpuWork(Options options, gpu::KnownGpus known, const Logger& log, Publish publish);

  // Loads the library, looks and checks. Without a driver the sight says why.
  void open();
  void look();
  void check();
  // What a daemon that died left half done, once it is known what is held. Events from then on.
  void begin_watch(std::function<void(const gpu::GpuEvent&)> sink,
                   std::function<void(const std::string&)> failed);

  // With device files and variables for these grants. A slice that is not there is made; idle ones
  // in its way are destroyed. An error is the node's fault; then release() what it holds.
  Result<runtime::LaunchRequest> prepare(const AttemptKey& key, const std::vector<GpuGrant>& grants,
                                         runtime::LaunchRequest request);
  void hold(const AttemptKey& key, std::vector<std::string> uuids,
            const runtime::LaunchSharing& sharing = {}) {
    for (const std::string& uuid : uuids) holders_.recovered(key, uuid, sharing);
    held_[key] = std::move(uuids);
  }
  void release(const AttemptKey& key) {
    held_.erase(key);
    holders_.released(key);
  }

 private:
  void see();
  void publish(bool checked);
  void finish_halves();
  [[nodiscard]] const GpuDevice* find(std::uint32_t index) const;
  Result<void> add(const AttemptKey& key, const GpuGrant& grant, runtime::LaunchRequest& request,
                   std::vector<std::string>& uuids);
  [[nodiscard]] Result<std::string> file_of(const gpu::DeviceFile& file) const;
  Result<void> add_files(const std::vector<gpu::DeviceFile>& files,
                         runtime::LaunchRequest& request) const;
  Result<MigSlice> slice_for(const GpuDevice& gpu, const GpuGrant& grant);
  [[nodiscard]] std::vector<std::string> held_devices() const;

  Options options_;
  const Logger& log_;
  Publish publish_;
  std::shared_ptr<gpu::Nvml> nvml_;  // also of an event thread that was left behind
  gpu::Discovery found_;
  std::vector<std::string> warned_;  // at the last look
  gpu::KnownGpus known_;             // indexes, for as long as the machine is up
  gpu::DeviceNumbers numbers_;
  std::vector<gpu::HealthBaseline> baselines_;           // by index
  std::map<AttemptKey, std::vector<std::string>> held_;  // UUIDs of GPUs and slices
  GpuHolders holders_;                                   // of GPUs that are not in MIG mode
  std::unique_ptr<gpu::MigPartitioner> partitioner_;
  std::unique_ptr<gpu::EventThread> events_;
};

}  // namespace gantry::node
