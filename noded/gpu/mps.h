// NVIDIA's MPS for parts of GPUs: each tenant has one control daemon on each GPU of which its jobs
// have parts. Each daemon has its own directories below one that only root may enter. A job sees
// only the directories of its tenant's daemon on its GPU.
//
//   DIR/UUID/tenant   the tenant that the daemon serves
//   DIR/UUID/pipe     CUDA_MPS_PIPE_DIRECTORY; bound into jobs as /dev/mps
//   DIR/UUID/log      CUDA_MPS_LOG_DIRECTORY
//   DIR/UUID/shm      a tmpfs: /dev/shm of the daemon and its jobs, for their messages
//
// A daemon outlives noded. keep() finds the daemons of an earlier noded, and ends those not needed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/quantity.h"
#include "common/result.h"

namespace gantry::gpu {

struct MpsPaths {  // paths on the node
  std::string pipe, shm;
};

class Mps {
 public:
  // `control` is NVIDIA's program, as a name on PATH or as a path.
  Mps(std::string control, std::string dir);

  // Why no daemon can be started, or "".
  [[nodiscard]] std::string why_not() const;

  // Starts the tenant's daemon on this GPU unless it runs. Error wrong_state: another tenant's
  // daemon runs there, and it is not stopped for this one.
  Result<MpsPaths> serve(const std::string& tenant, const std::string& uuid);

  // Ends every daemon except those of these GPUs (by UUID) and their tenants; returns what was
  // done, in words.
  std::vector<std::string> keep(const std::map<std::string, std::string>& tenant_by_gpu);

 private:
  [[nodiscard]] std::string of(const std::string& uuid) const { return dir_ + "/" + uuid; }
  [[nodiscard]] bool runs(const std::string& uuid) const;
  Result<void> start(const std::string& uuid);
  void end(const std::string& uuid);

  std::string program_;  // "" = not found
  std::string control_;
  std::string dir_;
};

// The variables of a job that has this part of a GPU or slice, with this much memory.
std::map<std::string, std::string> mps_variables(DevicePart part, ByteCount memory);

inline constexpr const char* kMpsInJob = "/dev/mps";

}  // namespace gantry::gpu
