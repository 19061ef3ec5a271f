// A plan that passes over those who sleep starts the same as one that looks at everything: random
// clusters with tenants, random changes, many seeds; each plan is compared with that of a replica
// from scratch. And the same changes at the same times, told to another replica, give the same
// plans. GANTRY_LONG=1 compares 10,000 and more of each, otherwise some hundreds.
#include <doctest/doctest.h>

#include <map>
#include <random>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "ctld/sched/cycle/schedule.h"
#include "tests/sched/cases.h"

namespace gantry::sched {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::uint32_t kUsers = 3;  // of a tenant, in two projects

class Site {
 public:
  explicit Site(std::uint64_t seed) : random_(seed) {
    tenants_ = 2 + static_cast<std::uint32_t>(pick(5));
    make_nodes();
    make_tenancy();
    for (std::uint32_t t = 0; t < tenants_; ++t) {
      PartitionChanged p;
      p.partition = PartitionId{t};
      p.name = fmt::format("t{}", t);
      p.priority = chance(20) ? 1 : 0;
      for (const NodeChanged& n : nodes_)
        if (chance(90)) p.nodes.push_back(n.node);
      if (p.nodes.empty()) p.nodes.push_back(nodes_[0].node);
      p.quota_node = chance(90) ? first_tenant_ + t : kNoIndex;
      partitions_.push_back(p);
    }
    for (std::uint32_t id = 0; id < tenants_ * (3 + kUsers); ++id) {
      ShareChanged s;
      s.share = ShareId{id};
      const std::uint32_t in = id % (3 + kUsers), base = id - in;
      if (in > 0) s.parent = ShareId{in < 3 ? base : base + 1 + in % 2};
      s.shares = 1 + static_cast<std::uint32_t>(pick(3));
      s.usage = {static_cast<double>(pick(4)) * 1000, 0, now};
      shares_[id] = s;
    }
  }

  std::vector<Change> facts() const {
    std::vector<Change> all{TenancyChanged{tenancy_}};
    all.insert(all.end(), nodes_.begin(), nodes_.end());
    all.insert(all.end(), partitions_.begin(), partitions_.end());
    for (const auto& [id, s] : shares_) all.emplace_back(s);
    for (const auto& [name, r] : windows_) all.emplace_back(r);
    for (const auto& [id, job] : waiting) all.emplace_back(job);
    for (const auto& [id, job] : running) all.emplace_back(job);
    return all;
  }

  std::vector<Change> turn() {
    std::vector<Change> changes;
    now = now + (chance(50) ? microseconds(static_cast<std::int64_t>(pick(5000)))
                            : milliseconds(static_cast<std::int64_t>(pick(9000))));
    for (auto it = running.begin(); it != running.end();) {
      const bool over = it->second.ends_by && *it->second.ends_by <= now && chance(80);
      if (!over && !chance(4)) {
        ++it;
        continue;
      }
      NodeGrant grant = it->second.grants.back();
      changes.emplace_back(NodeReleased{it->first, grant.node});
      it->second.grants.pop_back();
      if (!it->second.grants.empty()) continue;
      charge(it->second, -1, changes);
      it = running.erase(it);
    }
    for (std::uint64_t i = pick(3); i > 0; --i) submit(changes);
    if (chance(15)) change_waiting(changes);
    if (chance(10)) change_running(changes);
    if (chance(2)) change_window(changes);
    if (chance(2)) {
      NodeChanged& node = nodes_[pick(nodes_.size())];
      node.available = !node.available || chance(30);
      changes.emplace_back(node);
    }
    return changes;
  }

  std::vector<Change> accept(const Plan& plan) {
    std::vector<Change> changes;
    for (const Start& s : plan.starts) {
      if (chance(5)) continue;  // the core refuses
      JobQueued& job = waiting.at(s.job);
      JobPlaced fact;
      fact.job = job.startable > 1 ? JobId{1'000'000 + next_job_++} : s.job;
      fact.grants = s.grants;
      if (job.key.time_limit) fact.ends_by = now + *job.key.time_limit;
      fact.exclusive = job.key.shape.exclusive;
      fact.partition = job.key.partition;
      fact.priority_class = job.key.priority_class;
      fact.rank = 500;
      fact.share = job.share;
      fact.started = now;
      fact.sharing = job.key.shape.sharing;
      fact.anti_affinity = job.key.shape.anti_affinity;
      if (job.startable > 1) {
        --job.startable;
        changes.emplace_back(job);
      } else {
        waiting.erase(s.job);
        changes.emplace_back(JobUnqueued{s.job});
      }
      changes.emplace_back(fact);
      charge(fact, 1, changes);
      running[fact.job] = fact;
    }
    for (const Preempt& p : plan.preemptions)
      if (const auto victim = running.find(p.victim); victim != running.end() && chance(90)) {
        victim->second.leaving = true;
        victim->second.ends_by = now + seconds(35);
        changes.emplace_back(victim->second);
      }
    return changes;
  }

  Instant now{seconds(1'000'000).us};
  std::map<JobId, JobQueued> waiting;
  std::map<JobId, JobPlaced> running;

 private:
  std::uint64_t pick(std::uint64_t n) { return random_() % n; }
  bool chance(std::uint64_t percent) { return pick(100) < percent; }

  void make_nodes() {
    const std::uint64_t count = 3 + pick(6);
    for (std::uint32_t n = 0; n < count; ++n) {
      NodeChanged node;
      node.node = NodeId{n};
      node.name = fmt::format("n{}", n);
      node.available = true;
      node.gpus = chance(70) ? 4 : 0;
      for (std::uint16_t c = 0; c < 8; ++c) node.cpus.push_back(c);
      node.memory = 32 * kGiB;
      node.flavor = chance(60) ? 1 : 2;
      node.gpu_model = node.flavor == 1 ? "a100" : "t4";
      node.domains = {n / 3};
      nodes_.push_back(node);
    }
  }

  void make_tenancy() {
    Tenancy t;
    t.flavors.resize(3);
    for (std::uint32_t f = 1; f < 3; ++f) t.flavors[f].charge.fill(0.001);
    t.classes.resize(2);
    for (ClassView& c : t.classes) c.grace = seconds(30);
    t.classes[1].value = 1000;
    t.classes[1].preempts = true;
    t.levels.push_back({"rack", {"r0", "r1", "r2"}});
    t.half_life = chance(50) ? minutes(10) : hours(7 * 24);
    const std::uint32_t cohorts = static_cast<std::uint32_t>(pick(3));
    first_tenant_ = 1 + cohorts;
    for (std::uint32_t n = 0; n < first_tenant_ + tenants_; ++n) {
      QuotaNode node;
      node.name = fmt::format("q{}", n);
      if (n > 0) node.parent = n > cohorts ? static_cast<std::uint32_t>(pick(1 + cohorts)) : 0;
      node.tenant = n > cohorts;
      if (node.tenant && chance(20)) node.max_running = static_cast<std::uint32_t>(1 + pick(4));
      FlavorLimits limits;
      limits.nominal.fill(kUnlimited);
      limits.borrow.fill(kUnlimited);
      limits.lend.fill(kUnlimited);
      node.limits.assign(3, limits);
      if (chance(80)) {
        const auto gpu = static_cast<std::size_t>(Resource::gpu);
        node.limits[0].nominal[gpu] =
            node.tenant ? 1000 * static_cast<std::int64_t>(pick(9)) : 2000;
        if (chance(40)) node.limits[0].borrow[gpu] = 1000 * static_cast<std::int64_t>(pick(9));
        if (chance(30)) node.limits[0].lend[gpu] = 1000 * static_cast<std::int64_t>(pick(5));
        if (chance(30)) node.limits[1].nominal[gpu] = 1000 * static_cast<std::int64_t>(pick(9));
      }
      t.nodes.push_back(std::move(node));
    }
    tenancy_ = std::make_shared<const Tenancy>(std::move(t));
  }

  void submit(std::vector<Change>& changes) {
    JobQueued job;
    job.job = JobId{next_job_++};
    const auto tenant = static_cast<std::uint32_t>(pick(tenants_));
    job.key.partition = PartitionId{tenant};
    JobShape& s = job.key.shape;
    s.cpus_per_task = static_cast<std::uint32_t>(1 + pick(4));
    if (chance(50)) s.gpus_per_node = static_cast<std::uint32_t>(1 + pick(4));
    if (chance(25))
      s.min_nodes = s.max_nodes = s.tasks = static_cast<std::uint32_t>(2 + pick(2));
    else if (chance(25))
      s.max_nodes = s.tasks = static_cast<std::uint32_t>(2 + pick(3));
    if (chance(30)) s.memory_per_node = static_cast<std::int64_t>(1 + pick(16)) * kGiB;
    if (chance(8)) s.gpu_models = {"a100", "t4"};
    if (chance(5)) s.exclusive = true;
    if (chance(2)) s.sharing = NodeSharing::same_user;
    if (chance(4)) s.anti_affinity = "key", s.anti_affinity_level = "node";
    if (chance(4)) s.topology = TopologyWish::required, s.topology_level = "rack";
    if (chance(3)) s.excluded_nodes = {nodes_[pick(nodes_.size())].name};
    if (!windows_.empty() && chance(5)) job.key.reservation = windows_.begin()->first;
    if (chance(90)) job.key.time_limit = seconds(static_cast<std::int64_t>(5 + pick(12) * 15));
    if (chance(10)) job.key.priority_class = 1;
    job.rank = 500 + static_cast<std::int32_t>(pick(3)) + (job.key.priority_class == 1 ? 500 : 0);
    job.priority = static_cast<std::int64_t>(pick(2));
    job.queued_since = now;
    job.startable = chance(10) ? static_cast<std::uint32_t>(1 + pick(4)) : 1;
    if (chance(90))
      job.share = ShareId{tenant * (3 + kUsers) + 3 + static_cast<std::uint32_t>(pick(kUsers))};
    waiting[job.job] = job;
    changes.emplace_back(job);
  }

  void change_waiting(std::vector<Change>& changes) {
    if (waiting.empty()) return;
    const auto it = std::next(waiting.begin(), static_cast<std::ptrdiff_t>(pick(waiting.size())));
    if (chance(50)) {
      it->second.rank += static_cast<std::int32_t>(pick(3));
      changes.emplace_back(it->second);
    } else {
      changes.emplace_back(JobUnqueued{it->first});
      waiting.erase(it);
    }
  }

  void change_running(std::vector<Change>& changes) {
    if (running.empty()) return;
    const auto it = std::next(running.begin(), static_cast<std::ptrdiff_t>(pick(running.size())));
    it->second.ends_by = now + seconds(static_cast<std::int64_t>(pick(200)));
    changes.emplace_back(JobLimitChanged{it->first, it->second.ends_by});
  }

  void change_window(std::vector<Change>& changes) {
    ReservationChanged& r = windows_[chance(50) ? "night" : "course"];
    r.name = windows_.begin()->second.name.empty() ? windows_.begin()->first : r.name;
    for (auto& [name, window] : windows_) window.name = name;
    r.nodes = {nodes_[pick(nodes_.size())].node};
    r.from = now + seconds(static_cast<std::int64_t>(pick(60)));
    r.until = r.from + seconds(static_cast<std::int64_t>(10 + pick(60)));
    changes.emplace_back(r);
  }

  // As the core does: the usage of the user, the project and the tenant.
  void charge(const JobPlaced& job, double sign, std::vector<Change>& changes) {
    if (!job.share) return;
    for (std::optional<ShareId> id = job.share; id; id = shares_.at(id->value()).parent) {
      ShareChanged& s = shares_.at(id->value());
      advance(s.usage, now, tenancy_->half_life);
      s.usage.rate = std::max(0.0, s.usage.rate + sign * 0.5);
      changes.emplace_back(s);
    }
  }

  std::mt19937_64 random_;
  std::uint32_t tenants_ = 0, first_tenant_ = 0;
  std::uint64_t next_job_ = 1;
  TenancyPtr tenancy_;
  std::vector<NodeChanged> nodes_;
  std::vector<PartitionChanged> partitions_;
  std::map<std::uint32_t, ShareChanged> shares_;
  std::map<std::string, ReservationChanged> windows_;
};

std::string print(const Plan& plan) {
  std::string text;
  for (const Start& s : plan.starts) {
    text += fmt::format("start {}", s.job.value());
    for (const NodeGrant& g : s.grants)
      text += fmt::format(" n{}:{}", g.node.value(), fmt::join(g.cpus, ","));
    text += "\n";
  }
  return text;
}

void feed(Replica& replica, const std::vector<Change>& changes) {
  for (const Change& c : changes) replica.apply(c);
}

Policy policy_for(std::uint64_t seed) {
  Policy policy;
  policy.keep_promises = true;
  policy.everything = seconds(seed % 2 == 0 ? 10 : 40);
  policy.reservations = static_cast<std::uint32_t>(1 + seed % 3);
  policy.ahead = seed % 5 == 0 ? 10 : 0;
  policy.preemption = seed % 4 != 0;
  return policy;
}

struct Compared {
  std::size_t plans = 0, started = 0, cut = 0, passed = 0;
};

// Each plan that passes over somebody, with that of a replica from scratch.
void compare_history(std::uint64_t seed, Compared& sum) {
  CAPTURE(seed);
  Site site(seed);
  Replica replica;
  feed(replica, site.facts());
  const Policy policy = policy_for(seed);
  // What only a plan that looks at everything does.
  Policy only_starts = policy;
  only_starts.everything = Duration{};
  only_starts.reservations = only_starts.ahead = only_starts.replans = 0;
  only_starts.preemption = false;
  for (int turn = 0; turn < 120; ++turn) {
    CAPTURE(turn);
    feed(replica, site.turn());
    Replica fresh;
    feed(fresh, site.facts());
    fresh.promise(replica.promises());
    const Plan plan = schedule(replica, site.now, policy);
    REQUIRE(replica.audit() == "");
    fresh.expect(replica.mix());
    if (!plan.stats.everything) {
      const std::string is = print(plan);
      const std::string anew = print(schedule(fresh, site.now, only_starts));
      // Cut short, it is the beginning; the next one looks at everything.
      if (plan.stats.budget_spent && is != anew) {
        ++sum.cut;
        REQUIRE(anew.starts_with(is));
      } else {
        REQUIRE(is == anew);
      }
      ++sum.plans;
      sum.started += plan.starts.size();
      sum.passed += plan.stats.classes == 0 ? 1 : 0;
    }
    feed(replica, site.accept(plan));
  }
}

TEST_CASE("passing over those who sleep changes no start") {
  const auto wanted = static_cast<std::size_t>(cases(800));
  Compared sum;
  for (std::uint64_t seed = 1; sum.plans < wanted; ++seed) compare_history(seed, sum);
  CHECK(sum.started > wanted / 10);
  CHECK(sum.passed > wanted / 50);
  CHECK(sum.cut < wanted / 50);
}

TEST_CASE("histories in which it once did") {
  Compared sum;
  for (const std::uint64_t seed : {39, 968}) compare_history(seed, sum);
}

// All that a plan says.
std::string print_all(const Plan& plan) {
  std::string text = print(plan);
  for (const Preempt& p : plan.preemptions)
    text += fmt::format("{} leaves for {}\n", p.victim.value(), p.for_job.value());
  for (const Expected& e : plan.expected)
    text += fmt::format("expected {} at {} on {}\n", e.job.value(), e.start.us, e.nodes.size());
  for (const ClassVerdict& v : plan.verdicts)
    text += fmt::format("head {}: {} {} {} {}; rest {} {} {} {}\n", v.head.value(),
                        static_cast<int>(v.of_head.reason), v.of_head.a, v.of_head.b,
                        v.of_head.subject, static_cast<int>(v.of_rest.reason), v.of_rest.a,
                        v.of_rest.b, v.of_rest.subject);
  return text;
}

TEST_CASE("a history told again gives the same plans, word for word") {
  const auto wanted = static_cast<std::size_t>(cases(800));
  std::size_t compared = 0, victims = 0, promised = 0;
  for (std::uint64_t seed = 1; compared < wanted; ++seed) {
    CAPTURE(seed);
    const Policy policy = policy_for(seed);
    struct Turn {
      Instant now;
      std::vector<Change> before, after;
      std::string plan;
    };
    std::vector<Turn> journal;
    Site site(seed);
    const std::vector<Change> first = site.facts();
    Replica replica;
    feed(replica, first);
    for (int turn = 0; turn < 80; ++turn) {
      Turn& t = journal.emplace_back();
      t.before = site.turn();
      t.now = site.now;
      feed(replica, t.before);
      const Plan plan = schedule(replica, site.now, policy);
      t.plan = print_all(plan);
      t.after = site.accept(plan);
      feed(replica, t.after);
      victims += plan.preemptions.size();
      promised += plan.expected.size();
    }
    Replica again;
    feed(again, first);
    for (const Turn& t : journal) {
      feed(again, t.before);
      REQUIRE(print_all(schedule(again, t.now, policy)) == t.plan);
      feed(again, t.after);
      ++compared;
    }
  }
  CHECK(victims > 0);
  CHECK(promised > wanted / 10);
}

}  // namespace
}  // namespace gantry::sched
