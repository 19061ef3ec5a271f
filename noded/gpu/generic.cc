#include "noded/gpu/generic.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <set>

#include "common/codec/codec.h"
#include "common/text/hostlist.h"
#include "noded/machine/files.h"

namespace gantry::gpu {
namespace {

constexpr std::size_t kMostFiles = 64;  // files of one device
constexpr std::uint32_t kMostCount = 1'000'000;

// Names that may not be declared: NVML finds these resources itself, or they are ways of sharing a
// GPU.
constexpr std::array<std::string_view, 3> kReserved{"mig", "shard", "mps"};

tl::unexpected<Error> refuse(std::string what) {
  return fail(ErrorCode::invalid_argument, std::move(what));
}

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
}

std::string title(const GenericResource& resource) {
  return resource.type.empty() ? resource.name : resource.name + ":" + resource.type;
}

// Expands "/dev/xfpga[0-3]". The last part of the path is read as a host list.
Result<std::vector<std::string>> expand(const std::string& file) {
  const auto slash = file.rfind('/');
  if (!file.starts_with("/dev/") || file.find("/../") != std::string::npos || file.ends_with("/.."))
    return refuse(fmt::format("\"{}\" is no path in /dev", file));
  if (file.find('[') == std::string::npos) return std::vector<std::string>{file};
  auto names = expand_hostlist(std::string_view(file).substr(slash + 1));
  if (!names) return refuse(fmt::format("\"{}\": {}", file, names.error().message));
  for (std::string& name : *names) name.insert(0, file.substr(0, slash + 1));
  return std::move(*names);
}

Result<void> complete_device(GenericDevice& device, std::size_t place) {
  if (device.id.empty()) device.id = std::to_string(place);
  if (!is_word(device.id))
    return refuse(fmt::format("\"{}\" is no id: letters, digits, '-', '_' and '.'", device.id));
  std::vector<std::string> files;
  for (const std::string& file : device.files) {
    ASSIGN(one, expand(file));
    files.insert(files.end(), one->begin(), one->end());
    if (files.size() > kMostFiles) return refuse(fmt::format("more than {} files", kMostFiles));
  }
  device.files = std::move(files);
  for (const auto& [name, value] : device.env) {
    const bool fine = !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
                      std::ranges::all_of(name, [](char c) {
                        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                               (c >= '0' && c <= '9') || c == '_';
                      });
    if (!fine || value.find('\0') != std::string::npos)
      return refuse(fmt::format("\"{}\" is no name of a variable", name));
  }
  return {};
}

}  // namespace

Result<GenericResource> complete(GenericResource resource) {
  if (!is_word(resource.name) || !(resource.name[0] >= 'a' && resource.name[0] <= 'z'))
    return refuse(
        fmt::format("\"{}\" is no name of a resource: lower-case letters, digits, '-', "
                    "'_' and '.', a letter first",
                    resource.name));
  if (std::ranges::find(kReserved, resource.name) != kReserved.end())
    return refuse(
        fmt::format("{}: the name is taken; mig, shard and mps are parts of GPUs", resource.name));
  if (!resource.type.empty() && !is_word(resource.type))
    return refuse(fmt::format("{}: \"{}\" is no type", resource.name, resource.type));
  if (resource.devices.size() > kMostGenericDevices)
    return refuse(fmt::format("{}: more than {} devices", title(resource), kMostGenericDevices));
  if (resource.devices.empty() && (resource.count < 1 || resource.count > kMostCount))
    return refuse(
        fmt::format("{}: needs devices, or a count of 1 to {}", title(resource), kMostCount));
  if (!resource.devices.empty() && resource.count != 0 && resource.count != resource.devices.size())
    return refuse(fmt::format("{}: a count of {} and {} devices", title(resource), resource.count,
                              resource.devices.size()));
  std::set<std::string> ids, files;
  for (std::size_t i = 0; i < resource.devices.size(); ++i) {
    GenericDevice& device = resource.devices[i];
    if (auto done = complete_device(device, i); !done)
      return refuse(fmt::format("{}: device {}: {}", title(resource), i, done.error().message));
    if (!ids.insert(device.id).second)
      return refuse(fmt::format("{}: two devices with the id {}", title(resource), device.id));
    for (const std::string& file : device.files)
      if (!files.insert(file).second)
        return refuse(fmt::format("{}: two devices with {}", title(resource), file));
  }
  if (!resource.devices.empty())
    resource.count = static_cast<std::uint32_t>(resource.devices.size());
  return resource;
}

Result<std::vector<GenericResource>> parse_discovered(std::string_view json,
                                                      std::string_view command) {
  auto parsed = codec::from_json<GenericResources>(json);
  if (!parsed)
    return fail(ErrorCode::malformed,
                fmt::format("{} printed: {}", command, parsed.error().message));
  auto all = combine(std::move(parsed->resources), {});
  if (!all)
    return fail(ErrorCode::malformed, fmt::format("{} printed: {}", command, all.error().message));
  return all;
}

Result<std::vector<GenericResource>> combine(std::vector<GenericResource> declared,
                                             std::vector<GenericResource> discovered) {
  std::vector<GenericResource> out;
  for (auto* list : {&declared, &discovered}) {
    for (GenericResource& one : *list) {
      ASSIGN(whole, complete(std::move(one)));
      for (const GenericResource& other : out)
        if (title(other) == title(*whole))
          return refuse(fmt::format("{} is given twice", title(*whole)));
      out.push_back(std::move(*whole));
    }
  }
  if (out.size() > kMostGenericResources)
    return refuse(fmt::format("more than {} generic resources on one node", kMostGenericResources));
  return out;
}

Result<std::vector<DeviceFile>> device_files(const GenericDevice& device, const Roots& roots) {
  constexpr std::uint32_t kMemoryMajor = 1, kMem = 1, kKmem = 2, kPort = 4;
  std::vector<DeviceFile> out;
  for (const std::string& file : device.files) {
    const std::string path = roots.dev + file.substr(std::string_view("/dev").size());
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) return runtime::fail_errno(ErrorCode::not_found, path);
    if (!S_ISCHR(st.st_mode)) return refuse(path + " is no character device");
    const std::uint32_t major = gnu_dev_major(st.st_rdev), minor = gnu_dev_minor(st.st_rdev);
    if (major == kMemoryMajor && (minor == kMem || minor == kKmem || minor == kPort))
      return refuse(path + " is the machine's memory and ports");
    out.push_back({file, major, minor, "rw"});
  }
  return out;
}

}  // namespace gantry::gpu
