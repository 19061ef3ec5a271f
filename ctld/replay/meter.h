// Measures a replay while it runs: integrals over virtual time of what tenants use, want, and would
// get in a fair division. Definitions:
//
//   share error      the mean of |use - fair| / cluster over the time in which the tenant has
//                    waiting jobs
//   claims           While another tenant borrows, a tenant has claims: one for each of its waiting
//                    jobs, the smallest first, as long as they fit in its nominal quota together
//                    with what it uses. When one of its jobs starts, its oldest claims are met, up
//                    to the units of the job
//   quota violation  the time in which a claim is older than the reclaim deadline, although
//                    somebody could have made room for it for as long as the deadline
//   no place         the time of late claims in which nobody could make room, or somebody could for
//                    less than the deadline. Nobody can if no set of other
//                    tenants' jobs that may be preempted frees the nodes that one of the tenant's
//                    jobs needs (places.h),
//                    or if these nodes are reserved for a job that has waited for
//                    controller.oldest_first_after, because no claim takes such nodes
//   Jain's index     (sum x)^2 / (n sum x^2) of x = decayed use / decayed fair share, over tenants
//                    that have waited for an hour at least; the mean over the time in which there
//                    are two such tenants or more
//
// The fair division is defined in fair.h; decay is that of the fair share. Use includes jobs that
// are being ended.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ctld/replay/fair.h"
#include "ctld/sched/tenancy.h"
#include "ctld/sched/tenant/decay.h"

namespace gantry::replay {

struct UseChange {  // from this time on a tenant used this many more units
  Instant at{};
  std::uint32_t tenant = 0;
  std::int64_t by = 0;
};

struct Violation {  // a claim that was not met in time
  std::uint32_t tenant = 0;
  Instant since{}, until{};
  std::int64_t
      used = 0,
      smallest = 0;  // units at its beginning: used by the tenant, and of its smallest waiting job
  std::int64_t first = 0;  // units of the first waiting job in the tenant's order
  std::int64_t units = 0;  // units that the claim asks for
  double no_place = 0;     // seconds beyond the deadline in which no room could be made
};

struct TenantMeasure {
  double use = 0;         // unit-seconds
  double backlogged = 0;  // seconds
  double error = 0;       // integral of |use - fair| while backlogged, unit-seconds
  double below = 0;       // seconds in which the tenant had a claim
  double violation = 0;   // seconds of these in which a claim was older than the deadline
  double no_place = 0;    // seconds of late claims for which no room could be made
  double of_first = 0;    // violation if only the tenant's first job, in its order, could claim
  double nominal = 0;     // nominal quota in units; 0 without quota
};

class Meter {
 public:
  Meter(FairShares fair, std::size_t tenants, double total, Duration deadline, Duration half_life,
        Instant begin);

  // Counts the time up to `now`; must be called before any change at `now`. `has_place` is asked
  // for tenants with a claim whether somebody could make room for it; without it the answer is yes.
  using HasPlace = std::function<bool(std::size_t tenant)>;
  void advance(Instant now, const HasPlace& has_place = {});
  // `place` is the job's place in the tenant's order; no two jobs have the same.
  using Place = std::pair<std::int64_t, std::uint64_t>;
  void queued(std::uint32_t tenant, std::int64_t units, Place place);
  void unqueued(std::uint32_t tenant, std::int64_t units, Place place);
  void started(std::uint32_t tenant, std::int64_t units);
  void ended(std::uint32_t tenant, std::int64_t units);

  [[nodiscard]] const std::vector<TenantMeasure>& tenants() const { return measures_; }
  [[nodiscard]] const std::vector<UseChange>& changes() const { return changes_; }
  [[nodiscard]] const std::vector<Violation>& violations() const { return violations_; }
  [[nodiscard]] double jain() const { return jain_time_ > 0 ? jain_ / jain_time_ : 1; }
  [[nodiscard]] double jain_time() const { return jain_time_; }
  [[nodiscard]] const FairShares& fair() const { return fair_; }
  // Units that the tenant uses beyond its nominal quota; negative if it uses less; 0 without quota.
  [[nodiscard]] std::int64_t excess(std::size_t tenant) const;

 private:
  struct Tenant {
    std::int64_t used = 0, wanted = 0;           // running units; waiting units
    std::map<std::int64_t, std::int64_t> sizes;  // waiting jobs by units
    std::map<Place, std::int64_t> order;         // units of the waiting jobs
    std::optional<Instant> waits_since, first_since;
    Place first{};  // the first place in that order, and since when it is the first
    std::optional<Instant> no_place;  // the last time when nobody could make room
    std::deque<Violation> claims;     // open claims, the oldest first
    sched::DecayedUsage use, fair;
  };
  [[nodiscard]] bool claims(std::size_t tenant, std::int64_t units) const;
  [[nodiscard]] std::vector<std::int64_t> sizes_of_claims(std::size_t tenant) const;
  void settle_claims(std::size_t tenant);
  void close(const Violation& claim);
  void settle();
  void count_jain(double dt);

  FairShares fair_;
  const double total_;
  const Duration deadline_, half_life_;
  Instant now_;
  bool changed_ = true;
  std::vector<Tenant> state_;
  std::vector<double> shares_;  // fair shares now
  std::vector<TenantMeasure> measures_;
  std::vector<UseChange> changes_;
  std::vector<Violation> violations_;
  double jain_ = 0, jain_time_ = 0;
};

}  // namespace gantry::replay
