#include "gate/plan/probe_state.h"

#include <fmt/core.h>

#include <algorithm>

namespace gantry::gate {
namespace {

using proto::ReplicaHealth;

constexpr std::string_view kVersion = "HTTP/1.";
constexpr std::size_t kStatusAt = 9, kStatusEnd = 12;

void count(ProbeCount& of, const ProbeAnswer& answer, Instant next) {
  of.asked = false;
  of.failures = answer.good ? 0 : of.failures + 1;
  of.next = next;
}

}  // namespace

void ready_answered(Probed& replica, const tenancy::ServiceProbe& probe, const ProbeAnswer& answer,
                    Instant now) {
  const bool starts = replica.health == ReplicaHealth::starting;
  // A replica that failed is probed as often as one that starts.
  const bool away = starts || replica.health == ReplicaHealth::unready;
  const Duration pause =
      away && !answer.good ? std::min(kStartInterval, probe.interval) : probe.interval;
  count(replica.ready, answer, now + pause);
  if (replica.health == ReplicaHealth::dead) return;
  if (answer.good)
    replica.health = ReplicaHealth::ready;
  else if (!starts && replica.ready.failures >= probe.failures)
    replica.health = ReplicaHealth::unready;
  replica.why = answer.good ? "" : answer.why;
}

void live_answered(Probed& replica, const tenancy::ServiceProbe& probe, const ProbeAnswer& answer,
                   Instant now) {
  count(replica.live, answer, now + probe.interval);
  if (replica.live.failures < probe.failures) return;
  replica.health = ReplicaHealth::dead;
  replica.why = answer.why;
}

std::optional<ProbeAnswer> read_answer(std::string_view head) {
  if (!kVersion.starts_with(head.substr(0, kVersion.size())) && !head.starts_with(kVersion))
    return ProbeAnswer{false, "its answer is not HTTP"};
  if (head.size() < kStatusEnd) return std::nullopt;
  const std::string_view status = head.substr(kStatusAt, kStatusEnd - kStatusAt);
  if (status.front() == '2' || status.front() == '3') return ProbeAnswer{true, ""};
  return ProbeAnswer{false, fmt::format("it answers with status {}", status)};
}

}  // namespace gantry::gate
