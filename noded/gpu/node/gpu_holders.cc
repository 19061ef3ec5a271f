#include "noded/gpu/node/gpu_holders.h"

#include <fmt/core.h>

#include <algorithm>

namespace gantry::node {

GpuHolders::GpuHolders(const Options& options, const Logger& log)
    : log_(log), sharing_(options.sharing), mps_(options.mps_control, options.mps_dir) {
  if (sharing_ != GpuSharing::mps) return;
  cannot_share_ = mps_.why_not();
  if (!options.containers) cannot_share_ = "MPS needs jobs in containers (noded.runtimes)";
  if (!cannot_share_.empty())
    log_.warning("GPUs of this node are not shared", {{"why", cannot_share_}});
}

Result<void> GpuHolders::take(const AttemptKey& key, const Device& device, DevicePart part,
                              runtime::LaunchRequest& request) {
  const bool shared = part < kWholeDevice;
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorCode::wrong_state, fmt::format("{} {}", device.name, why));
  };
  if (shared && (sharing_ == GpuSharing::none || !cannot_share_.empty()))
    return refuse("is not shared on this node");
  DevicePart sum = part;
  for (const Holder& h : holders_) {
    if (h.uuid != device.uuid || h.key == key) continue;
    if (!shared || h.part == kWholeDevice)
      return refuse(fmt::format("is held by job {}", h.key.job.value()));
    if (h.tenant != request.sharing.tenant) return refuse("is shared by another tenant");
    sum += h.part;
  }
  if (sum > kWholeDevice) return refuse("has less of it left");
  if (shared) {
    request.sharing.part = part.narrow<std::uint32_t>();
    request.state("GANTRY_GPU_SHARE", fmt::format("{}.{:03}", 0, part.value()));
  }
  if (shared && sharing_ == GpuSharing::mps) {
    ASSIGN(paths, mps_.serve(request.sharing.tenant, device.uuid));
    for (const auto& [name, value] : gpu::mps_variables(part, device.memory))
      request.env[name] = value;
    request.sharing.binds.push_back({gpu::kMpsInJob, paths->pipe});
    request.sharing.binds.push_back({"/dev/shm", paths->shm});
  }
  holders_.push_back({key, device.uuid, request.sharing.tenant, part});
  return {};
}

bool GpuHolders::alone(const AttemptKey& key, const std::string& uuid) const {
  return std::none_of(holders_.begin(), holders_.end(),
                      [&](const Holder& h) { return h.uuid == uuid && h.key != key; });
}

void GpuHolders::recovered(const AttemptKey& key, const std::string& uuid,
                           const runtime::LaunchSharing& sharing) {
  holders_.push_back({key, uuid, sharing.tenant,
                      sharing.part > DevicePart{} ? DevicePart{sharing.part} : kWholeDevice});
}

void GpuHolders::released(const AttemptKey& key) {
  const bool had_part = std::any_of(holders_.begin(), holders_.end(), [&](const Holder& h) {
    return h.key == key && h.part < kWholeDevice;
  });
  std::erase_if(holders_, [&](const Holder& h) { return h.key == key; });
  if (had_part) settle();
}

void GpuHolders::settle() {
  if (sharing_ == GpuSharing::none) return;
  std::map<std::string, std::string> wanted;
  for (const Holder& h : holders_)
    if (h.part < kWholeDevice) wanted[h.uuid] = h.tenant;
  for (const std::string& what : mps_.keep(wanted)) log_.info(what);
}

}  // namespace gantry::node
