// Tests what operators are told about GPUs whose MIG mode should change, on a small cluster.
#include "ctld/sched/verdict/mig_modes.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "ctld/sched/cycle/schedule.h"
#include "tests/sched/mig/mig_world.h"

namespace gantry::sched {
namespace {

constexpr Instant kNow{seconds(1'000'000).us};

// Nodes of 16 cores; "mw" has two GPUs, the first in MIG mode, the second whole.
class Cluster {
 public:
  explicit Cluster(std::vector<std::string> nodes) {
    partition_.name = "main";
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
      NodeChanged node;
      node.node = NodeId{n};
      node.name = fmt::format("n{}", n);
      node.available = true;
      for (std::uint16_t c = 0; c < 16; ++c) node.cpus.push_back(c);
      node.memory = std::int64_t{1} << 40;
      node.gpu_model = "h100";
      for (std::uint16_t g = 0; g < nodes[n].size(); ++g) {
        node.devices.push_back({g, -1, nodes[n][g] == 'm', "h100", {}, false, {}});
        if (nodes[n][g] == 'm') node.geometries = {h100_geometry()};
        if (nodes[n][g] == 'w') ++node.gpus;
      }
      node.gpus_when_well = node.gpus;
      if (n > 0) node.features = {"new"};
      replica.apply(node);
      nodes_.push_back(node);
      partition_.nodes.push_back(node.node);
    }
    replica.apply(partition_);
  }

  JobId submit(const std::string& profile, std::uint32_t count = 1, std::uint32_t startable = 1,
               const std::string& constraint = {}) {
    JobQueued q;
    q.job = JobId{++last_};
    q.key.shape.memory_per_node = 1 << 20;
    q.key.shape.gpus_per_node = count;
    q.key.shape.gpu_slice = profile;
    q.key.shape.constraint = constraint;
    q.key.time_limit = hours(1);
    q.startable = startable;
    q.queued_since = kNow;
    replica.apply(q);
    return q.job;
  }
  // Makes a plan and starts its jobs.
  void plan() {
    for (const Start& s : schedule(replica, kNow, Policy{}).starts) {
      JobPlaced placed;
      placed.job = s.job;
      placed.grants = s.grants;
      placed.ends_by = kNow + hours(1);
      replica.apply(JobUnqueued{s.job});
      replica.apply(placed);
    }
    schedule(replica, kNow, Policy{});
  }
  [[nodiscard]] std::string modes(std::optional<JobId> job = std::nullopt) const {
    std::string out;
    for (const ModeSwitch& s : plan_modes(replica, kNow, job))
      out += fmt::format("{}:{} {} for {} of {}{} ({}); ", s.name, s.gpu, s.on ? "on" : "off",
                         s.jobs, s.first.value(), s.profile.empty() ? "" : " " + s.profile,
                         s.only_way ? "only way" : "in use");
    return out;
  }
  void set_mode(std::uint32_t n, std::uint16_t gpu, bool mig) {
    NodeChanged& node = nodes_[n];
    node.gpus += node.devices[gpu].mig ? 1 : 0;
    node.gpus -= mig ? 1 : 0;
    node.gpus_when_well = node.gpus;
    node.devices[gpu].mig = mig;
    replica.apply(node);
  }

  Replica replica;

 private:
  std::vector<NodeChanged> nodes_;
  PartitionChanged partition_;
  std::uint64_t last_ = 0;
};

TEST_CASE("if no job waits, no MIG mode has to change") {
  Cluster c({"mw", "ww"});
  CHECK(c.modes() == "");
  c.submit("7g.80gb");
  c.plan();
  CHECK(c.modes() == "");
}

TEST_CASE("if slices are wanted, as many idle whole GPUs are named as are needed") {
  Cluster c({"mw", "ww"});
  c.submit("7g.80gb");
  c.plan();
  const JobId waits = c.submit("3g.40gb");
  c.plan();
  CHECK(c.modes() == "n0:1 on for 1 of 2 3g.40gb (in use); ");
  CHECK(c.modes(waits) == c.modes());
  CHECK(c.modes(JobId{1}) == "");
  c.submit("3g.40gb");
  c.submit("3g.40gb");  // three of these slices need a GPU and a half
  c.plan();
  CHECK(c.modes() == "n0:1 on for 3 of 2 3g.40gb (in use); n1:0 on for 3 of 2 3g.40gb (in use); ");
  c.set_mode(0, 1, true);
  c.plan();
  CHECK(c.modes() == "n1:0 on for 1 of 4 3g.40gb (in use); ");
}

TEST_CASE("an array counts by its tasks, and only nodes that its jobs may use are named") {
  Cluster c({"mw", "ww"});
  c.submit("7g.80gb");
  c.plan();
  c.submit("1g.10gb", 1, 9, "new");
  c.plan();
  // The drivers of n1 have not reported how an h100 can be partitioned, but n0's driver has.
  CHECK(c.modes() ==
        "n1:0 on for 9 of 2 1g.10gb (only way); n1:1 on for 9 of 2 1g.10gb (only "
        "way); ");
}

TEST_CASE("if whole GPUs are wanted, GPUs in MIG mode without a job on a slice are named") {
  Cluster c({"mm", "mw"});
  c.submit("1g.10gb", 1, 1, "new");  // it runs on GPU 0 of n1
  c.submit("", 1);                   // it runs on GPU 1 of n1
  c.plan();
  c.submit("", 2);
  c.plan();
  CHECK(c.modes() == "n0:0 off for 1 of 3 (only way); n0:1 off for 1 of 3 (only way); ");
}

TEST_CASE(
    "a job that waits for something other than slices does not ask for a switch of MIG mode") {
  Cluster c({"m", "ww"});
  c.submit("7g.80gb");
  c.plan();
  JobQueued q;
  q.job = JobId{9};
  q.key.shape.gpus_per_node = 1;
  q.key.shape.gpu_slice = "1g.10gb";
  q.key.shape.memory_per_node = 1 << 20;
  q.key.reservation = "course";
  c.replica.apply(q);
  c.plan();
  CHECK(c.modes() == "");
}

}  // namespace
}  // namespace gantry::sched
