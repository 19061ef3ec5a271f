#include "noded/gpu/nvml/known.h"

#include <fcntl.h>

#include <algorithm>

#include "common/codec/codec.h"
#include "noded/machine/files.h"

namespace gantry::gpu {
namespace {

constexpr const char* kFile = "gpus.msgpack";
constexpr std::uint32_t kUnset = 0xFFFFFFFF;

// Links are stored by index of the other GPU, so they move when indexes change.
void renumber_links(GpuDevice& gpu, const std::vector<std::uint32_t>& new_of, std::size_t count) {
  if (gpu.nvlinks.empty()) return;
  std::vector<std::uint32_t> links(count);
  for (std::size_t i = 0; i < gpu.nvlinks.size(); ++i) links[new_of[i]] = gpu.nvlinks[i];
  gpu.nvlinks = std::move(links);
}

}  // namespace

void keep_indexes(Discovery& found, const KnownGpus& known, Instant now) {
  auto& gpus = found.inventory.gpus;
  std::vector<std::uint32_t> new_of(gpus.size(), kUnset);
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t k = 0; k < known.gpus.size(); ++k)
      if (known.gpus[k].uuid == gpus[i].uuid) new_of[i] = static_cast<std::uint32_t>(k);
  std::size_t count = known.gpus.size();
  for (std::uint32_t& index : new_of)
    if (index == kUnset) index = static_cast<std::uint32_t>(count++);
  std::vector<GpuDevice> all(known.gpus);
  all.resize(count);
  std::vector<nvml::Device> devices(count, nullptr);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    renumber_links(gpus[i], new_of, count);
    devices[new_of[i]] = found.devices[i];
    all[new_of[i]] = std::move(gpus[i]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    all[i].index = static_cast<std::uint32_t>(i);
    if (devices[i] != nullptr) continue;
    const auto before = std::find_if(all[i].faults.begin(), all[i].faults.end(), [](auto& fault) {
      return fault.cause.starts_with("gpu-lost");
    });
    const Instant since = before != all[i].faults.end() ? before->since : now;
    all[i].faults = {{FaultDomain::gpu, "gpu-lost: fallen off the bus", 0, since}};
  }
  gpus = std::move(all);
  found.devices = std::move(devices);
  if (!gpus.empty()) found.inventory.why_none.clear();
}

Result<KnownGpus> load_known(const std::string& dir, const std::string& boot_id) {
  KnownGpus none;
  none.boot_id = boot_id;
  const auto bytes = runtime::read_file(dir + "/" + kFile);
  if (!bytes && bytes.error().code == ErrorCode::not_found) return none;
  if (!bytes) return tl::unexpected(bytes.error());
  auto known = codec::decode<KnownGpus>(*bytes);
  if (!known) return fail(known.error().code, dir + "/" + kFile + ": " + known.error().message);
  return known->boot_id == boot_id ? std::move(*known) : none;
}

Result<void> store_known(const std::string& dir, const KnownGpus& known) {
  if (auto made = runtime::make_dirs(dir, 0700); !made) return made;
  const Fd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return runtime::fail_errno(ErrorCode::io_error, dir);
  // The file has to outlive the daemon, not the machine.
  return runtime::write_whole(fd.get(), kFile, codec::encode(known), runtime::Durability::none);
}

}  // namespace gantry::gpu
