#include "noded/shim/hooks.h"

namespace gantry::runtime {

Result<void> run_hook(const Shim& shim, const char* name, const std::string& path, HookPlace place,
                      Signals& signals) {
  const auto& request = shim.request;
  ChildSpec spec;
  spec.argv = {path};
  spec.env = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  for (const auto& [key, value] : request.env)
    if (key.starts_with("SLURM_") || key.starts_with("GANTRY_"))
      spec.env.push_back(key + "=" + value);
  spec.env.push_back("GANTRY_NODE=" + shim.setup.node);
  spec.env.push_back("GANTRY_JOB_USER=" + request.owner.user);
  spec.env.push_back("GANTRY_JOB_UID=" + std::to_string(request.owner.uid.value()));
  spec.env.push_back("GANTRY_CGROUP=" + shim.setup.cgroups.relative + "/" +
                     job_cgroup(request.key));
  spec.env.push_back(std::string("GANTRY_HOOK=") + name);
  if (place.record != nullptr) {
    spec.env.push_back("GANTRY_EXIT_CODE=" + std::to_string(place.record->exit.code));
    spec.env.push_back("GANTRY_EXIT_SIGNAL=" + std::to_string(place.record->exit.signal));
  }
  spec.mount_namespace = place.mount_namespace;
  spec.root = place.root;
  auto done = run_helper(std::move(spec), signals, shim.setup.hook_timeout);
  if (!done) return fail(ErrorCode::runtime_failed, std::string(name) + " " + done.error().message);
  return {};
}

}  // namespace gantry::runtime
