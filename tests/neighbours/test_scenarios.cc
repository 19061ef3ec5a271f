// How well the detector judges: 240 made-up machines whose truth is known. The figures are printed.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "noded/neighbours/detector.h"
#include "tests/neighbours/machine_model.h"

namespace gantry::neighbours {
namespace {

constexpr Duration kInTime = seconds(15);
constexpr std::size_t kScenarios = 240;

struct Score {
  int right = 0, wrong = 0, in_time = 0, truths = 0;
  Duration slowest{};
  [[nodiscard]] double precision() const {
    return right + wrong == 0 ? 1 : 1.0 * right / (right + wrong);
  }
  [[nodiscard]] double recall() const { return truths == 0 ? 1 : 1.0 * in_time / truths; }
  void add(const Score& s) {
    right += s.right;
    wrong += s.wrong;
    in_time += s.in_time;
    truths += s.truths;
    slowest = std::max(slowest, s.slowest);
  }
};

std::set<proto::AttemptKey> named(const Finding& f) {
  std::set<proto::AttemptKey> out;
  for (const Culprit& c : f.verdict.culprits) out.insert(c.key);
  return out;
}

Score judge(const model::Story& story, bool print) {
  Score score;
  Detector detector{Rules{}};
  std::map<std::pair<proto::AttemptKey, std::uint64_t>, Finding> last;
  std::map<proto::AttemptKey, Instant> first_right;
  const auto truth_of = [&](const proto::AttemptKey& victim) -> const model::Truth* {
    for (const model::Truth& t : story.truths)
      if (t.victim == victim) return &t;
    return nullptr;
  };
  for (const Sample& s : story.samples) {
    detector.take(s);
    for (const Finding& f : detector.findings()) {
      if (!f.victim) continue;
      last[{*f.victim, f.number}] = f;
      const model::Truth* t = truth_of(*f.victim);
      if (t != nullptr && t->cause == f.verdict.cause && t->culprits == named(f))
        first_right.try_emplace(*f.victim, s.at);
    }
  }
  for (const auto& [key, f] : last) {
    if (story.unclear.contains(*f.victim)) continue;
    const model::Truth* t = truth_of(*f.victim);
    const bool right = t != nullptr && t->cause == f.verdict.cause && t->culprits == named(f);
    ++(right ? score.right : score.wrong);
    if (!right && print)
      fmt::print(
          "    victim {} said {} by {} (level {:.2f}, held up {:.2f}, own {:.2f}), true: {}\n",
          f.victim->job.value(), enum_name(f.verdict.cause), f.verdict.culprits.size(),
          f.evidence.level, f.evidence.held_up, f.evidence.own,
          t == nullptr ? "nothing" : enum_name(t->cause));
  }
  for (const model::Truth& t : story.truths) {
    ++score.truths;
    const auto it = first_right.find(t.victim);
    const bool in_time = it != first_right.end() && it->second - story.onset <= kInTime;
    if (in_time) ++score.in_time;
    if (it != first_right.end()) score.slowest = std::max(score.slowest, it->second - story.onset);
    if (!in_time && print)
      fmt::print("    victim {} not named in time: {}\n", t.victim.job.value(), enum_name(t.cause));
  }
  return score;
}

TEST_CASE("generated machines: precision at least 95 %, recall at least 90 %, named in 15 s") {
  constexpr std::array kResources{Resource::disk, Resource::cpu, Resource::network,
                                  Resource::memory_traffic};
  constexpr std::array<std::string_view, model::kKinds> kNames{
      "flood",         "two floods",         "bursts",    "ramp",      "beside a heavy one",
      "the machine",   "slow device",        "own limit", "own flood", "idle neighbours",
      "busy and well", "flood and own limit"};
  const bool print = std::getenv("GANTRY_NEIGHBOURS_PRINT") != nullptr;
  std::array<Score, model::kKinds> by_kind{};
  std::array<Score, kResources.size()> by_resource{};
  Score all;
  for (std::size_t i = 0; i < kScenarios; ++i) {
    model::Scenario scenario{4'000 + i, static_cast<model::Kind>(i % model::kKinds),
                             kResources.at(i / model::kKinds % kResources.size())};
    // A slow link has no count that would show it: it is just less full.
    if (scenario.kind == model::Kind::slow_device && scenario.resource != Resource::cpu)
      scenario.resource = Resource::disk;
    if (print)
      fmt::print("  {} {} {}\n", i, kNames.at(i % model::kKinds), enum_name(scenario.resource));
    const Score s = judge(model::play(scenario), print);
    by_kind.at(i % model::kKinds).add(s);
    by_resource
        .at(static_cast<std::size_t>(
            std::find(kResources.begin(), kResources.end(), scenario.resource) -
            kResources.begin()))
        .add(s);
    all.add(s);
  }
  const auto row = [](std::string_view name, const Score& s) {
    fmt::print("{:22} precision {:5.1f} %  recall {:5.1f} %  of {:3} truths, slowest {:4.1f} s\n",
               name, 100 * s.precision(), 100 * s.recall(), s.truths,
               static_cast<double>(s.slowest.us) / 1e6);
  };
  for (std::size_t i = 0; i < model::kKinds; ++i) row(kNames.at(i), by_kind.at(i));
  for (std::size_t i = 0; i < kResources.size(); ++i)
    row(enum_name(kResources.at(i)), by_resource.at(i));
  row("all", all);
  CHECK(all.truths >= 200);
  CHECK(all.precision() >= 0.95);
  CHECK(all.recall() >= 0.90);
}

}  // namespace
}  // namespace gantry::neighbours
