// Tests how the controller finds out that its store is an old copy: from the high-water mark beside
// the store, from what a node's registration proves, and from the list of attempts that are newer
// than the store. tests/e2e/old_store_test.py tests the same with real daemons.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "common/proto/attempt.h"
#include "common/proto/job_change.h"
#include "common/proto/job_submit.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "common/proto/session.h"
#include "ctld/age/accept.h"
#include "ctld/age/gate.h"
#include "ctld/age/high_water.h"
#include "ctld/age/newer.h"
#include "ctld/age/strangers.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"
#include "ctld/sched/change.h"
#include "ctld/sched/plan.h"
#include "ctld/store/lmdb_store.h"
#include "ctld/store/store.h"

using namespace gantry;
using namespace gantry::age;

namespace {

struct Directory {
  Directory() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string path = "/tmp/gantry-age.XXXXXX";
};

proto::NodeRegister registration(std::uint64_t epoch,
                                 std::initializer_list<proto::AttemptKey> attempts = {}) {
  proto::NodeRegister out;
  out.highest_epoch = Epoch(epoch);
  for (const proto::AttemptKey& key : attempts)
    out.attempts.push_back({key, proto::AttemptPhase::running});
  return out;
}

// A controller with one node, whose store is in a directory.
struct Controller {
  explicit Controller(const std::string& directory) : config(config_of(directory)), core(config) {
    auto opened = store::LmdbStore::open({.directory = directory, .map_bytes = 1 << 24});
    REQUIRE(opened);
    store = std::move(*opened);
    store::LoadVisitor visitor;
    visitor.record = [&](store::Table table, std::string_view key, std::string_view value) {
      return core.load_record(table, key, value);
    };
    visitor.spec = [&](JobId job, std::string_view spec) { return core.load_spec(job, spec); };
    visitor.blob = [](const store::Digest&, std::size_t) { return Result<void>{}; };
    visitor.event = [&](EventSeq seq, std::string_view data) {
      return core.replay(store::JournalEntry{seq, Bytes(data)});
    };
    REQUIRE(store->load(visitor));
    REQUIRE(core.start(now));
    turn();
    proto::NodeRegister message;
    message.node = "n1";
    message.boot_id = "boot";
    message.cpus = {0, 1};
    message.memory = std::int64_t{1} << 30;
    core.step(now, core::FromNode{"n1", std::move(message)});
    turn();
    core.step(now, core::FromNode{"n1", proto::Heartbeat{session, 0, 0, {}}});
    turn();
  }
  static Config config_of(const std::string& directory) {
    Config c;
    c.controller.state_dir = directory;
    c.controller.store_map = 1 << 24;
    NodeConfig& node = c.nodes.emplace_back();
    node.name = "n1";
    node.cpus = 2;
    node.memory = std::int64_t{1} << 30;
    PartitionConfig& partition = c.partitions.emplace_back();
    partition.name = "main";
    partition.is_default = true;
    partition.nodes = {"n1"};
    return c;
  }
  void submit(std::uint64_t id, bool requeue) {
    proto::SubmitJob message;
    message.request_id = std::to_string(id);
    message.script = "#!/bin/sh\n";
    message.spec.work_dir = "/";
    message.spec.requeue = requeue;
    core::Identity who;
    who.owner.uid = Uid(1001);
    who.owner.user = "alice";
    core.step(now, core::ClientRequest{core::ConnectionId(1), id, who, std::move(message)});
    turn();
  }
  // Submits a job on one CPU; its start order is sent to the node.
  void place(std::uint64_t id, bool requeue) {
    submit(id, requeue);
    sched::NodeGrant grant;
    grant.cpus = {static_cast<std::uint16_t>(id - 1)};
    grant.memory = 1 << 20;
    sched::Plan plan;
    plan.starts.push_back({JobId(id), {std::move(grant)}});
    core.step(now, core::PlanReady{std::move(plan)});
    turn();
  }
  void turn() {
    core::Turn turn = core.take_turn();
    REQUIRE(store->append(turn.append));
    for (const core::Order& order : turn.orders) {
      launches += order.message.is<proto::Launch>() ? 1 : 0;
      if (const auto* accept = order.message.get_if<proto::NodeAccept>())
        session = accept->stamp.session;
    }
  }
  [[nodiscard]] const core::Job& job(std::uint64_t id) const {
    return core.state().jobs.at(JobId(id));
  }

  Config config;
  core::Core core;
  std::unique_ptr<store::LmdbStore> store;
  Instant now{hours(500'000).us};
  std::uint64_t session = 0;
  int launches = 0;
};

}  // namespace

TEST_CASE("the mark is read back as written, and a damaged mark is reported") {
  Directory directory;
  auto none = load_high_water(directory.path);
  REQUIRE(none);
  CHECK_FALSE(none->has_value());
  const HighWater mark{Epoch(7), EventSeq(900), JobId(16'400), Epoch(5), true};
  REQUIRE(save_high_water(directory.path, mark));
  const auto loaded = load_high_water(directory.path);
  REQUIRE(loaded);
  CHECK(*loaded == mark);
  for (const char* damaged : {"", "gantry high-water mark 1\nepoch 7\nevent x\n",
                              "gantry high-water mark 1\nepoch 7\nevents 1\njob 1\naccepted 0\n"}) {
    std::ofstream(high_water_path(directory.path), std::ios::trunc) << damaged;
    const auto read = load_high_water(directory.path);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::malformed);
    CHECK(read.error().message.starts_with(high_water_path(directory.path) + " is damaged: "));
  }
  CHECK(save_high_water("/nowhere", mark).error().code == ErrorCode::io_error);
}

TEST_CASE("a store is behind the mark when its controller start or its last event is older") {
  const HighWater mark{Epoch(7), EventSeq(900), JobId(16'400), Epoch(0), false};
  CHECK(behind(mark, Epoch(7), EventSeq(900)).empty());
  CHECK(behind(mark, Epoch(8), EventSeq(901)).empty());
  CHECK(behind(mark, Epoch(7), EventSeq(899)) ==
        "it ends with event 899, and event 900 has been there");
  CHECK(behind(mark, Epoch(6), EventSeq(950)) ==
        "it is of controller start 6, and start 7 has been there");
  // A new, empty store was put in place of the old one.
  CHECK_FALSE(behind(mark, Epoch(0), EventSeq(0)).empty());
}

TEST_CASE("a later start or a higher job id in a registration proves that the store is old") {
  core::State state;
  state.epoch = Epoch(4);
  state.last_job = JobId(20);
  CHECK(newer_than_us(state, registration(3), false).empty());
  CHECK(newer_than_us(state, registration(4), true).empty());
  CHECK(newer_than_us(state, registration(4), false) ==
        "it has heard of controller start 4, and this is start 4 of the store");
  CHECK(newer_than_us(state, registration(5), true) ==
        "it has heard of controller start 5, and this is start 4 of the store");
  // A job id that this store gave out proves nothing, even if the store has forgotten the job
  // since.
  CHECK(newer_than_us(state, registration(3, {{JobId(20), Attempt(3)}}), false).empty());
  CHECK(newer_than_us(state, registration(3, {{JobId(21), Attempt(1)}}), false) ==
        "it has job 21, and the last job of the store is 20");
  // The highest id that a node was told to start is a proof even when the job is no longer there.
  proto::NodeRegister told = registration(3);
  told.highest_job = JobId(20);
  CHECK(newer_than_us(state, told, false).empty());
  told.highest_job = JobId(21);
  CHECK(newer_than_us(state, told, false) ==
        "it was once told to start job 21, and the last job of the store is 20");
}

TEST_CASE("attempts that the store does not know are listed until they have ended") {
  Directory directory;
  auto strangers = Strangers::load(directory.path);
  REQUIRE(strangers);
  const proto::AttemptKey a{JobId(12), Attempt(1)};
  const proto::AttemptKey b{JobId(14), Attempt(2)};
  CHECK(*strangers->add("n1", a));
  CHECK_FALSE(*strangers->add("n1", a));
  CHECK(*strangers->add("n1", b));
  CHECK(*strangers->add("n10", a));
  const auto again = Strangers::load(directory.path);
  REQUIRE(again);
  CHECK(again->on("n1") == "12.1 14.2");
  CHECK(again->has("n10", a));
  CHECK(again->of("n1") == std::vector{a, b});
  CHECK_FALSE(again->any_on("n2"));
  CHECK(*strangers->remove("n1", a));
  CHECK_FALSE(*strangers->remove("n1", a));
  CHECK(strangers->any_on("n1"));
  CHECK(*strangers->remove("n1", b));
  CHECK_FALSE(strangers->any_on("n1"));
  std::ofstream(directory.path + "/strangers", std::ios::trunc) << "n1 twelve 1\n";
  CHECK(Strangers::load(directory.path).error().code == ErrorCode::malformed);
}

TEST_CASE("an accepted store does not start a job again that its node does not list") {
  for (const bool folded : {false, true}) {
    CAPTURE(folded);
    Directory directory;
    EventSeq last;
    {
      Controller copied(directory.path);
      copied.place(1, false);
      copied.place(2, true);
      REQUIRE(copied.launches == 2);
      if (folded) REQUIRE(copied.store->fold(copied.core.take_fold()));
      last = copied.store->stats().last;
    }
    const HighWater mark{Epoch(1), EventSeq(last.value() + 9), JobId(9), Epoch(0), false};
    REQUIRE(save_high_water(directory.path, mark));
    const auto accepted = accept_old_store(Controller::config_of(directory.path));
    REQUIRE(accepted);
    CHECK(accepted->epoch == Epoch(2));
    CHECK(accepted->event == last);
    CHECK(accepted->job == JobId(9 + kJobMargin));
    const Controller after(directory.path);
    CHECK(after.core.epoch() == Epoch(3));
    CHECK(after.launches == 0);
    CHECK(after.job(1).outcome == Outcome::node_fail);
    CHECK(after.job(1).cause == "n1 has lost every trace of the job");
    CHECK(after.job(2).phase == Phase::queued);
    CHECK(after.job(2).restarts == 1);
  }
}

TEST_CASE("waiting jobs that a node claims to have started are held, as many as it has cores") {
  Directory directory;
  Controller old(directory.path);
  for (std::uint64_t id = 1; id <= 4; ++id) old.submit(id, false);
  Gate::Doors doors;
  doors.save = [](const HighWater&) { return Result<void>{}; };
  doors.say = [](LogLevel, const std::string&) {};
  doors.order = [&](core::ClientRequest request) {
    old.core.step(old.now, std::move(request));
    old.turn();
  };
  Gate gate({}, Strangers(), 3, "the store", std::move(doors));
  const auto claim = [&](std::initializer_list<std::uint64_t> jobs) {
    proto::NodeRegister message = registration(9);
    for (const std::uint64_t id : jobs)
      message.attempts.push_back({{JobId(id), Attempt(1)}, proto::AttemptPhase::running});
    core::NodeMessage any = std::move(message);
    const auto admitted = gate.admit(old.core.state(), "n1", any);
    REQUIRE(admitted);
    CHECK_FALSE(*admitted);
  };
  claim({1});
  claim({1, 3, 4});
  CHECK(gate.claims() == 1);
  CHECK(old.job(1).hold == core::Hold::admin);
  CHECK(old.job(2).hold == core::Hold::none);
  CHECK(old.job(3).hold == core::Hold::admin);
  CHECK(old.job(4).hold == core::Hold::none);  // the node has two cores
}

TEST_CASE("a job whose older attempt never started is held if a node claims a newer attempt") {
  Directory directory;
  Controller old(directory.path);
  old.place(1, true);
  old.place(2, true);
  Gate::Doors doors;
  doors.save = [](const HighWater&) { return Result<void>{}; };
  doors.say = [](LogLevel, const std::string&) {};
  doors.order = [&](core::ClientRequest request) { old.core.step(old.now, std::move(request)); };
  Gate gate({}, Strangers(), 3, "the store", std::move(doors));
  proto::NodeRegister message = registration(9);
  message.attempts.push_back({{JobId(1), Attempt(2)}, proto::AttemptPhase::exited});
  core::NodeMessage any = std::move(message);
  REQUIRE(gate.admit(old.core.state(), "n1", any));
  CHECK(old.job(1).phase == Phase::starting);
  CHECK(old.job(1).hold == core::Hold::none);

  core::Identity admin;
  admin.role = proto::Role::admin;
  for (const std::uint64_t id : {1, 2}) {
    old.core.step(old.now, core::ClientRequest{core::ConnectionId(1), 10 + id, admin,
                                               proto::RequeueJobs{{{JobId(id), {}, {}}}}});
    proto::ExitReport never;
    never.key = {JobId(id), Attempt(1)};
    never.cause = proto::ExitCause::ordered;
    old.core.step(old.now, core::FromNode{"n1", std::move(never)});
    old.turn();
    REQUIRE(gate.turn_taken(old.core.state()));
    old.turn();
  }
  CHECK(old.job(1).phase == Phase::queued);
  CHECK(old.job(1).hold == core::Hold::admin);
  CHECK(old.job(2).phase == Phase::queued);
  CHECK(old.job(2).hold == core::Hold::none);
}
