// Tests gantry up, down and status with the real daemons and a runtime that runs nothing: jobs
// survive a stop and a start, and at the end nothing is left on the machine.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/cli/run_program.h"

using namespace gantry::test;

namespace {

struct Cluster {
  ScratchDir files;
  std::string directory = files.path() + "/c";

  Run gantry(std::vector<std::string> args) const {
    args.insert(args.begin(), "gantry");
    args.insert(args.end(), {"--state", directory});
    return run_program({args, {}, {}, files.path()});
  }
  Run command(std::vector<std::string> argv, std::string input = {}) const {
    return run_program(
        {std::move(argv), {{"GANTRY_CONF", directory}}, std::move(input), files.path()});
  }
  ~Cluster() { (void)gantry({"down", "--cancel", "--remove"}); }
};

bool wait_until(const std::function<bool()>& condition) {
  for (int i = 0; i < 300 && !condition(); ++i) ::poll(nullptr, 0, 100);
  return condition();
}

}  // namespace

TEST_CASE("a local cluster keeps its jobs over a stop and a start, and removes all its files") {
  const Cluster cluster;
  Run run =
      cluster.gantry({"up", "--nodes", "2", "--cpus", "1", "--memory", "256M", "--oversubscribe",
                      "--runtime", "none", "--root-jobs", "--name", "test", "--no-gate"});
  REQUIRE_MESSAGE(run.status == 0, run.err);
  CHECK(run.out.starts_with("Cluster test is up: 2 nodes with 1 core and 256M of memory each.\n"));
  CHECK(run.out.find("export GANTRY_CONF=" + cluster.directory) != std::string::npos);
  CHECK(cluster.gantry({"status"}).status == 0);
  CHECK(cluster.gantry({"up"}).out.starts_with("It was running already.\n"));
  run = cluster.gantry({"up", "--nodes", "3"});
  CHECK(run.status == 1);
  CHECK(run.err.find("holds a cluster already") != std::string::npos);

  CHECK(cluster.command({"gbatch"}, "#!/bin/sh\ntrue\n").out == "Submitted batch job 1\n");
  run = cluster.command({"gbatch", "--wait", "--wrap=true"});
  CHECK(run.status == 0);
  CHECK(cluster.command({"gbatch", "-H", "--parsable", "-J", "waits", "--wrap=true"}).out == "3\n");
  CHECK(cluster.command({"gacct", "-nPX", "-j2", "-o", "JobID,State"}).out == "2|COMPLETED\n");
  CHECK(cluster.command({"ginfo", "-h", "-o", "%P %D %t"}).out == "batch* 2 idle\n");

  run = cluster.gantry({"down"});  // A job waits, so the command must ask what is to become of it.
  CHECK(run.status == 1);
  CHECK(run.err.find("--cancel") != std::string::npos);
  CHECK(cluster.gantry({"status"}).status == 0);
  CHECK(cluster.gantry({"down", "--leave"}).out == "Cluster test is down: 3 daemons stopped.\n");
  CHECK(cluster.gantry({"status"}).status == 1);
  CHECK(cluster.command({"gqueue"}).status == 1);

  REQUIRE(cluster.gantry({"up"}).status == 0);
  // A controller that crashes is started again.
  const auto crash = [&] {
    std::ifstream file(cluster.directory + "/pid/ctld");
    pid_t pid = 0;
    file >> pid;
    REQUIRE(pid > 1);
    return ::kill(pid, SIGKILL) == 0 || errno == ESRCH;
  };
  REQUIRE(crash());
  const auto answers = [&] { return cluster.command({"gctl", "ping"}).status == 0; };
  CHECK(wait_until(answers));
  CHECK(cluster.gantry({"status"}).status == 0);
  CHECK(cluster.command({"gqueue", "-h", "-o", "%i %j %t %r"}).out == "3 waits PD JobHeldUser\n");
  CHECK(cluster.command({"gctl", "release", "3"}).status == 0);
  CHECK(cluster.command({"gctl", "update", "node", "node1", "state=drain", "reason=dust"}).status ==
        0);
  CHECK(cluster.command({"ginfo", "-hR", "-o", "%E %N"}).out == "dust node1\n");
  CHECK(cluster.gantry({"down", "--cancel", "--remove"}).status == 0);
  CHECK_FALSE(std::filesystem::exists(cluster.directory));
}
