// Tests gantry-noded with real containers, as root, for jobs of an ordinary user: it checks what
// only real containers can show of the way from an order to an exit report. Where containers cannot
// run, a message says so.
#include <doctest/doctest.h>
#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/noded/launches.h"
#include "tests/skip.h"

namespace gantry::test {
namespace {

constexpr Uid kNobody{65534};

class ContainerNode {
 public:
  ContainerNode() : node(ctld, "crun, runc") {
    work = node.dir() + "/work";
    std::filesystem::create_directory(work);
    REQUIRE(::chown(work.c_str(), kNobody.value(), kNobody.value()) == 0);
    node.start();
    ctld.accept();
  }
  void run(std::uint64_t id, const std::string& script) {
    ctld.send(launch(ctld, id, work, script, kNobody));
  }
  void acknowledge(std::uint64_t id) { ctld.send(proto::AckExit{ctld.stamp(), key(id)}); }
  FakeController ctld;
  NodeUnderTest node;
  std::string work;
};

bool possible() {
  if (::geteuid() == 0) return true;
  gantry::test::pass_over("tests with real containers need root");
  return false;
}

TEST_CASE("a job in its container has the user's identity, its variables and its socket") {
  if (!possible()) return;
  ContainerNode n;
  n.run(1,
        "id -u\n"
        "echo $SLURM_JOB_ID $SLURMD_NODENAME $TMPDIR\n"
        "[ $SLURM_TASK_PID = $$ ] && echo pid\n"
        "[ -S $GANTRY_JOB_SOCKET ] && echo $GANTRY_JOB_SOCKET\n"
        "grep -c . /proc/net/dev\n"
        "exit 4\n");
  const auto report = exit_of(n.ctld, 1);
  CAPTURE(report.message);
  CHECK(report.exit == ExitStatus{4, 0});
  CHECK(read_text(n.work + "/out-1") == "65534\n1 n1 /tmp\npid\n/run/gantry/job.sock\n3\n");
  CHECK(report.usage.memory_peak_bytes > 0);
  n.acknowledge(1);
}

TEST_CASE("a job that exceeds its memory is reported as out of memory, with its peak") {
  if (!possible()) return;
  ContainerNode n;
  n.run(1, "head -c 200M /dev/zero | tail -c 190M | wc -c\n");
  const auto report = exit_of(n.ctld, 1);
  CAPTURE(report.message);
  CHECK(report.cause == proto::ExitCause::out_of_memory);
  CHECK(report.usage.memory_peak_bytes > 60 << 20);
  n.acknowledge(1);
}

TEST_CASE("running containers survive the daemon's kill, and a killed shim is reported") {
  if (!possible()) return;
  ContainerNode n;
  n.run(1, "while [ ! -e go ]; do sleep 0.05; done; exit 5\n");
  n.run(2, "sleep 300\n");
  for (const std::uint64_t id : {1, 2})
    n.ctld.expect<proto::Started>([&](const auto& m) { return m.key == key(id); });
  n.node.stop(SIGKILL);
  const pid_t shim = std::stoi(read_text(n.node.dir() + "/state/jobs/2.1/shim.lock"));
  REQUIRE(shim > 1);
  ::kill(shim, SIGKILL);
  std::ofstream(n.work + "/go") << "\n";
  n.ctld.forget_seen();
  n.node.start();
  n.ctld.accept();
  CHECK(exit_of(n.ctld, 1).exit == ExitStatus{5, 0});
  const auto lost = exit_of(n.ctld, 2);
  CHECK(lost.cause == proto::ExitCause::shim_lost);
  CHECK(lost.message.find("n1") != std::string::npos);
  for (const std::uint64_t id : {1, 2}) n.acknowledge(id);
}

TEST_CASE("a held job waits for Go, and a log is read with the rights of the job's owner") {
  if (!possible()) return;
  ContainerNode n;
  auto held = launch(n.ctld, 1, n.work, "echo ran\n", kNobody);
  held.hold = true;
  n.ctld.send(held);
  n.ctld.expect<proto::LaunchReady>();
  CHECK(read_text(n.work + "/out-1").empty());
  n.ctld.send(proto::Go{n.ctld.stamp(), key(1)});
  CHECK(exit_of(n.ctld, 1).exit == ExitStatus{0, 0});
  CHECK(read_text(n.work + "/out-1") == "ran\n");
  n.acknowledge(1);

  auto holder = launch(n.ctld, 2, n.work, "", kNobody);
  holder.runs_batch = false;
  n.ctld.send(holder);
  n.ctld.expect<proto::Started>([](const auto& m) { return m.key == key(2); });
  n.ctld.send(proto::Terminate{n.ctld.stamp(), key(2), seconds(20), ""});
  CHECK(exit_of(n.ctld, 2).cause == proto::ExitCause::ordered);
  n.acknowledge(2);

  std::ofstream(n.work + "/secret") << "x";
  std::filesystem::permissions(n.work + "/secret", std::filesystem::perms::owner_read);
  proto::FetchLog fetch;
  fetch.path = n.work + "/secret";
  fetch.owner = held.owner;
  fetch.max_bytes = 100;
  n.ctld.send(fetch);
  CHECK(n.ctld.expect<proto::FetchLogReply>().error.find("Permission denied") != std::string::npos);
}

}  // namespace
}  // namespace gantry::test
