// Tests the plan of slices (slice_plan.h): which places are kept for jobs that wait for slices of a
// GPU.
#include <doctest/doctest.h>

#include <vector>

#include "ctld/sched/place/place.h"
#include "tests/sched/mig/mig_world.h"
#include "tests/sched/steps/steps.h"

namespace gantry::sched::steps {
namespace {

// Node 0 has one GPU that is partitioned; half of it is in use for 500 s, the other half for 100 s.
struct Sliced : Steps {
  Sliced() : Steps(red_alone(100)) {
    NodeChanged node;
    node.node = NodeId{0};
    node.name = "n0";
    node.available = true;
    for (std::uint16_t c = 0; c < 16; ++c) node.cpus.push_back(c);
    node.memory = 1 << 30;
    node.devices = {{0, -1, true, "h100", {}, false, {}}};
    node.geometries = {h100_geometry()};
    replica.apply(node);
    use(0, "3g.40gb", 4, seconds(500));
    use(1, "3g.40gb", 0, seconds(100));
  }
  void use(std::uint16_t cpu, const std::string& profile, std::uint16_t start, Duration left) {
    JobPlaced job;
    job.job = JobId{++last};
    NodeGrant grant;
    grant.node = NodeId{0};
    grant.cpus = {cpu};
    grant.tasks = 1;
    grant.devices = {{0, id_of(profile), start}};
    job.grants = {grant};
    job.ends_by = kNow + left;
    job.started = kNow;
    replica.apply(job);
  }
  static std::uint32_t id_of(const std::string& profile) {
    for (const MigProfile& p : h100_geometry().profiles)
      if (p.name == profile) return p.id;
    return 0;
  }
  JobId ask(const std::string& profile, Duration limit = seconds(1000)) {
    JobQueued q = job(1, limit);
    q.key.shape.gpus_per_node = 1;
    q.key.shape.gpu_slice = profile;
    q.key.shape.memory_per_node = 1 << 20;
    return submit(q);
  }
  // Makes a plan in which these jobs are blocked because nothing is free.
  void plan(const std::vector<JobId>& jobs, bool everything = true) {
    Making m(*this);
    m.d.everything = everything;
    for (const JobId id : jobs) m.slices.note(blocked(m.d, id));
    m.slices.plan();
  }
  const std::vector<MigKept>& kept() { return replica.left().kept_slices; }
};

TEST_CASE("a place is kept for a job that waits for slices, from the time when it can have it") {
  Sliced s;
  const JobId whole = s.ask("7g.80gb");
  s.plan({whole}, false);
  CHECK(s.kept().empty());  // only a plan that looks at everything keeps places
  s.plan({whole});
  REQUIRE(s.kept().size() == 1);
  CHECK(s.kept()[0].job == whole);
  CHECK(s.kept()[0].node == 0);
  CHECK(s.kept()[0].profile == Sliced::id_of("7g.80gb"));
  CHECK(s.kept()[0].from >= kNow + seconds(500));
  CHECK(s.kept()[0].from < kMigNever);
  // The place stays kept; when no job waits for slices, none is kept.
  s.plan({whole});
  CHECK(s.kept().size() == 1);
  s.plan({});
  CHECK(s.kept().empty());
}

TEST_CASE("a job whose place is being emptied is told when, and on which GPU of which node") {
  Sliced s;
  const JobId whole = s.ask("7g.80gb"), other = s.ask("3g.40gb");
  s.plan({whole});
  Making m(s);
  const auto verdict = m.slices.explain(whole);
  REQUIRE(verdict);
  CHECK(verdict->reason == Reason::mig_repartition);
  CHECK(verdict->a == s.kept().at(0).from.us);
  CHECK(verdict->b == 0);
  CHECK(verdict->subject == "n0");
  CHECK_FALSE(m.slices.explain(other));
}

TEST_CASE("a kept place is given only to a job that ends before the place is needed") {
  Sliced s;
  const JobId whole = s.ask("7g.80gb"), shorter = s.ask("3g.40gb", seconds(60)),
              longer = s.ask("3g.40gb", seconds(5000));
  s.plan({whole});
  s.end(s.running_on(0).at(1), 0);  // half of the GPU is free
  const auto may = [&](JobId job) {
    Making m(s);
    const JobClass& c = s.class_of(job);
    return has_devices(s.replica.grid(), c, 0, m.d.end_of(c));
  };
  CHECK(may(shorter));
  CHECK_FALSE(may(longer));
  s.replica.keep_slices({});
  CHECK(may(longer));
  s.plan({whole});
  { Making m(s); }
  CHECK(has_devices(s.replica.grid(), s.class_of(longer), 0, kNow + seconds(5000)));
}

TEST_CASE("a class waits for slices only if no GPU could give it some now") {
  Sliced s;
  const JobId half = s.ask("3g.40gb"), none = s.submit(1);
  {
    Making m(s);
    CHECK(m.slices.waits_for_slices(s.class_of(half)));
    CHECK_FALSE(m.slices.waits_for_slices(s.class_of(none)));
  }
  s.end(s.running_on(0).at(1), 0);
  Making m(s);
  CHECK_FALSE(m.slices.waits_for_slices(s.class_of(half)));
}

}  // namespace
}  // namespace gantry::sched::steps
