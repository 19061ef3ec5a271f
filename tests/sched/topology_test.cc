// Tests topology: which domains a gang gets, by hand and against a plain search on random trees.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "ctld/sched/nodes/devices.h"
#include "ctld/sched/nodes/topology.h"
#include "ctld/sched/place/place.h"

namespace gantry::sched::topology_test {
namespace {

// Leaf i has leaves[i] nodes of 8 cores, and a block has `per_block` leaves.
struct Cluster {
  Grid grid;
  Running running;
  Windows windows;
  Timeline timeline{grid, running, windows};
  Eligible eligible;
  std::vector<std::uint32_t> leaf, block;
  std::uint64_t next_job = 1;

  Cluster(const std::vector<std::uint32_t>& leaves, std::uint32_t per_block) {
    grid.set_levels({{"block", {}}, {"leaf", {}}});
    PartitionChanged partition;
    for (std::uint32_t l = 0; l < leaves.size(); ++l)
      for (std::uint32_t i = 0; i < leaves[l]; ++i) {
        NodeChanged node;
        node.node = NodeId{static_cast<std::uint32_t>(leaf.size())};
        node.name = "n" + std::to_string(leaf.size());
        node.available = true;
        node.cpus = {0, 1, 2, 3, 4, 5, 6, 7};
        node.memory = 1 << 20;
        node.domains = {l / per_block, l};
        grid.change(node);
        eligible.node_changed(node);
        partition.nodes.push_back(node.node);
        leaf.push_back(l);
        block.push_back(l / per_block);
      }
    eligible.partition_changed(partition);
    timeline.begin({});
  }
  void use(std::uint32_t n, std::uint16_t cpus) {
    JobPlaced job;
    job.job = JobId{next_job++};
    NodeGrant grant;
    grant.node = NodeId{n};
    grant.cpus = choose_cpus(grid.node(n), cpus);
    job.grants = {grant};
    running.place(job, grid);
  }
  JobClass gang(std::uint32_t nodes, TopologyWish wish = TopologyWish::none,
                const char* level = "leaf", std::uint32_t cpus = 8) {
    JobClass cls;
    JobShape& s = cls.key.shape;
    s.min_nodes = s.max_nodes = s.tasks = nodes;
    s.cpus_per_task = cpus;
    s.memory_per_node = 1;
    s.topology = wish;
    s.topology_level = level;
    cls.demand = demand_of(s, *eligible.partition(PartitionId{0}));
    eligible.refresh(cls, grid);
    return cls;
  }
  std::optional<std::vector<Share>> find(const JobClass& cls) {
    return find_place(grid, timeline, eligible.nodes_of(cls), cls);
  }
  // Returns the number of nodes that the job gets in each leaf, as "2:3 4:1", or "none".
  std::string leaves(const JobClass& cls) {
    const auto place = find(cls);
    if (!place) return "none";
    std::map<std::uint32_t, int> count;
    for (const Share& s : *place) ++count[leaf[s.node]];
    std::string text;
    for (const auto& [l, n] : count)
      text += (text.empty() ? "" : " ") + std::to_string(l) + ":" + std::to_string(n);
    return text;
  }
};

TEST_CASE("required: a gang gets the tightest domain of its level that has enough nodes, or none") {
  Cluster c({8, 4, 5, 4}, 2);
  using enum TopologyWish;
  CHECK(c.leaves(c.gang(4, required)) == "1:4");
  CHECK(c.leaves(c.gang(5, required)) == "2:5");
  CHECK(c.leaves(c.gang(9, required)) == "none");
  CHECK(c.leaves(c.gang(9, required, "block")) == "2:5 3:4");
  // not more than the smallest domain that is needed
  CHECK(c.leaves(c.gang(4, required, "block")) == "1:4");
  CHECK(c.leaves(c.gang(10, required, "block")) == "0:8 1:2");
  CHECK(c.leaves(c.gang(2, required, "node")) == "none");
  CHECK(c.leaves(c.gang(2, required, "rack")) == "none");  // there is no such level
}

TEST_CASE("preferred: one domain, else a wider one, else several with the last the tightest") {
  Cluster c({4, 6, 3, 3, 2, 2}, 2);
  using enum TopologyWish;
  CHECK(c.leaves(c.gang(3, preferred)) == "2:3");
  CHECK(c.leaves(c.gang(6, preferred)) == "1:6");
  CHECK(c.leaves(c.gang(9, preferred)) == "0:3 1:6");       // all in one block
  CHECK(c.leaves(c.gang(12, preferred)) == "0:4 1:6 4:2");  // two blocks, the last one the tightest
  CHECK(c.leaves(c.gang(21, preferred)) == "none");
}

TEST_CASE("balanced: the fewest domains over which the nodes can be spread evenly") {
  Cluster c({4, 4, 3, 3, 3, 8}, 6);
  using enum TopologyWish;
  CHECK(c.leaves(c.gang(8, balanced)) == "5:8");
  CHECK(c.leaves(c.gang(6, balanced)) == "5:6");
  c.use(25 - 1, 1);  // the largest leaf has 7 left
  CHECK(c.leaves(c.gang(8, balanced)) == "0:4 1:4");
  CHECK(c.leaves(c.gang(9, balanced)) == "0:4 5:5");
  CHECK(c.leaves(c.gang(10, balanced)) == "0:4 2:3 3:3");
}

TEST_CASE("a job without a wish fills the leaf with the fewest idle nodes left") {
  Cluster c({70, 3, 4}, 3);  // many nodes: the search goes level by level
  CHECK(c.leaves(c.gang(1)) == "1:1");
  c.use(73, 8);
  CHECK(c.leaves(c.gang(2)) == "1:2");
  c.use(74, 8);
  CHECK(c.leaves(c.gang(1)) == "2:1");
  CHECK(c.leaves(c.gang(3)) == "1:1 2:2");
  CHECK(c.grid.audit() == "");
  Cluster few({6, 3, 4}, 3);
  few.use(9, 8);
  few.use(10, 8);
  CHECK(few.leaves(few.gang(1)) == "2:1");
  CHECK(few.leaves(few.gang(3)) == "1:1 2:2");
}

TEST_CASE("in pools that are spread over, the emptiest node comes first") {
  Cluster c({4}, 1);
  for (std::uint32_t n = 0; n < 4; ++n) {
    NodeChanged node;
    node.node = NodeId{n};
    node.name = "n" + std::to_string(n);
    node.available = true;
    node.cpus = {0, 1, 2, 3, 4, 5, 6, 7};
    node.memory = 1 << 20;
    node.spread = n != 3;
    c.grid.change(node);
    c.eligible.node_changed(node);
  }
  c.use(0, 3);
  c.use(1, 1);
  c.use(2, 2);
  const auto on = [&](std::uint32_t cpus) {
    return c.find(c.gang(1, TopologyWish::none, "", cpus))->front().node;
  };
  CHECK(on(1) == 3);  // nodes of pools that are not spread come first
  c.use(3, 8);
  CHECK(on(1) == 1);
  CHECK(on(6) == 1);
  c.use(1, 4);
  CHECK(on(1) == 2);
}

TEST_CASE("the reason says that no domain has room now, or that none can ever have it") {
  Cluster c({3, 3, 2}, 2);
  JobClass cls = c.gang(3, TopologyWish::required);
  c.use(0, 1);
  c.use(3, 1);
  CHECK(cls.standing.verdict == Verdict{});
  const Verdict now{Reason::topology, 2, 3, "leaf"};
  CHECK(explain_place(c.grid, c.eligible.nodes_of(cls), cls, nullptr) == now);
  CHECK(!explain_place(c.grid, c.eligible.nodes_of(cls), c.gang(3), nullptr).has_value());
  CHECK(!explain_place(c.grid, c.eligible.nodes_of(cls), c.gang(7), nullptr).has_value());
  const Verdict never{Reason::topology, 3, 4, "leaf"};
  CHECK(c.gang(4, TopologyWish::required).standing.verdict == never);
  CHECK(c.gang(6, TopologyWish::required, "block").standing.verdict == Verdict{});
}

// Checks the rules in the comment of topology.h, by plain counting.
void check_promise(const Cluster& c, const JobClass& cls, const std::vector<bool>& able,
                   const std::optional<std::vector<Share>>& place) {
  const std::uint32_t nodes = cls.demand.min_nodes;
  const auto level_of = [&](const std::string& name) -> const std::vector<std::uint32_t>& {
    return name == "leaf" ? c.leaf : c.block;
  };
  const auto room = [&](const std::string& level) {
    std::map<std::uint32_t, std::uint32_t> count;
    for (std::uint32_t n = 0; n < able.size(); ++n)
      if (able[n]) ++count[level_of(level)[n]];
    return count;
  };
  const auto used = [&](const std::string& level) {
    std::map<std::uint32_t, std::uint32_t> count;
    for (const Share& s : *place) ++count[level_of(level)[s.node]];
    return count;
  };
  const auto tightest = [&](const std::string& level) {
    std::uint32_t best = ~0u;
    for (const auto& [domain, count] : room(level))
      if (count >= nodes) best = std::min(best, count);
    return best;
  };
  const auto free = static_cast<std::uint32_t>(std::count(able.begin(), able.end(), true));
  const TopologyWish wish = cls.key.shape.topology;
  const std::string& asked = cls.key.shape.topology_level;
  std::vector<std::string> levels = {"leaf", "block"};
  if (wish == TopologyWish::required && asked == "leaf") levels = {"leaf"};
  if (wish != TopologyWish::balanced) {
    for (const std::string& level : levels) {
      if (tightest(level) == ~0u) continue;
      REQUIRE(place.has_value());
      REQUIRE(used(level).size() == 1);
      REQUIRE(room(level)[used(level).begin()->first] == tightest(level));
      return;
    }
    if (wish == TopologyWish::required) {
      REQUIRE(!place.has_value());
      return;
    }
  }
  REQUIRE(place.has_value() == (free >= nodes));
  if (!place || wish != TopologyWish::balanced) return;
  for (std::uint32_t k = 1; k <= nodes; ++k) {
    std::uint32_t with = 0, with_more = 0;
    for (const auto& [domain, count] : room(asked)) {
      with += count >= nodes / k ? 1 : 0;
      with_more += count >= nodes / k + 1 ? 1 : 0;
    }
    if (with < k || with_more < nodes % k) continue;
    std::uint32_t least = ~0u, most = 0;
    for (const auto& [domain, count] : used(asked)) {
      least = std::min(least, count);
      most = std::max(most, count);
    }
    REQUIRE(used(asked).size() == k);
    REQUIRE(most - least <= 1);
    return;
  }
}

TEST_CASE("on random trees the domains are those that the rules say") {
  const char* text = std::getenv("GANTRY_LONG");
  const std::uint64_t cases = text != nullptr && *text == '1' ? 10'000 : 500;
  std::size_t placed = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    std::vector<std::uint32_t> leaves(2 + random() % 8);
    for (auto& l : leaves) l = static_cast<std::uint32_t>(1 + random() % 9);
    Cluster c(leaves, static_cast<std::uint32_t>(1 + random() % 3));
    std::vector<bool> able(c.leaf.size(), true);
    for (std::uint32_t n = 0; n < able.size(); ++n)
      if (random() % 3 == 0) {
        c.use(n, static_cast<std::uint16_t>(1 + random() % 8));
        able[n] = false;
      }
    const auto wish = static_cast<TopologyWish>(1 + random() % 3);
    const JobClass cls = c.gang(static_cast<std::uint32_t>(2 + random() % 12), wish,
                                random() % 2 == 0 ? "leaf" : "block");
    const auto place = c.find(cls);
    if (place) {
      std::set<std::uint32_t> nodes;
      for (const Share& s : *place) {
        REQUIRE(able[s.node]);
        nodes.insert(s.node);
      }
      REQUIRE(nodes.size() == cls.demand.min_nodes);
    }
    check_promise(c, cls, able, place);
    (place ? placed : refused) += 1;
  }
  CHECK(placed > cases / 3);
  CHECK(refused > cases / 20);
}

}  // namespace
}  // namespace gantry::sched::topology_test
