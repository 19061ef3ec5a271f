// Tests gantry-noded as a process against a scripted controller, with the runtime that runs nothing
// and with plain processes.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/eventually.h"
#include "tests/noded/process_node.h"

namespace gantry::test {
namespace {

TEST_CASE("with the runtime that runs nothing a job is acknowledged and ends at once") {
  FakeController ctld;
  NodeUnderTest node(ctld, "none");
  node.start();
  const auto facts = ctld.accept();
  CHECK(facts.node == "n1");
  CHECK(facts.protocol == proto::kProtocolVersion);
  CHECK(facts.cpus == std::vector<std::uint16_t>{0});
  CHECK(facts.memory == 256ll << 20);
  CHECK(facts.runtime == "none");
  CHECK(facts.layers_off.size() == 1);
  CHECK(!facts.boot_id.empty());
  CHECK(facts.attempts.empty());

  for (std::uint64_t job = 1; job <= 100; ++job) ctld.send(launch(ctld, job, "/", "exit 1\n"));
  for (std::uint64_t job = 1; job <= 100; ++job) {
    const auto report = exit_of(ctld, job);
    CHECK(report.cause == proto::ExitCause::exited);
    CHECK(report.exit == ExitStatus{0, 0});
    ctld.send(proto::AckExit{ctld.stamp(), key(job)});
  }
  CHECK(ctld.expect<proto::Heartbeat>().session == 1);

  auto held = launch(ctld, 200, "/", "");
  held.hold = true;
  ctld.send(held);
  CHECK(ctld.expect<proto::LaunchReady>().key == key(200));
  ctld.send(proto::Go{ctld.stamp(), key(200)});
  CHECK(exit_of(ctld, 200).cause == proto::ExitCause::exited);

  auto allocation = launch(ctld, 201, "/", "");
  allocation.runs_batch = false;
  ctld.send(allocation);
  ctld.expect<proto::Started>([](const auto& m) { return m.key == key(201); });
  ctld.send(proto::Terminate{ctld.stamp(), key(201), seconds(30), ""});
  CHECK(exit_of(ctld, 201).cause == proto::ExitCause::ordered);

  node.stop(SIGTERM);
  CHECK(ctld.expect<proto::Goodbye>().session == 1);
}

// This is not a test: it measures how many jobs per second one daemon handles. Run it with -ns
// -tc="rate*".
TEST_CASE("rate of jobs with the runtime that runs nothing" * doctest::skip()) {
  FakeController ctld;
  NodeUnderTest node(ctld, "none");
  node.start();
  ctld.accept();
  auto job = launch(ctld, 1, "/", std::string(500, '#') + "\nexit 0\n");
  for (int i = 0; i < 40; ++i)
    job.environment["VARIABLE_" + std::to_string(i)] = "/a/value/of/usual/length:/and/another";
  constexpr std::uint64_t kJobs = 50'000, kAhead = 256;
  const Instant begin = FakeController::now();
  std::uint64_t sent = 0, done = 0;
  while (done < kJobs) {
    while (sent < kJobs && sent < done + kAhead) {
      job.stamp = ctld.stamp();
      job.key = key(++sent);
      ctld.send(job);
    }
    const auto report = ctld.expect<proto::ExitReport>();
    ctld.send(proto::AckExit{ctld.stamp(), report.key});
    ctld.forget_seen_of<proto::Started>();
    ++done;
  }
  const auto us = (FakeController::now() - begin).us;
  node.stop(SIGTERM);
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const auto cpu = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000 +
                   used.ru_utime.tv_usec + used.ru_stime.tv_usec;
  MESSAGE(kJobs << " jobs in " << us / 1000 << " ms: " << kJobs * 1'000'000 / us << "/s, "
                << static_cast<std::uint64_t>(cpu) / kJobs << " us of CPU each in the daemon");
}

TEST_CASE("the daemon registers again on request, and refuses a controller with an older epoch") {
  FakeController ctld;
  ctld.epoch = 5;
  NodeUnderTest node(ctld, "none");
  node.start();
  ctld.accept();
  ctld.send(proto::RegisterAgain{Epoch{6}});
  ctld.epoch = 6;
  CHECK(ctld.accept().highest_epoch == Epoch{6});
  node.stop(SIGKILL);

  ctld.forget_seen();
  node.start();  // the epoch was read from disk
  ctld.epoch = 5;
  CHECK(ctld.accept().highest_epoch == Epoch{6});
  ctld.send(launch(ctld, 1, "/", ""));
  CHECK(ctld.nothing<proto::Started>(milliseconds(300)));
}

TEST_CASE(
    "the daemon remembers the highest job that it was told to start, even long after it ended") {
  FakeController ctld;
  NodeUnderTest node(ctld, "none");
  node.start();
  CHECK(ctld.accept().highest_job == JobId{});
  for (const std::uint64_t job : {8, 7}) {
    ctld.send(launch(ctld, job, "/", "exit 1\n"));
    CHECK(exit_of(ctld, job).cause == proto::ExitCause::exited);
    ctld.send(proto::AckExit{ctld.stamp(), key(job)});
  }
  // The daemon sends a heartbeat only after what it has to remember is on disk.
  ctld.forget_seen();
  ctld.expect<proto::Heartbeat>();
  node.stop(SIGKILL);
  ctld.forget_seen();
  node.start();
  const proto::NodeRegister again = ctld.accept();
  CHECK(again.highest_job == JobId{8});
  CHECK(again.attempts.empty());
}

namespace {

// Makes writing a file of the state directory fail, as on a full disk, even for root.
class Unwritable {
 public:
  explicit Unwritable(std::string path) : path_(std::move(path)) { begin(); }
  ~Unwritable() { end(); }
  Unwritable(const Unwritable&) = delete;
  Unwritable& operator=(const Unwritable&) = delete;
  void begin() { std::filesystem::create_directory(path_); }
  void end() { std::filesystem::remove(path_); }
  // Counts how often the daemon logged that it cannot write the file.
  [[nodiscard]] int said(const NodeUnderTest& node) const {
    int lines = 0;
    std::istringstream log(node.log());
    const std::string name = std::filesystem::path(path_).filename().string() + ":";
    for (std::string line; std::getline(log, line);)
      lines += line.find(name) != std::string::npos ? 1 : 0;
    return lines;
  }

 private:
  std::string path_;
};

// Waits for two heartbeats that were sent after this call: whatever the daemon did before is then
// done.
void expect_later_beats(FakeController& ctld) {
  timespec t{};
  ::clock_gettime(CLOCK_REALTIME, &t);
  const Instant from{std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000};
  for (int i = 0; i < 2; ++i)
    ctld.expect<proto::Heartbeat>([&](const auto& beat) { return beat.sent > from; });
}

}  // namespace

TEST_CASE("a job id that cannot be written is reported once, and written as soon as possible") {
  FakeController ctld;
  NodeUnderTest node(ctld, "none");
  node.start();
  ctld.accept();
  const auto run = [&](std::uint64_t job) {
    ctld.send(launch(ctld, job, "/", "exit 1\n"));
    CHECK(exit_of(ctld, job).cause == proto::ExitCause::exited);
    ctld.send(proto::AckExit{ctld.stamp(), key(job)});
  };
  expect_later_beats(ctld);  // the epoch is on disk now
  Unwritable memory(node.dir() + "/state/memory.msgpack.new.tmp");
  run(8);
  expect_later_beats(ctld);
  CHECK(memory.said(node) == 1);
  memory.end();
  expect_later_beats(ctld);
  memory.begin();
  run(9);
  expect_later_beats(ctld);
  CHECK(memory.said(node) == 2);

  node.stop(SIGKILL);
  memory.end();
  ctld.forget_seen();
  node.start();
  // job 8 was written when writing was possible again
  CHECK(ctld.accept().highest_job == JobId{8});

  // A daemon that cannot remember a new controller must end, because it could later obey an old
  // one.
  memory.begin();
  ctld.send(proto::RegisterAgain{Epoch{ctld.epoch + 1}});
  CHECK(node.wait() != 0);
}

TEST_CASE("under fencing a contact time that cannot be written does not end the daemon") {
  FakeController ctld;
  ctld.fence_after = minutes(60);
  NodeUnderTest node(ctld, "none");
  node.start();
  ctld.accept();
  ctld.expect<proto::Heartbeat>();
  const Unwritable contact(node.dir() + "/state/contact.tmp");
  const auto acknowledged = [&] {
    const auto beat = ctld.expect<proto::Heartbeat>();
    auto stamp = ctld.stamp();
    stamp.seq = 0;
    ctld.send(proto::HeartbeatAck{stamp, beat.sent});
  };
  for (int i = 0; i < 4; ++i) acknowledged();
  expect_later_beats(ctld);
  CHECK(contact.said(node) == 1);
}

TEST_CASE("unexpected messages are ignored") {
  FakeController ctld;
  NodeUnderTest node(ctld, "none");
  node.start();
  ctld.accept();
  proto::SubmitJob no_order;
  ctld.send(no_order);
  ctld.send(proto::Started{key(1), {}});
  ctld.send(launch(ctld, 1, "/", ""));
  CHECK(exit_of(ctld, 1).cause == proto::ExitCause::exited);
}

TEST_CASE("wrong options of the daemon are refused with a sentence") {
  FakeController ctld;
  NodeUnderTest node(ctld, "none");
  CHECK(node.run_once({"--name", "n9"}) == 1);
  CHECK(node.run_once({"--colour", "red"}) == 2);
  CHECK(node.run_once({"--listen", "nowhere"}) == 2);
  CHECK(node.run_once({"--memory", "much"}) == 2);
  CHECK(node.run_once({"--cpus", "x"}) == 2);
  CHECK(node.run_once({"--key", node.dir() + "/none"}) == 1);
  CHECK(node.run_once({"--config", node.dir() + "/none"}) == 1);
  CHECK(node.run_once({"--version"}) == 0);
  node.start();
  ctld.accept();
  CHECK(node.run_once({"--log-file", node.dir() + "/log2"}) == 1);
  CHECK(read_text(node.dir() + "/log2").find("another gantry-noded") != std::string::npos);
}

TEST_CASE("a job runs, and its output and exit status come back") {
  ProcessNode n;
  CHECK(n.facts.runtime == "process");
  CHECK(!n.facts.layers_off.empty());
  n.ctld.send(n.job(1, "echo $SLURM_JOB_ID $GANTRY_JOB_NODELIST; exit 3\n"));
  n.started(1);
  const auto report = exit_of(n.ctld, 1);
  CHECK(report.cause == proto::ExitCause::exited);
  CHECK(report.exit == ExitStatus{3, 0});
  CHECK(report.started);
  CHECK(read_text(n.work + "/out-1") == "1 n1\n");
  CHECK(std::filesystem::exists(n.node.dir() + "/state/jobs/1.1"));
  n.ctld.send(proto::AckExit{n.ctld.stamp(), key(1)});

  proto::FetchLog fetch;
  fetch.ticket = 7;
  fetch.path = n.work + "/out-1";
  fetch.owner = n.job(1, "").owner;
  fetch.offset = 2;
  fetch.max_bytes = 2;
  n.ctld.send(fetch);
  const auto part = n.ctld.expect<proto::FetchLogReply>();
  CHECK(part.ticket == 7);
  CHECK(part.error.empty());
  CHECK(part.data == "n1");
  // By now the attempt is forgotten.
  CHECK(!std::filesystem::exists(n.node.dir() + "/state/jobs/1.1"));

  const auto refused = [&](const std::string& path) {
    fetch.path = path;
    n.ctld.send(fetch);
    return n.ctld.expect<proto::FetchLogReply>().error;
  };
  CHECK(refused(n.work + "/none") == "node n1: " + n.work + "/none: No such file or directory");
  CHECK(refused(n.work) == "node n1: " + n.work + ": not a regular file");
  CHECK(refused("out-1") == "node n1: out-1: not an absolute path");
}

TEST_CASE("when the daemon is killed while jobs run, no job is lost and none runs twice") {
  ProcessNode n;
  n.ctld.send(n.job(1, "echo run >> runs-1; while [ ! -e go ]; do sleep 0.05; done; exit 5\n"));
  n.ctld.send(n.job(2, "echo run >> runs-2; exit 6\n"));
  n.started(1);
  CHECK(exit_of(n.ctld, 2).exit.code == 6);
  n.node.stop(SIGKILL);
  n.ctld.forget_seen();
  n.node.start();
  auto list = n.ctld.accept().attempts;
  REQUIRE(list.size() == 2);
  CHECK(list[0].key == key(1));
  CHECK(list[0].phase == proto::AttemptPhase::running);
  CHECK(list[1].phase == proto::AttemptPhase::exited);
  CHECK(exit_of(n.ctld, 2).exit.code == 6);

  // A repeated order changes nothing.
  auto again = n.job(1, "exit 0\n");
  n.ctld.send(again);
  n.node.stop(SIGTERM);
  std::ofstream(n.work + "/go") << "\n";  // the job ends while no daemon runs
  n.ctld.forget_seen();
  n.node.start();
  n.ctld.accept();
  CHECK(exit_of(n.ctld, 1).exit.code == 5);
  CHECK(read_text(n.work + "/runs-1") == "run\n");
  CHECK(read_text(n.work + "/runs-2") == "run\n");
  for (const std::uint64_t job : {1, 2}) n.ctld.send(proto::AckExit{n.ctld.stamp(), key(job)});
}

TEST_CASE("a terminate order gives the job its grace and then kills it") {
  ProcessNode n;
  n.ctld.send(
      n.job(1, "trap 'echo bye; exit 9' TERM; echo up > up; while :; do sleep 0.05; done\n"));
  n.ctld.send(n.job(2, "trap '' TERM; echo up > up2; while :; do sleep 0.05; done\n"));
  n.started(1);
  n.started(2);
  for (const char* file : {"/up", "/up2"})
    eventually([&] { return std::filesystem::exists(n.work + file); });
  n.ctld.send(proto::Terminate{n.ctld.stamp(), key(1), seconds(30), "job 1 is cancelled"});
  n.ctld.send(proto::Terminate{n.ctld.stamp(), key(2), milliseconds(300), ""});
  const auto first = exit_of(n.ctld, 1);
  CHECK(first.cause == proto::ExitCause::ordered);
  CHECK(first.exit == ExitStatus{9, 0});
  const auto second = exit_of(n.ctld, 2);
  CHECK(second.cause == proto::ExitCause::ordered);
  CHECK(second.exit == ExitStatus{0, SIGKILL});
  const auto out = read_text(n.work + "/out-1");
  CHECK(out.find("job 1 is cancelled") != std::string::npos);
  CHECK(out.find("bye") != std::string::npos);
  // The exit is reported again, because it was not acknowledged.
  CHECK(exit_of(n.ctld, 2).cause == proto::ExitCause::ordered);
}

TEST_CASE("a registration reply can order to kill attempts") {
  ProcessNode n;
  n.ctld.send(n.job(1, "sleep 60\n"));
  n.started(1);
  n.ctld.send(proto::RegisterAgain{Epoch{1}});
  n.ctld.accept({key(1), key(2)});
  CHECK(exit_of(n.ctld, 1).exit == ExitStatus{0, SIGKILL});
  CHECK(exit_of(n.ctld, 2).cause == proto::ExitCause::ordered);  // the node never got this job
}

TEST_CASE("a launch that cannot work is refused with the reason") {
  ProcessNode n;
  auto bad = n.job(1, "exit 0\n");
  bad.spec.std_out = "/no/such/directory/out";
  n.ctld.send(bad);
  const auto report = exit_of(n.ctld, 1);
  CHECK(report.cause == proto::ExitCause::refused);
  CHECK(report.message.find("n1") != std::string::npos);
  CHECK(report.message.find("/no/such/directory") != std::string::npos);
}

}  // namespace
}  // namespace gantry::test
