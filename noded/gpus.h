// The GPUs of this node, for the daemon: what is there, what of it a job gets, and what goes wrong.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/gpu.h"
#include "common/log.h"
#include "config/config.h"
#include "noded/gpu/devices.h"
#include "noded/gpu/discover.h"
#include "noded/runtime/launch.h"

namespace gantry::node {

class Gpus {
 public:
  // A node without GPUs, or whose driver does not answer, has none and says why.
  Gpus(const NodedConfig& config, const std::string& node, const Logger& log);

  [[nodiscard]] const GpuInventory& inventory() const { return inventory_; }
  // Majors that only jobs with GPUs may open.
  [[nodiscard]] std::vector<std::uint32_t> majors() const;

  // Device files and variables for a job that was given these; slices are made here. An error is
  // the node's fault.
  Result<void> prepare(const std::vector<GpuGrant>& grants, runtime::LaunchRequest& request);

  // Looks again. True when the inventory is another one.
  bool refresh(Instant now);

 private:
  Result<void> add(const GpuGrant& grant, runtime::LaunchRequest& request,
                   std::vector<std::string>& uuids);

  const Logger& log_;
  gpu::Roots roots_;
  std::unique_ptr<gpu::Nvml> nvml_;
  std::vector<gpu::nvml::Device> devices_;  // of the inventory, by index
  gpu::DeviceNumbers numbers_;
  GpuInventory inventory_;
};

}  // namespace gantry::node
