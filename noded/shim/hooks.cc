#include "noded/shim/hooks.h"

namespace gantry::runtime {

Result<void> run_hook(const Shim& shim, const char* name, const std::string& path, HookPlace place,
                      Signals& signals) {
  const auto& request = shim.request;
  std::map<std::string, std::string> env = request.stated;
  env["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  env["GANTRY_NODE"] = shim.setup.node;
  env["GANTRY_JOB_USER"] = request.owner.user;
  env["GANTRY_JOB_UID"] = std::to_string(request.owner.uid.value());
  env["GANTRY_CGROUP"] = shim.setup.cgroups.relative + "/" + job_cgroup(request.key);
  env["GANTRY_HOOK"] = name;
  if (place.record != nullptr) {
    env["GANTRY_EXIT_CODE"] = std::to_string(place.record->exit.code);
    env["GANTRY_EXIT_SIGNAL"] = std::to_string(place.record->exit.signal);
  }
  ChildSpec spec;
  spec.argv = {path};
  for (const auto& [key, value] : env) spec.env.push_back(key + "=" + value);
  spec.mount_namespace = place.mount_namespace;
  spec.root = place.root;
  auto done = run_helper(std::move(spec), signals, shim.setup.hook_timeout);
  if (!done) return fail(ErrorCode::runtime_failed, std::string(name) + " " + done.error().message);
  return {};
}

}  // namespace gantry::runtime
