// The costs of a plan with many tenants and every policy on: quota in cohorts, fair share,
// preemption, kept reservations, and planning ahead for the first hundred blocked jobs and for one
// job of each tenant.
//
//   bench_tenants [nodes [pending [tenants]]]     defaults 10,000, 100,000, 1,000
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <random>
#include <unordered_map>

#include "ctld/sched/cycle/schedule.h"

namespace gantry::sched {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::uint16_t kCores = 64;
constexpr std::uint32_t kGpus = 8;
constexpr std::uint32_t kUsers = 5;  // each tenant has five users, in two projects

// CPU time of this thread. A plan waits for nothing, so this is its cost even if other programs
// run.
double micros() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

struct Timing {
  double median = 0, p99 = 0;
};
Timing summary(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples[samples.size() * 99 / 100]};
}
void row(std::string_view what, const Timing& t, std::string_view note) {
  fmt::print("{:<58} {:>11.1f} {:>11.1f}  {}\n", what, t.median, t.p99, note);
}

class Site {
 public:
  // There are `tenants` tenants, and the first `busy` of them have jobs.
  Site(std::uint32_t nodes, std::uint32_t tenants, std::uint32_t busy)
      : tenants_(tenants), busy_(busy) {
    make_tenancy(std::int64_t{nodes} * kGpus / busy);
    std::vector<NodeId> all;
    for (std::uint32_t n = 0; n < nodes; ++n) {
      NodeChanged node;
      node.node = NodeId{n};
      node.name = fmt::format("n{:05}", n);
      node.available = true;
      for (std::uint16_t c = 0; c < kCores; ++c) node.cpus.push_back(c);
      node.memory = kCores * 8 * kGiB;
      node.gpus = kGpus;
      node.sockets = 2;
      node.flavor = 1;
      replica.apply(node);
      all.push_back(node.node);
    }
    for (std::uint32_t t = 0; t < tenants; ++t) {
      PartitionChanged p;
      p.partition = PartitionId{t};
      p.name = fmt::format("t{:05}", t);
      p.nodes = all;
      p.quota_node = first_tenant_ + t;
      replica.apply(p);
      make_shares(t);
    }
    policy.ahead = 100;
    policy.depth = ~std::uint32_t{0};
    policy.starts = ~std::uint32_t{0};
    policy.attempts = ~std::uint64_t{0};
    policy.keep_reservations = true;
    policy.everything = seconds(1);
  }

  void submit() {
    JobQueued job;
    job.job = JobId{next_job_++};
    const std::uint32_t tenant = pick(busy_), user = pick(kUsers);
    job.key.partition = PartitionId{tenant};
    JobShape& s = job.key.shape;
    // Each user has two kinds of jobs.
    const std::uint32_t kind = (tenant * kUsers + user) * 7 + pick(2) * 3;
    switch (kind % 8) {
      case 0: s.cpus_per_task = 4; break;
      case 1: s.cpus_per_task = 16; break;
      case 2:
      case 3: s.gpus_per_node = 1; break;
      case 4: s.gpus_per_node = 2; break;
      case 5: s.gpus_per_node = 4; break;
      case 6: s.gpus_per_node = 8; break;
      default: s.min_nodes = s.max_nodes = s.tasks = 2u << kind / 32 % 3; s.gpus_per_node = 8;
    }
    if (s.gpus_per_node > 0) s.cpus_per_task = 4 * s.gpus_per_node;
    s.memory_per_cpu = 4 * kGiB;
    job.key.time_limit = hours(std::array<std::int64_t, 4>{1, 4, 12, 24}[kind / 8 % 4]);
    job.queued_since = now + Duration{static_cast<std::int64_t>(job.job.value())};
    job.rank = 500 + static_cast<std::int32_t>(pick(3));
    job.share = ShareId{share_of(tenant, user)};
    waiting[job.job] = job;
    replica.apply(job);
  }

  void accept(const Plan& plan) {
    for (const Start& s : plan.starts) {
      const JobQueued& job = waiting.at(s.job);
      JobPlaced fact;
      fact.job = s.job;
      fact.grants = s.grants;
      fact.ends_by = now + *job.key.time_limit;
      fact.partition = job.key.partition;
      fact.rank = 500;
      fact.share = job.share;
      fact.started = now;
      replica.apply(JobUnqueued{s.job});
      replica.apply(fact);
      order_.push_back(s.job);
      running[s.job] = std::move(fact);
      waiting.erase(s.job);
    }
    for (const Preempt& p : plan.preemptions) end(p.victim);
    preempted += plan.preemptions.size();
  }

  void end(JobId id) {
    const auto it = running.find(id);
    if (it == running.end()) return;
    for (const NodeGrant& g : it->second.grants) replica.apply(NodeReleased{id, g.node});
    running.erase(it);
  }
  void end_oldest() {
    while (!running.contains(order_.front())) order_.pop_front();
    end(order_.front());
  }

  // Submits and plans until the cluster is full and `pending` jobs wait.
  void fill(std::size_t pending) {
    policy.preemption = false;
    for (int i = 0; i < 3; ++i) {
      while (waiting.size() < pending) submit();
      replica.look_at_everything();
      accept(schedule(replica, now, policy));
      now = now + seconds(1);
    }
    policy.preemption = true;
    for (int i = 0; i < 12; ++i) {  // These rounds give every user a plan.
      replica.look_at_everything();
      accept(schedule(replica, now, policy));
      while (waiting.size() < pending) submit();
      now = now + seconds(1);
    }
  }

  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  Replica replica;
  Policy policy;
  Instant now{seconds(1'000'000).us};
  std::unordered_map<JobId, JobQueued> waiting;
  std::unordered_map<JobId, JobPlaced> running;
  std::size_t preempted = 0;

 private:
  static FlavorLimits limits(std::int64_t gpus) {
    FlavorLimits l;
    l.nominal.fill(kUnlimited);
    l.borrow.fill(kUnlimited);
    l.lend.fill(kUnlimited);
    l.nominal[static_cast<std::size_t>(Resource::gpu)] = gpus * kGpuUnit;
    return l;
  }

  // The quota tree has one root and a cohort for each 50 tenants. Each tenant with jobs has an
  // equal part of the GPUs guaranteed.
  void make_tenancy(std::int64_t gpus) {
    Tenancy t;
    t.flavors.resize(2);
    t.flavors[1].name = "h100";
    t.flavors[1].charge[static_cast<std::size_t>(Resource::gpu)] = 1.0 / kGpuUnit;
    t.classes.resize(1);
    t.classes[0].grace = seconds(30);
    const std::uint32_t cohorts = (tenants_ + 49) / 50;
    for (std::uint32_t n = 0; n < 1 + cohorts + tenants_; ++n) {
      QuotaNode node;
      node.name = fmt::format("q{}", n);
      if (n > 0) node.parent = n <= cohorts ? 0 : 1 + (n - 1 - cohorts) / 50;
      node.tenant = n > cohorts;
      const bool has_jobs = node.tenant && n - cohorts - 1 < busy_;
      node.limits.assign(2, limits(has_jobs ? gpus : 0));
      if (node.tenant)
        node.limits[0].borrow[static_cast<std::size_t>(Resource::gpu)] = gpus * kGpuUnit;
      t.nodes.push_back(std::move(node));
    }
    first_tenant_ = 1 + cohorts;
    replica.apply(TenancyChanged{std::make_shared<const Tenancy>(std::move(t))});
  }

  [[nodiscard]] static std::uint32_t share_of(std::uint32_t tenant, std::uint32_t user) {
    return tenant * (3 + kUsers) + 3 + user;
  }
  void make_shares(std::uint32_t tenant) {
    const std::uint32_t base = tenant * (3 + kUsers);
    std::array<double, 2> projects{};
    std::array<double, kUsers> users{};
    for (std::uint32_t u = 0; u < kUsers; ++u) {
      users[u] = 1e4 * (1 + pick(10));
      projects[u % 2] += users[u];
    }
    const auto tell = [&](std::uint32_t id, std::optional<std::uint32_t> parent, double usage) {
      ShareChanged s;
      s.share = ShareId{id};
      if (parent) s.parent = ShareId{*parent};
      s.usage = {usage, 0.1, now};
      replica.apply(s);
    };
    tell(base, std::nullopt, projects[0] + projects[1]);
    tell(base + 1, base, projects[0]);
    tell(base + 2, base, projects[1]);
    for (std::uint32_t u = 0; u < kUsers; ++u)
      tell(share_of(tenant, u), base + 1 + u % 2, users[u]);
  }

  const std::uint32_t tenants_, busy_;
  std::uint32_t first_tenant_ = 0;
  std::mt19937_64 random_{11};
  std::uint64_t next_job_ = 1;
  std::deque<JobId> order_;
};

// Makes a plan as the planner's thread does once a second: it looks at every line, but reports only
// news.
Plan look_at_everything(Site& site) {
  site.replica.look_at_everything();
  return schedule(site.replica, site.now, site.policy);
}

double full_pass(Site& site, std::size_t pending, std::string_view what) {
  std::vector<double> idle, after_ends;
  Plan plan;
  for (int i = 0; i < 11; ++i) {
    site.now = site.now + milliseconds(1);
    const double start = micros();
    plan = look_at_everything(site);
    idle.push_back(micros() - start);
    site.accept(plan);
  }
  row(fmt::format("full pass, {}", what), summary(idle),
      fmt::format(
          "{} pending, {} running, {} lines, {} attempts, {} ends walked, {} promises, {} starts",
          site.waiting.size(), site.running.size(), plan.stats.classes, plan.stats.attempts,
          plan.stats.steps, site.replica.reservations().size(), plan.starts.size()));
  std::size_t starts = 0;
  for (int i = 0; i < 11; ++i) {
    for (int j = 0; j < 100; ++j) site.end_oldest();
    while (site.waiting.size() < pending) site.submit();
    site.now = site.now + milliseconds(1);
    const double start = micros();
    plan = look_at_everything(site);
    after_ends.push_back(micros() - start);
    starts += plan.starts.size();
    site.accept(plan);
  }
  row(fmt::format("full pass after 100 ends, {}", what), summary(after_ends),
      fmt::format("{} starts each, {} preempted so far", starts / 11, site.preempted));
  return summary(idle).median;
}

void reaction(Site& site, std::size_t pending) {
  std::vector<double> ends, submits;
  std::size_t starts = 0, whole = 0;
  for (int i = 0; i < 101; ++i) {
    site.now = site.now + milliseconds(1);
    double start = micros();
    site.end_oldest();
    const Plan after_end = schedule(site.replica, site.now, site.policy);
    ends.push_back(micros() - start);
    starts += after_end.starts.size();
    whole += after_end.stats.everything ? 1 : 0;
    site.accept(after_end);
    site.now = site.now + milliseconds(1);
    start = micros();
    do site.submit();
    while (site.waiting.size() < pending);
    const Plan after_submit = schedule(site.replica, site.now, site.policy);
    submits.push_back(micros() - start);
    starts += after_submit.starts.size();
    whole += after_submit.stats.everything ? 1 : 0;
    site.accept(after_submit);
  }
  row("one end: release, plan", summary(ends),
      fmt::format("{} starts in all, {} of the plans looked at everything", starts, whole));
  row("one submit: queue, plan", summary(submits), "");
}

}  // namespace
}  // namespace gantry::sched

int main(int argc, char** argv) {
  using namespace gantry::sched;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto arg = [&](int i, std::uint32_t otherwise) {
    return argc > i ? static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)) : otherwise;
  };
  const std::uint32_t nodes = arg(1, 10'000), pending = arg(2, 100'000), tenants = arg(3, 1'000);
  fmt::print("{:<58} {:>11} {:>11}\n", "scheduler with tenants, microseconds of CPU", "median",
             "p99");
  {
    Site site(nodes, tenants, tenants);
    site.fill(pending);
    full_pass(site, pending, fmt::format("{} tenants", tenants));
    reaction(site, pending);
  }
  std::array<double, 2> costs{};
  for (int idle = 0; idle < 2; ++idle) {
    Site site(1'000, idle == 0 ? 100 : 10'000, 100);
    site.fill(10'000);
    costs[static_cast<std::size_t>(idle)] =
        full_pass(site, 10'000, idle == 0 ? "100 tenants" : "100 tenants and 9,900 idle ones");
  }
  fmt::print("idle tenants cost {:+.1f} %\n", (costs[1] / costs[0] - 1) * 100);
  return 0;
}
