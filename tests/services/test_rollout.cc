// How a changed version comes in place of the one before it.
#include <doctest/doctest.h>

#include "common/proto/gate.h"
#include "ctld/scale/rollout.h"

namespace {

using namespace gantry;
using namespace gantry::scale;
using Kind = RolloutStep::Kind;

constexpr Duration kTarget = milliseconds(100);

RolloutFacts facts(std::uint32_t wanted, std::uint32_t fresh_ready) {
  RolloutFacts f;
  f.wanted = wanted;
  f.now = Instant{hours(1).us};
  f.fresh.ready = fresh_ready;
  f.fresh.part = 1000;
  f.before.ready = wanted;
  return f;
}

std::vector<std::uint64_t> times(std::uint64_t count, Duration time) {
  std::vector<std::uint64_t> out(kTimeBuckets);
  std::size_t at = 0;
  while (proto::kLatencyBuckets[at] < static_cast<std::uint64_t>(time.us)) ++at;
  out[at] = count;
  return out;
}

TEST_CASE("rolling: a quarter more at a time, and never fewer than wanted that are ready") {
  const tenancy::ServiceRollout how;
  for (std::uint32_t ready = 0; ready <= 8; ++ready) {
    const SetCounts counts = counts_of(how, facts(8, ready));
    CHECK(counts.before + ready == 8);
    CHECK(counts.fresh <= 8);
    CHECK(counts.fresh <= ready + 2);
    CHECK(next_step(how, kTarget, 95, facts(8, ready)).kind ==
          (ready == 8 ? Kind::finish : Kind::wait));
  }
}

TEST_CASE("a version that never comes up goes back") {
  const tenancy::ServiceRollout how;
  RolloutFacts f = facts(4, 0);
  f.fresh.failures = 2;
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::wait);
  f.fresh.failures = 3;
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::back);
  f.fresh.ready = 1;  // one of them did come up
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::wait);
}

TEST_CASE("errors and late answers take it back, too few requests say nothing") {
  tenancy::ServiceRollout how;
  how.kind = tenancy::RolloutKind::canary;
  how.most_errors = 10;
  RolloutFacts f = facts(4, 1);
  f.fresh.part = 100;
  f.fresh.requests = 49;
  f.fresh.errors = 49;
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::wait);
  f.fresh.requests = 1000;
  f.fresh.errors = 10;
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::move);
  f.fresh.errors = 11;
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::back);
  f.fresh.errors = 0;
  f.fresh.times.add(times(1000, milliseconds(300)));
  f.before.times.add(times(1000, milliseconds(30)));
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::back);
  f.before.times = {};
  f.before.times.add(times(1000, milliseconds(300)));  // the old replicas are no better
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::move);
  how.watch_target = false;
  f.before.times = {};
  f.before.times.add(times(1000, milliseconds(30)));
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::move);
}

TEST_CASE("a canary moves step by step after its pause, when its replicas are ready") {
  tenancy::ServiceRollout how;
  how.kind = tenancy::RolloutKind::canary;
  how.step = 30;
  how.pause = seconds(60);
  CHECK(first_part(how) == 300);
  RolloutFacts f = facts(10, 2);
  f.fresh.part = 300;
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::wait);  // three are needed
  f.fresh.ready = 3;
  RolloutStep step = next_step(how, kTarget, 95, f);
  CHECK(step.kind == Kind::move);
  CHECK(step.part == 600);
  f.stepped = f.now - seconds(59);
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::wait);
  f.stepped = f.now - seconds(60);
  f.fresh.part = 900;
  f.fresh.ready = 9;
  CHECK(next_step(how, kTarget, 95, f).part == 1000);
  f.fresh.part = 1000;
  CHECK(counts_of(how, f).before == 1);  // each that is ready makes room for the next
  f.fresh.ready = 10;
  CHECK(counts_of(how, f).before == 0);
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::finish);
}

TEST_CASE("blue-green: all are ready before the first request, and the old ones stay for a while") {
  tenancy::ServiceRollout how;
  how.kind = tenancy::RolloutKind::blue_green;
  how.pause = seconds(60);
  CHECK(first_part(how) == 0);
  RolloutFacts f = facts(4, 3);
  f.fresh.part = 0;
  CHECK(counts_of(how, f).before == 4);
  CHECK(counts_of(how, f).fresh == 4);
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::wait);
  f.fresh.ready = 4;
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::move);
  f.fresh.part = 1000;
  f.stepped = f.now - seconds(30);
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::wait);
  f.stepped = f.now - seconds(60);
  CHECK(next_step(how, kTarget, 95, f).kind == Kind::finish);
}

}  // namespace
