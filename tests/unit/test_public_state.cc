// The public names of job states: the tests check the whole table, and filters that name states in
// any form.
#include <doctest/doctest.h>

#include <vector>

#include "common/job/public_state.h"

namespace gantry {

TEST_CASE("every state has a public name, long and short") {
  std::string listing;
  for (auto [phase, name] : enum_names(Phase{})) {
    if (phase == Phase::ended) continue;
    PublicState shown = public_state(phase, std::nullopt);
    listing += std::string(shown.name) + "=" + std::string(shown.code) + " ";
  }
  for (auto [outcome, name] : enum_names(Outcome{})) {
    PublicState shown = public_state(Phase::ended, outcome);
    listing += std::string(shown.name) + "=" + std::string(shown.code) + " ";
  }
  CHECK(listing ==
        "PENDING=PD CONFIGURING=CF RUNNING=R COMPLETING=CG SUSPENDED=S COMPLETED=CD FAILED=F "
        "CANCELLED=CA TIMEOUT=TO OUT_OF_MEMORY=OOM NODE_FAIL=NF BOOT_FAIL=BF DEADLINE=DL "
        "PREEMPTED=PR ");
  // Such a job is not over yet.
  CHECK(public_state(Phase::finishing, Outcome::timeout).code == "CG");
}

TEST_CASE("a filter may name states in full, by code, and in any case") {
  std::vector<std::string> words{"pending", "R", "Oom"};
  StateSet set = StateSet::parse(words).value();
  CHECK(set.has(Phase::queued));
  CHECK(set.has(Phase::running));
  CHECK(set.has(Phase::ended, Outcome::out_of_memory));
  CHECK_FALSE(set.has(Phase::ended, Outcome::completed));
  CHECK_FALSE(set.has_all());

  words = {"s"};
  CHECK(StateSet::parse(words)->has(Phase::suspended));
  CHECK_FALSE(StateSet::parse(words)->has(Phase::running));
  words = {"all"};
  CHECK(StateSet::parse(words)->has_all());
  words = {"PREEMPTED", "se"};  // These states are known, but no job of Gantry is ever in them.
  for (auto [phase, name] : enum_names(Phase{}))
    CHECK_FALSE(StateSet::parse(words)->has(phase, Outcome::completed));
  words = {"R", "sleeping"};
  auto bad = StateSet::parse(words);
  REQUIRE_FALSE(bad.has_value());
  CHECK(bad.error().code == ErrorCode::invalid_argument);
  CHECK(bad.error().message.find("\"sleeping\"") != std::string::npos);
}

}  // namespace gantry
