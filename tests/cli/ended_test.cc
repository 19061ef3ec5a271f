// Jobs that the controller's queue no longer has: every command asks accounting about them. Unknown
// jobs, users, partitions and tenants are errors.
#include <doctest/doctest.h>

#include "cli/session.h"
#include "tests/cli/fake_controller.h"
#include "tests/cli/samples.h"

using namespace gantry;
using namespace gantry::test;

namespace {

proto::HistoryRow ended_job() {
  proto::HistoryRow job;
  job.row = sample_jobs()[4];
  job.row.job = JobId{41};
  job.row.outcome = Outcome::failed;
  job.row.exit = {3, 0};
  job.work_dir = "/home/alice";
  job.group = "100";
  job.submit_line = "gbatch grow.sh";
  return job;
}

constexpr auto kIsUnknown = static_cast<std::uint16_t>(ErrorCode::not_found);

// The queue is empty; accounting knows job 41 and the tasks 0 and 1 of job 50.
void fill_ended(FakeController& fake) {
  fake.answer<proto::ShowJob>(proto::ErrorReply{kIsUnknown, "there is no job"});
  fake.answer<proto::ReadLog>(proto::ErrorReply{kIsUnknown, "there is no job"});
  fake.answer<proto::ListPartitions>(proto::ListPartitionsReply{sample_partitions()});
  fake.on<proto::ListJobs>([](const proto::ListJobs& list) {
    proto::ListJobsReply reply;
    reply.unknown = list.filter.jobs;
    return reply;
  });
  fake.on<proto::QueryHistory>([](const proto::QueryHistory& query) {
    proto::HistoryReply reply;
    reply.now = kNow;
    for (const proto::JobRef& ref : query.filter.jobs) {
      if (ref.job == JobId{41}) reply.rows.push_back(ended_job());
      if (ref.job != JobId{50}) continue;
      for (std::uint32_t task : {1u, 0u}) {
        proto::HistoryRow row = ended_job();
        row.row.job = JobId{50 + task};
        row.row.array_job = JobId{50};
        row.row.array_task = task;
        row.row.outcome = Outcome::completed;
        row.row.exit = {};
        reply.rows.push_back(row);
      }
    }
    return reply;
  });
  const auto change = [](const auto& message) {
    proto::JobsDone done;
    done.not_active = message.jobs;
    return done;
  };
  fake.on<proto::HoldJobs>(change);
  fake.on<proto::RequeueJobs>(change);
  fake.on<proto::UpdateJob>([](const proto::UpdateJob& message) {
    proto::JobsDone done;
    done.not_active = {message.job};
    return done;
  });
  fake.on<proto::CancelJobs>([](const proto::CancelJobs& message) {
    proto::JobsDone done;
    done.not_active = message.filter.jobs;
    return done;
  });
}

constexpr const char* kEnded = "job 41 ended at 2026-01-31T08:42:00, exit code 3 (FAILED)";

}  // namespace

TEST_CASE("a job that has left the queue is looked up in accounting") {
  FakeController fake;
  fill_ended(fake);
  CHECK(fake.run({"gctl", "why", "41"}).out == std::string(kEnded) + "\n");
  CHECK(fake.run({"gctl", "why", "50"}).out ==
        "job 50_0 ended at 2026-01-31T08:42:00, exit code 0 (COMPLETED)\n"
        "job 50_1 ended at 2026-01-31T08:42:00, exit code 0 (COMPLETED)\n");
  const Run shown = fake.run({"gctl", "show", "job", "41"});
  CHECK(shown.status == 0);
  CHECK(shown.out.find("JobId=41 JobName=grows\n") == 0);
  CHECK(shown.out.find("JobState=FAILED Reason=NonZeroExitCode Restarts=0 ExitCode=3:0") !=
        std::string::npos);
  CHECK(fake.run({"gctl", "show", "job", "--script", "41"}).err ==
        "gctl show job: error: " + std::string(kEnded) + "; its script is not kept any more\n");
  for (const std::vector<std::string>& command : {std::vector<std::string>{"gctl", "hold", "41"},
                                                  {"gctl", "requeue", "41"},
                                                  {"gctl", "update", "job", "41", "time=5"}}) {
    const Run run = fake.run(command);
    CHECK(run.status == 1);
    CHECK(run.err == command[0] + " " + command[1] + ": " + kEnded + "\n");
  }
  const Run cancelled = fake.run({"gcancel", "41"});
  CHECK(cancelled.status == 0);
  CHECK(cancelled.err == std::string("gcancel: ") + kEnded + "\n");
}

TEST_CASE("the output of a job that has left the queue is read where it lies") {
  FakeController fake;
  fill_ended(fake);
  const Run run = fake.run({"gctl", "logs", "41"});
  CHECK(run.status == 1);
  CHECK(run.err == "gctl logs: error: " + std::string(kEnded) +
                       "; its output is no longer read from its node, and this machine has no "
                       "file /home/alice/gantry-41.out\n");
  const ScratchDir files;
  (void)files.file("gantry-41.out", "what it said\n");
  fake.on<proto::QueryHistory>([&](const proto::QueryHistory&) {
    proto::HistoryReply reply;
    reply.rows.push_back(ended_job());
    reply.rows.back().work_dir = files.path();
    return reply;
  });
  CHECK(fake.run({"gctl", "logs", "41"}).out == "what it said\n");
  (void)files.file("train-41.txt", "by its own name\n");
  fake.on<proto::QueryHistory>([&](const proto::QueryHistory&) {
    proto::HistoryReply reply;
    reply.rows.push_back(ended_job());
    reply.rows.back().work_dir = files.path();
    reply.rows.back().std_out = "train-%j.txt";
    return reply;
  });
  CHECK(fake.run({"gctl", "logs", "41"}).out == "by its own name\n");
}

TEST_CASE("a job that never existed is an error in every command") {
  FakeController fake;
  fill_ended(fake);
  for (const std::vector<std::string>& command : {std::vector<std::string>{"gcancel", "999"},
                                                  {"gctl", "why", "999"},
                                                  {"gctl", "logs", "999"},
                                                  {"gctl", "show", "job", "999"},
                                                  {"gctl", "hold", "999"},
                                                  {"gctl", "update", "job", "999", "time=5"},
                                                  {"gacct", "-j", "999"}}) {
    const Run run = fake.run(command);
    CAPTURE(command[0] + " " + command[1]);
    CHECK(run.status == 1);
    CHECK(run.err.find("error: there is no job 999\n") != std::string::npos);
  }
  CHECK(fake.run({"gcancel", "-Q", "999"}).err.empty());
}

TEST_CASE("a user, partition or tenant that nobody knows is an error in every listing") {
  FakeController fake;
  fill_ended(fake);
  fake.answer<proto::QueryHistory>(proto::HistoryReply{});
  fake.answer<proto::PriorityTuples>(proto::PriorityTuplesReply{});
  fake.answer<proto::ShareTree>(proto::ShareTreeReply{});
  fake.answer<proto::ListNodes>(proto::ListNodesReply{sample_nodes(), kNow});
  fake.answer<proto::QueryLedger>(proto::LedgerReply{});
  fake.answer<proto::CancelJobs>(proto::JobsDone{});
  const auto refused = [&](const std::vector<std::string>& command) {
    const Run run = fake.run(command);
    CHECK(run.status == 1);
    return run.err;
  };
  const std::string user = "there is no user \"nosuchuser\"\n";
  const std::string partition = "there is no partition \"nosuch\"; there is batch, debug\n";
  CHECK(refused({"gqueue", "-u", "nosuchuser"}) == "gqueue: error: " + user);
  CHECK(refused({"gqueue", "--watch", "-u", "nosuchuser"}) == "gqueue: error: " + user);
  CHECK(refused({"gqueue", "--json", "-p", "nosuch"}) == "gqueue: error: " + partition);
  CHECK(refused({"gacct", "-u", "nosuchuser"}) == "gacct: error: " + user);
  CHECK(refused({"gacct", "-r", "nosuch"}) == "gacct: error: " + partition);
  CHECK(refused({"gprio", "-u", "nosuchuser"}) == "gprio: error: " + user);
  CHECK(refused({"ginfo", "-p", "nosuch"}) == "ginfo: error: " + partition);
  CHECK(refused({"ginfo", "--gpus", "-p", "nosuch"}) == "ginfo: error: " + partition);
  CHECK(refused({"gcancel", "-u", "nosuchuser"}) == "gcancel: error: " + user);
  CHECK(refused({"gshare", "-p", "nosuch"}) == "gshare: error: there is no tenant \"nosuch\"\n");
  CHECK(refused({"greport", "-t", "nosuch"}) == "greport: error: there is no tenant \"nosuch\"\n");
  CHECK(refused({"greport", "-u", "nosuchuser"}) == "greport: error: " + user);
  CHECK(fake.run({"gqueue", "-u", "root", "-p", "batch"}).status == 0);
}

TEST_CASE("the output of an array is printed with its tasks in front") {
  FakeController fake;
  fake.on<proto::ListJobs>([](const proto::ListJobs&) {
    proto::ListJobsReply reply;
    for (std::uint32_t task : {0u, 1u}) {
      proto::JobRow row = sample_jobs()[4];
      row.job = JobId{60 + task};
      row.array_job = JobId{60};
      row.array_task = task;
      reply.rows.push_back(row);
    }
    return reply;
  });
  fake.on<proto::ReadLog>([](const proto::ReadLog& read) {
    proto::LogChunk chunk;
    const std::string whole = read.job.tasks[0].first == 0 ? "one\ntwo" : "three\n";
    chunk.offset = read.offset;
    chunk.data = whole.substr(std::min<std::size_t>(read.offset, whole.size()), 5);
    chunk.job_ended = true;
    return chunk;
  });
  CHECK(fake.run({"gctl", "logs", "-f", "60_[0-1]"}).out == "60_0: one\n60_0: two\n60_1: three\n");
}
