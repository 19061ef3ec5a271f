// same_plans COUNT [FIRST [each]]: makes the plans of COUNT random sites with seeds from FIRST
// (default 1) on, and prints a hash of all of them. A change of the scheduler's code that does not
// change its decisions leaves the hash as it is: run the program before and after. With `each` it
// prints a line for every seed, which shows the sites that differ.
//
// A site is a cluster with tenants (site.h). Every second one also has jobs that start together,
// every third one GPUs in MIG mode. Each site makes 48 plans with a policy that the seed chooses.
// The hash covers everything that a plan says and what it leaves for the next plan: reservations
// and kept slices.
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

#include "tests/sched/site.h"

namespace gantry::sched {
namespace {

constexpr int kPlans = 48;

class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0);
  }
  void add(std::uint64_t number) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<unsigned char>(number >> (8 * i)));
  }
  void add(Instant at) { add(static_cast<std::uint64_t>(at.us)); }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t value_ = 0xcbf29ce484222325ULL;  // FNV-1a
};

void add_verdict(Hash& hash, const Verdict& v) {
  hash.add(static_cast<std::uint64_t>(v.reason));
  hash.add(static_cast<std::uint64_t>(v.a));
  hash.add(static_cast<std::uint64_t>(v.b));
  hash.add(v.subject);
}

void add_starts(Hash& hash, const Plan& plan) {
  hash.add(plan.starts.size());
  for (const Start& s : plan.starts) {
    hash.add(s.job.value());
    for (const NodeGrant& g : s.grants) {
      for (const std::uint64_t n : {std::uint64_t{g.node.value()}, std::uint64_t{g.tasks},
                                    static_cast<std::uint64_t>(g.memory),
                                    static_cast<std::uint64_t>(g.scratch), std::uint64_t{g.gpus}})
        hash.add(n);
      for (const auto cpu : g.cpus) hash.add(std::uint64_t{cpu});
      for (const GpuGrant& d : g.devices) {
        hash.add(std::uint64_t{d.gpu});
        hash.add(d.profile ? *d.profile + 1ULL : 0ULL);
        hash.add(std::uint64_t{d.start});
        hash.add(static_cast<std::uint64_t>(d.thousandths.value()));
      }
    }
  }
}

void add_plan(Hash& hash, const Plan& plan) {
  add_starts(hash, plan);
  hash.add(plan.preemptions.size());
  for (const Preempt& p : plan.preemptions) {
    hash.add(p.victim.value());
    hash.add(p.for_job.value());
    hash.add(static_cast<std::uint64_t>(p.why));
    hash.add(static_cast<std::uint64_t>(p.lost_work));
  }
  hash.add(plan.expected.size());
  for (const Expected& e : plan.expected) {
    hash.add(e.job.value());
    hash.add(e.start);
    for (const NodeId n : e.nodes) hash.add(std::uint64_t{n.value()});
  }
  hash.add(plan.verdicts.size());
  for (const ClassVerdict& v : plan.verdicts) {
    hash.add(v.head.value());
    add_verdict(hash, v.of_head);
    add_verdict(hash, v.of_rest);
  }
  const PlanStats& s = plan.stats;
  for (const std::uint64_t n : {s.classes, s.attempts, s.steps, s.backfilled,
                                std::uint64_t{s.budget_spent}, std::uint64_t{s.everything}})
    hash.add(n);
}

void add_left(Hash& hash, const Replica& replica) {
  for (const auto& r : replica.reservations()) {
    hash.add(r.job.value());
    hash.add(r.start);
    for (const Share& s : r.shares) hash.add((std::uint64_t{s.node} << 32) | s.tasks);
    for (const JobId job : r.leaving) hash.add(job.value());
    hash.add(r.leave_by);
    hash.add(std::uint64_t{r.claimed} | (std::uint64_t{r.guaranteed} << 1) |
             (std::uint64_t{r.aged} << 2));
    hash.add(r.looked);
  }
  for (const MigKept& k : replica.kept_slices()) {
    hash.add(k.job.value());
    hash.add((std::uint64_t{k.node} << 32) | (std::uint64_t{k.gpu} << 16) | k.start);
    hash.add(k.from);
  }
}

Policy policy_for(std::uint64_t seed) {
  Policy policy;
  policy.keep_reservations = seed % 7 != 0;
  policy.everything = seed % 11 == 0 ? Duration{} : seconds(seed % 2 == 0 ? 10 : 40);
  policy.reservations = seed % 13 == 0 ? 1000 : static_cast<std::uint32_t>(1 + seed % 3);
  policy.ahead = seed % 5 == 0 ? 10 : 0;
  policy.preemption = seed % 8 != 0;
  policy.estimates = seed % 9 == 0 ? 10 : 0;
  if (seed % 6 == 0) policy.balance = seed % 4 == 0 ? kBalanceAll : seconds(300);
  if (seed % 17 == 0) policy.attempts = 40;
  if (seed % 19 == 0) policy.quota = policy.fair_share = false;
  return policy;
}

struct Told {
  std::size_t plans = 0, starts = 0, victims = 0, expected = 0, verdicts = 0, passed = 0;
};

void feed(Replica& replica, const std::vector<Change>& changes) {
  for (const Change& c : changes) replica.apply(c);
}

std::uint64_t hash_of_site(std::uint64_t seed, Told& told) {
  Site site(seed, {.groups = seed % 2 == 0, .slices = seed % 3 == 0});
  const Policy policy = policy_for(seed);
  Replica replica;
  feed(replica, site.facts());
  Hash hash;
  for (int i = 0; i < kPlans; ++i) {
    feed(replica, site.turn());
    const Plan plan = schedule(replica, site.now, policy);
    add_plan(hash, plan);
    add_left(hash, replica);
    feed(replica, site.accept(plan));
    ++told.plans;
    told.starts += plan.starts.size();
    told.victims += plan.preemptions.size();
    told.expected += plan.expected.size();
    told.verdicts += plan.verdicts.size();
    told.passed += plan.stats.everything ? 0 : 1;
  }
  return hash.value();
}

}  // namespace
}  // namespace gantry::sched

int main(int argc, char** argv) {
  using namespace gantry::sched;
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "usage: same_plans COUNT [FIRST [each]]\n");
    return 2;
  }
  const std::uint64_t count = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const bool each = argc > 3 && std::strcmp(argv[3], "each") == 0;
  Told told;
  Hash all;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const std::uint64_t one = hash_of_site(seed, told);
    all.add(one);
    if (each) fmt::print("{} {:016x}\n", seed, one);
  }
  fmt::print(
      "{:016x}: {} sites, {} plans ({} passed over partitions), {} starts, {} victims, "
      "{} expected starts, {} verdicts\n",
      all.value(), count, told.plans, told.passed, told.starts, told.victims, told.expected,
      told.verdicts);
  return 0;
}
