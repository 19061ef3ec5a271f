#include "noded/gpu/cdi.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "noded/machine/files.h"

namespace gantry::gpu {
namespace {

constexpr std::size_t kMostBytes = 4u << 20;

// Only root (or the user who runs this) may say what root does for jobs.
Result<void> check_owner(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return runtime::fail_errno(ErrorCode::io_error, path);
  if (st.st_uid != 0 && st.st_uid != ::geteuid())
    return fail(ErrorCode::permission_denied,
                fmt::format("{} is not root's, so it is not used", path));
  if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(ErrorCode::permission_denied,
                fmt::format("{} may be written by others than root, so it is not used", path));
  return {};
}

Result<CdiSpec> read_one(const std::string& path) {
  TRY(check_owner(path));
  ASSIGN(text, runtime::read_file(path, kMostBytes));
  return parse_cdi(*text, path);
}

// Adds one folder; its devices replace those of the same name from folders before it.
void add_folder(CdiRegistry& registry, const std::string& folder) {
  const auto names = runtime::list_dir(folder);
  if (names.empty()) return;
  if (auto owned = check_owner(folder); !owned)
    return registry.problems.push_back(owned.error().message);
  std::set<std::string, std::less<>> here;
  for (const std::string& name : names) {
    if (!name.ends_with(".json") && !name.ends_with(".yaml") && !name.ends_with(".yml")) continue;
    auto spec = read_one(folder + "/" + name);
    if (!spec) {
      registry.problems.push_back(spec.error().message);
      continue;
    }
    const std::size_t at = registry.specs.size();
    registry.specs.push_back(std::move(*spec));
    const CdiSpec& added = registry.specs.back();
    for (std::size_t i = 0; i < added.devices.size(); ++i) {
      const std::string device = added.kind + "=" + added.devices[i].name;
      const auto before = registry.devices.find(device);
      if (!here.insert(device).second && before != registry.devices.end())
        registry.doubled[device] = registry.specs[before->second.spec].file + " and " + added.file;
      else
        registry.doubled.erase(device);
      registry.devices[device] = {at, i};
    }
  }
}

std::string_view name_of(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

void append(CdiEdits& to, const CdiEdits& from) {
  for (const std::string& one : from.env) {
    std::erase_if(to.env, [&](const auto& old) { return name_of(old) == name_of(one); });
    to.env.push_back(one);
  }
  for (const CdiNode& one : from.nodes) {
    std::erase_if(to.nodes, [&](const auto& old) { return old.path == one.path; });
    to.nodes.push_back(one);
  }
  for (const CdiMount& one : from.mounts) {
    std::erase_if(to.mounts, [&](const auto& old) { return old.container == one.container; });
    to.mounts.push_back(one);
  }
  for (const CdiHook& one : from.hooks)
    if (std::find(to.hooks.begin(), to.hooks.end(), one) == to.hooks.end()) to.hooks.push_back(one);
  for (const std::uint32_t gid : from.gids)
    if (std::find(to.gids.begin(), to.gids.end(), gid) == to.gids.end()) to.gids.push_back(gid);
}

// Names a few devices of the same kind, for an error.
std::string others_of(const CdiRegistry& registry, std::string_view name) {
  constexpr std::size_t kMost = 8;
  const std::string kind = std::string(name.substr(0, name.find('='))) + "=";
  std::string text;
  std::size_t count = 0;
  for (auto at = registry.devices.lower_bound(kind);
       at != registry.devices.end() && at->first.starts_with(kind); ++at)
    if (++count <= kMost) text += (text.empty() ? "" : ", ") + at->first.substr(kind.size());
  if (count == 0) return "there is no specification of this kind";
  return "there are " + text + (count > kMost ? ", ..." : "");
}

bool is_within(std::string_view path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

}  // namespace

CdiRegistry read_cdi(std::span<const std::string> folders) {
  CdiRegistry out;
  for (const std::string& folder : folders) add_folder(out, folder);
  return out;
}

Result<CdiEdits> merge_cdi(const CdiRegistry& registry, std::span<const std::string> names) {
  CdiEdits out;
  std::set<std::size_t> used;
  for (const std::string& name : names) {
    const auto found = registry.devices.find(name);
    if (found == registry.devices.end())
      return fail(ErrorCode::not_found,
                  fmt::format("no CDI device {}: {}", name, others_of(registry, name)));
    if (const auto twice = registry.doubled.find(name); twice != registry.doubled.end())
      return fail(ErrorCode::invalid_argument,
                  fmt::format("CDI device {} is in {}", name, twice->second));
    const CdiSpec& spec = registry.specs[found->second.spec];
    if (used.insert(found->second.spec).second) append(out, spec.edits);
    append(out, spec.devices[found->second.device].edits);
  }
  const auto depth = [](const CdiMount& mount) {
    return std::count(mount.container.begin(), mount.container.end(), '/');
  };
  std::stable_sort(out.mounts.begin(), out.mounts.end(),
                   [&](auto& a, auto& b) { return depth(a) < depth(b); });
  return out;
}

CdiEdits fit_for_job(CdiEdits edits, CdiNodes nodes) {
  static constexpr std::array<std::string_view, 6> kShared{
      "/tmp/nvidia-mps",           "/run/nvidia-mps",
      "/run/nvidia-persistenced",  "/var/run/nvidia-persistenced",
      "/run/nvidia-fabricmanager", "/var/run/nvidia-fabricmanager"};
  static constexpr std::array<std::string_view, 3> kChoosing{
      "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY"};
  std::erase_if(edits.mounts, [](const CdiMount& mount) {
    return std::any_of(kShared.begin(), kShared.end(), [&](std::string_view folder) {
      return is_within(mount.host, folder) || is_within(mount.container, folder);
    });
  });
  std::erase_if(edits.env, [](const std::string& one) {
    return std::find(kChoosing.begin(), kChoosing.end(), name_of(one)) != kChoosing.end();
  });
  if (nodes == CdiNodes::dropped) edits.nodes.clear();
  return edits;
}

}  // namespace gantry::gpu
