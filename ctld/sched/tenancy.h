// Tenancy as the scheduler sees it: the documents compiled to a tree of quota nodes, flavors,
// priority classes and topology, all by index. Immutable; a change of the documents makes a new
// one.
//
// Tenants are partitions: PartitionChanged names the quota node of its tenant. A partition without
// a quota node (from the cluster's configuration) has no quota, borrows nothing and has share value
// 0.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/resources/resources.h"
#include "common/tenancy/tenancy.h"
#include "common/time/time.h"

namespace gantry::sched {

inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
inline constexpr std::uint32_t kNoIndex = std::numeric_limits<std::uint32_t>::max();

// Limits by flavor. Flavor 0 means "all flavors together": every use is charged to it, and also to
// the node's own flavor (1 and up) if it has one.
struct FlavorLimits {
  std::array<std::int64_t, kResourceCount> nominal{};  // kUnlimited = no quota
  std::array<std::int64_t, kResourceCount> borrow{};   // kUnlimited = no limit
  std::array<std::int64_t, kResourceCount> lend{};     // kUnlimited = all of it
};

struct QuotaNode {
  std::string name;
  std::uint32_t parent = kNoIndex;  // the parent has a smaller index; kNoIndex = this is a root
  std::uint32_t weight = 1000;      // thousandths
  bool tenant = false;
  tenancy::Reclaim reclaim = tenancy::Reclaim::any;
  std::optional<std::uint32_t> max_running;  // limit on running jobs
  std::vector<FlavorLimits> limits;          // by flavor, [0] first
};

struct ClassView {  // a priority class
  std::string name;
  std::int32_t value = 500;
  bool preempts = false;
  bool preemptible = true;
  tenancy::VictimMode victim_mode = tenancy::VictimMode::requeue;
  Duration grace{}, min_run_time{};
  std::optional<std::uint32_t> max_preemptions;
  // By index: the only classes that it may preempt; empty = those of a lower value.
  std::vector<std::uint32_t> victims{};
};

struct FlavorView {
  std::string name;                             // "" for flavor 0
  std::array<double, kResourceCount> charge{};  // fair-share charge per second and unit
};

struct TopologyLevel {
  std::string name;                  // from the widest to the narrowest
  std::vector<std::string> domains;  // by domain index
};

struct Tenancy {
  std::uint64_t revision = 0;
  std::vector<QuotaNode> nodes;        // parents before children
  std::vector<FlavorView> flavors;     // at least one
  std::vector<ClassView> classes;      // at least one; [0] is the default
  std::vector<TopologyLevel> levels;   // none = no topology
  Duration half_life = hours(7 * 24);  // of usage in the fair share
  // False if jobs of a tenant are not ordered by Fair Tree, because the configuration orders them
  // by weights.
  bool fair_share = true;
};
// tidy-allow(pure): one immutable value that both the loop and the planner thread hold
using TenancyPtr = std::shared_ptr<const Tenancy>;

// Usage that decays; see fairshare.h.
struct DecayedUsage {
  double amount = 0;  // charge units times seconds, as of `at`
  double rate = 0;    // charge units per second of running jobs
  Instant at{};
  friend bool operator==(const DecayedUsage&, const DecayedUsage&) = default;
  GANTRY_FIELDS(FIELD(1, amount), FIELD(2, rate), FIELD(3, at))
};

}  // namespace gantry::sched
