// Wire forms of the orders and records of noded/runtime/launch.h.
#include "common/codec/define.h"
#include "common/text/split.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

LaunchRequest::LaunchRequest() = default;
LaunchRequest::LaunchRequest(const LaunchRequest&) = default;
LaunchRequest::LaunchRequest(LaunchRequest&&) noexcept = default;
LaunchRequest& LaunchRequest::operator=(const LaunchRequest&) = default;
LaunchRequest& LaunchRequest::operator=(LaunchRequest&&) noexcept = default;
LaunchRequest::~LaunchRequest() = default;

// If the order lists no GPUs, CUDA_VISIBLE_DEVICES is the user's own and is ignored. (Even older
// orders have an empty `stated`; then it is read.)
void LaunchRequest::from_older_form() {
  const auto variable = [&](const char* name) {
    const auto found = env.find(name);
    return found == env.end() ? std::string() : found->second;
  };
  if (checkpoint_file.empty()) checkpoint_file = variable("GANTRY_CHECKPOINT_FILE");
  if (!visible_gpus.empty() || (!stated.empty() && !stated.contains("GANTRY_JOB_GPUS"))) return;
  const std::string uuids = variable("CUDA_VISIBLE_DEVICES");
  const std::vector<std::string> numa = split(variable("GANTRY_GPU_NUMA"), ',');
  for (const std::string& uuid : split(uuids, ',')) {
    if (uuid.empty()) continue;
    const std::size_t at = visible_gpus.size();
    VisibleGpu& gpu = visible_gpus.emplace_back(VisibleGpu{uuid});
    if (at < numa.size() && !numa[at].empty()) gpu.numa = std::atoi(numa[at].c_str());
  }
}

}  // namespace gantry::runtime

GANTRY_CODEC_INSTANTIATE(gantry::runtime::LaunchRequest)
GANTRY_CODEC_INSTANTIATE(gantry::runtime::StepRequest)
GANTRY_CODEC_INSTANTIATE(gantry::runtime::StepAttachment)
GANTRY_CODEC_INSTANTIATE(gantry::runtime::NodeSetup)
GANTRY_CODEC_INSTANTIATE(gantry::runtime::ExitRecord)
GANTRY_CODEC_INSTANTIATE(gantry::runtime::RunningRecord)
GANTRY_CODEC_INSTANTIATE(gantry::runtime::ShimNote)
