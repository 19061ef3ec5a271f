// Tests claims of whole nodes: a job of 8 to 32 GPUs within its tenant's quota finds victims
// exactly if there is a set of nodes whose jobs may all be preempted. The test tries all sets of
// nodes. With GANTRY_LONG=1 it uses 10,000 clusters.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>

#include "tests/sched/tenants.h"

namespace gantry::sched {
namespace {

std::uint64_t cases(std::uint64_t few) {
  const char* text = std::getenv("GANTRY_LONG");
  return text != nullptr && *text == '1' ? 10'000 : few;
}

std::int64_t gpus_of(const Tenants& t, const JobPlaced& job) {
  return t.use_of(job).amount[Resource::gpu] / kGpuUnit;
}

// Returns the GPUs that a tenant uses beyond its own quota, without those of jobs that are leaving.
std::int64_t excess(const Tenants& t, std::uint32_t tenant) {
  std::int64_t sum = -t.quota->subtree(tenant, 0, Resource::gpu) / kGpuUnit;
  for (const auto& [id, job] : t.jobs)
    if (!job.leaving && t.tenant_of(job) == tenant) sum += gpus_of(t, job);
  return sum;
}

// Returns true if all jobs on these nodes may be preempted. A tenant loses jobs only as long as it
// exceeds its quota, so all of its jobs except the largest must be smaller than the excess.
bool may_be_cleared(const Tenants& t, std::uint32_t tenant, std::uint32_t nodes) {
  struct Loss {
    std::int64_t sum = 0, largest = 0;
  };
  std::map<std::uint32_t, Loss> losses;
  for (const auto& [id, job] : t.jobs) {
    const bool on = std::any_of(job.grants.begin(), job.grants.end(), [&](const NodeGrant& g) {
      return ((nodes >> g.node.value()) & 1) != 0;
    });
    if (!on || job.leaving) continue;
    Loss& loss = losses[t.tenant_of(job)];
    loss.sum += gpus_of(t, job);
    loss.largest = std::max(loss.largest, gpus_of(t, job));
  }
  return std::all_of(losses.begin(), losses.end(), [&](const auto& of) {
    return of.first != tenant && of.second.sum - of.second.largest < excess(t, of.first);
  });
}

bool some_may_be_cleared(const Tenants& t, std::uint32_t tenant, int count) {
  for (std::uint32_t nodes = 0; nodes < (1u << t.nodes.size()); ++nodes)
    if (__builtin_popcount(nodes) == count && may_be_cleared(t, tenant, nodes)) return true;
  return false;
}

// Gives each tenant a quota that it exceeds by a little, so that only some of its jobs may be
// preempted.
void draw_quota(Tenants& t, std::uint32_t claimant, std::int64_t gpus) {
  Tenancy tree = t.quota->tenancy();
  for (std::uint32_t n = 0; n < tree.nodes.size(); ++n)
    if (tree.nodes[n].tenant) {
      const std::int64_t used = excess(t, n) + t.quota->subtree(n, 0, Resource::gpu) / kGpuUnit;
      const std::int64_t beyond = n == claimant ? -gpus : static_cast<std::int64_t>(t.pick(14));
      tree.nodes[n].limits[0].nominal[static_cast<std::size_t>(Resource::gpu)] =
          std::max<std::int64_t>(0, used - beyond) * kGpuUnit;
    }
  // Quota that belongs to no tenant is lent by the cohort.
  tree.nodes[0].limits[0].nominal[static_cast<std::size_t>(Resource::gpu)] = 1000 * kGpuUnit;
  t.quota = std::make_unique<QuotaTree>(std::make_shared<const Tenancy>(std::move(tree)));
  for (const auto& [id, job] : t.jobs) t.quota->add(t.tenant_of(job), t.use_of(job));
}

TEST_CASE("a job of whole nodes within its quota finds victims whenever there are some") {
  std::size_t found = 0, gangs = 0, free = 0, none = 0;
  for (std::uint64_t seed = 1; seed <= cases(1500); ++seed) {
    CAPTURE(seed);
    Tenants t(seed, {.tenants = 6,
                     .flavors = false,
                     .lending = false,
                     .guaranteed = true,
                     .any_victim = true,
                     .one_class = true,
                     .large = true});
    for (int i = 0; i < 3; ++i) t.fill();
    JobPlaced job = t.random_job();
    NodeGrant whole;
    whole.gpus = 8;
    whole.tasks = 1;
    whole.cpus.resize(8);
    job.grants.assign(1 + t.pick(4), whole);
    const std::uint32_t tenant = t.tenant_of(job);
    const auto count = static_cast<int>(job.grants.size());
    draw_quota(t, tenant, 8 * count);
    CAPTURE(count);
    const Tenants::Asking asking = t.ask(job);
    const auto set = find_victims(t.request(asking));
    REQUIRE(set.has_value() == some_may_be_cleared(t, tenant, count));
    (!set ? none : set->victims.empty() ? free : found) += 1;
    gangs += set && !set->victims.empty() && count > 1 ? 1 : 0;
  }
  MESSAGE(found << " found, " << gangs << " of them for gangs; " << none << " times nobody, "
                << free << " times there was room");
  CHECK(found > 200);
  CHECK(gangs > 100);
  CHECK(none > 100);
}

}  // namespace
}  // namespace gantry::sched
