// Small replays that were checked by hand: starts, victims and what they lose, kept reservations,
// determinism.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "ctld/replay/places.h"
#include "ctld/replay/report.h"
#include "ctld/replay/vary.h"

namespace gantry::replay {
namespace {

// A file with tenants' documents, which is removed with the object.
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

TEST_CASE("backfill starts a later job first and does not delay the one before it") {
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

TEST_CASE("reclaim preempts the cheaper borrower, which later goes on from its checkpoint") {
  const File two(kTwo);
  // a's second job borrows and has saved a checkpoint; its third job borrows and has none.
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
  // Without preemption b waits, and its claim counts as violated from the deadline on.
  const Ran off = run("submit,run,gpus,tenant\n0,2h,4,a\n0,2h,2,a\n0,2h,2,a\n25m,1h,2,b\n",
                      "1x8gpu", two.path + ",preemption=off");
  CHECK(off.outcome.preemptions == 0);
  CHECK(off.outcome.measures[1].below == 95 * 60);
  CHECK(off.outcome.measures[1].violation == 95 * 60 - 66);
}

TEST_CASE("equal input gives an equal result, and an unknown tenant is refused with its line") {
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

// Makes the documents of one cohort, whose default class has a minute of grace.
std::string cohort_of(const std::vector<std::pair<std::string, int>>& quotas) {
  std::string text = std::string(kTwo).substr(0, std::string(kTwo).find("---\napiVersion: gantry/v1"
                                                                        "\nkind: Tenant"));
  for (const auto& [name, gpus] : quotas)
    text += fmt::format(
        "---\napiVersion: gantry/v1\nkind: Tenant\nname: {}\ncohort: all\nquota: {{gpu: {}}}\n",
        name, gpus);
  return text;
}

// The cheapest nodes are those of a's youngest jobs, but only five of these may be preempted,
// because a exceeds its quota by five. On n01 five jobs of a and all three of b may be preempted
// together.
TEST_CASE("a claim finds the one node all of whose jobs may be preempted") {
  const File documents(cohort_of({{"a", 320}, {"b", 0}, {"c", 8}}));
  std::string csv = "submit,run,gpus,tenant\n";
  for (int i = 0; i < 8; ++i) csv += i < 5 ? "0,10h,1,a\n" : "0,10h,1,b\n";
  for (int i = 0; i < 320; ++i) csv += "1h,9h,1,a\n";
  const Ran ran = run(csv + "2h,1h,8,c\n", "41x8gpu", documents.path);
  const JobResult& claim = ran.outcome.jobs.back();
  REQUIRE(claim.started);
  CHECK(*claim.started - ran.trace.jobs.back().submit == minutes(1));
  CHECK(ran.outcome.preemptions == 8);
  for (std::size_t i = 0; i < 8; ++i) CHECK(ran.outcome.jobs[i].preemptions == 1);
  for (const TenantMeasure& m : ran.outcome.measures) CHECK(m.violation == 0);
}

// a's job of two nodes gets a place on n2 and n3 when b's first job has ended. No job can be
// preempted for it: on n1 a's own job is in the way, and b does not exceed its quota. b's second
// job can start at once on n3, within its quota.
TEST_CASE("a job does not wait behind a reservation for which no room can be made") {
  const File documents(cohort_of({{"a", 21}, {"b", 12}, {"c", 1}}));
  const std::string csv =
      "submit,run,gpus,tenant\n0,3h,5,a\n1,3h,2,c\n2,1h,8,b\n3,1h,16,a\n4,2h,4,b\n";
  const Ran ran = run(csv, "3x8gpu", documents.path);
  REQUIRE(ran.outcome.jobs[4].started);
  CHECK(*ran.outcome.jobs[4].started == ran.trace.jobs[4].submit);
  // c borrows, and a's claim is late for lack of a place, not because the scheduler missed it.
  CHECK(ran.outcome.measures[0].no_place > 3600);
  CHECK(ran.outcome.measures[0].violation == 0);
  for (const JobResult& job : ran.outcome.jobs) CHECK(job.ended);
}

TEST_CASE("a job that has waited long keeps its reservation and goes first") {
  const File documents(cohort_of({{"a", 4}, {"b", 8}}));
  // a borrows for its job of the whole node; b's jobs come one after the other and are within b's
  // quota.
  std::string csv = "submit,run,gpus,tenant\n0,50m,4,b\n1,1h,8,a\n";
  for (int i = 1; i < 60; ++i) csv += fmt::format("{}m,50m,4,b\n", 30 * i);
  const auto waits = [&](const std::string& first) {
    const Ran ran = run(csv, "1x8gpu", documents.path + ",oldest_first_after=" + first);
    REQUIRE(ran.outcome.jobs[1].started);
    return *ran.outcome.jobs[1].started - ran.trace.jobs[1].submit;
  };
  CHECK(waits("off") > hours(20));
  CHECK(waits("6h") > hours(6));
  CHECK(waits("6h") < hours(7));
}

TEST_CASE("a proof that there is no place counts at most the last job of each tenant") {
  // Two full nodes of 8: on each, seven units are tenant 0's and one is tenant 1's.
  const std::vector<HeldUnits> held{
      {0, 0, 7, 7, 1}, {0, 1, 1, 1, 2}, {1, 0, 7, 7, 3}, {1, 1, 1, 1, 4}};
  // tenant 0 exceeds its quota by 1, so one more job may go
  CHECK(could_have_place({0, 0}, held, {1, 1}, 1, 8));
  CHECK(!could_have_place({0, 0}, held, {1, 0}, 1, 8));  // tenant 1 does not exceed its quota
  CHECK(could_have_place({0, 0}, held, {1, 0}, 1, 7));
  CHECK(!could_have_place({0, 0}, held, {0, 1}, 2, 2));
  // One of the nodes can be freed, but not both: after the first job tenant 0 no longer exceeds its
  // quota.
  CHECK(could_have_place({1, 1}, held, {7, 0}, 1, 8));
  CHECK(!could_have_place({1, 1}, held, {7, 0}, 2, 8));
  CHECK(could_have_place({1, 1}, held, {8, 0}, 2, 8));
  // A job on both nodes is preempted as a whole.
  const std::vector<HeldUnits> gang{{0, 0, 8, 16, 1}, {1, 0, 8, 16, 1}, {2, 0, 8, 8, 2}};
  CHECK(could_have_place({0, 0, 0}, gang, {1}, 2, 8));
  CHECK(!could_have_place({0, 0, 0}, gang, {8}, 3, 8));
  CHECK(could_have_place({0, 0, 0}, gang, {9}, 3, 8));
}

TEST_CASE("with deadlines=on a job that cannot end before it is due is given up") {
  const std::string csv = "submit,run,gpus,due\n0,2h,4,\n1,1h,4,2h\n2,1h,4,4h\n";
  const Ran on = run(csv, "1x4gpu", "deadlines=on");
  CHECK(on.outcome.jobs[1].given_up);
  CHECK(!on.outcome.jobs[1].started);
  CHECK(on.outcome.jobs[1].ended == std::optional(Instant{3'601'000'001}));
  CHECK(!on.outcome.jobs[2].given_up);
  const Report report = summarise(on.outcome, on.trace);
  CHECK(report.all.due == 2);
  CHECK(report.all.in_time == 1);
  CHECK(report.all.given_up == 1);
  CHECK(!run(csv, "1x4gpu", "").outcome.jobs[1].given_up);
}

TEST_CASE(
    "an app's limit of jobs per node is kept, also with the column names of the public trace") {
  const Ran ran =
      run("creation_time,scheduled_time,deletion_time,gpu_request,app_name,max_instance_per_node\n"
          "0,5,105,1,x,2\n0,5,105,1,x,2\n0,5,105,1,x,2\n0,5,105,1,y,-1\n",
          "1x8gpu", "");
  CHECK(ran.outcome.jobs[2].started == std::optional(Instant{seconds(100).us}));
  CHECK(ran.outcome.jobs[3].started == std::optional(Instant{}));
}

TEST_CASE("the predicted start of a job is reported beside the real one") {
  // The first job ends before its limit.
  const Ran ran = run("submit,run,limit,gpus\n0,50,100,4\n1,10,10,4\n", "1x4gpu", "");
  CHECK(ran.outcome.jobs[1].foretold == std::optional(Instant{seconds(100).us}));
  const Report report = summarise(ran.outcome, ran.trace);
  CHECK(report.predictions.jobs == 1);
  CHECK(report.predictions.later == 0);
  CHECK(report.predictions.mean == -50);
  CHECK(to_jobs({ran.outcome}, ran.trace) ==
        "policy,id,tenant,units,submit_s,foretold_start_s,start_s,end_s,preempted,lost_unit_s\n"
        "\"EASY\",1,\"\",4,0,,0,50,0,0\n\"EASY\",2,\"\",4,1,100,50,60,0,0\n");
}

TEST_CASE("a variation is the same each time, and keeps the amount of work") {
  std::string csv = "submit,run,gpus\n";
  for (int i = 0; i < 500; ++i) csv += fmt::format("{},{},1\n", i * 100, 3200 + 32 * (i * 37 % 50));
  const auto plain = *parse_trace(csv, "t", TraceFormat::csv, {});
  const auto varied = [&](const std::string& text) {
    Trace trace = plain;
    const auto v = parse_variation(text);
    REQUIRE_MESSAGE(v, v.error().message);
    REQUIRE(vary(trace, *v));
    return trace;
  };
  const auto work = [](const Trace& t) {
    std::int64_t sum = 0;
    for (const TraceJob& j : t.jobs) sum += j.run.us * j.gpus;
    return sum;
  };
  const std::string text = "seed=3,permute,arrivals=0.5,large=0.2";
  const Trace one = varied(text), again = varied(text), other = varied("seed=4,permute");
  bool same = true, differs = false;
  std::size_t large = 0;
  for (std::size_t i = 0; i < one.jobs.size(); ++i) {
    same &= one.jobs[i].run == again.jobs[i].run && one.jobs[i].gpus == again.jobs[i].gpus;
    differs |= other.jobs[i].run != plain.jobs[i].run;
    large += one.jobs[i].gpus > 1 ? 1 : 0;
    CHECK(one.jobs[i].submit.us == plain.jobs[i].submit.us / 2);
  }
  CHECK(same);
  CHECK(differs);
  CHECK(large > 60);
  CHECK(large < 140);
  CHECK(work(other) == work(plain));
  CHECK(static_cast<double>(work(one)) == doctest::Approx(static_cast<double>(work(plain))));
  CHECK(varied("from=1000s,length=1000s").jobs.size() == 10);
  CHECK(parse_variation("speed=2").error().message.starts_with("variation: \"speed\": there are"));
  CHECK(parse_variation("large=2").error().message ==
        "variation: large: must be a number of 0 to 1, not \"2\"");
  Trace none = plain;
  CHECK(!vary(none, *parse_variation("from=100d")));
}

TEST_CASE("wrong policies and clusters are refused") {
  CHECK(read_cluster("1x80640cpu").error().message ==
        "cluster 1x80640cpu: a node can have 1 to 65535 cores, not 80640; take more nodes that are "
        "smaller");
  CHECK(read_cluster("80640x1cpu")->total == 80'640);
  CHECK(read_cluster("2000000x1cpu").error().message ==
        "cluster 2000000x1cpu: there can be 1 to 1000000 nodes, not 2000000");
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

TEST_CASE("with tenants=mean nominal quota is the mean use, and the rest belongs to the cohort") {
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
