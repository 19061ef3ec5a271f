// The rules of preempt.h: which running jobs a job x may take from, and whether a set of them may
// leave together and leaves x its quota. Nodes and places are not looked at here.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ctld/sched/preempt/preempt.h"

namespace gantry::sched {

enum class VictimRule : std::uint8_t {
  none,      // may not be preempted
  of_class,  // preempted, because it has a lower class
  within,   // preempted, because it has a lower class and x is within its tenant's guaranteed quota
  reclaim,  // x takes back guaranteed quota
  by_share,  // both sides borrow
};

// A running job that may be a victim.
struct Suspect {
  std::uint32_t slot = 0;   // slot in Running
  std::uint32_t index = 0;  // among all suspects
  JobId job{};
  VictimRule rule = VictimRule::none;
  std::int32_t class_value = 0;
  std::int64_t lost_work = 0;
  std::int64_t cost = 0;
  std::uint32_t quota_node = kNoIndex;
  QuotaNeed use;
};

struct SetCheck {
  std::optional<std::size_t> offender;  // index of the first suspect that may not leave
  bool fits = false;                    // all may leave, and then the job has its quota
};

using ByResource = std::array<bool, kResourceCount>;

// While this object lives, the use of leaving jobs is removed from the quota.
class PreemptRules {
 public:
  explicit PreemptRules(const PreemptRequest& request);
  ~PreemptRules();
  PreemptRules(const PreemptRules&) = delete;
  PreemptRules& operator=(const PreemptRules&) = delete;

  [[nodiscard]] const std::vector<std::uint32_t>& leaving() const {
    return leaving_;
  }  // slots of leaving jobs

  // Call it once, before all else, with the resources that the nodes lack. Returns true if
  // resources or quota are missing.
  bool contest(const ByResource& on_nodes);

  // From now on lower classes of tenants that exceed nothing may be preempted as well, for a job
  // within its tenant's own quota: for the case that more quota is guaranteed than the cluster has.
  // Returns false if this job may not do that. Call it after contest().
  bool let_lower_classes_give_way();

  // The rule for all placements of a group.
  struct OfGroup {
    VictimRule rule = VictimRule::none;
    ByResource exceeds{},
        exceeds_flavor{};  // whether its tenant exceeds its quota in flavor 0, and in x's flavor
  };
  [[nodiscard]] OfGroup rule_for(const PlacementGroup& group);
  // nullopt if this job may not be preempted.
  [[nodiscard]] std::optional<Suspect> judge(std::uint32_t slot, const OfGroup& group) const;
  [[nodiscard]] PreemptWhy why(const Suspect& s) const;
  [[nodiscard]] std::int32_t value_of(std::uint32_t priority_class) const {
    return seen_value(priority_class);
  }
  [[nodiscard]] Duration grace_of(std::uint32_t priority_class) const {
    return class_view(priority_class).grace;
  }
  // Sorts so that as many as possible may leave in order: jobs of x's own tenant first, as they
  // lower its share value; then small jobs, as only a tenant's last victim may take it below its
  // quota.
  void sort(std::vector<const Suspect*>& set) const;
  // Checks if they may leave one after the other. With `rule_b` that rule may replace rule a once
  // for each tenant. If a set may leave, so may a part of it, unless it lacks own jobs whose
  // leaving helps others.
  SetCheck check(const std::vector<const Suspect*>& set, bool rule_b);
  // Takes, in order, those that may leave, until they are enough. When the quota fits, calls
  // `enough`; its second argument is true if there are no more suspects. Empty if they are never
  // enough.
  std::vector<const Suspect*> grow(
      const std::vector<const Suspect*>& from, bool rule_b, std::size_t most,
      const std::function<bool(const std::vector<const Suspect*>&, bool)>& enough);

 private:
  [[nodiscard]] const ClassView& class_view(std::uint32_t index) const;
  [[nodiscard]] std::uint32_t tenant_of(PartitionId partition) const;
  [[nodiscard]] std::uint32_t guarantor_of(PartitionId partition) const;
  [[nodiscard]] bool guaranteed_at(std::size_t step) const;
  [[nodiscard]] std::int64_t claimed_by(std::uint32_t tenant, std::uint32_t f, Resource r) const;
  [[nodiscard]] bool exceeds_cell(std::uint32_t tenant, std::uint32_t top, std::uint32_t f,
                                  Resource r) const;
  [[nodiscard]] bool exceeds(std::uint32_t tenant, std::uint32_t top, const QuotaNeed* use) const;
  // The lowest node above both tenants, and how many steps up x's path it is; kNoIndex and the
  // length of the path if there is none.
  struct Meeting {
    std::uint32_t top = kNoIndex;
    std::size_t steps = 0;
  };
  [[nodiscard]] Meeting meet(std::uint32_t other) const;
  [[nodiscard]] bool within_own() const;
  [[nodiscard]] bool gives_way(std::uint32_t slot) const;
  [[nodiscard]] VictimRule rule_for_tenant(std::uint32_t other, std::int32_t value);
  // The value of a class as the job's class sees it: a class that it may preempt is below its own.
  [[nodiscard]] std::int32_t seen_value(std::uint32_t priority_class) const;
  [[nodiscard]] std::uint32_t side_of(std::uint32_t other, std::uint32_t top) const;
  [[nodiscard]] std::int64_t value_with_job(std::size_t steps);
  bool take(const Suspect& s, bool rule_b, std::vector<std::uint32_t>& used_b);
  [[nodiscard]] bool quota_fits() const;
  void give_back(std::span<const Suspect* const> taken);
  [[nodiscard]] QuotaNeed use_of(const Placement& p) const;

  const PreemptRequest& r_;
  QuotaTree& quota_;
  const Tenancy& tree_;
  std::uint32_t tenant_ = kNoIndex;
  const ClassView& class_;
  ByResource contested_{};
  bool lower_give_way_ = false;
  std::vector<std::uint32_t> path_;  // from the tenant to its root
  std::vector<bool>
      guaranteed_;  // by step of the path: whether the need fits there without borrowing
  std::vector<std::uint32_t> leaving_;
  std::vector<std::pair<std::uint32_t, QuotaNeed>> left_;  // leaving jobs, removed from the quota
};

}  // namespace gantry::sched
