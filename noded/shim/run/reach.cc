#include "noded/shim/run/reach.h"

#include "noded/machine/landlock.h"

namespace gantry::runtime {
namespace {

// The records and the cgroup of the job, of which those of its steps are parts.
KeptPlaces places_of(const Shim& shim) {
  KeptPlaces places;
  places.whole.push_back(shim.dir);
  places.read = {"/proc", shim.setup.state_dir};
  const CgroupLayout& cgroups = shim.setup.cgroups;
  const auto add = [&](const std::string& node_dir) {
    places.whole.push_back(node_dir + "/" + job_cgroup(shim.request.key));
    places.removable.push_back(node_dir);
  };
  for (const CgroupMount& mount : cgroups.mounts) add(mount.path);
  for (const std::string& other : cgroups.others) add(other);
  return places;
}

}  // namespace

void keep_only_what_a_shim_needs(const Shim& shim) {
  const LaunchRequest& request = shim.request;
  if (!request.epilog.empty() || request.scratch > 0 || request.objects || shim.setup.rootless)
    return;
  KeptPlaces places = places_of(shim);
  if (!request.secrets_dir.empty()) {
    places.whole.push_back(request.secrets_dir);
    places.removable.push_back(request.secrets_dir + "/..");
  }
  keep_only(places);
}

void keep_only_what_a_step_needs(const Shim& shim) {
  if (!shim.setup.rootless) keep_only(places_of(shim));
}

}  // namespace gantry::runtime
