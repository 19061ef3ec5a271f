// Tests quota of tenants in cohorts: the formulas are computed a second time in another way, and
// properties are checked on any tree with any use. GANTRY_LONG=1 runs 10,000 random cases,
// otherwise 400.
#include <doctest/doctest.h>

#include <random>

#include "ctld/sched/tenant/charges.h"
#include "tests/sched/cases.h"

namespace gantry::sched {
namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : random_(seed) {}
  std::int64_t pick(std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_);
  }
  bool chance(int percent) { return pick(100) < percent; }

 private:
  std::mt19937_64 random_;
};

FlavorLimits limits(std::int64_t nominal, std::int64_t borrow = kUnlimited,
                    std::int64_t lend = kUnlimited) {
  FlavorLimits l;
  l.nominal.fill(kUnlimited);
  l.borrow.fill(kUnlimited);
  l.lend.fill(kUnlimited);
  const auto gpu = static_cast<std::size_t>(Resource::gpu);
  l.nominal[gpu] = nominal;
  l.borrow[gpu] = borrow;
  l.lend[gpu] = lend;
  return l;
}

QuotaNeed gpus(std::int64_t n, std::uint32_t flavor = 0) {
  QuotaNeed need;
  need.flavor = flavor;
  need.amount.row(Resource::gpu) = n;
  return need;
}

QuotaNode node(std::string name, std::uint32_t parent, FlavorLimits l) {
  QuotaNode n;
  n.name = std::move(name);
  n.parent = parent;
  n.limits = {l};
  return n;
}

TenancyPtr tenancy(std::vector<QuotaNode> nodes, std::size_t flavors = 1) {
  auto t = std::make_shared<Tenancy>();
  t->nodes = std::move(nodes);
  t->flavors.resize(flavors);
  return t;
}

TEST_CASE("a tenant borrows what others lend, up to its limit and theirs") {
  // a has 8 GPUs and may borrow 4 more; b has 12 and lends 6 of them.
  QuotaTree tree(tenancy({node("all", kNoIndex, limits(0)), node("a", 0, limits(8, 4)),
                          node("b", 0, limits(12, kUnlimited, 6))}));
  CHECK(tree.subtree(0, 0, Resource::gpu) == 14);
  CHECK(tree.available(1, 0, Resource::gpu) == 12);
  CHECK(tree.available(2, 0, Resource::gpu) == 20);
  tree.add(1, gpus(8));
  CHECK(!tree.fit(1, gpus(0)).borrows);
  const QuotaFit more = tree.fit(1, gpus(4));
  CHECK(more.fits);
  CHECK(more.borrows);
  CHECK(tree.share_value(1, gpus(4)) == 4 * 1'000'000 / 14);
  const QuotaFit too_much = tree.fit(1, gpus(5));
  CHECK(!too_much.fits);
  CHECK(too_much.tenant_limit);
  CHECK(too_much.would_use == 13);
  CHECK(too_much.limit == 12);
  tree.add(2, gpus(10));  // 6 of the quota it keeps, 4 of what it lends
  CHECK(tree.usage(0, 0, Resource::gpu) == 12);
  const QuotaFit cohort = tree.fit(1, gpus(3));
  CHECK(!cohort.fits);
  CHECK(!cohort.tenant_limit);
  CHECK(cohort.cell->node == 0);
  CHECK(tree.fit(1, gpus(2)).fits);
  CHECK(tree.never_fits(1, gpus(13)).has_value());
  CHECK(!tree.never_fits(1, gpus(12)).has_value());
}

TEST_CASE("a tenant without a limit for a resource neither lends nor borrows it") {
  QuotaTree tree(tenancy({node("all", kNoIndex, limits(0)), node("a", 0, limits(4)),
                          node("b", 0, limits(kUnlimited))}));
  tree.add(2, gpus(1000));
  CHECK(tree.fit(2, gpus(1000)).fits);
  CHECK(!tree.fit(2, gpus(1000)).borrows);
  CHECK(tree.usage(0, 0, Resource::gpu) == 0);
  CHECK(tree.available(1, 0, Resource::gpu) == 4);
  CHECK(!tree.fit(1, gpus(5)).fits);
}

TEST_CASE("borrowing nearer to the root comes later in the order, and weight 0 comes last") {
  QuotaTree tree(tenancy({node("all", kNoIndex, limits(0)), node("left", 0, limits(0)),
                          node("right", 0, limits(8)), node("a", 1, limits(2)),
                          node("b", 1, limits(2)), node("c", 2, limits(0))}));
  const QuotaFit inside = tree.fit(3, gpus(3)), beyond = tree.fit(3, gpus(5));
  CHECK(inside.levels != 0);
  CHECK(inside.levels < beyond.levels);
  CHECK(tree.fit(5, gpus(1)).levels == inside.levels);
  std::array<std::int64_t, 4> values{};
  tree.share_values(3, gpus(5), values);
  CHECK(values[0] == 1 * 1'000'000 / 12);
  CHECK(values[1] == 3 * 1'000'000 / 12);
  CHECK(values[2] == 0);
}

// ---- any tree

TenancyPtr random_tenancy(Random& random) {
  const std::size_t flavors = 1 + static_cast<std::size_t>(random.pick(3));
  std::vector<QuotaNode> nodes;
  std::vector<int> depth;
  const std::int64_t count = 2 + random.pick(12);
  for (std::int64_t i = 0; i < count; ++i) {
    QuotaNode n;
    n.name = "n" + std::to_string(i);
    if (i > 0 && random.chance(90)) {
      auto parent = static_cast<std::uint32_t>(random.pick(i));
      while (depth[parent] >= 3) parent = nodes[parent].parent;
      n.parent = parent;
    }
    depth.push_back(n.parent == kNoIndex ? 0 : depth[n.parent] + 1);
    n.weight = static_cast<std::uint32_t>(random.pick(4) * 1000);
    for (std::size_t f = 0; f < flavors; ++f) {
      FlavorLimits l;
      for (std::size_t r = 0; r < kResourceCount; ++r) {
        l.nominal[r] = random.chance(8) ? kUnlimited : random.pick(20);
        l.borrow[r] = random.chance(50) ? kUnlimited : random.pick(12);
        l.lend[r] = random.chance(50) ? kUnlimited : random.pick(12);
      }
      n.limits.push_back(l);
    }
    nodes.push_back(std::move(n));
  }
  for (const QuotaNode& n : nodes)
    if (n.parent != kNoIndex) nodes[n.parent].tenant = false;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    nodes[i].tenant =
        std::none_of(nodes.begin(), nodes.end(), [&](const QuotaNode& n) { return n.parent == i; });
  return tenancy(std::move(nodes), flavors);
}

// Computes the definitions a second time, from the leaves up, without any stored sums.
class Oracle {
 public:
  using Uses = std::vector<std::pair<std::uint32_t, QuotaNeed>>;
  Oracle(const Tenancy& t, const Uses& uses, std::uint32_t f, std::size_t r)
      : t_(t), uses_(uses), f_(f), r_(r) {}

  std::int64_t subtree(std::uint32_t n) const {
    std::int64_t sum = t_.nodes[n].limits[f_].nominal[r_];
    if (sum == kUnlimited) return sum;
    for (std::uint32_t c = 0; c < t_.nodes.size(); ++c)
      if (t_.nodes[c].parent == n && local(c) != kUnlimited) sum += subtree(c) - local(c);
    return sum;
  }
  std::int64_t local(std::uint32_t n) const {
    const std::int64_t all = subtree(n), lend = t_.nodes[n].limits[f_].lend[r_];
    if (all == kUnlimited) return kUnlimited;
    return lend == kUnlimited ? 0 : std::max<std::int64_t>(0, all - lend);
  }
  std::int64_t usage(std::uint32_t n) const {
    std::int64_t sum = 0;
    for (const auto& [at, need] : uses_)
      if (at == n && (f_ == 0 || f_ == need.flavor)) sum += need.amount.raw()[r_];
    for (std::uint32_t c = 0; c < t_.nodes.size(); ++c)
      if (t_.nodes[c].parent == n && local(c) != kUnlimited)
        sum += std::max<std::int64_t>(0, usage(c) - local(c));
    return sum;
  }
  std::int64_t most(std::uint32_t n) const {
    const std::int64_t all = subtree(n), borrow = t_.nodes[n].limits[f_].borrow[r_];
    if (t_.nodes[n].parent == kNoIndex || all == kUnlimited) return all;
    return borrow == kUnlimited ? kUnlimited : all + borrow;
  }

 private:
  const Tenancy& t_;
  const Uses& uses_;
  const std::uint32_t f_;
  const std::size_t r_;
};

void check_state(const QuotaTree& tree, const Oracle::Uses& uses, bool all_fitted) {
  const Tenancy& t = tree.tenancy();
  REQUIRE(tree.audit(uses) == "");
  for (std::uint32_t f = 0; f < t.flavors.size(); ++f)
    for (std::size_t r = 0; r < kResourceCount; ++r) {
      const auto resource = static_cast<Resource>(r);
      const Oracle oracle(t, uses, f, r);
      for (std::uint32_t n = 0; n < t.nodes.size(); ++n) {
        REQUIRE(tree.subtree(n, f, resource) == oracle.subtree(n));
        REQUIRE(tree.local(n, f, resource) == oracle.local(n));
        REQUIRE(tree.usage(n, f, resource) == oracle.usage(n));
        // No borrowing limit is broken anywhere, and at a root no more is used than it has: what a
        // child keeps to itself is not in the root's quota, so no other tenant can use it.
        if (all_fitted) REQUIRE(tree.usage(n, f, resource) <= oracle.most(n));
      }
    }
}

QuotaNeed random_need(Random& random, const Tenancy& t) {
  QuotaNeed need;
  need.flavor =
      static_cast<std::uint32_t>(random.pick(static_cast<std::int64_t>(t.flavors.size())));
  for (std::size_t r = 0; r < kResourceCount; ++r)
    need.amount.raw()[r] = random.chance(40) ? random.pick(8) : 0;
  return need;
}

void check_fit(const QuotaTree& tree, std::uint32_t tenant, const QuotaNeed& need, bool exact) {
  bool available = true, borrows = false;
  const Tenancy& t = tree.tenancy();
  for (std::size_t r = 0; r < kResourceCount; ++r) {
    if (need.amount.raw()[r] == 0) continue;
    for (const std::uint32_t f : {std::uint32_t{0}, need.flavor})
      available &= need.amount.raw()[r] <= tree.available(tenant, f, static_cast<Resource>(r));
  }
  const QuotaFit fit = tree.fit(tenant, need);
  if (exact) REQUIRE(fit.fits == available);
  if (available) REQUIRE(fit.fits);
  REQUIRE(fit.fits != fit.cell.has_value());
  if (!fit.fits) return;
  REQUIRE(!tree.never_fits(tenant, need).has_value());
  QuotaTree with = tree;
  with.add(tenant, need);
  for (std::uint32_t n = tenant; t.nodes[n].parent != kNoIndex; n = t.nodes[n].parent)
    for (std::uint32_t f = 0; f < t.flavors.size(); ++f)
      for (std::size_t r = 0; r < kResourceCount; ++r) {
        const auto resource = static_cast<Resource>(r);
        borrows |= with.usage(n, f, resource) > tree.usage(n, f, resource) &&
                   with.usage(n, f, resource) > tree.subtree(n, f, resource);
      }
  REQUIRE(fit.borrows == borrows);
  REQUIRE(fit.borrows == (fit.levels != 0));
}

// Checks that a tenant can use what it does not lend, whatever the others do.
void check_kept(const QuotaTree& tree, std::uint32_t tenant) {
  for (std::size_t r = 0; r < kResourceCount; ++r) {
    const auto resource = static_cast<Resource>(r);
    const std::int64_t kept = tree.local(tenant, 0, resource);
    if (kept == kUnlimited || kept <= tree.usage(tenant, 0, resource)) continue;
    QuotaNeed need;
    need.amount.row(resource) = kept - tree.usage(tenant, 0, resource);
    REQUIRE(tree.fit(tenant, need).fits);
  }
}

void one_case(std::uint64_t seed, std::size_t& fitted, std::size_t& borrowed) {
  CAPTURE(seed);
  Random random(seed);
  const TenancyPtr t = random_tenancy(random);
  QuotaTree tree(t);
  // some uses are admitted beyond the quota, as after the quota was lowered
  const bool over_admits = random.chance(25);
  Oracle::Uses uses;
  for (int step = 0; step < 40; ++step) {
    auto tenant =
        static_cast<std::uint32_t>(random.pick(static_cast<std::int64_t>(t->nodes.size())));
    if (!t->nodes[tenant].tenant) continue;
    if (!uses.empty() && random.chance(30)) {
      const auto i = static_cast<std::size_t>(random.pick(static_cast<std::int64_t>(uses.size())));
      tree.remove(uses[i].first, uses[i].second);
      uses.erase(uses.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      const QuotaNeed need = random_need(random, *t);
      check_fit(tree, tenant, need, !over_admits);
      const QuotaFit fit = tree.fit(tenant, need);
      if (!fit.fits && !over_admits) continue;
      fitted += fit.fits ? 1 : 0;
      borrowed += fit.borrows ? 1 : 0;
      tree.add(tenant, need);
      uses.emplace_back(tenant, need);
    }
    check_kept(tree, tenant);
  }
  check_state(tree, uses, !over_admits);
  for (const auto& [tenant, need] : uses) tree.remove(tenant, need);
  check_state(tree, {}, true);
}

TEST_CASE("any tree, any uses: sums are right, and a fitting need breaks no limit anywhere") {
  std::size_t fitted = 0, borrowed = 0;
  for (int i = 1; i <= cases(400); ++i) one_case(static_cast<std::uint64_t>(i), fitted, borrowed);
  CHECK(fitted > 2000);
  CHECK(borrowed > 300);
}

TEST_CASE("share values never fall while usage grows") {
  for (int i = 1; i <= cases(400); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i) + 77);
    const TenancyPtr t = random_tenancy(random);
    QuotaTree tree(t);
    for (int step = 0; step < 10; ++step) {
      const auto n =
          static_cast<std::uint32_t>(random.pick(static_cast<std::int64_t>(t->nodes.size())));
      const QuotaNeed need = random_need(random, *t), more = random_need(random, *t);
      const std::int64_t before = tree.share_value(n, need);
      const std::uint32_t levels = tree.fit(n, need).levels;
      const bool fits = tree.fit(n, need).fits;
      tree.add(static_cast<std::uint32_t>(random.pick(static_cast<std::int64_t>(t->nodes.size()))),
               more);
      REQUIRE(tree.share_value(n, need) >= before);
      if (fits && tree.fit(n, need).fits) REQUIRE((tree.fit(n, need).levels & levels) == levels);
    }
  }
}

TEST_CASE("charges follow placements, partitions, flavors and new tenants' documents") {
  Random random(3);
  for (int i = 0; i < cases(20); ++i) {
    CAPTURE(i);
    Charges charges;
    TenancyPtr t = random_tenancy(random);
    const auto tell = [&] {
      charges.tenancy_changed(t);
      for (std::uint32_t p = 0; p < 4; ++p) {
        PartitionChanged partition;
        partition.partition = PartitionId{p};
        const auto n =
            static_cast<std::uint32_t>(random.pick(static_cast<std::int64_t>(t->nodes.size())));
        partition.quota_node = t->nodes[n].tenant ? n : kNoIndex;
        charges.partition_changed(partition);
      }
      for (std::uint32_t n = 0; n < 6; ++n) {
        NodeChanged node;
        node.node = NodeId{n};
        node.flavor =
            static_cast<std::uint32_t>(random.pick(static_cast<std::int64_t>(t->flavors.size())));
        charges.node_changed(node);
      }
    };
    tell();
    for (int step = 0; step < 60; ++step) {
      const JobId job{static_cast<std::uint64_t>(1 + random.pick(10))};
      if (random.chance(50)) {
        JobPlaced placed;
        placed.job = job;
        placed.partition = PartitionId{static_cast<std::uint32_t>(random.pick(4))};
        for (std::uint32_t n = 0; n < 6; ++n)
          if (random.chance(40)) {
            NodeGrant grant;
            grant.node = NodeId{n};
            grant.cpus.resize(static_cast<std::size_t>(random.pick(4)));
            grant.memory = random.pick(100);
            grant.gpus = static_cast<std::uint32_t>(random.pick(3));
            placed.grants.push_back(grant);
          }
        charges.place(placed);
      } else {
        charges.release(job, NodeId{static_cast<std::uint32_t>(random.pick(6))});
      }
      if (random.chance(5)) {
        t = random_tenancy(random);
        tell();
      }
      if (random.chance(70)) charges.settle();
      REQUIRE(charges.audit() == "");
    }
  }
}

}  // namespace
}  // namespace gantry::sched
