#include "ctld/replay/meter.h"

#include <algorithm>
#include <cmath>

namespace gantry::replay {
namespace {

constexpr Duration kSettled =
    hours(1);  // a tenant that has waited this long counts for Jain's index

double to_seconds(Duration d) {
  return static_cast<double>(d.us) / 1e6;
}

}  // namespace

Meter::Meter(FairShares fair, std::size_t tenants, double total, Duration deadline,
             Duration half_life, Instant begin)
    : fair_(std::move(fair)),
      total_(total),
      deadline_(deadline),
      half_life_(half_life),
      now_(begin),
      state_(tenants),
      shares_(tenants, 0),
      measures_(tenants) {
  for (std::size_t t = 0; t < tenants; ++t)
    if (fair_.has_quota(t)) measures_[t].nominal = fair_.nominal(t);
}

// True if waiting jobs with this many units would fit in the tenant's nominal quota while another
// tenant borrows, so that the tenant may claim its quota.
bool Meter::claims(std::size_t t, std::int64_t units) const {
  const Tenant& tenant = state_[t];
  if (!fair_.has_quota(t)) return false;
  if (static_cast<double>(tenant.used + units) > fair_.nominal(t)) return false;
  for (std::size_t o = 0; o < state_.size(); ++o)
    if (o != t && fair_.has_quota(o) && static_cast<double>(state_[o].used) > fair_.nominal(o))
      return true;
  return false;
}

// Updates the values that are valid from now_ on.
void Meter::settle() {
  std::vector<double> demands;
  for (const Tenant& t : state_) demands.push_back(static_cast<double>(t.used + t.wanted));
  shares_ = fair_.divide(demands);
  for (std::size_t i = 0; i < state_.size(); ++i) {
    Tenant& t = state_[i];
    if (t.sizes.empty())
      t.waits_since.reset();
    else if (!t.waits_since)
      t.waits_since = now_;
    settle_claims(i);
    sched::advance(t.use, now_, half_life_);
    sched::advance(t.fair, now_, half_life_);
    t.use.rate = static_cast<double>(t.used);
    t.fair.rate = shares_[i];
  }
}

std::int64_t Meter::excess(std::size_t tenant) const {
  if (!fair_.has_quota(tenant)) return 0;
  return state_[tenant].used - static_cast<std::int64_t>(fair_.nominal(tenant));
}

std::vector<std::int64_t> Meter::sizes_of_claims(std::size_t tenant) const {
  std::vector<std::int64_t> sizes;
  std::int64_t units = 0;
  for (const auto& [size, jobs] : state_[tenant].sizes)
    for (std::int64_t n = 0; n < jobs; ++n) {
      if (!claims(tenant, units += size)) return sizes;
      sizes.push_back(size);
    }
  return sizes;
}

void Meter::settle_claims(std::size_t tenant) {
  Tenant& t = state_[tenant];
  const std::vector<std::int64_t> sizes = sizes_of_claims(tenant);
  for (; t.claims.size() > sizes.size(); t.claims.pop_back()) close(t.claims.back());
  while (t.claims.size() < sizes.size()) {
    Violation claim;
    claim.tenant = static_cast<std::uint32_t>(tenant);
    claim.since = now_;
    claim.used = t.used;
    claim.smallest = t.sizes.begin()->first;
    claim.first = t.order.begin()->second;
    t.claims.push_back(claim);
  }
  // A claim belongs to no particular job, because jobs come and go. The oldest claims get the sizes
  // of the smallest jobs.
  for (std::size_t i = 0; i < sizes.size(); ++i) t.claims[i].units = sizes[i];
  if (t.order.empty() || !claims(tenant, t.order.begin()->second)) {
    t.first_since.reset();
  } else if (!t.first_since || t.first != t.order.begin()->first) {
    t.first_since = now_;
    t.first = t.order.begin()->first;
  }
}

void Meter::close(const Violation& claim) {
  if (now_ - claim.since <= deadline_) return;
  violations_.push_back(claim);
  violations_.back().until = now_;
}

void Meter::count_jain(double dt) {
  double sum = 0, squares = 0, n = 0;
  for (Tenant& t : state_) {
    if (!t.waits_since || now_ - *t.waits_since < kSettled) continue;
    const double fair = sched::amount_at(t.fair, now_, half_life_);
    if (fair <= 0) continue;
    const double x = sched::amount_at(t.use, now_, half_life_) / fair;
    sum += x;
    squares += x * x;
    n += 1;
  }
  if (n < 2 || squares <= 0) return;
  jain_ += dt * sum * sum / (n * squares);
  jain_time_ += dt;
}

void Meter::advance(Instant now, const HasPlace& has_place) {
  if (now <= now_) return;
  if (changed_) settle();
  changed_ = false;
  const double dt = to_seconds(now - now_);
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const Tenant& t = state_[i];
    TenantMeasure& m = measures_[i];
    m.use += dt * static_cast<double>(t.used);
    if (t.waits_since) {
      m.backlogged += dt;
      m.error += dt * std::abs(static_cast<double>(t.used) - shares_[i]);
    }
    if (t.claims.empty()) continue;
    m.below += dt;
    // The deadline of a claim does not run while nobody can free the nodes that it needs; it starts
    // when that becomes possible.
    if (has_place && !has_place(i)) state_[i].no_place = now;
    const Instant placed = t.no_place ? *t.no_place + deadline_ : now_;
    const auto count = [&](Instant since, double& violation, double& no_place) {
      const Instant late = std::max(now_, since + deadline_);
      const Instant violated = std::clamp(placed, late, std::max(late, now));
      violation += to_seconds(std::max(now, violated) - violated);
      no_place += to_seconds(violated - late);
    };
    double rest = 0;
    count(t.claims.front().since, m.violation, m.no_place);
    for (Violation& claim : state_[i].claims) count(claim.since, rest, claim.no_place);
    if (t.first_since) count(*t.first_since, m.of_first, rest);
  }
  count_jain(dt);
  now_ = now;
}

void Meter::queued(std::uint32_t tenant, std::int64_t units, Place place) {
  state_[tenant].order.emplace(place, units);
  state_[tenant].wanted += units;
  ++state_[tenant].sizes[units];
  changed_ = true;
}
void Meter::unqueued(std::uint32_t tenant, std::int64_t units, Place place) {
  Tenant& t = state_[tenant];
  t.order.erase(place);
  t.wanted -= units;
  if (--t.sizes[units] == 0) t.sizes.erase(units);
  changed_ = true;
}
void Meter::started(std::uint32_t tenant, std::int64_t units) {
  auto& claims = state_[tenant].claims;
  for (std::int64_t left = units; left > 0 && !claims.empty(); claims.pop_front()) {
    left -= std::max<std::int64_t>(1, claims.front().units);
    close(claims.front());
  }
  state_[tenant].used += units;
  changes_.push_back({now_, tenant, units});
  changed_ = true;
}
void Meter::ended(std::uint32_t tenant, std::int64_t units) {
  state_[tenant].used -= units;
  changes_.push_back({now_, tenant, -units});
  changed_ = true;
}

}  // namespace gantry::replay
