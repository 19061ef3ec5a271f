// Runs gbatch as a process and checks what arrives at the controller and what the user sees.
#include <doctest/doctest.h>

#include <set>

#include "cli/session.h"
#include "tests/cli/fake_controller.h"
#include "tests/cli/samples.h"

using namespace gantry;
using namespace gantry::test;

namespace {

const std::string kScript = "#!/bin/sh\nhostname\n";

}  // namespace

TEST_CASE("gbatch reads its script from standard input, from a file or from --wrap") {
  FakeController fake;
  accept_job(fake);
  Run run = fake.run({"gbatch"}, kScript);
  CHECK(run.out == "Submitted batch job 42\n");
  CHECK(run.err.empty());
  CHECK(run.status == 0);
  CHECK(fake.last<proto::SubmitJob>().script == kScript);
  CHECK(fake.last<proto::SubmitJob>().spec.name == "gbatch");
  CHECK(fake.last<proto::SubmitJob>().request_id.size() == 32);

  const ScratchDir files;
  const std::string script =
      files.file("job.sh", "#!/bin/sh\n#SBATCH -J named --mem=2G\n#SBATCH -t 10\necho\n");
  run = fake.run({"gbatch", "--parsable", "-t", "20", script, "--epochs", "10"});
  CHECK(run.out == "42\n");
  auto submit = fake.last<proto::SubmitJob>();
  CHECK(submit.spec.name == "named");
  CHECK(submit.spec.time_limit == minutes(20));  // the command line overrides the script
  CHECK(submit.spec.shape.memory_per_node == std::int64_t{2} << 30);
  CHECK(submit.spec.script_args == std::vector<std::string>{"--epochs", "10"});
  CHECK(submit.spec.submit_line == "gbatch --parsable -t 20 " + script + " --epochs 10");

  run = fake.run({"gbatch", "--wrap=echo hello", "-Q"});
  CHECK(run.out.empty());
  submit = fake.last<proto::SubmitJob>();
  CHECK(submit.spec.name == "wrap");
  CHECK(submit.script.find("\necho hello\n") != std::string::npos);
  CHECK(submit.spec.submit_line == "gbatch '--wrap=echo hello' -Q");
}

TEST_CASE("variables override directives of the script, and options override variables") {
  FakeController fake;
  accept_job(fake);
  const std::string script = "#!/bin/sh\n#SBATCH -p script -A script -J script\n";
  const std::map<std::string, std::string> variables{
      {"SBATCH_PARTITION", "sbatch"}, {"GBATCH_PARTITION", "gbatch"}, {"SBATCH_ACCOUNT", "sbatch"}};
  REQUIRE(fake.run({"gbatch", "-A", "line"}, script, variables).status == 0);
  const JobSpec spec = fake.last<proto::SubmitJob>().spec;
  CHECK(spec.name == "script");
  CHECK(spec.partition == "gbatch");
  CHECK(spec.account == "line");
}

TEST_CASE("--export selects which variables reach the job") {
  FakeController fake;
  accept_job(fake);
  const std::map<std::string, std::string> more{{"FOO", "a b"}, {"BAR", "c"}};
  const auto sent = [&](const std::string& value) {
    REQUIRE(fake.run({"gbatch", "--export", value}, kScript, more).status == 0);
    return fake.last<proto::SubmitJob>().environment;
  };
  CHECK(sent("ALL").at("FOO") == "a b");
  CHECK(sent("ALL").contains("PATH"));
  CHECK(sent("NONE").empty());
  const auto some = sent("FOO,X=1=2 'q',BAR");
  CHECK(some.size() == 3);
  CHECK(some.at("FOO") == "a b");
  CHECK(some.at("X") == "1=2 'q'");
  CHECK(sent("ALL,BAR=d").at("BAR") == "d");
  CHECK(sent("ALL,BAR=d").contains("PATH"));
}

TEST_CASE("--network names a profile, --net and --io are rates") {
  FakeController fake;
  accept_job(fake);
  const auto submitted = [&](std::vector<std::string> options) {
    options.insert(options.begin(), "gbatch");
    fake.run(options, kScript);
    return fake.last<proto::SubmitJob>().spec;
  };
  const JobSpec spec = submitted({"--network=job,download", "--net=500M"});
  CHECK(spec.network == NetworkMode::job);
  CHECK(spec.network_profile == "download");
  CHECK(spec.network_rate == 500'000'000);
  CHECK(submitted({"--network=job,download", "--network=none"}).network_profile.empty());
  CHECK(submitted({"--net=10G"}).network_rate == 10'000'000'000);
  CHECK(submitted({"--io=200M"}).io_rate == 200'000'000);
  CHECK(submitted({"--net=10G"}).io_rate == 0);
  for (const char* wrong : {"--net=0", "--net=11T", "--net=-1", "--net=fast", "--network=job,",
                            "--network=all", "--io=0", "--io=2 G", "--io=1Mi"}) {
    CAPTURE(wrong);
    const Run run = fake.run({"gbatch", wrong}, kScript);
    CHECK(run.status != 0);
    CHECK(run.err.find(std::string(wrong).substr(0, 4)) != std::string::npos);
  }
}

TEST_CASE("--test-only prints the expected start, and a refusal is an error with its reason") {
  FakeController fake;
  proto::SubmitReply reply;
  reply.partition = "batch";
  reply.expected_start = kNow;
  reply.expected_nodes = "n[01-02]";
  reply.cpus = 8;
  fake.answer<proto::SubmitJob>(reply);
  Run run = fake.run({"gbatch", "--test-only"}, kScript);
  CHECK(run.err ==
        "gbatch: Job to start at 2026-01-31T09:00:00 using 8 processors on nodes n[01-02] in "
        "partition batch\n");
  CHECK(run.out.empty());
  CHECK(fake.last<proto::SubmitJob>().test_only);
  fake.answer<proto::SubmitJob>(
      proto::ErrorReply{7, "no node of batch has 900 cores; the largest has 64"});
  run = fake.run({"gbatch", "-c", "900"}, kScript);
  CHECK(run.status == 1);
  CHECK(run.out.empty());
  CHECK(run.err ==
        "gbatch: error: Batch job submission failed: no node of batch has 900 cores; the largest "
        "has 64\n");
}

TEST_CASE("a submit whose reply was not received is sent again with the same request id") {
  FakeController fake;
  std::vector<std::string> ids;
  fake.on<proto::SubmitJob>([&](const proto::SubmitJob& submit) {
    ids.push_back(submit.request_id);
    return proto::ErrorReply{static_cast<std::uint16_t>(ErrorCode::unavailable), "starting"};
  });
  const Run run = fake.run({"gbatch"}, kScript);
  CHECK(run.status == 1);
  CHECK(run.err == "gbatch: error: Batch job submission failed: starting\n");
  REQUIRE(ids.size() == 4);
  CHECK(std::set<std::string>(ids.begin(), ids.end()).size() == 1);
}

TEST_CASE("a request that is refused because of too many requests is sent again later") {
  FakeController fake;
  int asked = 0;
  fake.on<proto::SubmitJob>([&](const proto::SubmitJob&) {
    ++asked;
    return proto::ErrorReply{static_cast<std::uint16_t>(ErrorCode::too_many), "not so fast"};
  });
  Run run = fake.run({"gbatch"}, kScript);
  CHECK(run.status == 1);
  CHECK(asked >= 4);
  int listed = 0;
  fake.on<proto::CancelJobs>([&](const proto::CancelJobs&) {
    const auto code = static_cast<std::uint16_t>(++listed < 3 ? ErrorCode::too_many
                                                              : ErrorCode::permission_denied);
    return proto::ErrorReply{code, "not so fast"};
  });
  run = fake.run({"gcancel", "7"});
  CHECK(run.status == 1);
  CHECK(listed == 3);
}

TEST_CASE("--wait returns the exit status of the job") {
  FakeController fake;
  accept_job(fake);
  const auto wait_with = [&](Outcome outcome, ExitStatus exit) {
    proto::JobRow row = sample_jobs()[4];
    row.outcome = outcome;
    row.exit = exit;
    fake.answer<proto::WaitJobs>(proto::WaitReply{{row}, {}});
    return fake.run({"gbatch", "--wait"}, kScript).status;
  };
  CHECK(wait_with(Outcome::completed, {0, 0}) == 0);
  CHECK(wait_with(Outcome::failed, {3, 0}) == 3);
  CHECK(wait_with(Outcome::failed, {0, 9}) == 137);
  CHECK(wait_with(Outcome::cancelled, {0, 0}) == 1);
  CHECK(fake.last<proto::WaitJobs>().jobs[0].job == JobId{42});
}

TEST_CASE("an error names the missing client.conf or the controller that cannot be reached") {
  const ScratchDir files;
  Run run = run_program({{"gqueue"}, {{"GANTRY_CONF", files.path()}}, {}, files.path()});
  CHECK(run.status == 1);
  CHECK(run.err ==
        "gqueue: error: there is no " + files.path() + "/client.conf (from GANTRY_CONF)\n");
  (void)files.file("client.conf",
                   "controller = 127.0.0.1:1\npublic_key = " + std::string(64, '1') + "\n");
  run = run_program({{"gqueue"}, {{"GANTRY_CONF", files.path()}}, {}, files.path()});
  CHECK(run.status == 1);
  CHECK(run.err.find("gqueue: error: cannot reach the controller at tcp://127.0.0.1:1: ") == 0);
}

// A person runs this test by hand: cli_commands_test -ns -tc="wall time*"
TEST_CASE("wall time of one gbatch process" * doctest::skip()) {
  FakeController fake;
  accept_job(fake);
  std::vector<std::int64_t> times;
  for (int i = 0; i < 400; ++i) {
    const Instant before = cli::system_now();
    REQUIRE(fake.run({"gbatch"}, kScript).status == 0);
    times.push_back((cli::system_now() - before).us);
  }
  std::sort(times.begin(), times.end());
  MESSAGE("median " << times[200] << " us, p95 " << times[380] << " us, best " << times[0]
                    << " us");
}
