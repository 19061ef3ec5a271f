// Tests which jobs may share a node: anti-affinity keys, and nodes that are shared within a user or
// tenant only.
#include <doctest/doctest.h>

#include "ctld/sched/cycle/schedule.h"
#include "ctld/sched/place/place.h"

namespace gantry::sched::neighbours_test {
namespace {

// Six nodes of 8 cores in three racks; the partitions are tenants, the shares their users.
struct Cluster {
  Grid grid;
  Running running;
  Windows windows;
  Timeline timeline{grid, running, windows};
  Eligible eligible;
  std::uint64_t next_job = 1;

  Cluster() {
    grid.set_levels({{"rack", {}}});
    for (std::uint32_t n = 0; n < 6; ++n) {
      NodeChanged node;
      node.node = NodeId{n};
      node.name = "n" + std::to_string(n);
      node.available = true;
      node.cpus = {0, 1, 2, 3, 4, 5, 6, 7};
      node.memory = 1 << 20;
      node.domains = {n / 2};
      grid.change(node);
      eligible.node_changed(node);
    }
    for (std::uint32_t p = 0; p < 2; ++p) {
      PartitionChanged partition;
      partition.partition = PartitionId{p};
      for (std::uint32_t n = 0; n < 6; ++n) partition.nodes.push_back(NodeId{n});
      eligible.partition_changed(partition);
    }
    timeline.begin({});
  }
  JobClass cls(std::uint32_t nodes, std::uint32_t tenant = 0) {
    JobClass c;
    c.key.partition = PartitionId{tenant};
    JobShape& s = c.key.shape;
    s.min_nodes = s.max_nodes = s.tasks = nodes;
    s.memory_per_node = 1;
    return c;
  }
  JobClass with_key(std::uint32_t nodes, const char* level, std::uint32_t most) {
    JobClass c = cls(nodes);
    c.key.shape.anti_affinity = "app";
    c.key.shape.anti_affinity_level = level;
    c.key.shape.anti_affinity_most = most;
    return c;
  }
  // Returns the numbers of the nodes on which the job starts, or "none".
  std::string start(JobClass c, std::uint32_t user = kNoShare,
                    std::optional<Instant> ends_by = std::nullopt) {
    c.demand = demand_of(c.key.shape, *eligible.partition(c.key.partition));
    eligible.refresh(c, grid);
    const Neighbours neighbours(running, grid, c, user);
    const auto place = find_place(grid, timeline, eligible.nodes_of(c), c, nullptr,
                                  Neighbours::none(running, c) ? nullptr : &neighbours);
    if (!place) return "none";
    JobPlaced job;
    job.job = JobId{next_job++};
    job.grants = make_grants(grid, c, *place, kMigNever);
    job.partition = c.key.partition;
    if (user != kNoShare) job.share = ShareId{user};
    job.sharing = c.key.shape.sharing;
    job.anti_affinity = c.key.shape.anti_affinity;
    job.ends_by = ends_by;
    running.place(job, grid);
    std::string text;
    for (const Share& s : *place) text += std::to_string(s.node);
    return text;
  }
  void end(std::uint64_t job) {
    for (std::uint32_t n = 0; n < 6; ++n) running.release(JobId{job}, NodeId{n}, grid);
  }
};

TEST_CASE("jobs with one key keep apart by node or rack, beyond the number that may be together") {
  Cluster c;
  CHECK(c.start(c.with_key(1, "node", 1)) == "0");
  // the same rack is chosen, so that other racks stay whole
  CHECK(c.start(c.with_key(1, "node", 1)) == "1");
  CHECK(c.start(c.with_key(1, "node", 2)) == "0");
  CHECK(c.start(c.cls(1)) == "0");  // this job has no key
  CHECK(c.start(c.with_key(1, "rack", 3)) == "2");
  CHECK(c.start(c.with_key(1, "rack", 1)) == "4");
  CHECK(c.start(c.with_key(1, "rack", 1)) == "none");
  c.end(6);
  CHECK(c.start(c.with_key(1, "rack", 1)) == "4");
  CHECK(c.running.audit(c.grid) == "");
}

TEST_CASE("the reason names the job that may not be a neighbour") {
  Cluster c;
  JobClass cls = c.with_key(3, "rack", 1);
  CHECK(c.start(c.with_key(1, "rack", 1)) == "0");
  cls.demand = demand_of(cls.key.shape, *c.eligible.partition(PartitionId{0}));
  c.eligible.refresh(cls, c.grid);
  const Neighbours neighbours(c.running, c.grid, cls, kNoShare);
  const Verdict kept_away{Reason::anti_affinity, 0, 0, "app by rack"};
  CHECK(explain_place(c.grid, c.eligible.nodes_of(cls), cls, &neighbours) == kept_away);
  CHECK(!explain_place(c.grid, c.eligible.nodes_of(cls), cls, nullptr).has_value());
}

TEST_CASE("tasks of one job on several nodes keep apart from each other") {
  Cluster c;
  CHECK(c.start(c.with_key(3, "rack", 1)) == "024");
  CHECK(c.start(c.with_key(1, "rack", 1)) == "none");
  Cluster d;
  CHECK(d.start(d.with_key(4, "rack", 1)) == "none");
  CHECK(d.start(d.with_key(4, "rack", 2)) == "0123");
  CHECK(d.start(d.with_key(2, "node", 1)) == "45");
}

TEST_CASE("a node that is shared within a user or a tenant has no others' jobs") {
  Cluster c;
  JobClass user = c.cls(1), tenant = c.cls(1), other = c.cls(1, 1);
  user.key.shape.sharing = NodeSharing::same_user;
  tenant.key.shape.sharing = NodeSharing::same_tenant;
  CHECK(c.start(user, 7) == "0");
  CHECK(c.start(c.cls(1), 7) == "0");
  CHECK(c.start(c.cls(1), 8) == "1");  // a job of another user
  CHECK(c.start(user, 7) == "0");      // it does not go where user 8 is
  CHECK(c.start(tenant, 9) == "1");    // a node of the tenant, and not the first user's own node
  CHECK(c.start(other, 20) == "2");    // a job of another tenant
  CHECK(c.start(tenant, 9) == "1");
  CHECK(c.start(user, kNoShare) == "3");  // a job without a known user shares with nobody
  CHECK(c.start(user, kNoShare) == "4");
  c.end(1);
  CHECK(c.start(c.cls(1), 8) == "1");
  c.end(4);  // the last job that kept the first node for its user
  CHECK(c.start(other, 20) == "0");
  CHECK(c.running.audit(c.grid) == "");
}

TEST_CASE("jobs that a plan starts count as neighbours until they are forgotten") {
  Cluster c;
  c.running.add_guest({0, {PartitionId{0}, ShareId{1}}, NodeSharing::any, "app"});
  c.running.add_guest({1, {PartitionId{1}, ShareId{2}}, NodeSharing::same_tenant, ""});
  CHECK(c.start(c.with_key(1, "node", 1)) == "2");
  c.end(1);
  c.running.forget_guests();
  CHECK(c.start(c.with_key(1, "node", 1)) == "0");
}

// Makes one plan of queued jobs and returns "job:nodes" of each start.
std::string plan_of(Replica& replica, const std::vector<JobQueued>& jobs) {
  std::vector<NodeId> nodes;
  for (std::uint32_t n = 0; n < 3; ++n) {
    NodeChanged node;
    node.node = NodeId{n};
    node.name = "n" + std::to_string(n);
    node.available = true;
    node.cpus = {0, 1, 2, 3, 4, 5, 6, 7};
    node.memory = 1 << 20;
    replica.apply(node);
    nodes.push_back(node.node);
  }
  PartitionChanged partition;
  partition.name = "p";
  partition.nodes = nodes;
  replica.apply(partition);
  for (const JobQueued& job : jobs) replica.apply(job);
  const Plan plan = schedule(replica, Instant{1}, Policy{});
  std::string text;
  for (const Start& s : plan.starts) {
    text += std::to_string(s.job.value()) + ":";
    for (const NodeGrant& g : s.grants) text += std::to_string(g.node.value());
    text += " ";
  }
  for (const ClassVerdict& v : plan.verdicts)
    text += std::string(enum_name(v.of_head.reason)) + " ";
  CHECK(replica.audit() == "");
  return text;
}

TEST_CASE("within one plan, arrays with a key keep apart, and so do users with own nodes") {
  JobQueued job;
  job.key.shape.memory_per_node = 1;
  job.key.time_limit = minutes(10);
  JobQueued array = job, own = job, other = job, same = job;
  array.job = JobId{1};
  array.startable = 4;
  array.key.shape.anti_affinity = "app";
  array.key.shape.anti_affinity_level = "node";
  Replica with_key;
  CHECK(plan_of(with_key, {array}) == "1:0 1:1 1:2 AntiAffinity ");
  own.job = JobId{1};
  own.key.shape.sharing = NodeSharing::same_user;
  own.share = ShareId{4};
  other.job = JobId{2};
  other.share = ShareId{5};
  same.job = JobId{3};
  same.share = ShareId{4};
  for (JobQueued* j : {&own, &other, &same}) j->queued_since = Instant{j->job.value() == 1 ? 0 : 1};
  Replica sharing;
  CHECK(plan_of(sharing, {own, other, same}) == "1:0 2:1 3:0 ");
}

TEST_CASE("for a later start, a job that has ended by then is no neighbour") {
  Cluster c;
  const Instant soon{seconds(10).us}, later{seconds(20).us};
  for (int i = 0; i < 6; ++i)
    CHECK(c.start(c.with_key(1, "node", 1), kNoShare, i == 3 ? soon : later) != "none");
  JobClass cls = c.with_key(1, "node", 1);
  cls.demand = demand_of(cls.key.shape, *c.eligible.partition(PartitionId{0}));
  c.eligible.refresh(cls, c.grid);
  std::uint64_t steps = 0;
  c.timeline.begin({});
  const auto slot = c.timeline.earliest(cls, c.eligible.nodes_of(cls), {}, steps);
  REQUIRE(slot.has_value());
  CHECK(slot->start == soon);
  CHECK(slot->shares[0].node == 3);
}

}  // namespace
}  // namespace gantry::sched::neighbours_test
