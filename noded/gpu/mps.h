// NVIDIA's MPS for parts of GPUs: one control daemon for each tenant and GPU that has jobs with
// parts of it. Each has directories of its own below one that only root may enter, and a job is
// given only those of its tenant's daemon on its GPU: what another tenant has has no name there.
//
//   DIR/UUID/tenant   whose daemon it is
//   DIR/UUID/pipe     CUDA_MPS_PIPE_DIRECTORY; bound into jobs as /dev/mps
//   DIR/UUID/log      CUDA_MPS_LOG_DIRECTORY
//   DIR/UUID/shm      a tmpfs: /dev/shm of the daemon and of its jobs, through which they talk
//
// A daemon outlives noded. keep() finds those of an earlier noded and ends what nobody needs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/quantity.h"
#include "common/result.h"

namespace gantry::gpu {

struct MpsPaths {  // on the node
  std::string pipe, shm;
};

class Mps {
 public:
  // `control` is NVIDIA's program, by name on PATH or by path.
  Mps(std::string control, std::string dir);

  // Why no daemon can be had, or "".
  [[nodiscard]] std::string why_not() const;

  // The tenant's daemon on this GPU, started unless it runs. wrong_state: another tenant's is
  // there, which is not stopped for it.
  Result<MpsPaths> serve(const std::string& tenant, const std::string& uuid);

  // Ends every daemon but those of these GPUs and tenants (by UUID); says what was done.
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

// Variables of a job with so much of a GPU or slice with so much memory.
std::map<std::string, std::string> mps_variables(DevicePart part, ByteCount memory);

inline constexpr const char* kMpsInJob = "/dev/mps";

}  // namespace gantry::gpu
