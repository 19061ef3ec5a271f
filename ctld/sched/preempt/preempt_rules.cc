#include "ctld/sched/preempt/preempt_rules.h"

#include <algorithm>

namespace gantry::sched {
namespace {

// Calls f(flavor, resource) for the cells that the need is charged to: flavor 0 and its own.
template <class F>
bool any_cell(const QuotaNeed& need, const ByResource& resources, F&& f) {
  for (std::size_t r = 0; r < kResourceCount; ++r) {
    if (!resources[r] || need.amount.raw()[r] == 0) continue;
    if (f(0u, static_cast<Resource>(r))) return true;
    if (need.flavor != 0 && f(need.flavor, static_cast<Resource>(r))) return true;
  }
  return false;
}

}  // namespace

PreemptRules::PreemptRules(const PreemptRequest& request)
    : r_(request),
      quota_(request.quota),
      tree_(request.quota.tenancy()),
      tenant_(tenant_of(request.cls.key.partition)),
      class_(class_view(request.cls.key.priority_class)) {
  for (std::uint32_t n = tenant_; n != kNoIndex; n = tree_.nodes[n].parent) path_.push_back(n);
  for (const auto& [group, slots] : r_.running.groups())
    if (group.leaving) leaving_.insert(leaving_.end(), slots.begin(), slots.end());
  for (const std::uint32_t slot : leaving_) {
    const std::uint32_t tenant = tenant_of(r_.running[slot].partition);
    if (tenant == kNoIndex) continue;
    left_.emplace_back(tenant, use_of(r_.running[slot]));
    quota_.remove(tenant, left_.back().second);
  }
}

PreemptRules::~PreemptRules() {
  for (const auto& [tenant, use] : left_) quota_.add(tenant, use);
}

const ClassView& PreemptRules::class_view(std::uint32_t index) const {
  static const ClassView kNone;
  return index < tree_.classes.size() ? tree_.classes[index] : kNone;
}

std::uint32_t PreemptRules::tenant_of(PartitionId partition) const {
  const PartitionChanged* p = r_.eligible.partition(partition);
  return p != nullptr && p->quota_node < tree_.nodes.size() ? p->quota_node : kNoIndex;
}

// The tenant of a running job as a victim of x. A tenant in a cohort with x's that has no quota at
// all never exceeds one, but nothing is guaranteed to it either: for a class that names the classes
// from which it takes, such jobs count like jobs without a tenant. For all other classes they do
// not, because tenants without quota would preempt each other by their shares in turns.
std::uint32_t PreemptRules::guarantor_of(PartitionId partition) const {
  const std::uint32_t tenant = tenant_of(partition);
  if (class_.victims.empty()) return tenant;
  if (tenant == kNoIndex || tenant == tenant_ || meet(tenant).top == kNoIndex) return tenant;
  for (std::uint32_t f = 0; f < tree_.flavors.size(); ++f)
    for (std::size_t r = 0; r < kResourceCount; ++r)
      if (quota_.subtree(tenant, f, static_cast<Resource>(r)) != kUnlimited) return tenant;
  return kNoIndex;
}

QuotaNeed PreemptRules::use_of(const Placement& p) const {
  return {p.flavor < tree_.flavors.size() ? p.flavor : 0, p.held};
}

bool PreemptRules::contest(const ByResource& on_nodes) {
  contested_ = on_nodes;
  if (tenant_ != kNoIndex)
    for (std::size_t r = 0; r < kResourceCount; ++r) {
      QuotaNeed alone{r_.need.flavor, {}};
      alone.amount.raw()[r] = r_.need.amount.raw()[r];
      if (!quota_.fit(tenant_, alone).fits) contested_[r] = true;
    }
  guaranteed_.clear();
  for (std::size_t step = 0; step < path_.size(); ++step)
    guaranteed_.push_back(guaranteed_at(step));
  return std::find(contested_.begin(), contested_.end(), true) != contested_.end();
}

// True if x is within the quota of that node in every contested cell that has a quota there, and
// there is such a cell.
bool PreemptRules::guaranteed_at(std::size_t step) const {
  bool any = false;
  const bool over = any_cell(r_.need, contested_, [&](std::uint32_t f, Resource r) {
    std::int64_t here = r_.need.amount[r];
    for (std::size_t i = 0; i <= step; ++i) {
      const std::uint32_t n = path_[i];
      const std::int64_t local = quota_.local(n, f, r), subtree = quota_.subtree(n, f, r);
      const std::int64_t usage = quota_.usage(n, f, r);
      if (local == kUnlimited || subtree == kUnlimited) return false;
      if (i == step) {
        any = true;
        return usage + here > subtree;
      }
      here = std::max<std::int64_t>(0, usage + here - local) -
             std::max<std::int64_t>(0, usage - local);
    }
    return false;
  });
  return any && !over;
}

// The part of the tenant's use in the quota that is held for its claims.
std::int64_t PreemptRules::claimed_by(std::uint32_t tenant, std::uint32_t f, Resource r) const {
  std::int64_t sum = 0;
  for (const HeldQuota& held : r_.claimed)
    if (held.quota_node == tenant && (f == 0 || f == held.need.flavor)) sum += held.need.amount[r];
  return sum;
}

bool PreemptRules::exceeds_cell(std::uint32_t tenant, std::uint32_t top, std::uint32_t f,
                                Resource r) const {
  if (quota_.usage(tenant, f, r) - claimed_by(tenant, f, r) <= quota_.subtree(tenant, f, r))
    return false;
  for (std::uint32_t n = tenant; n != top && n != kNoIndex; n = tree_.nodes[n].parent)
    if (quota_.usage(n, f, r) <= quota_.subtree(n, f, r)) return false;
  return true;
}

// True if in one of the contested cells the tenant (by what it runs) and all nodes above it, up to
// below `top`, exceed their own quota. With `use`, only cells that it is charged to count.
bool PreemptRules::exceeds(std::uint32_t tenant, std::uint32_t top, const QuotaNeed* use) const {
  return any_cell(r_.need, contested_, [&](std::uint32_t f, Resource r) {
    if (use != nullptr && (use->amount[r] == 0 || (f != 0 && f != use->flavor))) return false;
    return exceeds_cell(tenant, top, f, r);
  });
}

PreemptRules::Meeting PreemptRules::meet(std::uint32_t other) const {
  for (std::uint32_t n = other; n != kNoIndex; n = tree_.nodes[n].parent)
    if (const auto at = std::find(path_.begin(), path_.end(), n); at != path_.end())
      return {n, static_cast<std::size_t>(at - path_.begin())};
  return {kNoIndex, path_.size()};
}

// True if x takes what is guaranteed to its own tenant, and it may take that back.
bool PreemptRules::within_own() const {
  return r_.reclaim && tenant_ != kNoIndex && guaranteed_[0];
}

bool PreemptRules::let_lower_classes_give_way() {
  if (!within_own() || tree_.nodes[tenant_].reclaim == tenancy::Reclaim::never) return false;
  lower_give_way_ = true;
  return true;
}

// True if a lower class in the same cohort must leave for x, even if its tenant exceeds nothing.
bool PreemptRules::gives_way(std::uint32_t slot) const {
  const Placement& p = r_.running[slot];
  const std::uint32_t other = guarantor_of(p.partition);
  return lower_give_way_ && other != kNoIndex && meet(other).top != kNoIndex &&
         seen_value(p.priority_class) < class_.value && p.preemptions < kMostByClass;
}

std::int32_t PreemptRules::seen_value(std::uint32_t priority_class) const {
  const std::int32_t value = class_view(priority_class).value;
  if (class_.victims.empty()) return value;
  const bool taken_from = std::find(class_.victims.begin(), class_.victims.end(), priority_class) !=
                          class_.victims.end();
  return taken_from ? std::min(value, class_.value - 1) : std::max(value, class_.value);
}

VictimRule PreemptRules::rule_for_tenant(std::uint32_t other, std::int32_t value) {
  const bool lower = value < class_.value;
  const bool by_class = r_.by_class && class_.preempts && lower;
  const VictimRule of_class = by_class ? VictimRule::of_class : VictimRule::none;
  if (other == tenant_)  // also where neither has a quota
    return lower && within_own() ? VictimRule::within : of_class;
  const Meeting meeting = meet(other);
  const bool exceeding = other == kNoIndex || exceeds(other, meeting.top, nullptr);
  // If more quota is guaranteed than the cluster has, the higher class gets the resources.
  if (!exceeding && !(lower && lower_give_way_ && meeting.top != kNoIndex)) return VictimRule::none;
  if (tenant_ == kNoIndex) return of_class;

  const tenancy::Reclaim policy = tree_.nodes[tenant_].reclaim;
  if (policy == tenancy::Reclaim::never) return VictimRule::none;
  if (!exceeding) return VictimRule::within;
  const auto below = guaranteed_.begin() + static_cast<std::ptrdiff_t>(meeting.steps);
  const bool own = meeting.steps > 0 && guaranteed_[0];
  const bool cohort = meeting.steps > 1 && std::find(guaranteed_.begin() + 1, below, true) != below;
  if (own || cohort) {
    if (r_.reclaim && (cohort || lower || policy == tenancy::Reclaim::any))
      return VictimRule::reclaim;
    return of_class;
  }
  if (other == kNoIndex) return of_class;
  const bool equal = value == class_.value && r_.balance.us > 0;
  if (!by_class && !equal) return VictimRule::none;
  // Rules a and b cannot hold for any of its jobs if x's side has the larger value even with all of
  // them.
  const std::int64_t theirs = quota_.share_value(side_of(other, meeting.top), {});
  return value_with_job(meeting.steps) <= theirs ? VictimRule::by_share : VictimRule::none;
}

// The child of `top` that is or contains `other`.
std::uint32_t PreemptRules::side_of(std::uint32_t other, std::uint32_t top) const {
  while (tree_.nodes[other].parent != top) other = tree_.nodes[other].parent;
  return other;
}

PreemptRules::OfGroup PreemptRules::rule_for(const PlacementGroup& group) {
  const ClassView& cls = class_view(group.priority_class);
  OfGroup of_group;
  if (group.leaving || !cls.preemptible) return of_group;
  const std::uint32_t tenant = guarantor_of(group.partition);
  of_group.rule = rule_for_tenant(tenant, seen_value(group.priority_class));
  if (tenant != tenant_of(group.partition) && of_group.rule != VictimRule::of_class)
    of_group.rule =
        VictimRule::none;  // x takes what its quota guarantees only from tenants that exceed theirs
  if (of_group.rule == VictimRule::none || tenant == kNoIndex || tenant == tenant_) return of_group;
  const std::uint32_t top = meet(tenant).top;
  (void)any_cell(r_.need, contested_, [&](std::uint32_t f, Resource r) {
    ByResource& by_resource = f == 0 ? of_group.exceeds : of_group.exceeds_flavor;
    by_resource[static_cast<std::size_t>(r)] = exceeds_cell(tenant, top, f, r);
    return false;
  });
  return of_group;
}

std::optional<Suspect> PreemptRules::judge(std::uint32_t slot, const OfGroup& group) const {
  const VictimRule rule = group.rule;
  const Placement& p = r_.running[slot];
  const ClassView& cls = class_view(p.priority_class);
  const std::int64_t ran = std::max<std::int64_t>(0, (r_.now - p.started).us);
  if (ran < cls.min_run_time.us) return std::nullopt;
  if (rule != VictimRule::reclaim && p.preemptions >= kMostByClass) return std::nullopt;
  if (cls.max_preemptions && p.preemptions >= *cls.max_preemptions) return std::nullopt;
  const std::int32_t value = seen_value(p.priority_class);
  Suspect s{slot, 0, p.job, rule, value, 0, 0, guarantor_of(p.partition), use_of(p)};
  if (rule == VictimRule::none) return std::nullopt;
  if (s.quota_node != kNoIndex && s.quota_node != tenant_ && !gives_way(slot)) {
    bool exceeds = false;
    for (std::size_t r = 0; r < kResourceCount; ++r)
      exceeds |= s.use.amount.raw()[r] != 0 &&
                 (group.exceeds[r] || (group.exceeds_flavor[r] && s.use.flavor == r_.need.flavor));
    if (!exceeds) return std::nullopt;
  }
  std::int64_t lost = ran;
  if (p.requeue && p.checkpoint)
    lost = std::clamp<std::int64_t>((r_.now - *p.checkpoint + kRestartTime).us, 0, ran);
  if (rule == VictimRule::by_share && value == class_.value && lost > r_.balance.us)
    return std::nullopt;
  const std::int64_t gpus = s.use.amount[Resource::gpu];
  const std::int64_t thousandths = gpus > 0 ? gpus : s.use.amount[Resource::cpu];
  const auto capped = [](__int128 v) {
    return static_cast<std::int64_t>(std::min<__int128>(v, kUnlimited / 1024));
  };
  s.lost_work = capped(static_cast<__int128>(thousandths) * lost / 1000);
  s.cost = std::max<std::int64_t>(
      1, capped(static_cast<__int128>(s.lost_work) * (2 + std::int64_t{p.preemptions}) / 2));
  return s;
}

PreemptWhy PreemptRules::why(const Suspect& s) const {
  if (s.rule == VictimRule::reclaim) return PreemptWhy::reclaim;
  return s.class_value < class_.value ? PreemptWhy::by_class : PreemptWhy::by_share;
}

// The share value of x's side with x; x's side is the node `steps` - 1 up its path.
std::int64_t PreemptRules::value_with_job(std::size_t steps) {
  quota_.add(tenant_, r_.need);
  const std::int64_t value = quota_.share_value(path_[steps - 1], {});
  quota_.remove(tenant_, r_.need);
  return value;
}

// Removes the suspect from the quota if the rules allow that in the present state; returns false if
// they do not.
bool PreemptRules::take(const Suspect& s, bool rule_b, std::vector<std::uint32_t>& used_b) {
  if (s.quota_node == kNoIndex) return true;
  if (s.quota_node == tenant_) {
    quota_.remove(s.quota_node, s.use);
    return true;
  }
  const Meeting meeting = meet(s.quota_node);
  if (!exceeds(s.quota_node, meeting.top, &s.use)) {
    if (!gives_way(s.slot)) return false;
    quota_.remove(s.quota_node, s.use);
    return true;
  }
  if (s.rule != VictimRule::by_share) {
    quota_.remove(s.quota_node, s.use);
    return true;
  }
  const std::uint32_t side = side_of(s.quota_node, meeting.top);
  const std::int64_t with_job = value_with_job(meeting.steps);
  const std::int64_t before = quota_.share_value(side, {});
  quota_.remove(s.quota_node, s.use);
  if (with_job <= quota_.share_value(side, {})) return true;
  const bool fresh = std::find(used_b.begin(), used_b.end(), s.quota_node) == used_b.end();
  if (rule_b && fresh && with_job < before) {
    used_b.push_back(s.quota_node);
    return true;
  }
  quota_.add(s.quota_node, s.use);
  return false;
}

void PreemptRules::sort(std::vector<const Suspect*>& set) const {
  const auto key = [&](const Suspect* s) {
    return std::tuple{s->quota_node != tenant_, s->quota_node, s->use.amount[Resource::gpu],
                      s->use.amount[Resource::cpu], s->job};
  };
  std::sort(set.begin(), set.end(),
            [&](const Suspect* a, const Suspect* b) { return key(a) < key(b); });
}

SetCheck PreemptRules::check(const std::vector<const Suspect*>& set, bool rule_b) {
  SetCheck result;
  std::vector<std::uint32_t> used_b;
  std::size_t taken = 0;
  while (taken < set.size() && take(*set[taken], rule_b, used_b)) ++taken;
  if (taken < set.size())
    result.offender = taken;
  else
    result.fits = quota_fits();
  give_back({set.data(), taken});
  return result;
}

std::vector<const Suspect*> PreemptRules::grow(
    const std::vector<const Suspect*>& from, bool rule_b, std::size_t most,
    const std::function<bool(const std::vector<const Suspect*>&, bool)>& enough) {
  std::vector<const Suspect*> taken;
  std::vector<std::uint32_t> used_b;
  bool done = false;
  for (std::size_t i = 0; i < from.size() && taken.size() < most && !done; ++i) {
    if (!take(*from[i], rule_b, used_b)) continue;
    taken.push_back(from[i]);
    done = quota_fits() && enough(taken, false);
  }
  if (!done) done = !taken.empty() && quota_fits() && enough(taken, true);
  give_back(taken);
  if (!done) taken.clear();
  return taken;
}

bool PreemptRules::quota_fits() const {
  return tenant_ == kNoIndex || quota_.fit(tenant_, r_.need).fits;
}

void PreemptRules::give_back(std::span<const Suspect* const> taken) {
  for (const Suspect* s : taken)
    if (s->quota_node != kNoIndex) quota_.add(s->quota_node, s->use);
}

}  // namespace gantry::sched
