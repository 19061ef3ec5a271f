// Whom the node holds back, how far, and until when.
#include <doctest/doctest.h>

#include "noded/neighbours/restraint.h"

namespace gantry::neighbours {
namespace {

const Channel kDisk{Resource::disk, "vda"};
const proto::AttemptKey kCulprit{JobId(2), Attempt(1)};
const proto::AttemptKey kVictim{JobId(1), Attempt(1)};

struct Desk {
  Restraint restraint{HoldRules{}};
  Instant now{1'000'000'000};
  std::uint64_t asked_for = 0;
  Restraint::Step step(double use, double confidence, bool is_held_up) {
    now = now + seconds(3);
    Finding f;
    f.number = 1;
    f.channel = kDisk;
    f.victim = kVictim;
    f.last = now;
    f.verdict = {Cause::neighbours, {{kCulprit, 0.9, 0.9}}, confidence, true};
    if (!is_held_up) f.ended = now;
    Row row;
    row.at = now;
    row.level = is_held_up ? 1 : 0.2;
    row.use = use;
    JobRow& job = row.jobs.emplace_back();
    job.key = kCulprit;
    job.use = use;
    return restraint.step(now, {f}, {{kDisk, row}},
                          [this](const auto&, const auto&) { return asked_for; });
  }
};

TEST_CASE("a culprit is held to a twentieth for a minute, and twice as long when it comes back") {
  Desk d;
  const auto first = d.step(500e6, 0.9, true);
  REQUIRE(first.set.size() == 1);
  CHECK(first.set[0].most == 25'000'000);
  CHECK(first.set[0].length == seconds(60));
  CHECK(d.step(50e6, 0.9, true).set.empty());
  std::size_t undone = 0;
  for (int i = 0; i < 19; ++i) undone += d.step(50e6, 0.9, false).undo.size();
  CHECK(undone == 1);
  const auto second = d.step(500e6, 0.9, true);
  REQUIRE(second.set.size() == 1);
  CHECK(second.set[0].length == seconds(120));
  CHECK(second.set[0].times == 2);
  CHECK(d.restraint.holds().size() == 2);
}

TEST_CASE("a hold ends early when its job does not press against it") {
  Desk d;
  d.step(500e6, 0.9, true);
  std::size_t undone = 0;
  for (int i = 0; i < 5; ++i) undone += d.step(1e6, 0.9, false).undo.size();
  CHECK(undone == 1);
  CHECK(d.now - Instant{1'000'000'000} < seconds(20));
}

TEST_CASE("nobody is held below what it asked for, or when it is not sure") {
  Desk d;
  CHECK(d.step(500e6, 0.6, true).set.empty());
  d.asked_for = 200'000'000;
  const auto step = d.step(500e6, 0.9, true);
  REQUIRE(step.set.size() == 1);
  CHECK(step.set[0].most == 200'000'000);
  Desk within;
  within.asked_for = 600'000'000;
  CHECK(within.step(500e6, 0.9, true).set.empty());
}

TEST_CASE("what the kernel did not take is not tried again at once") {
  Desk d;
  const auto step = d.step(500e6, 0.9, true);
  REQUIRE(step.set.size() == 1);
  d.restraint.failed(step.set[0], d.now);
  CHECK(d.restraint.holds().empty());
  CHECK(d.step(500e6, 0.9, true).set.empty());
  for (int i = 0; i < 20; ++i) d.step(500e6, 0.9, false);
  CHECK(d.step(500e6, 0.9, true).set.size() == 1);
}

// A link that the culprit fills, and what its victim gets on it.
struct Wire {
  const Channel link{Resource::network, "eth0 out"};
  Restraint restraint{HoldRules{}};
  Instant now{1'000'000'000};
  Restraint::Step step(double culprit, double victim, double confidence = 0.55) {
    now = now + seconds(3);
    Finding f;
    f.number = 1;
    f.channel = link;
    f.victim = kVictim;
    f.last = now;
    f.verdict = {Cause::neighbours, {{kCulprit, 0.9, 0.9}}, confidence, true};
    Row row;
    row.at = now;
    row.use = culprit + victim;
    for (const auto& [key, use] : {std::pair{kVictim, victim}, {kCulprit, culprit}}) {
      row.jobs.emplace_back().key = key;
      row.jobs.back().use = use;
    }
    return restraint.step(now, {f}, {{link, row}}, [](const auto&, const auto&) { return 0; });
  }
};

TEST_CASE("a flood of a link is held back, as long as its victim gets more for it") {
  Wire w;
  CHECK(w.step(110e6, 5e6, 0.3).set.empty());  // not certain enough
  const auto first = w.step(110e6, 5e6);
  REQUIRE(first.set.size() == 1);
  CHECK(first.set[0].most == 5'500'000);
  std::size_t undone = 0;
  for (int i = 0; i < 18; ++i) undone += w.step(5.5e6, 50e6).undo.size();
  CHECK(undone == 0);
  for (int i = 0; i < 3; ++i) undone += w.step(5.5e6, 50e6).undo.size();
  CHECK(undone == 1);
}

TEST_CASE(
    "a hold on a link that helps nobody ends after four samples and does not come back soon") {
  Wire w;
  REQUIRE(w.step(110e6, 5e6).set.size() == 1);
  std::size_t undone = 0, set = 0;
  for (int i = 0; i < 4; ++i) undone += w.step(5.5e6, 5e6).undo.size();
  CHECK(undone == 1);
  for (int i = 0; i < 100; ++i) set += w.step(110e6, 5e6).set.size();
  CHECK(set == 0);
}

}  // namespace
}  // namespace gantry::neighbours
