// All work that calls the driver, on a thread only for that (noded/gpu/driver_thread.h): discovery,
// checks, slices, and the devices of a job. It decides nothing: gpus.h decides what follows from
// what is found.
//
// It may be made on any thread. Every other call runs on the driver's thread, in the order in which
// gpus.h posts them. What is found is published as a GpuSight, on that thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/log/log.h"
#include "common/proto/node_report.h"
#include "common/resources/gpu_usage.h"
#include "noded/gpu/devices.h"
#include "noded/gpu/health/health.h"
#include "noded/gpu/health/sample.h"
#include "noded/gpu/mig/mig.h"
#include "noded/gpu/node/gpu_handover.h"
#include "noded/gpu/nvml/discover.h"
#include "noded/runtime/launch.h"

namespace gantry::node {

using proto::AttemptKey;

// The result of one look at all GPUs.
struct GpuSight {
  GpuInventory inventory;  // its faults are those of discovery
  // The results of checks, by index; unset: nothing was checked this time, and the previous checks
  // are still valid.
  std::optional<std::vector<std::vector<GpuFault>>> checks;
  std::vector<std::uint32_t> links;  // by index, as in KnownGpus::links
};

struct GpuPrepared {
  runtime::LaunchRequest request;
  std::vector<HandedDevice> fresh;  // devices of which no other job has a part
};

class GpuWork {
 public:
  struct Options {
    std::string library;  // path of NVML; %n is replaced already
    std::string state_dir, files_dir;
    gpu::Roots roots;
    bool by_hand = false;  // existing slices are used, and slices are never made or destroyed
    GpuHolders::Options holders{};
    std::vector<std::string> cdi_dirs{};
    Duration sample = seconds(5);  // time between two samples of what jobs use
  };
  using Publish = std::function<void(GpuSight&&)>;
  GpuWork(Options options, gpu::KnownGpus known, const Logger& log, Publish publish);

  // Loads the library, discovers the GPUs and checks them. Without a driver the sight has the
  // reason.
  void open();
  void look();
  void check();
  // Finishes what a dead daemon left incomplete; call it when it is known which slices are held.
  // From then on events are reported.
  void begin_watch(std::function<void(const gpu::GpuEvent&)> sink,
                   std::function<void(const std::string&)> failed);

  // Adds device files and variables for these grants to the request. A slice that does not exist is
  // made, and idle slices that block it are destroyed. An error is the node's fault; then the
  // caller must release() what the job holds.
  Result<GpuPrepared> prepare(const AttemptKey& key, const std::vector<GpuGrant>& grants,
                              runtime::LaunchRequest request);
  void hold(const AttemptKey& key, std::vector<std::string> uuids,
            const runtime::LaunchSharing& sharing = {});
  // May be called twice.
  void release(const AttemptKey& key);

  // Processes that still use these devices.
  [[nodiscard]] std::vector<GpuHandover::Seen> look_at(
      const std::vector<HandedDevice>& devices) const;
  // Starts measuring the job's use; hold() calls this itself.
  void begin_use(const AttemptKey& key);
  // The devices that the job does not share.
  [[nodiscard]] std::vector<HandedDevice> devices_of(const AttemptKey& key) const;
  // Samples what jobs use of their devices now.
  std::vector<proto::GpuActivity> sample();
  // Releases the job, and returns its use of each of its devices.
  std::vector<GpuUsage> finish(const AttemptKey& key);

 private:
  void see();
  void publish(bool checked);
  void finish_halves();
  [[nodiscard]] const GpuDevice* find(std::uint32_t index) const;
  Result<void> add(const AttemptKey& key, const GpuGrant& grant, runtime::LaunchRequest& request,
                   std::vector<HandedDevice>& devices);
  void add_driver(runtime::LaunchRequest& request);
  Result<void> add_cdi(const std::vector<HandedDevice>& devices, runtime::LaunchRequest& request);
  [[nodiscard]] HandedDevice handed(const GpuDevice& gpu, const MigSlice* slice) const;
  [[nodiscard]] Result<std::string> file_of(const gpu::DeviceFile& file) const;
  Result<void> add_files(const std::vector<gpu::DeviceFile>& files,
                         runtime::LaunchRequest& request) const;
  Result<MigSlice> slice_for(const GpuDevice& gpu, const GpuGrant& grant);
  [[nodiscard]] std::vector<std::string> held_devices() const;

  Options options_;
  const Logger& log_;
  Publish publish_;
  std::shared_ptr<gpu::Nvml> nvml_;  // shared with an abandoned event thread
  gpu::Discovery found_;
  std::vector<std::string> warned_;  // warnings of the last look
  gpu::KnownGpus known_;             // indexes, kept until the machine is rebooted
  gpu::DeviceNumbers numbers_;
  std::vector<gpu::HealthBaseline> baselines_;           // by index
  std::map<AttemptKey, std::vector<std::string>> held_;  // UUIDs of GPUs and slices
  GpuHolders holders_;                                   // jobs on GPUs that are not in MIG mode
  std::unique_ptr<gpu::MigPartitioner> partitioner_;
  std::unique_ptr<gpu::GpuSampler> sampler_;
  struct Tracked {
    gpu::GpuSampler::Track track;
    std::uint32_t gpu;
    std::uint32_t memory_mib;
  };
  std::map<AttemptKey, std::vector<Tracked>> tracks_;
  std::unique_ptr<gpu::EventThread> events_;
};

}  // namespace gantry::node
