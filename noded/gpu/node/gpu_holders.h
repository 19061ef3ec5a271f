// Who has which GPU or MIG slice of this node, whole or in part: the node's own word on what the
// controller says. A device is one job's, or jobs of one tenant have parts of it; with MPS these
// get the tenant's daemon.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/log/log.h"
#include "common/resources/gpu.h"
#include "config/config.h"
#include "noded/gpu/mps.h"
#include "noded/runtime/launch.h"

namespace gantry::node {

using proto::AttemptKey;

class GpuHolders {
 public:
  struct Options {
    GpuSharing sharing = GpuSharing::none;
    std::string mps_control, mps_dir;  // see mps.h
    bool containers = true;            // false: MPS cannot be had
  };
  struct Device {      // a GPU, or a slice
    std::string name;  // "GPU 3", "the slice at 4 of GPU 3"
    std::string uuid;
    ByteCount memory{};
  };
  GpuHolders(const Options& options, const Logger& log);

  // Why no parts can be had although they are declared, or "".
  [[nodiscard]] const std::string& cannot_share() const { return cannot_share_; }

  // All of a device, or a part. What a part needs besides the device files goes into the request.
  // wrong_state: somebody has it who may not be beside this job.
  Result<void> take(const AttemptKey& key, const Device& device, DevicePart part,
                    runtime::LaunchRequest& request);
  // Has nobody else a part of it?
  [[nodiscard]] bool alone(const AttemptKey& key, const std::string& uuid) const;
  void recovered(const AttemptKey& key, const std::string& uuid,
                 const runtime::LaunchSharing& sharing);
  // The last part of a device ends its daemon.
  void released(const AttemptKey& key);
  // Everyone from an earlier daemon is known: what nobody needs ends.
  void settle();

 private:
  struct Holder {
    AttemptKey key;
    std::string uuid, tenant;
    DevicePart part = kWholeDevice;
  };
  const Logger& log_;
  GpuSharing sharing_;
  gpu::Mps mps_;
  std::string cannot_share_;
  std::vector<Holder> holders_;
};

}  // namespace gantry::node
