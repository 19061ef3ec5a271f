#include "ctld/sched/queue/memory.h"

namespace gantry::sched {
namespace {

// Compares only what decides about jobs, not how much a plan examines or reports.
bool same(Policy a, const Policy& b) {
  a.estimates = b.estimates;
  a.everything = b.everything;
  return a == b;
}

}  // namespace

bool Memory::may_pass_over(Instant now, const Policy& policy, std::optional<Instant> boundary) {
  const bool may = looked_at_all_ && policy.keep_reservations && policy.estimates == 0 &&
                   same(policy_, policy) && now >= *looked_at_all_ &&
                   now - *looked_at_all_ < policy.everything && boundary_ == boundary;
  boundary_ = boundary;
  if (!same(policy_, policy)) keys.forget();
  return may;
}

void Memory::planned(bool everything, bool cut, Instant now, const Policy& policy) {
  policy_ = policy;
  if (everything) looked_at_all_ = now;
  if (cut) looked_at_all_.reset();
}

void Memory::forget_changes() {
  for (const std::uint32_t n : nodes_) touched_.clear(n);
  nodes_.clear();
  jobs_.clear();
}

}  // namespace gantry::sched
