// sacctmgr modify job, and what sacct and scontrol show of it.
#include <doctest/doctest.h>

#include "common/proto/history.h"
#include "tests/cli/fake_controller.h"
#include "tests/cli/samples.h"

using namespace gantry;
using namespace gantry::test;

namespace {

proto::HistoryRow ended_job() {
  proto::HistoryRow job;
  job.row.job = JobId{12};
  job.row.name = "train";
  job.row.user = "alice";
  job.row.phase = Phase::ended;
  job.row.outcome = Outcome::completed;
  job.row.submitted = job.row.eligible = kNow - hours(2);
  job.row.started = kNow - hours(1);
  job.row.ended = kNow;
  return job;
}

struct NotesFixture {
  FakeController fake;
  proto::HistoryReply history;
  NotesFixture() {
    history.rows = {ended_job()};
    fake.on<proto::QueryHistory>([this](const proto::QueryHistory&) { return history; });
    proto::JobsDone done;
    done.changed = 1;
    fake.answer<proto::NoteJobs>(done);
  }
  Run modify(std::vector<std::string> words) {
    words.insert(words.begin(), {"slurm/sacctmgr", "-i", "modify", "job"});
    return fake.run(words);
  }
};

}  // namespace

TEST_CASE_FIXTURE(NotesFixture,
                  "sacctmgr modify job notes exit code and comments, and names the job") {
  Run run = modify({"job=12", "set", "DerivedExitCode=22", "Comment=hello"});
  CAPTURE(run.err);
  CHECK(run.status == 0);
  CHECK(run.out.starts_with(" Modified jobs...\n  12 submitted at "));
  proto::NoteJobs m = fake.last<proto::NoteJobs>();
  CHECK(m.jobs == std::vector<proto::JobRef>{{JobId{12}, {}, {}}});
  CHECK(m.derived_exit == ExitStatus{0, 22});  // a status as of wait(), as in Slurm
  CHECK(m.comment == "hello");
  CHECK_FALSE(m.admin_comment);
  CHECK(modify({"where", "jobid=12,13_4", "set", "DerivedExitCode=512", "AdminComment='a b'",
                "SystemComment=c"})
            .status == 0);
  m = fake.last<proto::NoteJobs>();
  CHECK(m.jobs.size() == 2);
  CHECK(m.derived_exit == ExitStatus{2, 0});
  CHECK(m.admin_comment == "a b");
  CHECK(m.system_comment == "c");
}

TEST_CASE_FIXTURE(NotesFixture, "sacctmgr modify job says what is wrong, and what was refused") {
  const auto refused = [&](std::vector<std::string> words, const char* text) {
    const Run run = modify(std::move(words));
    CAPTURE(run.err);
    CHECK(run.status == 1);
    CHECK(run.err.find(text) != std::string::npos);
  };
  refused({"set", "Comment=x"}, "Need a job id to modify");
  refused({"job=12"}, "You didn't give me anything to set");
  refused({"job=12", "set", "Extra=x"}, "Of a job can be set: DerivedExitCode, Comment");
  refused({"job=12", "set", "DerivedExitCode=x"}, "DerivedExitCode");
  refused({"job=12", "set", "DerivedExitCode=99"}, "there is no signal 99");
  refused({"job=x", "set", "Comment=x"}, "Invalid job id x");
  refused({"user=alice", "set", "Comment=x"}, "Unknown condition: user=alice");
  CHECK(fake.count(proto::MessageType::NoteJobs) == 0);
  CHECK(fake.run({"slurm/sacctmgr", "-i", "delete", "job", "job=12"}).status == 1);
  proto::JobsDone done;
  done.not_active = {{JobId{12}, {}, {}}};
  fake.answer<proto::NoteJobs>(done);
  refused({"job=12", "set", "Comment=x"}, "12: there is no such job that you may modify");
  history.rows.clear();
  const Run none = modify({"job=12", "set", "Comment=x"});
  CHECK(none.out == " Nothing modified\n");
  CHECK(none.status == 1);
}

TEST_CASE_FIXTURE(NotesFixture, "sacct shows what was noted in the place of the worst step") {
  proto::HistoryRow& job = history.rows[0];
  proto::StepRow step;
  step.step = "0";
  step.exit = {123, 0};
  job.steps = {step};
  const auto shown = [&] {
    return fake
        .run({"slurm/sacct", "-nPX", "-j", "12", "-o",
              "ExitCode,DerivedExitCode,Comment,AdminComment,SystemComment"})
        .out;
  };
  CHECK(shown() == "0:0|123:0|||\n");
  job.derived_exit = ExitStatus{0, 22};
  job.comment = "hello";
  job.admin_comment = "checked";
  job.system_comment = "kept";
  CHECK(shown() == "0:0|0:22|hello|checked|kept\n");
}

TEST_CASE_FIXTURE(NotesFixture,
                  "scontrol update sets the comments of an administrator and of the system") {
  fake.answer<proto::UpdateJob>(proto::JobsDone{});
  CHECK(fake.run({"slurm/scontrol", "update", "job=12", "AdminComment=checked"}).status == 0);
  CHECK(fake.last<proto::NoteJobs>().admin_comment == "checked");
  CHECK_FALSE(fake.last<proto::NoteJobs>().comment);
  CHECK(fake.count(proto::MessageType::UpdateJob) == 0);
  CHECK(fake.run({"slurm/scontrol", "update", "job=12", "SystemComment=kept", "Comment=mine"})
            .status == 0);
  CHECK(fake.last<proto::NoteJobs>().system_comment == "kept");
  CHECK(fake.last<proto::UpdateJob>().comment == "mine");
}
