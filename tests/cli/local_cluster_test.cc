// Tests the files and daemons of a local cluster. tests/e2e starts a whole one.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/cluster/daemons.h"
#include "cli/cluster/local_cluster.h"
#include "tests/cli/run_program.h"

using namespace gantry;
using namespace gantry::cli;
using gantry::test::Run;
using gantry::test::run_program;
using gantry::test::ScratchDir;

TEST_CASE("a new cluster has a valid configuration, keys and a client.conf") {
  const ScratchDir files;
  const auto cluster = LocalCluster::at(files.path() + "/c");
  REQUIRE(cluster);
  CHECK_FALSE(cluster->exists());
  const Machine machine{{2, 5}, std::int64_t{8} << 30};
  ClusterRequest request;
  request.nodes = 3;
  request.oversubscribe = true;
  const auto settled = settle_sizes(request, machine);
  REQUIRE(settled);
  const auto made = cluster->create(*settled, machine);
  REQUIRE_MESSAGE(made, made.error().message);
  CHECK(cluster->exists());
  const auto config = cluster->config();
  REQUIRE_MESSAGE(config, config.error().message);
  REQUIRE(config->nodes.size() == 3);
  CHECK(config->nodes[0].cpu_ids == std::vector<std::uint16_t>{2});
  CHECK(config->nodes[1].cpu_ids == std::vector<std::uint16_t>{5});
  CHECK(config->nodes[2].cpu_ids == std::vector<std::uint16_t>{2});
  const auto client = cluster->client();
  REQUIRE_MESSAGE(client, client.error().message);
  CHECK(client->address == fmt::format("tcp://127.0.0.1:{}", config->controller.port));
  const auto keys = net::load_key_pair(files.path() + "/c/ctld.key");
  REQUIRE(keys);
  CHECK(keys->public_key == client->server_key);
  struct stat info {};
  REQUIRE(::stat((files.path() + "/c/users/" + login_name() + ".key").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(std::filesystem::exists(files.path() + "/c/ctld/nodes.d/node3.pub"));
  CHECK(cluster->remove());
  CHECK_FALSE(cluster->exists());
}

TEST_CASE("a directory that gantry up did not make is never removed") {
  const ScratchDir files;
  (void)files.file("gantry.yaml", "cluster: precious\n");
  const auto cluster = LocalCluster::at(files.path());
  REQUIRE(cluster);
  CHECK_FALSE(cluster->remove());
  CHECK(std::filesystem::exists(files.path() + "/gantry.yaml"));
  const Run run =
      run_program({{"gantry", "down", "--remove", "--state", files.path()}, {}, {}, {}});
  CHECK(run.status == 1);
}

TEST_CASE("a daemon is recognised by its start time, and ends when it is told to") {
  const ScratchDir files;
  Daemon daemon{"sleeper", files.path() + "/pid", files.path() + "/log", {"/bin/sleep", "1000"}};
  CHECK_FALSE(running_pid(daemon));
  REQUIRE(start_daemon(daemon));
  const auto pid = running_pid(daemon);
  REQUIRE(pid);
  // A process with the same number and another start time is not the daemon.
  (void)files.file("other", fmt::format("{} 1\n", *pid));
  Daemon other = daemon;
  other.pid_file = files.path() + "/other";
  CHECK_FALSE(running_pid(other));
  REQUIRE(stop_daemon(daemon, seconds(10)));
  CHECK_FALSE(running_pid(daemon));
  CHECK_FALSE(std::filesystem::exists(daemon.pid_file));
  Daemon loud{"loud",
              files.path() + "/pid2",
              files.path() + "/log2",
              {"/bin/sh", "-c", "echo one; echo two; echo three"}};
  REQUIRE(start_daemon(loud));
  if (const auto child = running_pid(loud)) ::waitpid(*child, nullptr, 0);
  CHECK(log_tail(loud, 2) == "two\nthree\n");
}

TEST_CASE("a daemon that crashes is started again, until it has crashed too often") {
  const ScratchDir files;
  const auto starts = [&] {
    std::ifstream in(files.path() + "/starts");
    return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
  };
  const auto shell = [&](const std::string& end) {
    return Daemon{"shell",
                  files.path() + "/pid",
                  files.path() + "/log",
                  {"/bin/sh", "-c", "echo >> " + files.path() + "/starts; " + end}};
  };
  const auto wait_until = [](const auto& condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) ::poll(nullptr, 0, 10);
    return condition();
  };

  const Daemon crashes = shell("exit 3");
  REQUIRE(start_daemon(crashes, 3));
  CHECK(wait_until([&] { return !why_stopped(crashes).empty(); }));
  CHECK(starts() == 3);
  CHECK(why_stopped(crashes) ==
        "ended with status 3, 3 times within 60 s, and is not started again; look at the log " +
            files.path() + "/log, then start it with `gantry up`");
  CHECK(log_tail(crashes, 1).ends_with(why_stopped(crashes) + "\n"));
  CHECK_FALSE(running_pid(crashes));

  std::filesystem::remove(files.path() + "/starts");
  // With this exit status gantry-ctld says that its store is damaged (see its --help).
  const Daemon damaged = shell("exit 65");
  REQUIRE(start_daemon(damaged, 3));
  CHECK(wait_until([&] { return !why_stopped(damaged).empty(); }));
  CHECK(starts() == 1);

  std::filesystem::remove(files.path() + "/starts");
  const Daemon killed = shell("exec sleep 1000");
  REQUIRE(start_daemon(killed, 100));
  CHECK(why_stopped(killed).empty());
  for (int round = 1; round <= 3; ++round) {
    REQUIRE(wait_until([&] { return starts() == round && running_pid(killed); }));
    REQUIRE(::kill(*running_pid(killed), SIGKILL) == 0);
  }
  REQUIRE(wait_until([&] { return starts() == 4 && running_pid(killed); }));
  REQUIRE(stop_daemon(killed, seconds(10)));
  CHECK_FALSE(running_pid(killed));
  // after a crash the daemon would be started again within a tenth of a second
  ::poll(nullptr, 0, 300);
  CHECK(starts() == 4);
  CHECK_FALSE(std::filesystem::exists(killed.pid_file));
}
