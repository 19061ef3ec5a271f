// The GPUs of this node, for the daemon: what is there, what of it a job gets, and what goes wrong.
// On the loop's thread; only the wait for the driver's events has a thread of its own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/gpu.h"
#include "common/log.h"
#include "common/loop/loop.h"
#include "config/config.h"
#include "noded/gpu/devices.h"
#include "noded/gpu/discover.h"
#include "noded/gpu/health.h"
#include "noded/gpu/known.h"
#include "noded/gpu/mig.h"
#include "noded/runtime/launch.h"

namespace gantry::node {

using proto::AttemptKey;

class Gpus {
 public:
  // A node without GPUs, or whose driver does not answer, has none and says why.
  Gpus(const NodedConfig& config, const std::string& node, const std::string& boot_id,
       const Logger& log);

  // With the faults that are known; what the controller is told.
  [[nodiscard]] const GpuInventory& inventory() const { return found_.inventory; }
  // Majors that only jobs with GPUs may open.
  [[nodiscard]] std::vector<std::uint32_t> majors() const;

  // Device files and variables for a job that was given these. A slice that is not there is made;
  // idle ones in its way are destroyed. An error is the node's fault.
  Result<void> prepare(const AttemptKey& key, const std::vector<GpuGrant>& grants,
                       runtime::LaunchRequest& request);
  // An attempt that runs on from an earlier daemon has the devices that its variables name.
  void recovered(const AttemptKey& key, const runtime::LaunchRequest& request);
  void released(const AttemptKey& key);

  // From here on `changed` hears of every other inventory. A fault that ends jobs and leaves the
  // GPU in service is told once with the fault and once without.
  void watch(loop::Loop& loop, std::function<void(const GpuInventory&)> changed);

 private:
  struct Sticky {  // a fault told by an event: it stays until the GPU has proved that it is well
    GpuFault fault;
    std::optional<Instant> well_since;
  };

  void look(Instant now);
  void remember();
  void finish_halves();
  void take_event(const gpu::GpuEvent& event);
  void check_all();
  void tell();
  Result<void> add(const AttemptKey& key, const GpuGrant& grant, runtime::LaunchRequest& request,
                   std::vector<std::string>& uuids);
  Result<std::string> file_of(const gpu::DeviceFile& file) const;
  Result<void> add_files(const std::vector<gpu::DeviceFile>& files,
                         runtime::LaunchRequest& request) const;
  Result<MigSlice> slice_for(const GpuDevice& gpu, const GpuGrant& grant);
  [[nodiscard]] std::vector<std::string> held_devices() const;
  [[nodiscard]] bool is_held(const GpuDevice& gpu) const;

  const Logger& log_;
  std::string state_dir_;
  std::string files_dir_;
  gpu::Roots roots_;
  std::unique_ptr<gpu::Nvml> nvml_;
  gpu::Discovery found_;
  std::vector<std::string> warned_;  // at the last look
  gpu::KnownGpus known_;             // indexes, for as long as the machine is up
  gpu::DeviceNumbers numbers_;
  std::vector<gpu::HealthBaseline> baselines_;           // by index
  std::map<std::string, std::vector<Sticky>> sticky_;    // by UUID of the GPU
  std::map<AttemptKey, std::vector<std::string>> held_;  // UUIDs of GPUs and slices
  std::unique_ptr<gpu::MigPartitioner> partitioner_;

  loop::Loop* loop_ = nullptr;
  std::function<void(const GpuInventory&)> changed_;
  std::unique_ptr<gpu::EventThread> events_;
  loop::Watch checks_;
};

}  // namespace gantry::node
