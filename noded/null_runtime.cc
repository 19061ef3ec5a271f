#include "noded/null_runtime.h"

#include <csignal>

namespace gantry::node {

namespace {

Ended ended(const AttemptKey& key, Instant now, std::int32_t signal = 0) {
  Exit exit;
  exit.status.signal = signal;
  exit.started = now;
  exit.ended = now;
  return {key, std::move(exit)};
}

}  // namespace

std::optional<Owner> NullRuntime::owner_of(const AttemptKey& key) const {
  const auto it = waiting_.find(key);
  if (it == waiting_.end()) return std::nullopt;
  return it->second.owner;
}

void NullRuntime::act(Instant now, Action&& action, std::vector<Input>& events) {
  const auto run = [&](const AttemptKey& key, bool holder, const Owner& owner) {
    events.emplace_back(Running{key, now});
    if (holder)
      waiting_[key] = {true, owner};
    else
      events.emplace_back(ended(key, now));
  };
  const auto end = [&](const AttemptKey& key, std::int32_t signal) {
    if (waiting_.erase(key) > 0) events.emplace_back(ended(key, now, signal));
  };
  if (auto* begin = std::get_if<Begin>(&action)) {
    const proto::Launch& launch = begin->launch;
    const bool holder = !launch.runs_batch || launch.spec.kind == JobKind::allocation;
    if (launch.hold) {
      waiting_[launch.key] = {holder, launch.owner};
      events.emplace_back(Held{launch.key});
    } else {
      run(launch.key, holder, launch.owner);
    }
  } else if (auto* release = std::get_if<Release>(&action)) {
    const auto it = waiting_.find(release->key);
    if (it == waiting_.end()) return;
    const Waiting waited = std::move(it->second);
    waiting_.erase(it);
    run(release->key, waited.holder, waited.owner);
  } else if (auto* signal = std::get_if<Signal>(&action)) {
    if (signal->signal == SIGTERM || signal->signal == SIGKILL) end(signal->key, signal->signal);
  } else if (auto* kill = std::get_if<Kill>(&action)) {
    end(kill->key, SIGKILL);
  }
}

}  // namespace gantry::node
