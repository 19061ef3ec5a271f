#include "ctld/scale/rollout.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/job/verdict_text.h"

namespace gantry::scale {
namespace {

using tenancy::RolloutKind;

constexpr std::uint32_t kWhole = 1000;
constexpr std::uint32_t kMostFailures =
    3;  // failures after which a set that was never ready is rolled back
constexpr std::uint64_t kFewestRequests = 50;  // before error rates and times are judged
constexpr std::uint32_t kSurgePart = 4;        // a quarter more replicas during a rolling rollout

std::uint32_t part_of(std::uint32_t n, std::uint32_t part) {
  return (n * part + kWhole - 1) / kWhole;
}

std::string ready_text(std::uint32_t n) {
  return counted(n, "replica") + (n == 1 ? " is ready" : " are ready");
}

bool too_many_errors(const tenancy::ServiceRollout& how, const SetFacts& set) {
  return set.errors * kWhole > set.requests * how.most_errors;
}

bool keeps(const SetFacts& set, Duration target, std::uint32_t percentile) {
  return set.times.within(target) * 100 >= static_cast<double>(set.times.sum()) * percentile;
}

// Why the new set must be rolled back; "" if it may stay.
std::string fault_of(const tenancy::ServiceRollout& how, Duration target, std::uint32_t percentile,
                     const RolloutFacts& f) {
  if (f.fresh.failures >= kMostFailures && f.fresh.ready == 0)
    return fmt::format("{} replicas of it ended or were too late before they were ready",
                       f.fresh.failures);
  if (f.fresh.requests < kFewestRequests) return {};
  if (too_many_errors(how, f.fresh))
    return fmt::format("{} of {} requests failed, {:.1f} % are allowed", f.fresh.errors,
                       f.fresh.requests, how.most_errors / 10.0);
  if (!how.watch_target || f.before.times.sum() < kFewestRequests) return {};
  if (keeps(f.before, target, percentile) && !keeps(f.fresh, target, percentile)) {
    const double all = static_cast<double>(f.fresh.times.sum());
    return fmt::format(
        "{:.1f} % of its answers came within {} ms, {} % are promised and those "
        "before keep it",
        f.fresh.times.within(target) * 100 / all, target.us / 1000, percentile);
  }
  return {};
}

}  // namespace

std::uint32_t first_part(const tenancy::ServiceRollout& how) {
  switch (how.kind) {
    case RolloutKind::canary: return std::min(how.step * 10, kWhole);
    case RolloutKind::blue_green: return 0;
    case RolloutKind::rolling: return kWhole;  // in proportion to the ready replicas
  }
  return kWhole;
}

SetCounts counts_of(const tenancy::ServiceRollout& how, const RolloutFacts& f) {
  const std::uint32_t n = f.wanted;
  switch (how.kind) {
    case RolloutKind::rolling: {
      const std::uint32_t surge = std::max(1u, (n + kSurgePart - 1) / kSurgePart);
      const std::uint32_t ready = std::min(f.fresh.ready, n);
      return {n - ready, std::min(n, ready + surge)};
    }
    case RolloutKind::canary: {
      const std::uint32_t part = f.fresh.part;
      const std::uint32_t fresh = n == 0 ? 0 : std::max(1u, part_of(n, part));
      // Old replicas leave one by one as the new ones that replace them become ready. If not both
      // fit, each old one makes room for the next new one.
      const std::uint32_t left = part_of(n, kWhole - part);
      const std::uint32_t ready = std::min(f.fresh.ready, n);
      const std::uint32_t before = f.fresh.ready >= fresh ? left : std::max(left, n - ready);
      return {part >= kWhole && f.fresh.ready >= fresh ? 0 : std::max(n == 0 ? 0u : 1u, before),
              fresh};
    }
    case RolloutKind::blue_green: return {n, n};
  }
  return {n, n};
}

RolloutStep next_step(const tenancy::ServiceRollout& how, Duration target, std::uint32_t percentile,
                      const RolloutFacts& f) {
  using Kind = RolloutStep::Kind;
  if (f.wanted == 0) return {Kind::finish, kWhole, "it has no replicas now"};
  if (std::string fault = fault_of(how, target, percentile, f); !fault.empty())
    return {Kind::back, 0, std::move(fault)};
  const bool paused = f.now - f.stepped < how.pause;
  switch (how.kind) {
    case RolloutKind::rolling:
      if (f.fresh.ready >= f.wanted) return {Kind::finish, kWhole, ready_text(f.fresh.ready)};
      return {};
    case RolloutKind::canary: {
      const std::uint32_t needed = std::max(1u, part_of(f.wanted, f.fresh.part));
      if (f.fresh.ready < needed || paused || too_many_errors(how, f.fresh)) return {};
      if (f.fresh.part >= kWhole) return {Kind::finish, kWhole, ready_text(f.fresh.ready)};
      const std::uint32_t part = std::min(kWhole, f.fresh.part + how.step * 10);
      return {Kind::move, part,
              fmt::format("{} of {} requests failed, {}", f.fresh.errors, f.fresh.requests,
                          ready_text(f.fresh.ready))};
    }
    case RolloutKind::blue_green:
      if (f.fresh.part < kWhole) {
        if (f.fresh.ready < f.wanted) return {};
        return {Kind::move, kWhole, ready_text(f.fresh.ready)};
      }
      if (paused) return {};
      return {Kind::finish, kWhole,
              fmt::format("{} of {} requests failed", f.fresh.errors, f.fresh.requests)};
  }
  return {};
}

}  // namespace gantry::scale
