// Tests that cheap operations stay cheap. It counts events, records and bytes, because times would
// vary.
#include <doctest/doctest.h>

#include "common/proto/job_change.h"
#include "common/proto/session.h"
#include "controller.h"
#include "ctld/core/apply/audit.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"

using namespace gantry;
using namespace gantry::core;
using namespace gantry::core::test;

namespace {

Config one_node() {
  return alike_nodes(1, 4, std::int64_t{8} << 30);
}

ClientRequest request(ClientMessage message) {
  ClientRequest r;
  r.connection = ConnectionId(1);
  r.who = identity("alice", 1001);
  r.message = std::move(message);
  return r;
}

}  // namespace

TEST_CASE("an array of a million tasks is one event, one record, one change") {
  Core core(one_node());
  REQUIRE(core.start(Instant{1}));
  core.take_turn();
  auto m = batch_job("sweep");
  m.spec.array = ArraySpec{{{0, 999'999, 1}}, std::nullopt};
  core.step(Instant{2}, request(std::move(m)));
  const Turn turn = core.take_turn();
  CHECK(turn.append.events.size() == 1);
  CHECK(turn.append.events[0].data.size() < 100);
  CHECK(turn.changes.size() == 1);
  CHECK(core.state().jobs.size() == 1);
  CHECK(core.state().counters.queued == 1'000'000);
  proto::CancelJobs cancel;
  cancel.filter.jobs = {{JobId(1), {{500, 999, 1}}}};
  core.step(Instant{3}, request(std::move(cancel)));
  CHECK(core.take_turn().append.events.size() == 1);
  CHECK(core.state().counters.queued == 999'500);
  CHECK(audit(core.state()).empty());
}

TEST_CASE("the record of a job in memory is at most 512 bytes") {
  CHECK(sizeof(Job) <= 512);
}

TEST_CASE("scripts and environments that are the same are stored once") {
  Core core(one_node());
  REQUIRE(core.start(Instant{1}));
  core.take_turn();
  std::size_t blobs = 0;
  for (int i = 0; i < 100; ++i) {
    core.step(Instant{2 + i}, request(batch_job("same")));
    blobs += core.take_turn().append.blobs.size();
  }
  CHECK(blobs == 1);
}

TEST_CASE("a submit that is sent again with the same request id makes no second job") {
  Core core(one_node());
  REQUIRE(core.start(Instant{1}));
  core.take_turn();
  for (int i = 0; i < 3; ++i) {
    auto m = batch_job("once");
    m.request_id = "r1";
    core.step(Instant{2 + i}, request(std::move(m)));
    const Turn turn = core.take_turn();
    CHECK(submitted(turn.replies.at(0).message) == JobId(1));
    CHECK(turn.append.events.size() == (i == 0 ? 1u : 0u));
  }
  CHECK(core.state().jobs.size() == 1);
}

TEST_CASE("task ranges that make no sense or would take too much work are refused") {
  Core core(one_node());
  REQUIRE(core.start(Instant{1}));
  core.take_turn();
  auto m = batch_job("sweep");
  m.spec.array = ArraySpec{{{0, 99, 1}}, std::nullopt};
  core.step(Instant{2}, request(std::move(m)));
  core.take_turn();
  const auto refused = [&](std::vector<IndexRange> tasks) {
    proto::CancelJobs cancel;
    cancel.filter.jobs = {{JobId(1), std::move(tasks)}};
    core.step(Instant{3}, request(std::move(cancel)));
    return core.take_turn().replies.at(0).message.is<proto::ErrorReply>();
  };
  CHECK(refused({{0, 9, 0}}));
  CHECK(refused({{9, 0, 1}}));
  CHECK(refused(std::vector<IndexRange>(20'000, {0, 1, 1})));
  CHECK(refused(std::vector<IndexRange>(9'000, {0, 4'000'000, 2})));
  CHECK_FALSE(refused({{0, 4'000'000, 2}}));
  CHECK(core.state().counters.queued == 50);
}

TEST_CASE("times at the end of the representable range are refused") {
  Core core(one_node());
  REQUIRE(core.start(Instant{1}));
  core.take_turn();
  for (const std::int64_t us : {INT64_MAX, INT64_MIN}) {
    auto m = batch_job("late");
    m.spec.begin = Instant{us};
    core.step(Instant{2}, request(m));
    m.spec.begin.reset();
    m.spec.deadline = Instant{us};
    core.step(Instant{2}, request(m));
    m.spec.deadline.reset();
    m.spec.time_limit = Duration{us};
    core.step(Instant{2}, request(m));
    for (const Reply& reply : core.take_turn().replies)
      CHECK(reply.message.is<proto::ErrorReply>());
  }
  CHECK(core.state().jobs.size() == 0);
}
