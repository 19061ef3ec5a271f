#include "noded/shim/fence.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>

#include "noded/runtime/contact.h"

namespace gantry::runtime {
namespace {

// Pause before SIGKILL is sent again, if the first did not end the job.
constexpr Duration kKillAgain = seconds(1);

// Returns how long the job may still run; nothing where there is no fencing.
std::optional<Duration> time_left(const Shim& shim) {
  const auto text = read_file(shim.setup.state_dir + "/" + kContactFile);
  const auto contact = text ? parse_contact(*text) : std::nullopt;
  if (!contact) return std::nullopt;
  return contact->boot + contact->fence_after + kNodedFirst - since_boot();
}

}  // namespace

bool fence_is_over(Shim& shim) {
  if (shim.fenced) return true;  // once fenced, a job stays so
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

}  // namespace gantry::runtime
