// Tests how much one message of a node, or of a user, may leave behind in the store and in replies.
// A text of a message is as long as the message, unless somebody bounds it.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/codec/texts.h"
#include "common/limits.h"
#include "common/proto/history.h"
#include "common/proto/job_change.h"
#include "common/proto/steps.h"
#include "controller.h"

namespace gantry::core::test::bounds_test {

constexpr std::size_t kMany = 4 << 20;  // bytes of a text
const Identity kAlice = identity("alice", 1000);

Config config() {
  return alike_nodes(1, 4, std::int64_t{16} << 30);
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

GpuInventory gpus(std::size_t count, std::size_t faults, std::size_t text) {
  GpuInventory all;
  for (std::size_t i = 0; i < count; ++i) {
    GpuDevice gpu;
    gpu.index = static_cast<std::uint32_t>(i);
    gpu.uuid = fmt::format("GPU-{}", i);
    gpu.name = gpu.model = "h100";
    for (std::size_t k = 0; k < faults; ++k)
      gpu.faults.push_back({FaultDomain::gpu, std::string(text, 'x'), 0, Instant{}});
    all.gpus.push_back(std::move(gpu));
  }
  return all;
}

// Bytes of the texts of a node that go into the store.
std::size_t stored_facts(const Controller& c) {
  std::size_t bytes = 0;
  codec::each_text(c.state().node(NodeId(0)).facts,
                   [&](std::string_view, const std::string& text) { bytes += text.size(); });
  return bytes;
}

std::uint64_t session(const Controller& c) {
  return (c.state().epoch.value() << 32) | 1;
}

// A job of alice that runs on n1.
JobId running(Controller& c) {
  proto::SubmitJob m;
  m.spec.name = "job";
  m.spec.work_dir = "/home/alice";
  m.script = "#!/bin/sh\ntrue\n";
  const JobId id = c.ask(kAlice, std::move(m)).get<proto::SubmitReply>().job;
  sched::Plan plan;
  plan.starts.push_back({id, {{NodeId(0), {0}, std::int64_t{1} << 30, 0, 0, 1, {}, {}}}});
  c.step(PlanReady{std::move(plan)});
  REQUIRE(c.state().jobs.at(id).placed());
  c.step(FromNode{"n1", proto::Started{{id, c.state().jobs.at(id).attempt}, Instant{}}});
  REQUIRE(c.state().jobs.at(id).phase == Phase::running);
  return id;
}

TEST_CASE("what a node says of itself stays small in the store, however long its texts are") {
  Controller c(config());
  proto::NodeRegister m = registration();
  m.version = m.runtime = m.address = std::string(kMany, 'x');
  m.layers_off.assign(1000, std::string(2'000, 'x'));
  m.gpus = gpus(4, 1, kMany / 4);
  c.step(FromNode{"n1", std::move(m)});
  CHECK(stored_facts(c) < 512 << 10);
  c.step(FromNode{"n1", registration()});
  CHECK(stored_facts(c) < 1000);
}

TEST_CASE("a report of GPUs is held to what a node can have, in each text and in all") {
  Controller c(config());
  c.step(FromNode{"n1", registration()});
  const std::uint64_t now = session(c);
  const auto& facts = c.state().node(NodeId(0)).facts.gpus;
  c.step(FromNode{"n1", proto::GpuReport{now, gpus(2, 1, kMany)}});
  CHECK(facts.gpus.size() == 2);
  CHECK(stored_facts(c) < 16 << 10);
  c.step(FromNode{"n1", proto::GpuReport{now, gpus(64, 3, 40)}});  // as a broken node may send it
  CHECK(facts.gpus.size() == 64);
  CHECK(facts.gpus[63].faults.size() == 3);
  c.step(FromNode{"n1", proto::GpuReport{now, gpus(16, 200, 5'000)}});
  CHECK(facts.gpus.empty());
  CHECK(facts.why_none ==
        "the node's report of its GPUs has 16000214 bytes of texts and 3216 parts; at most 262144 "
        "and 16384 are taken");
  c.step(FromNode{"n1", proto::GpuReport{now, gpus(20'000, 0, 0)}});
  CHECK(facts.gpus.empty());
  CHECK(stored_facts(c) < 1000);
}

TEST_CASE("the report of an end keeps a sentence and names, not megabytes of them") {
  Controller c(config());
  c.step(FromNode{"n1", registration()});
  const JobId id = running(c);
  proto::ExitReport m;
  m.key = {id, c.state().jobs.at(id).attempt};
  m.message = std::string(kMany, 'x');
  m.usage.gpus.resize(600);
  for (GpuUsage& gpu : m.usage.gpus) gpu.name = std::string(5'000, 'x');
  c.step(FromNode{"n1", std::move(m)});
  const Job& job = c.state().jobs.at(id);
  CHECK(job.phase == Phase::ended);
  CHECK(job.cause.size() < 8 << 10);
  for (const GpuUsage& gpu : job.active->usage.gpus) CHECK(gpu.name.size() <= 128);
}

TEST_CASE("one heartbeat notes one checkpoint of a job, however many it lists") {
  Controller c(config());
  c.step(FromNode{"n1", registration()});
  const JobId id = running(c);
  c.pass(hours(24));
  proto::Heartbeat beat{session(c), 0.5, 1 << 30, c.now()};
  for (std::int64_t i = 20'000; i > 0; --i)
    beat.checkpoints.push_back({{id, c.state().jobs.at(id).attempt}, c.now() - seconds(3 * i)});
  const EventSeq before = c.last_event();
  c.step(FromNode{"n1", std::move(beat)});
  CHECK(c.last_event().value() - before.value() < 10);
  CHECK(c.state().jobs.at(id).active->checkpoint.has_value());
}

TEST_CASE("a step may name a node twice, but not endlessly, and refusals are short") {
  Controller c(config());
  c.step(FromNode{"n1", registration()});
  const JobId id = running(c);
  proto::StepCreate m;
  m.job = id;
  m.shape.nodelist = {"n1", "n1", "n1"};
  const auto granted = c.ask(kAlice, m).get<proto::StepGranted>();
  const auto permission = codec::decode<proto::StepPermission>(granted.permission);
  REQUIRE(permission);
  CHECK(permission->nodes.size() == 1);
  m.shape.nodelist.assign(kMaxJobNodes + 1, "n1");
  const auto refused = c.ask(kAlice, m).get<proto::ErrorReply>();
  CHECK(refused.message == "the step names 65537 nodes; at most 65536 may be named");
  m.shape.nodelist = {std::string(kMany, 'x')};
  CHECK(c.ask(kAlice, m).get<proto::ErrorReply>().message.size() < 100 << 10);
}

TEST_CASE("the history's row of an array that is cancelled in pieces stays small") {
  constexpr std::uint32_t kTasks = 200'000;
  Controller c(config());
  const auto cancelled = [&](std::vector<IndexRange> tasks) {
    proto::SubmitJob m;
    m.spec.name = "sweep";
    m.spec.work_dir = "/home/alice";
    m.script = "#!/bin/sh\ntrue\n";
    m.spec.array = ArraySpec{{{0, kTasks - 1, 1}}, std::nullopt};
    const JobId id = c.ask(kAlice, std::move(m)).get<proto::SubmitReply>().job;
    proto::CancelJobs cancel;
    cancel.filter.jobs = {{id, std::move(tasks)}};
    c.ask(kAlice, cancel);
    const auto rows = c.fold();
    REQUIRE(rows.size() == 1);
    const auto row = codec::decode<proto::HistoryRow>(rows[0].data);
    REQUIRE(row);
    CHECK(row->row.job == id);
    cancel.filter.jobs = {{id, {}}};
    c.ask(kAlice, cancel);
    (void)c.fold();
    return row->row.array_tasks;
  };
  CHECK(cancelled({{1, 1, 1}, {3, 3, 1}, {5, 5, 1}}) == "1,3,5");
  CHECK(cancelled({{1, kTasks - 1, 2}}) == "1-199999:2");
  const std::string pieces =
      cancelled({{0, kTasks - 1, 7}, {1, kTasks - 1, 11}, {0, kTasks - 1, 13}});
  CHECK(pieces.size() <= 16 << 10);
  CHECK_MESSAGE(pieces.starts_with("0-1,7,12-14,"), pieces.substr(0, 60));
  CHECK(pieces.ends_with(",..."));
}

}  // namespace gantry::core::test::bounds_test
