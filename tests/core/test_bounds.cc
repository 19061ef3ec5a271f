// What one message of a node, or of a user, may leave behind in the store and in replies: a text of
// a message is as long as the message, unless somebody bounds it.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/limits.h"
#include "controller.h"

namespace gantry::core::test::bounds_test {

constexpr std::size_t kMany = 4 << 20;  // bytes of a text
const Identity kAlice = identity("alice", 1000);

Config config() {
  Config c;
  NodeConfig node;
  node.name = "n1";
  node.cpus = 4;
  node.memory = std::int64_t{16} << 30;
  c.nodes.push_back(node);
  PartitionConfig p;
  p.name = "main";
  p.is_default = true;
  p.nodes = {"n1"};
  c.partitions.push_back(p);
  return c;
}

proto::NodeRegister registration() {
  proto::NodeRegister m;
  m.node = "n1";
  m.boot_id = "boot";
  m.version = "0.1.0";
  m.cpus = {0, 1, 2, 3};
  m.memory = std::int64_t{16} << 30;
  return m;
}

// A job of alice that runs on n1.
JobId running(Controller& c) {
  proto::SubmitJob m;
  m.spec.name = "job";
  m.spec.work_dir = "/home/alice";
  m.script = "#!/bin/sh\ntrue\n";
  const JobId id = std::get<proto::SubmitReply>(c.ask(kAlice, std::move(m))).job;
  sched::Plan plan;
  plan.starts.push_back({id, {{NodeId(0), {0}, std::int64_t{1} << 30, 0, 0, 1, {}, {}}}});
  c.step(PlanReady{std::move(plan)});
  REQUIRE(c.state().jobs.at(id).placed());
  c.step(FromNode{"n1", proto::Started{{id, c.state().jobs.at(id).attempt}, Instant{}}});
  REQUIRE(c.state().jobs.at(id).phase == Phase::running);
  return id;
}

TEST_CASE("a step may name a node twice, but not endlessly, and refusals are short") {
  Controller c(config());
  c.step(FromNode{"n1", registration()});
  const JobId id = running(c);
  proto::StepCreate m;
  m.job = id;
  m.shape.nodelist = {"n1", "n1", "n1"};
  const auto granted = std::get<proto::StepGranted>(c.ask(kAlice, m));
  const auto permission = codec::decode<proto::StepPermission>(granted.permission);
  REQUIRE(permission);
  CHECK(permission->nodes.size() == 1);
  m.shape.nodelist.assign(kMaxJobNodes + 1, "n1");
  const auto refused = std::get<proto::ErrorReply>(c.ask(kAlice, m));
  CHECK(refused.message == "the step names 65537 nodes; at most 65536 may be named");
  m.shape.nodelist = {std::string(kMany, 'x')};
  CHECK(std::get<proto::ErrorReply>(c.ask(kAlice, m)).message.size() < 100 << 10);
}

}  // namespace gantry::core::test::bounds_test
