// Tests preemption: which jobs may be victims, what that costs, that no victim is taken in vain,
// and that preemption ends. With GANTRY_LONG=1 each property is tried on 10,000 cases.
#include <doctest/doctest.h>

#include <cstdlib>
#include <set>

#include "ctld/sched/policy.h"
#include "tests/sched/tenants.h"

namespace gantry::sched::preempt_test {
namespace {

std::uint64_t cases(std::uint64_t few) {
  const char* text = std::getenv("GANTRY_LONG");
  return text != nullptr && *text == '1' ? 10'000 : few;
}

std::int64_t cost_of(const Tenants& t, const JobPlaced& job) {
  const QuotaNeed use = t.use_of(job);
  const std::int64_t gpus = use.amount[Resource::gpu];
  const std::int64_t units = gpus > 0 ? gpus : use.amount[Resource::cpu];
  std::int64_t lost = (t.now - job.started).us;
  if (job.requeue && job.checkpoint)
    lost = std::min(lost, (t.now - *job.checkpoint + kRestartTime).us);
  return std::max<std::int64_t>(1, units * lost / 1000 * (2 + std::int64_t{job.preemptions}) / 2);
}

const ClassView& class_of(const Tenants& t, std::uint32_t index) {
  return t.quota->tenancy().classes[index];
}

std::string usage(const QuotaTree& quota) {
  std::string text;
  for (std::uint32_t n = 0; n < quota.size(); ++n)
    for (std::uint32_t f = 0; f < quota.tenancy().flavors.size(); ++f)
      for (const ResourceRow& r : kResourceTable)
        text += std::to_string(quota.usage(n, f, r.id)) + " ";
  return text;
}

bool exceeds_own(const Tenants& t, const JobPlaced& job) {
  const std::uint32_t n = t.tenant_of(job);
  if (n == kNoIndex) return true;
  for (std::uint32_t f = 0; f < t.quota->tenancy().flavors.size(); ++f)
    for (const ResourceRow& r : kResourceTable)
      if (t.quota->usage(n, f, r.id) > t.quota->subtree(n, f, r.id)) return true;
  return false;
}

std::string why_not(const Tenants& t, const Tenants::Asking& x, const Victim& v) {
  const JobPlaced& job = t.jobs.at(v.job);
  const ClassView& cls = class_of(t, job.priority_class);
  const ClassView& own = class_of(t, x.cls.key.priority_class);
  if (job.leaving) return "leaving";
  if (!cls.preemptible) return "not preemptible";
  if (t.now - job.started < cls.min_run_time) return "minimum run time";
  if (cls.max_preemptions && job.preemptions >= *cls.max_preemptions) return "preempted too often";
  const bool lower = cls.value < own.value;
  const bool reclaim = v.why == PreemptWhy::reclaim;
  if (!reclaim && !lower) return "not of a lower class";
  const std::uint32_t tenant = t.partitions[x.cls.key.partition.value()].quota_node;
  if (t.tenant_of(job) == tenant) return reclaim ? "reclaimed from itself" : "";
  if (!exceeds_own(t, job) && (reclaim || !lower)) return "its tenant exceeds nothing";
  if (tenant == kNoIndex) return reclaim ? "reclaimed without a guarantee" : "";
  const QuotaNode& node = t.quota->tenancy().nodes[tenant];
  if (node.reclaim == tenancy::Reclaim::never) return "policy is never";
  return "";
}

TEST_CASE("victims are allowed, make room, and none of them is in vain") {
  std::size_t found = 0, several = 0, reclaimed = 0, none = 0, gangs = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= cases(600); ++seed) {
    CAPTURE(seed);
    Tenants t(seed, {.flavors = seed % 3 == 0, .any_victim = seed % 2 == 0});
    t.fill();
    JobPlaced job = t.random_job();
    if (t.chance(60)) job.priority_class = 3;
    NodeGrant large = job.grants[0];
    large.gpus = static_cast<std::uint32_t>(1 + t.pick(8));
    if (t.chance(60)) job.grants.assign(1 + t.pick(3), large);
    const Tenants::Asking x = t.ask(job);
    const std::string before = usage(*t.quota);
    PreemptRequest request = t.request(x);
    std::vector<JobId> asked;
    for (auto& [id, j] : t.jobs)
      if (!j.leaving && seed % 4 == 0 && t.chance(10)) asked.push_back(id);
    for (const JobId id : asked) t.running.set_leaving(id, true);
    REQUIRE(t.running.audit(t.grid) == "");
    const auto set = find_victims(request);
    REQUIRE(before == usage(*t.quota));
    for (const JobId id : asked) t.jobs.at(id).leaving = true;
    if (!set) {
      ++refused;
      continue;
    }
    std::vector<JobId> gone;
    std::int64_t cost = 0;
    // Jobs that are leaving no longer count for their tenant.
    for (auto it = t.jobs.begin(); it != t.jobs.end();) {
      const JobId id = it->first;
      const bool leaves = (it++)->second.leaving;
      if (leaves) t.stop(id);
    }
    for (const Victim& v : set->victims) {
      CAPTURE(v.job.value());
      REQUIRE(t.jobs.contains(v.job));
      REQUIRE(why_not(t, x, v) == "");
      gone.push_back(v.job);
      cost += cost_of(t, t.jobs.at(v.job));
      reclaimed += v.why == PreemptWhy::reclaim ? 1 : 0;
    }
    REQUIRE(set->cost == cost);
    REQUIRE(t.has_room(x, gone));
    REQUIRE(t.has_quota(x, gone));
    std::uint32_t tasks = 0;
    for (const Share& s : set->shares) tasks += s.tasks;
    REQUIRE(tasks == x.cls.demand.tasks);
    const bool mixed = std::any_of(set->victims.begin(), set->victims.end(), [&](const Victim& v) {
      return t.jobs.at(v.job).partition == x.cls.key.partition;
    });
    for (const JobId back : gone) {
      std::vector<JobId> fewer = gone;
      std::erase(fewer, back);
      CAPTURE(back.value());
      if (!mixed) REQUIRE(!(t.has_room(x, fewer) && t.has_quota(x, fewer)));
    }
    found += gone.empty() ? 0 : 1;
    none += gone.empty() ? 1 : 0;
    several += gone.size() > 1 ? 1 : 0;
    gangs += !gone.empty() && x.cls.demand.min_nodes > 1 ? 1 : 0;
  }
  MESSAGE(found << " sets, " << several << " of several, " << gangs << " for gangs, " << reclaimed
                << " reclaimed; " << none << " needed none, " << refused << " found none");
  CHECK(found > 40);
  CHECK(several > 10);
  CHECK(gangs > 5);
  CHECK(reclaimed > 10);
}

// Victims by class only, for a job of one node: every subset of every node's jobs is tried.
TEST_CASE("for one node the victims are of the lowest class and then the cheapest there are") {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= cases(400); ++seed) {
    CAPTURE(seed);
    Tenants t(seed, {.quota = false});
    t.fill();
    JobPlaced job = t.random_job();
    job.grants.resize(1);
    job.priority_class = 3 + static_cast<std::uint32_t>(t.pick(2));
    const Tenants::Asking x = t.ask(job);
    const auto set = find_victims(t.request(x));
    std::optional<std::pair<std::int32_t, std::int64_t>> best;
    if (t.has_room(x, {})) best = {0, 0};
    for (const NodeChanged& node : t.nodes) {
      std::vector<const JobPlaced*> here;
      for (const auto& [id, j] : t.jobs) {
        const ClassView& cls = class_of(t, j.priority_class);
        const bool on = std::any_of(j.grants.begin(), j.grants.end(),
                                    [&](const NodeGrant& g) { return g.node == node.node; });
        if (on && !j.leaving && cls.preemptible && t.now - j.started >= cls.min_run_time &&
            (!cls.max_preemptions || j.preemptions < *cls.max_preemptions) &&
            cls.value < class_of(t, job.priority_class).value)
          here.push_back(&j);
      }
      for (std::uint32_t mask = 1; mask < (1u << here.size()) && !t.has_room(x, {}); ++mask) {
        std::vector<JobId> gone;
        std::pair<std::int32_t, std::int64_t> price{std::numeric_limits<std::int32_t>::min(), 0};
        for (std::size_t i = 0; i < here.size(); ++i) {
          if (((mask >> i) & 1) == 0) continue;
          gone.push_back(here[i]->job);
          price.first = std::max(price.first, class_of(t, here[i]->priority_class).value);
          price.second += cost_of(t, *here[i]);
        }
        if ((!best || price < *best) && t.has_room(x, gone)) best = price;
      }
    }
    REQUIRE(set.has_value() == best.has_value());
    if (!set) continue;
    REQUIRE(std::pair{set->highest_class, set->cost} == *best);
    found += set->victims.empty() ? 0 : 1;
  }
  MESSAGE(found << " sets");
  CHECK(found > 40);
}

TEST_CASE("what is guaranteed comes back: within nominal quota victims are always found") {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= cases(400); ++seed) {
    CAPTURE(seed);
    Tenants t(seed, {.flavors = false,
                     .single = true,
                     .guaranteed = true,
                     .any_victim = true,
                     .one_class = seed % 2 == 0});
    t.fill();
    for (int i = 0; i < 8; ++i) {
      JobPlaced job = t.random_job();
      const std::uint32_t tenant = t.tenant_of(job);
      const std::int64_t left =
          (t.quota->subtree(tenant, 0, Resource::gpu) - t.quota->usage(tenant, 0, Resource::gpu)) /
          kGpuUnit;
      if (left <= 0) continue;
      job.grants.resize(1 + t.pick(static_cast<std::uint64_t>(left)), job.grants[0]);
      const auto set = find_victims(t.request(t.ask(job)));
      REQUIRE(set.has_value());
      found += set->victims.empty() ? 0 : 1;
      for (const Victim& v : set->victims) t.stop(v.job);
      std::vector<JobId> leaving;
      for (const auto& [id, j] : t.jobs)
        if (j.leaving) leaving.push_back(id);
      for (const JobId id : leaving) t.stop(id);
      REQUIRE(t.start(job));
    }
  }
  MESSAGE(found << " reclaims");
  CHECK(found > 100);
}

// All demand exists from the start. Preempted jobs wait again, and any waiting job may try, in any
// order, until no job can start any more.
struct Rounds {
  std::size_t preempted = 0;
  bool ended = false;
  bool came_back = false;  // true if a set of running jobs occurred twice
};

Rounds play(Tenants& t, bool equal_class_by_share, bool rule_b) {
  Rounds rounds;
  std::map<JobId, JobPlaced> waiting;
  for (int i = 0; i < 24; ++i) {
    const JobPlaced job = t.random_job();
    waiting[job.job] = job;
  }
  std::set<std::set<JobId>> seen;
  int idle = 0;
  for (int steps = 0; steps < 20'000 && !rounds.ended; ++steps) {
    rounds.ended = waiting.empty() || ++idle > 3 * static_cast<int>(waiting.size());
    if (rounds.ended) break;
    auto it = waiting.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(t.pick(waiting.size())));
    const JobPlaced job = it->second;
    if (!t.start(job)) {
      const Tenants::Asking asking = t.ask(job);
      PreemptRequest request = t.request(asking);
      request.rule_b = rule_b;
      if (equal_class_by_share) request.balance = kBalanceAll;
      const auto set = find_victims(request);
      if (!set || set->victims.empty()) continue;
      std::set<JobId> state;
      for (const auto& [id, j] : t.jobs) state.insert(id);
      rounds.came_back = !seen.insert(state).second || rounds.came_back;
      for (const Victim& v : set->victims) {
        waiting[v.job] = t.jobs.at(v.job);
        ++waiting[v.job].preemptions;
        t.stop(v.job);
        ++rounds.preempted;
      }
      REQUIRE(t.start(job));
    }
    waiting.erase(job.job);
    idle = 0;
  }
  return rounds;
}

TEST_CASE("reclaim and preemption by share (rule a) never come back to an earlier state") {
  std::size_t preempted = 0;
  for (std::uint64_t seed = 1; seed <= cases(200); ++seed) {
    CAPTURE(seed);
    Tenants t(seed, {.flavors = false, .single = true, .any_victim = true, .one_class = true});
    const Rounds rounds = play(t, seed % 2 == 0, false);
    REQUIRE(rounds.ended);
    REQUIRE(!rounds.came_back);
    preempted += rounds.preempted;
  }
  MESSAGE(preempted << " preempted");
  CHECK(preempted > 100);
}

TEST_CASE("with classes and rule b preemption comes to an end") {
  std::size_t preempted = 0, came_back = 0;
  for (std::uint64_t seed = 1; seed <= cases(200); ++seed) {
    CAPTURE(seed);
    Tenants t(seed,
              {.flavors = false, .single = true, .any_victim = true, .one_class = seed % 4 == 0});
    const Rounds rounds = play(t, seed % 2 == 0, true);
    REQUIRE(rounds.ended);
    preempted += rounds.preempted;
    came_back += rounds.came_back ? 1 : 0;
  }
  MESSAGE(preempted << " preempted, " << came_back << " had rounds");
  CHECK(preempted > 300);
}

}  // namespace
}  // namespace gantry::sched::preempt_test
