// Tests that the table of state moves agrees with the documentation.
#include <doctest/doctest.h>

#include "ctld/core/state/moves.h"
#include "tests/golden/golden.h"

using namespace gantry;
using namespace gantry::core;

TEST_CASE(
    "every trigger is possible in some state, and an ended job waits again only by a requeue") {
  for (const TriggerRow& row : kMoves) {
    CAPTURE(row.name);
    bool legal = false;
    for (const auto& next : row.next) legal |= next.has_value();
    CHECK(legal);
    const bool of_ended = row.trigger == Trigger::forget || row.trigger == Trigger::requeue ||
                          row.trigger == Trigger::revive;
    CHECK(next_phase(row.trigger, Phase::ended).has_value() == of_ended);
  }
}

TEST_CASE("only a plan starts a job, and only a queued one") {
  for (const TriggerRow& row : kMoves)
    for (const Phase from : {Phase::queued, Phase::running, Phase::finishing, Phase::ended}) {
      const auto next = next_phase(row.trigger, from);
      if (next == Phase::starting) CHECK((row.trigger == Trigger::place && from == Phase::queued));
    }
}

TEST_CASE("a client that asks for an impossible move gets an error") {
  const auto refused = may_move(Trigger::hold, Phase::running, "7");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::wrong_state);
  CHECK(refused.error().message == "job 7 is running: hold is not possible now");
  CHECK(may_move(Trigger::hold, Phase::queued, "7"));
}

TEST_CASE("docs/job-states.md holds the table of moves as it is in the code") {
  gantry::test::check_golden_table("docs/job-states.md", "| trigger |", moves_as_markdown());
}
