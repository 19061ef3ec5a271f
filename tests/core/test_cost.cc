// Tests the highest cost of a single request by a user who means harm: the time of the controller's
// loop, its memory, and the events that are written. Times are CPU seconds of a debug build with a
// wide margin: the tests only have to notice a cost that grows with the square of what the user
// has.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <time.h>

#include <set>

#include "common/codec/codec.h"
#include "common/proto/job_change.h"
#include "common/proto/job_query.h"
#include "common/proto/job_ref.h"
#include "common/proto/job_submit.h"
#include "common/proto/node_report.h"
#include "common/proto/session.h"
#include "controller.h"
#include "ctld/core/apply/audit.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"

namespace gantry::core::test::cost_test {

constexpr double kMostSeconds = 3;

double cpu_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <class Work>
double seconds_of(Work&& work) {
  const double began = cpu_seconds();
  work();
  return cpu_seconds() - began;
}

// The highest memory use of this process so far.
std::int64_t peak_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss >> 10;
}

Config config() {
  return alike_nodes(128, 8, std::int64_t{16} << 30);
}

const Identity kAlice = identity("alice", 1000);

ReplyMessage cancel(Controller& c, std::vector<proto::JobRef> jobs) {
  proto::CancelJobs m;
  m.filter.jobs = std::move(jobs);
  return c.ask(kAlice, m);
}

TEST_CASE("cancelling every other task of an array and then the rest takes linear time") {
  constexpr std::uint32_t kTasks = 400'000;
  Controller c(config());
  auto m = batch_job("sweep");
  m.spec.array = ArraySpec{{{0, kTasks - 1, 1}}, std::nullopt};
  const JobId id = submitted(c.ask(kAlice, std::move(m)));
  const double took = seconds_of([&] {
    cancel(c, {{id, {{1, kTasks - 1, 2}}}});
    CHECK(c.state().counters.queued == kTasks / 2);
    cancel(c, {{id, {}}});
  });
  CHECK(c.state().counters.queued == 0);
  CHECK(audit(c.state()).empty());
  CHECK_MESSAGE(took < kMostSeconds, took);
}

TEST_CASE("listing an array of many ranges that is split into many pieces takes linear time") {
  Controller c(config());
  auto m = batch_job("pieces");
  m.spec.array.emplace();
  for (std::uint32_t i = 0; i < 10'000; ++i)
    m.spec.array->ranges.push_back({30 * i, 30 * i + 19, 1});
  const JobId id = submitted(c.ask(kAlice, std::move(m)));
  cancel(c, {{id, {{1, 299'999, 2}}}});
  double took = 0;
  for (int i = 0; i < 3; ++i) took += seconds_of([&] { c.ask(kAlice, proto::ListJobs{}); });
  CHECK_MESSAGE(took < kMostSeconds, took);
}

TEST_CASE("a job that one request names many times is looked at once") {
  Controller c(config());
  proto::SubmitTogether together;
  for (std::uint32_t i = 0; i < kMaxHetParts; ++i) {
    together.parts.push_back(batch_job(fmt::format("part{}", i)));
    if (i == 0) continue;
    together.parts.back().spec.kind = JobKind::allocation;
    together.parts.back().script.clear();
  }
  const JobId leader = submitted(c.ask(kAlice, std::move(together)));
  auto m = batch_job("sweep");
  m.spec.array = ArraySpec{{{0, 9'999, 1}}, std::nullopt};
  const JobId array = submitted(c.ask(kAlice, std::move(m)));
  for (std::uint32_t i = 0; i < 10; ++i) {
    proto::HoldJobs hold;
    hold.jobs = {{array, {{1'000 * i, 1'000 * i + 999 - (i == 9 ? 1 : 0), 1}}}};
    REQUIRE(c.ask(kAlice, std::move(hold)).get<proto::JobsDone>().refused.empty());
  }
  const std::int64_t before = peak_mib();
  for (const proto::JobRef& ref : {proto::JobRef{leader, {}}, proto::JobRef{array, {}},
                                   proto::JobRef{array, {{0, 9'999, 1}}}}) {
    proto::ListJobs list;
    list.filter.jobs.assign(ref.tasks.empty() ? 100'000 : 10'000, ref);
    const double took = seconds_of([&] {
      CHECK_FALSE(c.ask(kAlice, std::move(list)).get<proto::ListJobsReply>().rows.empty());
    });
    CHECK_MESSAGE(took < kMostSeconds, took);
  }
  CHECK(peak_mib() - before < 200);
}

TEST_CASE("showing an array together with its script does not copy the script for each task") {
  Controller c(config());
  auto m = batch_job("long");
  m.script += "#" + std::string(3 << 20, 'x');
  m.spec.array = ArraySpec{{{0, 1'999, 1}}, std::nullopt};
  const JobId array = submitted(c.ask(kAlice, std::move(m)));
  proto::HoldJobs hold;
  hold.jobs = {{array, {{0, 999, 1}}}};
  REQUIRE(c.ask(kAlice, std::move(hold)).get<proto::JobsDone>().refused.empty());
  const std::int64_t before = peak_mib();
  proto::ShowJob show;
  show.job = {array, {}};
  show.with_script = true;
  const auto reply = c.ask(kAlice, show);
  CHECK(reply.is<proto::ErrorReply>());
  CHECK(peak_mib() - before < 200);
  show.job.tasks = {{7, 7, 1}};
  CHECK(c.ask(kAlice, show).get<proto::ShowJobReply>().jobs.at(0).script.size() > 3 << 20);
}

TEST_CASE("cancelling many heterogeneous jobs takes linear time") {
  Controller c(config());
  proto::SubmitTogether together;
  for (std::uint32_t i = 0; i < kMaxHetParts; ++i) {
    together.parts.push_back(batch_job("part"));
    if (i == 0) continue;
    together.parts.back().spec.kind = JobKind::allocation;
    together.parts.back().script.clear();
  }
  for (int i = 0; i < 400; ++i) submitted(c.ask(kAlice, together));
  proto::CancelJobs all;
  all.all_mine = true;
  const double took = seconds_of([&] { c.ask(kAlice, std::move(all)); });
  CHECK(c.state().counters.queued == 0);
  CHECK_MESSAGE(took < kMostSeconds, took);
}

TEST_CASE("ends of many jobs for which several clients wait take linear time") {
  constexpr std::uint32_t kJobs = 10'000;
  Controller c(config());
  std::vector<proto::JobRef> jobs;
  for (std::uint32_t i = 0; i < kJobs; ++i)
    jobs.push_back({submitted(c.ask(kAlice, batch_job("waited"))), {}});
  for (int i = 0; i < 10; ++i) {
    proto::WaitJobs wait;
    wait.jobs = jobs;
    CHECK(c.ask_many(kAlice, std::move(wait)).empty());
  }
  const proto::JobRef last = jobs.back();
  jobs.pop_back();
  const double took = seconds_of([&] {
    CHECK(c.ask_many(kAlice,
                     [&] {
                       proto::CancelJobs m;
                       m.filter.jobs = jobs;
                       return m;
                     }())
              .size() == 1);
  });
  CHECK_MESSAGE(took < kMostSeconds, took);
  proto::CancelJobs m;
  m.filter.jobs = {last};
  CHECK(c.ask_many(kAlice, std::move(m)).size() == 11);
}

TEST_CASE("ends of many singleton jobs with the same name take linear time") {
  constexpr std::uint32_t kJobs = 40'000;
  Controller c(config());
  for (std::uint32_t i = 0; i < kJobs; ++i) {
    auto m = batch_job("alone");
    m.spec.dependencies.push_back({DependencyKind::singleton, {}, {}, {}});
    submitted(c.ask(kAlice, std::move(m)));
  }
  proto::CancelJobs all;
  all.all_mine = true;
  const double took = seconds_of([&] { c.ask(kAlice, std::move(all)); });
  CHECK(c.state().counters.queued == 0);
  CHECK(audit(c.state()).empty());
  CHECK_MESSAGE(took < kMostSeconds, took);
}

TEST_CASE("the end of a job takes linear time when many jobs depend on it, each many times") {
  Controller c(config());
  const JobId first = submitted(c.ask(kAlice, batch_job("first")));
  for (std::uint32_t i = 0; i < 200; ++i) {
    auto m = batch_job("second");
    m.spec.dependencies.assign(1024, {DependencyKind::after_any, first, {}, {}});
    submitted(c.ask(kAlice, std::move(m)));
  }
  const double took = seconds_of([&] { cancel(c, {{first, {}}}); });
  CHECK(audit(c.state()).empty());
  CHECK_MESSAGE(took < kMostSeconds, took);
}

TEST_CASE("releasing many held tasks of an array with a task limit takes linear time") {
  Controller c(config());
  auto m = batch_job("sweep");
  m.spec.array = ArraySpec{{{0, 9'999, 1}}, 1};
  const JobId array = submitted(c.ask(kAlice, std::move(m)));
  proto::HoldJobs hold;
  for (std::uint32_t i = 0; i < 9; ++i) {
    hold.jobs = {{array, {{1'000 * i, 1'000 * i + 999, 1}}}};
    REQUIRE(c.ask(kAlice, hold).get<proto::JobsDone>().refused.empty());
  }
  proto::ReleaseJobs release;
  release.jobs = {{array, {}}};
  const double took = seconds_of([&] { c.ask(kAlice, std::move(release)); });
  CHECK_MESSAGE(took < kMostSeconds, took);
}

TEST_CASE("the end of a task does not look at jobs that wait for other tasks of its array") {
  Controller c(config());
  auto m = batch_job("sweep");
  m.spec.array = ArraySpec{{{0, 19'999, 1}}, std::nullopt};
  const JobId array = submitted(c.ask(kAlice, std::move(m)));
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    auto waits = batch_job("waits");
    waits.spec.dependencies.push_back({DependencyKind::after_any, array, i, {}});
    submitted(c.ask(kAlice, std::move(waits)));
  }
  proto::HoldJobs hold;
  for (std::uint32_t i = 10; i < 20; ++i) {
    hold.jobs = {{array, {{1'000 * i, 1'000 * i + 998, 1}}}};
    REQUIRE(c.ask(kAlice, hold).get<proto::JobsDone>().refused.empty());
  }
  const double took = seconds_of([&] { cancel(c, {{array, {{10'000, 19'999, 1}}}}); });
  CHECK(c.state().counters.queued == 20'000);
  CHECK_MESSAGE(took < kMostSeconds, took);
}

TEST_CASE("moving jobs to the front writes one event for each") {
  constexpr std::uint32_t kJobs = 500;
  Controller c(config());
  proto::TopJobs top;
  for (std::uint32_t i = 0; i < kJobs; ++i)
    top.jobs.push_back({submitted(c.ask(kAlice, batch_job("ranked"))), {}});
  const EventSeq before = c.last_event();
  const auto done = c.ask(kAlice, std::move(top)).get<proto::JobsDone>();
  CHECK(done.changed == kJobs);
  CHECK(c.last_event().value() - before.value() <= kJobs);
}

TEST_CASE("a job is refused if it would be too large to be sent to the node that starts it") {
  Controller c(config());
  const auto refused = [&](proto::SubmitJob m) {
    const auto reply = c.ask(kAlice, std::move(m));
    const auto* error = reply.get_if<proto::ErrorReply>();
    REQUIRE(error != nullptr);
    return static_cast<ErrorCode>(error->code);
  };
  auto wordy = batch_job("wordy");
  wordy.spec.mail.to.assign(100'000, "alice@example.org");
  CHECK(refused(std::move(wordy)) == ErrorCode::invalid_argument);
  auto far = batch_job("far");
  far.spec.script_path = "/" + std::string(12 << 20, 'x');
  CHECK(refused(std::move(far)) == ErrorCode::limit_exceeded);
  auto pieces = batch_job("pieces");
  pieces.spec.array.emplace();
  for (std::uint32_t i = 0; i < 500'000; ++i)
    pieces.spec.array->ranges.push_back({2 * i, 2 * i, 1});
  CHECK(refused(std::move(pieces)) == ErrorCode::limit_exceeded);
}

TEST_CASE("a page of jobs ends before its lists of tasks are larger than a message may be") {
  Controller c(config());
  std::set<JobId> jobs;
  for (int i = 0; i < 4; ++i) {
    auto m = batch_job("pieces");
    m.spec.array = ArraySpec{{{1'000'000, 1'199'999, 1}}, std::nullopt};
    jobs.insert(submitted(c.ask(kAlice, std::move(m))));
    cancel(c, {{*jobs.rbegin(), {{1'000'000, 1'199'999, 2}}}});
  }
  std::set<JobId> seen;
  proto::ListJobs list;
  for (bool more = true; more;) {
    const auto reply = c.ask(kAlice, list).get<proto::ListJobsReply>();
    CHECK(codec::encode(reply).size() < 3 << 20);
    for (const proto::JobRow& row : reply.rows) CHECK(seen.insert(row.job).second);
    list.after = reply.next;
    more = reply.more;
  }
  CHECK(seen == jobs);
}

// An attacker with a node's stolen key could try this.
TEST_CASE(
    "a node can raise the next job id only by a fixed number in all, however often it registers") {
  Controller c(config());
  for (int i = 0; i < 5; ++i) {
    proto::NodeRegister m;
    m.node = "n1";
    m.boot_id = "boot";
    m.memory = std::int64_t{16} << 30;
    for (std::uint16_t cpu = 0; cpu < 8; ++cpu) m.cpus.push_back(cpu);
    m.highest_job = JobId(c.state().last_job.value() + proto::kMostIdsAhead);
    c.step(FromNode{"n1", std::move(m)});
    CHECK(c.state().last_job == JobId(proto::kMostIdsAhead));
  }
}

}  // namespace gantry::core::test::cost_test
