// The jobs that have each GPU or MIG slice of this node, whole or in part: the node checks here
// what the controller orders. One job has the whole device, or jobs of one tenant have parts of it;
// with MPS these get their tenant's daemon.
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
    bool containers = true;            // false: jobs run without containers, so MPS cannot be used
  };
  struct Device {      // a GPU, or a slice
    std::string name;  // "GPU 3", "the slice at 4 of GPU 3"
    std::string uuid;
    ByteCount memory{};
  };
  GpuHolders(const Options& options, const Logger& log);

  // Why parts cannot be given although they are declared, or "".
  [[nodiscard]] const std::string& cannot_share() const { return cannot_share_; }

  // Takes all of a device, or a part. What a part needs besides the device files is added to the
  // request. wrong_state: the device has a job that may not share it with this one.
  Result<void> take(const AttemptKey& key, const Device& device, DevicePart part,
                    runtime::LaunchRequest& request);
  // Does no other job have a part of the device?
  [[nodiscard]] bool alone(const AttemptKey& key, const std::string& uuid) const;
  void recovered(const AttemptKey& key, const std::string& uuid,
                 const runtime::LaunchSharing& sharing);
  // Releases all that the job has. The daemon of a device ends with its last part.
  void released(const AttemptKey& key);
  // Call it when every job of an earlier daemon is known: it ends MPS daemons that no job needs.
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
