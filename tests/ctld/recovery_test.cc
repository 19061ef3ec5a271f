// Tests that the load by two threads builds the same state as the load by one, and that it reports
// damage and ends. tests/e2e/kill_test.py does the same with a real controller.
#include "ctld/recovery.h"

#include <doctest/doctest.h>

#include "../core/controller.h"
#include "common/proto/job_change.h"
#include "ctld/core/apply/audit.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"
#include "ctld/sched/change.h"
#include "ctld/sched/cycle/replica.h"
#include "ctld/store/store.h"

using namespace gantry;
using namespace gantry::core::test;

namespace {

core::ClientRequest request(core::ClientMessage message) {
  core::ClientRequest r;
  r.connection = core::ConnectionId(1);
  r.who = identity("alice", 1001);
  r.message = std::move(message);
  return r;
}

// A store with jobs of several classes, an array with tasks of their own, ended jobs, and events
// after the last fold.
struct Filled {
  Config config = alike_nodes(2, 4, std::int64_t{8} << 30);
  store::MemoryStore store;
  std::unique_ptr<core::Core> core = std::make_unique<core::Core>(config);
  Instant now{1};

  Instant tick() { return now = Instant{now.us + 1}; }

  void turn() {
    core::Turn turn = core->take_turn();
    REQUIRE(store.append(turn.append));
  }
  void fold() { REQUIRE(store.fold(core->take_fold())); }
  void submit(int i) {
    auto m = batch_job("job" + std::to_string(i));
    m.spec.shape.cpus_per_task = 1 + static_cast<std::uint32_t>(i % 3);
    m.spec.comment = std::string(static_cast<std::size_t>(i % 7), 'c');
    if (i % 50 == 0) m.spec.array = ArraySpec{{{0, 9, 1}}, std::nullopt};
    core->step(tick(), request(std::move(m)));
    turn();
  }
  void cancel(std::uint64_t job, std::vector<IndexRange> tasks = {}) {
    proto::CancelJobs cancel;
    cancel.filter.jobs = {{JobId(job), std::move(tasks)}};
    core->step(tick(), request(std::move(cancel)));
    turn();
  }
  Filled() {
    REQUIRE(core->start(now));
    turn();
    for (int i = 0; i < 1000; ++i) submit(i);
    cancel(1, {{3, 5, 1}});
    cancel(2);
    fold();
    for (int i = 1000; i < 1100; ++i) submit(i);
    cancel(700);
  }
};

std::vector<JobId> waiting(const sched::Replica& replica, std::uint64_t last) {
  std::vector<JobId> out;
  for (std::uint64_t id = 1; id <= last; ++id)
    if (replica.queue().find(JobId(id))) out.emplace_back(id);
  return out;
}

}  // namespace

TEST_CASE("two threads load what one loads") {
  const Filled filled;
  core::Core core(filled.config);
  REQUIRE(ctld::recover(core, filled.store));
  CHECK(records_text(core.state()) == records_text(loaded(filled.config, filled.store)->state()));
  CHECK(records_text(core.state()) == records_text(filled.core->state()));
  REQUIRE(core.start(filled.now));
  CHECK(core.audit().empty());
}

TEST_CASE("a new scheduler gets the waiting jobs of a class together, and the same queue") {
  const Filled filled;
  core::Core core(filled.config);
  REQUIRE(ctld::recover(core, filled.store));
  REQUIRE(core.start(filled.now));
  sched::Replica together, one_by_one;
  std::size_t changes = 0;
  core.full_view([&](const std::vector<sched::Change>& some) {
    for (const sched::Change& change : some) together.apply(change);
    changes += some.size();
  });
  const std::vector<sched::Change> all = core.full_view();
  for (const sched::Change& change : all) one_by_one.apply(change);
  CHECK(changes < 20);
  CHECK(all.size() > 1000);
  CHECK(together.audit().empty());
  CHECK(together.waiting() == one_by_one.waiting());
  CHECK(waiting(together, 1100) == waiting(one_by_one, 1100));
  // A second time nothing changes.
  core.full_view([&](const std::vector<sched::Change>& some) {
    for (const sched::Change& change : some) together.apply(change);
  });
  CHECK(together.waiting() == one_by_one.waiting());
  CHECK(together.audit().empty());
}

TEST_CASE("a load that fails on either side ends with the error of that side") {
  Filled filled;
  SUBCASE("a job's record that cannot be read") {
    store::FoldBatch fold{filled.store.stats().applied, {}, {}, {}, {}};
    fold.records.push_back({store::Table::job_state, store::ordered_key(500), Bytes("no record")});
    REQUIRE(filled.store.fold(fold));
    core::Core core(filled.config);
    const auto done = ctld::recover(core, filled.store);
    REQUIRE(!done);
    CHECK(done.error().message.find("record of job 500 cannot be read") != std::string::npos);
  }
  SUBCASE("an account's record that cannot be read, far ahead of the end") {
    store::FoldBatch fold{filled.store.stats().applied, {}, {}, {}, {}};
    fold.records.push_back({store::Table::document, "x", Bytes("no record")});
    REQUIRE(filled.store.fold(fold));
    core::Core core(filled.config);
    const auto done = ctld::recover(core, filled.store);
    REQUIRE(!done);
    CHECK(done.error().message.find("tenancy document cannot be read") != std::string::npos);
  }
}
