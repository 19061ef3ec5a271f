// Tests MIG planning from the queue: placing, partitioning again, reserving, modes; properties that
// hold for every plan; crashes between any two steps; and how much random demand is refused. With
// GANTRY_LONG=1 each property is tried on 10,000 cases, otherwise on a few hundred.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>

#include "tests/sched/mig/mig_demand.h"
#include "tests/sched/mig/mig_world.h"

namespace gantry::sched {
namespace {

bool is_long() {
  return std::getenv("GANTRY_LONG") != nullptr;
}
std::uint64_t cases(std::uint64_t few) {
  return is_long() ? 10'000 : few;
}

// Describes a few 8-slice GPUs: "3g.40gb@4:7=60" is a slice that job 7 uses for 60 minutes; without
// ":" the slice is idle, without "=" the end is not known.
struct Scene {
  MigTable h100 = compiled(h100_geometry());
  MigView view;
  MigPolicy policy;

  Scene() {
    view.now = Instant{hours(10).us};
    view.tables = {&h100};
  }
  MigGpuView& gpu(std::uint32_t node, const std::vector<std::string>& slices) {
    MigGpuView& g = view.gpus.emplace_back();
    g.node = node;
    for (const MigGpuView& other : view.gpus) g.index += other.node == node ? 1 : 0;
    --g.index;
    g.table = 0;
    g.mig = true;
    for (const std::string& text : slices) {
      const auto at = text.find('@'), job = text.find(':'), until = text.find('=');
      MigSliceView& s = g.slices.emplace_back();
      s.at = place(text.substr(0, at), static_cast<std::uint32_t>(std::stoul(text.substr(at + 1))));
      if (job != std::string::npos) s.use = MigUse{JobId{std::stoull(text.substr(job + 1))}, {}};
      if (until != std::string::npos)
        s.use->until = view.now + minutes(std::stol(text.substr(until + 1)));
    }
    return g;
  }
  MigPlacementId place(const std::string& profile, std::uint32_t start) const {
    return *h100.placement(*h100.profile_named(profile), start);
  }
  void wants(std::uint64_t job, const std::string& profile, std::uint32_t count = 1,
             std::optional<Duration> limit = std::nullopt) {
    std::uint32_t w = 0;
    while (w < view.wants.size() && view.wants[w].profile != profile) ++w;
    if (w == view.wants.size()) view.wants.emplace_back().profile = profile;
    view.jobs.push_back({JobId{job}, w, count, limit});
  }
  // "11: 0 3g.40gb@4+ turn 1; " means that job 11 gets this slice on GPU 0, and that it has to be
  // made.
  std::string starts() {
    const MigPlan plan = plan_mig(view, policy);
    std::string text;
    for (const MigStart& s : plan.starts) {
      text += std::to_string(s.job.value()) + ":";
      for (const MigGrant& g : s.grants) text += " " + std::to_string(g.gpu) + " " + name(g);
      text += s.turn > 0 ? " turn " + std::to_string(s.turn) + "; " : "; ";
    }
    return text;
  }
  std::string name(const MigGrant& g) const {
    return g.at ? name(*g.at) + (g.exists ? "" : "+") : "whole";
  }
  std::string name(MigPlacementId at) const {
    const MigPlacement& p = h100.placements()[at];
    return h100.profiles()[p.profile].name + "@" + std::to_string(p.start);
  }
  std::string changes() {
    std::string text;
    for (const MigChange& c : plan_mig(view, policy).changes) {
      text += std::to_string(c.gpu) + " turn " + std::to_string(c.turn) + ":";
      for (const auto p : c.destroy) text += " -" + name(p);
      for (const auto p : c.create) text += " +" + name(p);
      text += c.waits ? " waits; " : "; ";
    }
    return text;
  }
};

TEST_CASE("the fullest GPU is used first, an idle slice at once, and an empty GPU stays whole") {
  Scene s;
  s.gpu(1, {});
  s.gpu(1, {"1g.10gb@6:1"});
  s.gpu(1, {"3g.40gb@4:2", "2g.20gb@0"});
  s.wants(11, "2g.20gb");
  s.wants(12, "2g.20gb");
  s.wants(13, "7g.80gb");
  CHECK(s.starts() == "11: 2 2g.20gb@0; 12: 2 2g.20gb@2+ turn 1; 13: 0 7g.80gb@0+ turn 2; ");
  // Only one GPU of a node changes at a time, so the second change gets the next turn.
  CHECK(s.changes() == "2 turn 1: +2g.20gb@2; 0 turn 2: +7g.80gb@0; ");
}

TEST_CASE("idle slices are destroyed if they are in the way, and no others") {
  Scene s;
  s.gpu(1, {"1g.10gb@0", "1g.10gb@1:1", "1g.10gb@2", "1g.10gb@4", "1g.10gb@5"});
  s.wants(11, "3g.40gb");
  CHECK(s.starts() == "11: 0 3g.40gb@4+ turn 1; ");
  CHECK(s.changes() == "0 turn 1: -1g.10gb@4 -1g.10gb@5 +3g.40gb@4; ");
  // Compute slices can be missing too: 1g + 1g + 2g + 2g leave only one for a place of 4g.
  Scene c;
  c.gpu(1, {"2g.20gb@4", "1g.10gb@6", "1g.10gb@0:1"});
  c.wants(11, "1g.20gb", 3);
  CHECK(c.starts() == "11: 0 1g.20gb@2+ 0 1g.20gb@4+ 0 1g.20gb@6+ turn 1; ");
}

TEST_CASE("at most two nodes change at a time, and a node with a change under way waits") {
  Scene s;
  s.gpu(1, {});
  s.gpu(1, {"7g.80gb@0:5"}).changing = true;
  s.gpu(2, {});
  for (const std::uint64_t job : {11, 12}) s.wants(job, "4g.40gb");
  CHECK(s.changes() == "0 turn 1: +4g.40gb@0 waits; 2 turn 1: +4g.40gb@0; ");
}

TEST_CASE("a GPU is kept for a large slice that waits, and short jobs may use it until then") {
  Scene s;
  s.gpu(1, {"2g.20gb@0:1=60", "2g.20gb@4:2=30"});
  s.gpu(1, {"2g.20gb@0:3=300", "2g.20gb@4:4"});
  s.wants(11, "7g.80gb");
  s.wants(12, "1g.20gb", 1, minutes(59));
  s.wants(13, "1g.20gb", 1, hours(2));
  s.wants(14, "1g.20gb");
  const MigPlan plan = plan_mig(s.view, s.policy);
  REQUIRE(plan.reservations.size() == 1);
  CHECK(plan.reservations[0] ==
        MigReservation{JobId{11}, {{0, s.place("7g.80gb", 0), false}}, s.view.now + minutes(60)});
  CHECK(s.starts() ==
        "12: 0 1g.20gb@6+ turn 1; 13: 1 1g.20gb@6+ turn 2; 14: 1 1g.20gb@2+ turn 2; ");
  REQUIRE(plan.waiting.size() == 1);
  CHECK(plan.waiting[0] == MigWaiting{0, 1, JobId{11}, MigWhy::reserved});
  // The reservation is kept, although another GPU would now be as good.
  s.view.held = plan.reservations;
  s.view.gpus[1].slices.clear();
  s.gpu(1, {"2g.20gb@0:7=60"});
  s.view.gpus[1].slices.push_back(s.view.gpus[2].slices[0]);
  CHECK(plan_mig(s.view, s.policy).reservations == plan.reservations);
  // When another GPU is free at once the job starts there, and the kept places are free for others.
  s.view.gpus[1].slices.clear();
  CHECK(s.starts().starts_with("11: 1 7g.80gb@0+ turn 1; "));
}

TEST_CASE("on a GPU that was partitioned by hand only existing slices are used") {
  Scene s;
  s.gpu(1, {"3g.40gb@0", "3g.40gb@4:1=20"}).fixed = true;
  for (const std::uint64_t job : {11, 12}) s.wants(job, "3g.40gb");
  s.wants(13, "1g.10gb");
  CHECK(s.starts() == "11: 0 3g.40gb@0; ");
  CHECK(s.changes() == "");
  const MigPlan plan = plan_mig(s.view, s.policy);
  REQUIRE(plan.reservations.size() == 1);
  CHECK(plan.reservations[0].grants[0].at == s.place("3g.40gb", 4));
  CHECK(plan.waiting[1].why == MigWhy::nowhere);
  CHECK(plan.switches.empty());
}

TEST_CASE("GPUs whose MIG mode should change are listed and not changed") {
  Scene s;
  s.gpu(1, {}).mig = false;
  s.gpu(1, {"7g.80gb@0:1"});
  s.gpu(2, {});
  s.gpu(3, {}).healthy = false;
  s.wants(11, "", 2);
  for (const std::uint64_t job : {12, 13, 14}) s.wants(job, "4g.40gb");
  const MigPlan plan = plan_mig(s.view, s.policy);
  CHECK(s.starts() == "12: 2 4g.40gb@0+ turn 1; ");
  // The job cannot get two whole GPUs on a node, because one GPU is in MIG mode. GPU 0 could be cut
  // into slices.
  CHECK(plan.waiting[0] == MigWaiting{0, 1, JobId{11}, MigWhy::mode});
  CHECK(plan.waiting[1] == MigWaiting{1, 2, JobId{13}, MigWhy::reserved});
  REQUIRE(plan.switches.size() == 1);
  CHECK(plan.switches[0].gpu == 0);
  CHECK(plan.switches[0].on);
  Scene w;
  w.gpu(1, {"1g.10gb@0"});
  w.wants(11, "");
  const MigPlan whole = plan_mig(w.view, w.policy);
  REQUIRE(whole.switches.size() == 1);
  CHECK(!whole.switches[0].on);
  w.view.wants[0].full_slice = true;  // a full-size slice will do for this job as well
  CHECK(w.starts() == "11: 0 7g.80gb@0+ turn 1; ");
}

TEST_CASE("whole GPUs are taken from the node with the fewest that are enough") {
  Scene s;
  for (int i = 0; i < 4; ++i) s.gpu(1, {}).mig = false;
  for (int i = 0; i < 3; ++i) s.gpu(2, {}).mig = false;
  s.view.gpus[4].whole = MigUse{JobId{1}, s.view.now + minutes(5)};
  s.wants(11, "", 2);
  s.wants(12, "", 4);
  s.wants(13, "", 3);
  CHECK(s.starts() == "11: 5 whole 6 whole; 12: 0 whole 1 whole 2 whole 3 whole; ");
}

// Each layout may exist on a GPU, and each multiset of slices may be wanted by the queue.
TEST_CASE("all 2,319 layouts can be cleared, and all 128 multisets of slices can be made") {
  for (const auto& [geometry, layouts, multisets] :
       {std::tuple{h100_geometry(), 2319u, 128u}, std::tuple{a30_geometry(), 76u, 20u}}) {
    const MigTable t = compiled(geometry);
    std::vector<std::vector<MigPlacementId>> all{{}};
    // the multiset by profile, the largest first
    std::map<std::vector<std::uint32_t>, std::size_t> wanted;
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::vector<std::uint32_t> profiles;
      for (const MigPlacementId p : all[i]) profiles.push_back(t.placements()[p].profile);
      std::sort(profiles.begin(), profiles.end());
      wanted.emplace(profiles, i);
      const std::vector<MigPlacementId> from = all[i];
      const MigState s = t.state_of(from);
      for (std::size_t p = from.empty() ? 0 : from.back() + 1; p < t.placements().size(); ++p)
        if (((t.legal(s) >> p) & 1) != 0) {
          all.push_back(from);
          all.back().push_back(static_cast<MigPlacementId>(p));
        }
    }
    REQUIRE(all.size() == layouts);
    REQUIRE(wanted.size() == multisets);
    MigView view;
    view.tables = {&t};
    MigGpuView& gpu = view.gpus.emplace_back();
    gpu.table = 0;
    gpu.mig = true;
    for (const MigProfile& p : t.profiles()) view.wants.emplace_back().profile = p.name;
    const auto ask = [&](const std::vector<std::uint32_t>& profiles) {
      view.jobs.clear();
      for (const std::uint32_t p : profiles)
        view.jobs.push_back({JobId{1 + view.jobs.size()}, p, 1, {}});
      return plan_mig(view, {}).starts.size();
    };
    for (const auto& layout : all) {
      gpu.slices.clear();
      for (const MigPlacementId p : layout) gpu.slices.emplace_back().at = p;
      REQUIRE(ask({*t.full_profile()}) == 1);
    }
    for (const auto& [profiles, i] : wanted) {
      CAPTURE(i);
      gpu.slices.clear();
      CHECK(ask(profiles) == profiles.size());
      for (const MigPlacementId p : all[all.size() - 1 - i % 7]) gpu.slices.emplace_back().at = p;
      CHECK(ask(profiles) == profiles.size());
    }
  }
}

TEST_CASE("plans are legal, repeatable, keep their reservations, and go on turn after turn") {
  std::size_t starts = 0, changes = 0, reserved = 0, switches = 0, kept = 0;
  for (std::uint64_t seed = 1; seed <= cases(400); ++seed) {
    CAPTURE(seed);
    MigWorld w(seed);
    std::map<JobId, Instant> promised;
    MigPlan before;
    for (int turn = 0; turn < 12; ++turn) {
      CAPTURE(turn);
      const MigPlan plan = plan_mig(w.view, w.policy);
      REQUIRE(w.check(plan) == "");
      REQUIRE(print(plan) == print(plan_mig(w.view, w.policy)));
      for (const MigReservation& r : plan.reservations) {
        if (promised.contains(r.job)) {
          CAPTURE(r.job.value());
          CAPTURE(print(before));
          CAPTURE(print(plan));
          REQUIRE(r.at.has_value());
          REQUIRE(*r.at <= promised[r.job]);
          ++kept;
        }
        if (r.at) promised[r.job] = *r.at;
      }
      before = plan;
      // the job has its turn now or will have it
      for (const MigStart& start : plan.starts) promised.erase(start.job);
      starts += plan.starts.size();
      changes += plan.changes.size();
      reserved += plan.reservations.size();
      switches += plan.switches.size();
      w.follow(plan);
      REQUIRE(w.check_layouts() == "");
      w.pass(w.policy.change);
      // Jobs that wait for a later turn get it before anything else happens.
      if (std::any_of(plan.starts.begin(), plan.starts.end(),
                      [](const MigStart& s) { return s.turn > 1; }))
        continue;
      if (w.chance(50)) w.pass(minutes(static_cast<int>(w.pick(90))));
      if (w.chance(50)) w.add_jobs(4);
    }
  }
  CHECK(starts > 3000);
  CHECK(changes > 1500);
  CHECK(reserved > 3000);
  CHECK(switches > 300);
  CHECK(kept > 1000);
}

TEST_CASE("if a plan stops after any step of its changes, the next plan can go on from there") {
  std::size_t stopped = 0;
  for (std::uint64_t seed = 1; seed <= cases(200); ++seed) {
    CAPTURE(seed);
    // No job was started before the stop: the jobs still wait, and their slices exist or not.
    MigWorld first(seed);
    first.policy.reservations = 0;
    const MigPlan plan = plan_mig(first.view, first.policy);
    std::size_t all = 0;
    for (const MigChange& c : plan.changes)
      if (c.turn == 1 && !c.waits) all += c.destroy.size() + c.create.size();
    for (std::size_t steps = 0; steps <= all; ++steps) {
      CAPTURE(steps);
      MigWorld w(seed);
      w.policy.reservations = 0;
      MigPlan part = plan;
      part.starts.clear();
      REQUIRE(w.follow(part, steps) == steps);
      REQUIRE(w.check_layouts() == "");
      // After some turns all jobs that can start have started, as without the stop; check()
      // verifies it.
      for (int turn = 0; turn < 30; ++turn) {
        const MigPlan next = plan_mig(w.view, w.policy);
        REQUIRE(w.check(next) == "");
        if (next.starts.empty()) break;
        w.follow(next);
        REQUIRE(w.check_layouts() == "");
        w.pass(w.policy.change);
      }
      REQUIRE(plan_mig(w.view, w.policy).changes.empty());
      ++stopped;
    }
  }
  CHECK(stopped > 1000);
}

// Slices without a time limit fill all GPUs, and small jobs arrive all the time: the large job gets
// its GPU when the jobs there have ended, and the small jobs use all other GPUs meanwhile.
TEST_CASE("neither a large job among small ones nor small jobs among many large ones starve") {
  for (std::uint64_t seed = 1; seed <= cases(100); ++seed) {
    CAPTURE(seed);
    MigWorld w(seed, {.nodes = 2, .gpus_per_node = 4, .jobs = 0, .plain = true});
    std::uint64_t next = 10'000;
    const auto add = [&](const char* profile) {
      std::uint32_t want = 0;
      while (w.view.wants[want].profile != profile) ++want;
      w.view.jobs.push_back({JobId{++next}, want, 1, {}});
      return JobId{next};
    };
    const auto turn = [&] {
      const MigPlan plan = plan_mig(w.view, w.policy);
      REQUIRE(w.check(plan) == "");
      w.follow(plan);
      w.pass(w.policy.change);
      return plan.starts.size();
    };
    const auto end_one = [&] {
      for (std::uint64_t tries = 0; tries < 100; ++tries) {
        auto& slices = w.view.gpus[w.pick(w.view.gpus.size())].slices;
        if (slices.empty()) continue;
        MigSliceView& s = slices[w.pick(slices.size())];
        if (!s.use) continue;
        s.use.reset();
        return;
      }
    };
    w.policy.reservations = 4;
    for (MigGpuView& g : w.view.gpus)
      for (MigSliceView& s : g.slices) s.failed = false;
    for (int i = 0; i < 60; ++i) add("1g.10gb");
    for (int i = 0; i < 8; ++i) turn();
    const bool many = seed % 2 == 0;
    const JobId large = add("7g.80gb");
    for (int i = 0; i < (many ? 20 : 0); ++i) add("7g.80gb");
    std::size_t small_started = 0;
    int turns = 0;
    for (; turns < 2000; ++turns) {
      end_one();
      add("1g.10gb");
      small_started += turn();
      const bool waits = std::any_of(w.view.jobs.begin(), w.view.jobs.end(),
                                     [&](const MigJob& j) { return j.job == large; });
      if (!waits) break;
    }
    CHECK(turns < 2000);
    CHECK(small_started > 0);
  }
}

TEST_CASE("at 85 % load of 64 GPUs, under 3.5 % is refused, and under 1 % with re-partitioning") {
  DemandSetup s;
  s.mix = even_jobs();
  s.jobs = is_long() ? 400'000 : 100'000;
  const DemandResult spread = random_demand(DemandMode::spread, s);
  const DemandResult without = random_demand(DemandMode::fullest, s);
  CHECK(spread.refused > 0.25);
  CHECK(without.refused <= 0.035);
  CHECK(without.refused < random_demand(DemandMode::first_fit, s).refused);
  s.jobs = is_long() ? 40'000 : 6'000;
  s.patience = minutes(15);  // a quarter of the mean run time
  for (const KnownEnds ends : {KnownEnds::exact, KnownEnds::limits}) {
    s.ends = ends;
    const DemandResult with = random_demand(DemandMode::repartition, s);
    CAPTURE(static_cast<int>(ends));
    CHECK(with.refused < 0.01);
    CHECK(with.waited < 0.2);
  }
}

TEST_CASE("through the controller's cycle no more of the random demand is refused") {
  DemandSetup s;
  s.mix = even_jobs();
  s.jobs = is_long() ? 40'000 : 6'000;
  const DemandResult without = random_demand(DemandMode::cycle, s);
  MESSAGE("without re-partitioning " << without.refused);
  CHECK(without.refused <= 0.035);
  s.patience = minutes(15);
  s.ends = KnownEnds::limits;
  const DemandResult with = random_demand(DemandMode::cycle, s);
  MESSAGE("with " << with.refused << ", waited " << with.mean_wait << " s on average");
  CHECK(with.refused < 0.01);
}

}  // namespace
}  // namespace gantry::sched
