// Small replays, checked by hand: starts, victims and what they lose, places kept, determinism.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "ctld/replay/report.h"

namespace gantry::replay {
namespace {

// Documents in a file that goes with the test.
class File {
 public:
  explicit File(const std::string& text) {
    const char* folder = std::getenv("TMPDIR");
    path = fmt::format("{}/replay-{}-{}.yaml", folder != nullptr ? folder : "/tmp", ::getpid(),
                       counter++);
    std::ofstream(path) << text;
  }
  ~File() { std::remove(path.c_str()); }
  std::string path;

 private:
  static inline int counter = 0;
};

constexpr const char* kTwo = R"(apiVersion: gantry/v1
kind: Cohort
name: all
---
apiVersion: gantry/v1
kind: PriorityClass
name: normal
value: 500
default: true
grace: 1m
---
apiVersion: gantry/v1
kind: Tenant
name: a
cohort: all
quota: {gpu: 4}
---
apiVersion: gantry/v1
kind: Tenant
name: b
cohort: all
quota: {gpu: 4}
)";

struct Ran {
  Trace trace;
  Cluster cluster;
  Outcome outcome;
};
Ran run(const std::string& csv, const std::string& cluster, const std::string& policy) {
  Ran ran;
  auto trace = parse_trace(csv, "t", TraceFormat::csv, {});
  REQUIRE_MESSAGE(trace, trace.error().message);
  ran.trace = std::move(*trace);
  ran.cluster = *read_cluster(cluster);
  const auto choice = parse_policy(policy);
  REQUIRE_MESSAGE(choice, choice.error().message);
  const auto site = make_site(ran.cluster, *choice, ran.trace);
  REQUIRE_MESSAGE(site, site.error().message);
  ReplayOptions options;
  options.happenings = true;
  auto outcome = replay(ran.trace, ran.cluster, *site, yardstick_of(*site), options);
  REQUIRE_MESSAGE(outcome, outcome.error().message);
  ran.outcome = std::move(*outcome);
  CHECK(ran.outcome.audit == "");
  return ran;
}
std::string timeline(const Ran& ran) {
  return to_timeline(ran.outcome, ran.trace, ran.cluster.unit, {});
}

TEST_CASE("backfill: the third job goes first, and the second is not delayed") {
  const Ran ran = run("submit,run,gpus\n0,100,3\n1,50,4\n2,90,1\n3,200,1\n", "1x4gpu", "");
  CHECK(timeline(ran) == R"(   0:00:00  /1                     submitted, 3 GPUs
   0:00:00  /1                     starts on n1
   0:00:01  /2                     submitted, 4 GPUs
   0:00:02  /3                     submitted, 1 GPUs
   0:00:02  /3                     starts on n1
   0:00:03  /4                     submitted, 1 GPUs
   0:01:32  /3                     ends
   0:01:40  /1                     ends
   0:01:40  /2                     starts on n1
   0:02:30  /2                     ends
   0:02:30  /4                     starts on n1
   0:05:50  /4                     ends
)");
  const Report report = summarise(ran.outcome, ran.trace);
  CHECK(report.all.mean_wait == doctest::Approx((0 + 99 + 0 + 147) / 4.0));
  CHECK(report.all.max_wait == 147);
  CHECK(report.all.use == doctest::Approx((300 + 200 + 90 + 200) / (350 * 4.0)));
}

TEST_CASE(
    "reclaim: the cheaper borrower goes after its grace, comes back, and runs on from its "
    "checkpoint") {
  const File two(kTwo);
  // a's second job borrows and has saved; the third borrows and has not.
  const Ran ran =
      run("submit,run,gpus,tenant,checkpoint\n0,2h,4,a,\n0,2h,2,a,10m\n0,2h,2,a,\n25m,1h,2,b,\n",
          "1x8gpu", two.path);
  CHECK(timeline(ran) == R"(   0:00:00  a/1                    submitted, 4 GPUs
   0:00:00  a/2                    submitted, 2 GPUs
   0:00:00  a/3                    submitted, 2 GPUs
   0:00:00  a/1                    starts on n1
   0:00:00  a/2                    starts on n1
   0:00:00  a/3                    starts on n1
   0:25:00  b/4                    submitted, 2 GPUs
   0:25:00  a/2                    asked to leave for b/4
   0:26:00  a/2                    has left for b/4, 0.2 GPU-h lost, waits again
   0:26:00  b/4                    starts on n1
   1:26:00  b/4                    ends
   1:26:00  a/2                    starts on n1
   2:00:00  a/1                    ends
   2:00:00  a/3                    ends
   3:07:00  a/2                    ends
)");
  CHECK(ran.outcome.preemptions == 1);
  CHECK(ran.outcome.jobs[1].lost == 2 * 360);
  CHECK(ran.outcome.reclaimed == 2 * 3600);
  for (const TenantMeasure& m : ran.outcome.measures) CHECK(m.violation == 0);
  CHECK(ran.outcome.measures[1].below == 60);
  // Without preemption b waits, and its claim is violated from the deadline on.
  const Ran off = run("submit,run,gpus,tenant\n0,2h,4,a\n0,2h,2,a\n0,2h,2,a\n25m,1h,2,b\n",
                      "1x8gpu", two.path + ",preemption=off");
  CHECK(off.outcome.preemptions == 0);
  CHECK(off.outcome.measures[1].below == 95 * 60);
  CHECK(off.outcome.measures[1].violation == 95 * 60 - 66);
}

TEST_CASE("the same input gives the same result; other tenants are refused with their line") {
  const File two(kTwo);
  std::string csv = "submit,run,gpus,tenant,user,checkpoint\n";
  for (int i = 0; i < 300; ++i)
    csv += fmt::format("{},{},{},{},u{},{}\n", i * 37, 60 + i * 7919 % 4000, 1 + i % 4,
                       i % 3 == 0 ? "b" : "a", i % 5, i % 2 == 0 ? "5m" : "");
  const Ran one = run(csv, "2x4gpu", two.path);
  const Ran again = run(csv, "2x4gpu", two.path);
  CHECK(timeline(one) == timeline(again));
  CHECK(one.outcome.preemptions > 0);
  for (const JobResult& job : one.outcome.jobs) CHECK(job.ended);
  const std::vector<Report> reports{summarise(one.outcome, one.trace)};
  CHECK(to_json(reports, one.trace, one.cluster) ==
        to_json({summarise(again.outcome, again.trace)}, again.trace, again.cluster));

  const auto trace =
      parse_trace("submit,run,gpus,tenant\n0,1,1,a\n0,1,1,c\n", "t", TraceFormat::csv, {});
  const auto cluster = read_cluster("1x8gpu");
  const auto site = make_site(*cluster, *parse_policy(two.path), *trace);
  const auto outcome = replay(*trace, *cluster, *site, yardstick_of(*site), {});
  REQUIRE(!outcome);
  CHECK(outcome.error().message == "t:3: tenant: there is no tenant \"c\" in " + two.path);
}

TEST_CASE("policies and clusters that are none are refused") {
  CHECK(parse_policy("fair_share=maybe")
            .error()
            .message.starts_with("policy: fair_share: must be on or off"));
  CHECK(parse_policy("speed=11").error().message.starts_with("policy: speed=11: there are"));
  CHECK(
      parse_policy("reservations=-1").error().message.starts_with("policy: reservations: must be"));
  CHECK(read_cluster("8gpu").error().message.starts_with("cluster 8gpu: neither a file nor"));
  CHECK(read_cluster("4x8gpu")->total == 32);
  CHECK(read_cluster("4x8cpu")->unit == Resource::cpu);
}

TEST_CASE("nominal quota of tenants=mean is their mean use, and the rest is everybody's") {
  const auto trace = parse_trace("submit,run,gpus,tenant\n0,100,2,a\n0,50,4,b\n100,1,1,b\n", "t",
                                 TraceFormat::csv, {});
  const auto cluster = read_cluster("1x8gpu");
  const auto documents = mean_tenants(*cluster, *trace);
  REQUIRE(documents.size() == 3);
  CHECK(std::get<tenancy::Tenant>(documents[0]).quota[0].nominal == 2'000);
  CHECK(std::get<tenancy::Tenant>(documents[1]).quota[0].nominal == 2'000);
  CHECK(std::get<tenancy::Cohort>(documents[2]).quota[0].nominal == 4'000);
}

}  // namespace
}  // namespace gantry::replay
