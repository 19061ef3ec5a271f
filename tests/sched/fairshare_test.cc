// Tests fair share: exact decay of usage, and the walk that finds the next user, which is compared
// with a ranking of all users. GANTRY_LONG=1 runs 10,000 random cases, otherwise 400.
#include "ctld/sched/tenant/fairshare.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "ctld/sched/queue/order.h"
#include "tests/sched/cases.h"

namespace gantry::sched {
namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : random_(seed) {}
  std::uint64_t pick(std::uint64_t n) {
    return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random_);
  }
  bool chance(int percent) { return pick(100) < static_cast<std::uint64_t>(percent); }
  double real(double most) { return std::uniform_real_distribution<double>(0, most)(random_); }

 private:
  std::mt19937_64 random_;
};

TEST_CASE("usage halves in the half life, and at a constant rate it settles at R / lambda") {
  const Duration h = hours(24);
  DecayedUsage u{100, 0, {}};
  CHECK(amount_at(u, Instant{} + h, h) == doctest::Approx(50));
  CHECK(amount_at(u, Instant{} + h * 3, h) == doctest::Approx(12.5));
  u = {0, 2, {}};
  CHECK(amount_at(u, Instant{} + h * 60, h) == doctest::Approx(2 * 86400 / std::log(2.0)));
  CHECK(amount_at(u, Instant{} + seconds(1), h) == doctest::Approx(2).epsilon(1e-4));
  CHECK(amount_at(u, Instant{} - seconds(5), h) == 0);
  CHECK(amount_at(u, Instant{} + seconds(5), Duration{}) == 10);  // no decay
}

TEST_CASE("usage decays to the same value however the interval is split") {
  for (int i = 1; i <= cases(400); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Duration half_life = seconds(static_cast<std::int64_t>(1 + random.pick(1'000'000)));
    const DecayedUsage start{random.real(1e6), random.chance(20) ? 0 : random.real(100), {}};
    const Instant end = Instant{} + seconds(static_cast<std::int64_t>(1 + random.pick(3'000'000)));
    DecayedUsage split = start;
    for (std::uint64_t n = random.pick(20); n > 0; --n)
      advance(split,
              split.at + Duration{static_cast<std::int64_t>(
                             random.pick(static_cast<std::uint64_t>((end - split.at).us) + 1))},
              half_life);
    advance(split, end, half_life);
    const double whole = amount_at(start, end, half_life);
    REQUIRE(std::abs(split.amount - whole) <= 1e-9 * std::max(1.0, whole));
  }
}

// ---- the tree

struct Made {
  ShareTree tree;
  std::uint32_t next = 0;
  ShareId add(std::optional<ShareId> parent, std::uint32_t shares, double usage) {
    const ShareId id{next++};
    tree.change({id, parent, shares, {usage, 0, {}}});
    return id;
  }
};

std::vector<std::pair<std::uint32_t, std::uint32_t>> ranks(const Made& m) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> out;
  for (const FairRank& r : m.tree.ranking(ShareId{0}, {})) out.emplace_back(r.leaf.value(), r.rank);
  return out;
}
using Ranks = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

TEST_CASE(
    "Fair Tree: an account that ranks above its sibling puts all its users above the sibling's") {
  Made m;
  const ShareId root = m.add(std::nullopt, 1, 100);
  const ShareId a = m.add(root, 1, 80), b = m.add(root, 1, 20);  // 1, 2
  m.add(a, 1, 0);                                                // 3: it has no usage, but is in a
  m.add(a, 1, 80);                                               // 4
  m.add(b, 1, 15);                                               // 5
  m.add(b, 0, 5);                                                // 6: it has no shares
  CHECK(ranks(m) == Ranks{{5, 4}, {6, 3}, {3, 2}, {4, 1}});
}

TEST_CASE(
    "Fair Tree: equal accounts are ranked together, and a user beside them as their best one") {
  Made m;
  const ShareId root = m.add(std::nullopt, 1, 120);
  const ShareId a = m.add(root, 1, 40), b = m.add(root, 1, 40);  // 1, 2
  m.add(root, 1, 40);                                            // node 3 is a user
  m.add(a, 1, 10);                                               // 4: level fairshare 2
  m.add(a, 1, 30);                                               // 5: level fairshare 2/3
  m.add(b, 1, 20);                                               // 6: level fairshare 1
  m.add(b, 1, 20);                                               // 7: level fairshare 1
  CHECK(ranks(m) == Ranks{{3, 5}, {4, 5}, {6, 3}, {7, 3}, {5, 1}});
}

// Makes a random tree with many ties: users beside accounts, no shares, no usage.
void grow(Made& m, Random& random, ShareId parent, double usage, int depth) {
  const std::uint64_t children = 1 + random.pick(4);
  for (std::uint64_t i = 0; i < children; ++i) {
    const double part =
        random.chance(30) ? 0 : usage / static_cast<double>(children * (1 + random.pick(2)));
    const ShareId child = m.add(parent, static_cast<std::uint32_t>(random.pick(3)), part);
    if (depth < 3 && random.chance(45)) grow(m, random, child, part, depth + 1);
  }
}

Waiting waiting(std::uint64_t job, std::int32_t rank) {
  Waiting w;
  w.job = JobId{job};
  w.rank = rank;
  return w;
}

struct Offered {
  Waiting first;
  std::uint32_t rank = 0;  // the rank by Fair Tree
};

// Returns the best user by the full ranking of all users.
std::uint32_t expected_best(const std::map<std::uint32_t, Offered>& offers) {
  return std::min_element(offers.begin(), offers.end(),
                          [](const auto& a, const auto& b) {
                            const auto place = [](const Offered& o) {
                              return std::tuple{-o.first.rank, ~o.rank, o.first.job};
                            };
                            return place(a.second) < place(b.second);
                          })
      ->first;
}

TEST_CASE("the walk takes users in the order of the full ranking, ties included") {
  std::size_t ties = 0, picks = 0;
  for (int i = 1; i <= cases(400); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    Made m;
    const ShareId root = m.add(std::nullopt, 1, 64);
    grow(m, random, root, 64, 1);
    FairWalk walk(&m.tree, {});
    std::map<std::uint32_t, Offered> offers;
    std::uint64_t job = 1;
    const auto rank_all = [&] {
      const auto all = m.tree.ranking(root, {});
      for (std::size_t k = 0; k < all.size(); ++k) {
        ties += k > 0 && all[k].rank == all[k - 1].rank ? 1 : 0;
        if (const auto it = offers.find(all[k].leaf.value()); it != offers.end())
          it->second.rank = all[k].rank;
      }
    };
    for (const FairRank& r : m.tree.ranking(root, {})) {
      if (random.chance(25)) continue;  // this user has no waiting job
      const Waiting first =
          waiting(random.pick(1000) * 100 + job++, static_cast<std::int32_t>(random.pick(2)));
      offers[r.leaf.value()] = {first, r.rank};
      walk.offer(r.leaf.value(), first);
    }
    while (!offers.empty()) {
      const std::uint32_t best = expected_best(offers);
      REQUIRE(walk.best() == best);
      ++picks;
      if (random.chance(30)) {  // the job starts: usage grows, and the user may have another job
        m.tree.charge(ShareId{best}, static_cast<double>(1 + random.pick(3)) / 300);
        walk.charged(best);
        rank_all();
      }
      if (random.chance(70)) {
        offers.erase(best);
        walk.withdraw(best);
      } else {
        const Waiting next = waiting(random.pick(1000) * 100 + job++,
                                     offers.at(best).first.rank - (random.chance(50) ? 1 : 0));
        offers.at(best).first = next;
        walk.offer(best, next);
      }
    }
    REQUIRE(walk.empty());
    m.tree.forget_plan();
  }
  CHECK(ties > 200);
  CHECK(picks > 1000);
}

TEST_CASE("the tree stays right when shares and users are added, changed and moved") {
  Made m;
  const ShareId root = m.add(std::nullopt, 1, 10);
  const ShareId a = m.add(root, 1, 4), b = m.add(root, 3, 6);
  const ShareId user = m.add(a, 1, 2);
  m.tree.change({user, a, 2, {2, 0, {}}});
  CHECK(m.tree.children(a).size() == 1);
  CHECK(m.tree.level(user, {}) == doctest::Approx(2));  // (2 / 2) / (2 / 4)
  m.tree.change({user, b, 2, {2, 0, {}}});
  CHECK(m.tree.children(a).empty());
  CHECK(m.tree.children(b) == std::vector<ShareId>{user});
  CHECK(m.tree.root_of(user) == root);
  m.tree.charge(user, 1);
  CHECK(m.tree.usage(root, {}) == doctest::Approx(10 + 300));
  m.tree.forget_plan();
  CHECK(m.tree.usage(root, {}) == 10);
}

}  // namespace
}  // namespace gantry::sched
