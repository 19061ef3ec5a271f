#include "noded/gpus.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "noded/runtime/job_dir.h"

namespace gantry::node {

namespace {

// %n in the text is the node's name: several nodes may live on one machine.
std::string for_node(std::string text, const std::string& node) {
  if (const auto at = text.find("%n"); at != std::string::npos) text.replace(at, 2, node);
  return text;
}

}  // namespace

Gpus::Gpus(const NodedConfig& config, const std::string& node, const Logger& log) : log_(log) {
  const std::string root = for_node(config.gpu_root, node);
  if (root != "/") roots_ = {root + "/dev", root + "/proc", root + "/sys"};
  if (config.gpu_library == "none") {
    inventory_.why_none = "noded.gpu_library is none";
    return;
  }
  auto opened = gpu::Nvml::open(for_node(config.gpu_library, node));
  if (!opened) {
    inventory_ = gpu::no_gpus(opened.error());
    return;
  }
  nvml_ = std::move(*opened);
  refresh(runtime::wall_clock());
}

bool Gpus::refresh(Instant now) {
  if (nvml_ == nullptr) return false;
  gpu::Discovery found = gpu::discover(*nvml_, roots_, now);
  devices_ = std::move(found.devices);
  for (const std::string& warning : found.warnings) log_.warning(warning);
  if (auto numbers = gpu::read_device_numbers(roots_)) {
    numbers_ = std::move(*numbers);
  } else if (!found.inventory.gpus.empty()) {
    found.inventory.gpus.clear();
    found.inventory.why_none = numbers.error().message;
  }
  if (found.inventory == inventory_) return false;
  inventory_ = std::move(found.inventory);
  return true;
}

std::vector<std::uint32_t> Gpus::majors() const {
  std::set<std::uint32_t> out;
  if (inventory_.gpus.empty()) return {};
  for (const std::string_view name :
       {"nvidia", "nvidia-frontend", "nvidia-uvm", "nvidia-caps", "nvidia-caps-imex-channels",
        "nvidia-nvswitch", "nvidia-modeset"})
    if (const auto found = numbers_.majors.find(name); found != numbers_.majors.end())
      out.insert(found->second);
  return {out.begin(), out.end()};
}

Result<void> Gpus::add(const GpuGrant& grant, runtime::LaunchRequest& request,
                       std::vector<std::string>& uuids) {
  const auto gpu = std::find_if(inventory_.gpus.begin(), inventory_.gpus.end(),
                                [&](const GpuDevice& g) { return g.index == grant.gpu; });
  if (gpu == inventory_.gpus.end())
    return fail(ErrorCode::unavailable, fmt::format("GPU {} is not there", grant.gpu));
  if (grant.profile)
    return fail(ErrorCode::unsupported, "this release makes no MIG slices on request");
  const auto files = gpu::device_files(numbers_, *gpu);
  if (!files) return tl::unexpected(files.error());
  for (const gpu::DeviceFile& file : *files)
    request.devices.push_back(
        {file.path, roots_.dev + file.path.substr(4), file.major, file.minor, file.permissions});
  uuids.push_back(gpu->uuid);
  return {};
}

Result<void> Gpus::prepare(const std::vector<GpuGrant>& grants, runtime::LaunchRequest& request) {
  if (inventory_.gpus.empty()) {
    if (grants.empty()) return {};
    return fail(ErrorCode::unavailable, "no GPUs: " + inventory_.why_none);
  }
  // What the submitter's shell said of its own GPUs means nothing here.
  request.env["CUDA_VISIBLE_DEVICES"] = "";
  request.env["NVIDIA_VISIBLE_DEVICES"] = "void";
  if (grants.empty()) return {};
  std::vector<std::string> uuids;
  std::vector<std::uint16_t> indices;
  for (const GpuGrant& grant : grants) {
    if (auto r = add(grant, request, uuids); !r) return r;
    if (indices.empty() || indices.back() != grant.gpu) indices.push_back(grant.gpu);
  }
  const auto common = gpu::common_device_files(numbers_);
  if (!common) return tl::unexpected(common.error());
  for (const gpu::DeviceFile& file : *common)
    request.devices.push_back(
        {file.path, roots_.dev + file.path.substr(4), file.major, file.minor, file.permissions});
  const std::string list = fmt::format("{}", fmt::join(uuids, ","));
  request.env["CUDA_VISIBLE_DEVICES"] = list;
  request.env["NVIDIA_VISIBLE_DEVICES"] = list;
  request.env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  const std::string numbers = fmt::format("{}", fmt::join(indices, ","));
  request.env["SLURM_JOB_GPUS"] = request.env["GANTRY_JOB_GPUS"] = numbers;
  request.env["GPU_DEVICE_ORDINAL"] = numbers;
  request.env["SLURM_GPUS_ON_NODE"] = request.env["GANTRY_GPUS_ON_NODE"] =
      std::to_string(uuids.size());
  return {};
}

}  // namespace gantry::node
