// Tests a fault of one GPU of 10,000: the jobs on all of its slices run again elsewhere within a
// second, and no other job ends. The test measures the controller's own CPU seconds; messages on
// the network would take a few milliseconds more.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <time.h>

#include <map>
#include <set>

#include "common/proto/attempt.h"
#include "common/proto/job_submit.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "controller.h"
#include "ctld/core/core.h"
#include "ctld/core/node_links.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/turn_out.h"
#include "ctld/sched/change.h"
#include "ctld/sched/cycle/schedule.h"
#include "tests/sched/mig/mig_world.h"

namespace gantry::core {
namespace {

constexpr std::uint32_t kNodes = 1250, kGpus = 8;  // 10,000 GPUs

double cpu_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

Config cluster(std::uint32_t nodes) {
  Config config = test::alike_nodes(nodes, 32, std::int64_t{512} << 30);
  for (NodeConfig& node : config.nodes) {
    node.gpus = kGpus;
    node.gpu_model = "h100";
  }
  return config;
}

// GPU 0 of the first and of the last node is in MIG mode, so it can be partitioned.
GpuInventory gpus_of(std::uint32_t node, std::uint32_t nodes) {
  GpuInventory out;
  out.driver = "550.54.15";
  out.geometries = {sched::h100_geometry()};
  for (std::uint32_t i = 0; i < kGpus; ++i) {
    GpuDevice& gpu = out.gpus.emplace_back();
    gpu.index = gpu.minor = i;
    gpu.uuid = fmt::format("GPU-{}-{}", node, i);
    gpu.model = "h100";
    gpu.mig = i == 0 && (node == 0 || node + 1 == nodes);
  }
  return out;
}

struct Cluster {
  explicit Cluster(std::uint32_t nodes) : core(cluster(nodes)) {
    REQUIRE(core.start(now));
    for (std::uint32_t i = 0; i < nodes; ++i) {
      proto::NodeRegister m;
      m.node = fmt::format("n{}", i + 1);
      m.boot_id = "boot";
      for (std::uint16_t cpu = 0; cpu < 32; ++cpu) m.cpus.push_back(cpu);
      m.memory = std::int64_t{512} << 30;
      m.gpus = gpus_of(i, nodes);
      core.step(now, FromNode{m.node, std::move(m)});
    }
    turn();
    for (const sched::Change& change : core.full_view()) replica.apply(change);
    knows_all = true;
  }
  // Nodes start and end at once what they are told to.
  void turn() {
    Turn turn = core.take_turn();
    if (knows_all)
      for (const sched::Change& change : turn.changes) replica.apply(change);
    for (Order& order : turn.orders) {
      if (const auto* accept = order.message.get_if<proto::NodeAccept>())
        sessions[order.node] = accept->stamp.session;
      if (const auto* end = order.message.get_if<proto::Terminate>())
        ended.emplace_back(order.node, end->key);
      if (const auto* launch = order.message.get_if<proto::Launch>())
        launched.emplace_back(order.node, launch->key);
    }
  }
  void say(const std::string& node, NodeMessage message) {
    core.step(now, FromNode{node, std::move(message)});
  }
  void plan() {
    core.step(now, PlanReady{sched::schedule(replica, now, {})});
    turn();
  }
  void submit(const std::string& name, std::uint32_t tasks, const std::string& slice) {
    proto::SubmitJob m;
    m.spec.name = name;
    m.spec.work_dir = "/home/alice";
    m.spec.shape.gpus_per_node = 1;
    m.spec.shape.gpu_slice = slice;
    m.spec.shape.memory_per_node = std::int64_t{1} << 30;
    if (tasks > 1) m.spec.array = ArraySpec{{{0, tasks - 1, 1}}, std::nullopt};
    m.script = "#!/bin/sh\nsleep 1000\n";
    ClientRequest r;
    r.connection = ConnectionId(1);
    r.who.owner.uid = Uid(1001);
    r.who.owner.user = "alice";
    r.message = std::move(m);
    core.step(now, std::move(r));
    turn();
  }

  Instant now{1'767'225'600'000'000};
  Core core;
  sched::Replica replica;
  bool knows_all = false;
  std::map<std::string, std::uint64_t> sessions;
  std::vector<std::pair<std::string, proto::AttemptKey>> ended, launched;
};

TEST_CASE("when one GPU of 10,000 fails, the jobs of its slices start elsewhere within a second") {
  Cluster c(kNodes);
  REQUIRE(c.sessions.size() == kNodes);
  c.submit("whole", kNodes * kGpus - 2, "");
  for (int i = 0; i < 20 && c.launched.size() < kNodes * kGpus - 2; ++i) c.plan();
  REQUIRE(c.launched.size() == kNodes * kGpus - 2);
  for (int i = 0; i < 7; ++i) c.submit("slice", 1, "1g.10gb");
  c.plan();
  REQUIRE(c.launched.size() == kNodes * kGpus - 2 + 7);
  std::set<std::string> on;
  for (std::size_t i = kNodes * kGpus - 2; i < c.launched.size(); ++i)
    on.insert(c.launched[i].first);
  REQUIRE(on.size() == 1);  // the planner fills one GPU before it uses another
  const std::string node = *on.begin();
  for (const auto& [name, key] : c.launched) c.say(name, proto::Started{key, c.now});
  c.turn();

  c.launched.clear();
  GpuInventory found = gpus_of(node == "n1" ? 0 : kNodes - 1, kNodes);
  found.gpus[0].faults = {{FaultDomain::gpu, "gpu-xid-79: fallen off the bus", 0, c.now}};
  const double began = cpu_seconds();
  c.say(node, proto::GpuReport{c.sessions.at(node), found});
  c.turn();
  CHECK(c.ended.size() == 7);
  for (const auto& [name, key] : c.ended) {
    CHECK(name == node);
    CHECK(c.core.state().jobs.at(key.job).cause.starts_with("gpu-xid-79: fallen off the bus on "));
    proto::ExitReport exit;
    exit.key = key;
    exit.cause = proto::ExitCause::ordered;
    exit.ended = c.now;
    c.say(name, std::move(exit));
  }
  c.turn();
  c.plan();
  const double took = cpu_seconds() - began;
  REQUIRE(c.launched.size() == 7);
  std::set<JobId> again;
  for (const auto& [name, key] : c.launched) {
    CHECK(name != node);
    CHECK(key.attempt == Attempt(2));
    again.insert(key.job);
  }
  CHECK(again.size() == 7);
  MESSAGE("from the event to the new launches: ", took * 1000, " ms of CPU");
  CHECK(took < 1.0);
  std::size_t running = 0;
  for (std::uint32_t job = 1; job <= kNodes * kGpus + 20; ++job)
    if (const Job* j = c.core.state().jobs.find(JobId(job)); j != nullptr)
      running += j->phase == Phase::running ? 1 : 0;
  CHECK(running == kNodes * kGpus - 2);
}

TEST_CASE("a fault of a slice ends that slice's job, and no new job starts on the same GPU") {
  Cluster c(2);
  for (int i = 0; i < 3; ++i) c.submit("slice", 1, "1g.10gb");
  c.plan();
  REQUIRE(c.launched.size() == 3);
  const std::string node = c.launched[0].first;
  GpuInventory found = gpus_of(node == "n1" ? 0 : 1, 2);
  const Job* hit = nullptr;
  for (std::uint32_t i = 0; i < 3; ++i) {
    CHECK(c.launched[i].first == node);
    c.say(node, proto::Started{c.launched[i].second, c.now});
    const Job& job = c.core.state().jobs.at(c.launched[i].second.job);
    const GpuGrant& grant = job.active->nodes[0].grant.devices.at(0);
    found.gpus[0].slices.push_back(
        {*grant.profile, grant.start, 7u + grant.start, 0, fmt::format("MIG-{}", grant.start)});
    if (i == 1) hit = &job;
    if (i == 1)
      found.gpus[0].faults = {
          {FaultDomain::slice, "gpu-xid-94: contained memory error", 7u + grant.start, c.now}};
  }
  c.turn();
  c.launched.clear();
  c.say(node, proto::GpuReport{c.sessions.at(node), found});
  c.turn();
  REQUIRE(c.ended.size() == 1);
  CHECK(c.ended[0].second.job == hit->id);
  CHECK(hit->cause.starts_with("gpu-xid-94: contained memory error on the slice at "));
  proto::ExitReport exit;
  exit.key = c.ended[0].second;
  exit.cause = proto::ExitCause::ordered;
  exit.ended = c.now;
  c.say(node, std::move(exit));
  c.turn();
  c.plan();
  REQUIRE(c.launched.size() == 1);
  CHECK(c.launched[0].second.job == c.ended[0].second.job);
  CHECK(c.launched[0].first != node);
  std::size_t running = 0;
  for (std::uint32_t job = 1; job <= 3; ++job)
    running += c.core.state().jobs.at(JobId(job)).phase == Phase::running ? 1 : 0;
  CHECK(running == 2);
}

// An attacker with a node's stolen key could send this; the planner of the whole cluster must not
// be harmed.
TEST_CASE(
    "GPUs that report the same number count as one, and more sockets than cores are not believed") {
  Cluster c(1);
  proto::NodeRegister m;
  m.node = "n1";
  m.boot_id = "boot";
  for (std::uint16_t cpu = 0; cpu < 32; ++cpu) m.cpus.push_back(cpu);
  m.memory = std::int64_t{512} << 30;
  m.sockets = UINT32_MAX;
  m.gpus = gpus_of(0, 1);
  for (GpuDevice& gpu : m.gpus.gpus) {
    gpu.index = 1;
    gpu.mig = false;
  }
  c.say("n1", std::move(m));
  c.turn();
  const double began = cpu_seconds();
  for (int i = 0; i < 2; ++i) {
    c.submit("whole", 1, "");
    c.plan();
  }
  CHECK(c.launched.size() == 1);
  CHECK(cpu_seconds() - began < 1);
}

TEST_CASE("a node's report about the GPUs of other nodes' jobs is ignored") {
  Cluster c(2);
  for (int i = 0; i < 2; ++i) c.submit("slice", 1, "7g.80gb");
  c.plan();
  REQUIRE(c.launched.size() == 2);
  const auto& [node, own] = c.launched[0];
  proto::Heartbeat beat;
  beat.session = c.sessions.at(node);
  beat.sent = c.now;
  for (const auto& [where, key] : c.launched) beat.gpus.emplace_back().key = key;
  for (int i = 0; i < 10'000; ++i) beat.gpus.emplace_back().key = own;
  c.say(node, std::move(beat));
  c.turn();
  const NodeId id{node == "n1" ? 0u : 1u};
  const auto& kept = c.core.runtime().links->all.at(id.value()).gpus;
  CHECK(kept.size() > 1'000);
  CHECK(kept.size() < 5'000);
  CHECK(std::all_of(kept.begin(), kept.end(), [&](const auto& gpu) { return gpu.key == own; }));
}

}  // namespace
}  // namespace gantry::core
