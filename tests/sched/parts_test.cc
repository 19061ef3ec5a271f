// Tests single parts of the scheduler: ordered slots against std::set, feature expressions, the
// choice of nodes and task shares, memory of the queue.
#include <doctest/doctest.h>

#include <random>
#include <set>

#include "ctld/sched/cycle/replica.h"
#include "ctld/sched/queue/constraint.h"
#include "ctld/sched/queue/geometry.h"
#include "ctld/sched/queue/ordered_slots.h"

namespace gantry::sched {
namespace {

TEST_CASE("ordered slots keep order and positions through random changes") {
  std::mt19937_64 random(5);
  std::vector<std::uint64_t> value(20'000);
  for (auto& v : value) v = random() % 5'000;
  const auto less = [&](std::uint32_t a, std::uint32_t b) {
    return std::pair{value[a], a} < std::pair{value[b], b};
  };
  std::set<std::uint32_t, decltype(less)> expected(less);
  OrderedSlots slots;
  for (int i = 0; i < 60'000; ++i) {
    const auto slot = static_cast<std::uint32_t>(random() % value.size());
    const bool grow = i < 30'000;
    if (expected.contains(slot)) {
      if (grow && random() % 4 != 0) continue;
      slots.erase(slot, less);
      expected.erase(slot);
    } else if (grow || random() % 4 == 0) {
      slots.insert(slot, less);
      expected.insert(slot);
    }
  }
  while (expected.size() > 3'000) {  // elements are removed as from a queue
    slots.erase(slots.front(), less);
    expected.erase(expected.begin());
  }
  REQUIRE(slots.size() == expected.size());
  std::size_t position = 0;
  auto at = slots.begin();
  for (const std::uint32_t slot : expected) {
    REQUIRE(slots[at] == slot);
    const auto found = slots.lower_bound([&](std::uint32_t s) { return less(s, slot); });
    REQUIRE(found == at);
    REQUIRE(slots.position(found) == position++);
    at = slots.next(at);
  }
  CHECK(slots.at_end(at));
  for (const std::uint32_t slot : std::vector(expected.begin(), expected.end()))
    slots.erase(slot, less);
  CHECK(slots.empty());
}

TEST_CASE("in feature expressions & binds tighter than |") {
  const auto match = [](std::string_view text, std::vector<std::string> features) {
    const auto c = parse_constraint(text);
    REQUIRE(c.has_value());
    return matches(*c, features);
  };
  CHECK(match("", {}));
  CHECK(match("a", {"a", "b"}));
  CHECK(!match("a&c", {"a", "b"}));
  CHECK(match("c|a&b", {"a", "b"}));
  CHECK(match("a&b|c", {"c"}));
  CHECK(!match("a&b|c", {"a"}));
  for (const char* bad : {"&", "a&", "|a", "a||b", "a b", "(a)", "[a|b]", "a*4", "!a", "a,b"}) {
    CAPTURE(bad);
    const auto c = parse_constraint(bad);
    REQUIRE(!c.has_value());
    CHECK(c.error().code == ErrorCode::invalid_argument);
    CHECK(c.error().message.find(bad) != std::string::npos);
  }
}

TEST_CASE("a job gets few nodes, with even shares of tasks if possible") {
  Demand d;
  d.min_nodes = 2;
  d.max_nodes = 3;
  d.tasks = d.most_per_node = 10;
  const auto choose = [&](std::vector<Candidate> c, std::uint32_t required = 0) {
    std::string text;
    const auto shares = choose_nodes(d, c, required);
    if (!shares) return std::string("none");
    for (const Share& s : *shares)
      text += std::to_string(s.node) + ":" + std::to_string(s.tasks) + " ";
    return text;
  };
  // in the order of preference, not by size
  CHECK(choose({{0, 3}, {1, 6}, {2, 6}, {3, 9}}) == "1:5 2:5 ");
  CHECK(choose({{0, 3}, {1, 3}, {2, 8}}) == "0:3 2:7 ");      // an even division is not possible
  CHECK(choose({{0, 3}, {1, 4}, {2, 4}}) == "0:3 1:4 2:3 ");  // a third node is needed
  // a fourth node would be needed, which is not allowed
  CHECK(choose({{0, 3}, {1, 3}, {2, 3}, {3, 3}}) == "none");
  // a required node is used, however small
  CHECK(choose({{0, 9}, {1, 9}, {2, 1, true}}, 1) == "0:9 2:1 ");
  CHECK(choose({{0, 9}, {1, 9}}, 1) == "none");
}

TEST_CASE("a time limit that overflows lies far in the future, not in the past") {
  const Instant start{std::numeric_limits<std::int64_t>::max() - 5};
  CHECK(Timeline::end_of(start, seconds(1)) > start);
  CHECK(Timeline::end_of(start, std::nullopt) > start);
}

TEST_CASE("a waiting job takes less than 100 bytes, and an empty class is forgotten") {
  Replica replica;
  PartitionChanged partition;
  partition.name = "p";
  replica.apply(partition);
  constexpr std::uint64_t kJobs = 100'000;
  for (std::uint64_t i = 1; i <= kJobs; ++i) {
    JobQueued job{JobId{i}, {}, 0, Instant{static_cast<std::int64_t>(i)}, 1};
    job.key.time_limit = seconds(static_cast<std::int64_t>(i % 10));
    replica.apply(job);
  }
  CHECK(replica.queue_bytes() / kJobs < 100);
  for (std::uint64_t i = 1; i <= kJobs; ++i) replica.apply(JobUnqueued{JobId{i}});
  for (std::uint64_t i = 1; i <= 10'000; ++i) {  // each job has its own class, one at a time
    JobQueued job{JobId{i}, {}, 0, Instant{}, 1};
    job.key.time_limit = seconds(static_cast<std::int64_t>(1000 + i));
    replica.apply(job);
    replica.apply(JobUnqueued{JobId{i}});
  }
  CHECK(replica.waiting() == 0);
  CHECK(replica.audit() == "");
}

}  // namespace
}  // namespace gantry::sched
