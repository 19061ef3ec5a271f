#include "noded/shim/fence.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>

#include "noded/runtime/job_dir.h"

namespace gantry::runtime {

namespace {

// Pause before SIGKILL is sent again, if the first one did not end the job.
constexpr Duration kKillAgain = seconds(1);

// Returns how long the job may still run; nullopt without fencing.
std::optional<Duration> time_left(const Shim& shim) {
  const auto text = read_file(shim.setup.state_dir + "/" + kContactFile);
  const auto contact = text ? parse_contact(*text) : std::nullopt;
  if (!contact) return std::nullopt;
  return contact->boot + contact->fence_after + kNodedFirst - since_boot();
}

}  // namespace

bool fence_is_over(Shim& shim) {
  if (shim.fenced) return true;  // a fenced job stays fenced
  const auto left = time_left(shim);
  shim.fenced = left && *left <= Duration{};
  return shim.fenced;
}

int fence_pause(const Shim& shim) {
  Duration pause = kKillAgain;
  if (!shim.fenced) {
    const Duration left = time_left(shim).value_or(kLook);
    pause = std::clamp(left + milliseconds(1), milliseconds(1), kLook);
  }
  return static_cast<int>(pause.us / 1000);
}

void explain_fence(const Shim& shim, ExitRecord& record) {
  if (!shim.fenced) return;
  record.cause = ExitCause::fenced;
  record.exit = {0, SIGKILL};
  record.message = on_node(shim,
                           "no contact with the controller for so long that the job was ended "
                           "(lost_node_policy fence)");
}

bool await_go(Shim& shim, Signals& signals) {
  for (;;) {
    pollfd watched{signals.fd(), POLLIN, 0};
    ::poll(&watched, 1, fence_pause(shim));
    if (fence_is_over(shim)) return false;
    for (int s = signals.next(); s != 0; s = signals.next()) {
      if (s == SIGUSR1) return true;
      if (s == SIGTERM) return false;
    }
  }
}

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
