// Tests the container of a job: the user it runs as, what it sees, and how its exit is reported.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/runtime/node_fixture.h"

using namespace gantry;
using namespace gantry::runtime;
using namespace gantry::runtime::test;

TEST_CASE("exit codes and signals are reported exactly") {
  if (!can_run()) return;
  Node node;
  auto record = node.run("exit 0");
  CHECK_MESSAGE(record.cause == ExitCause::exited, record.message);
  CHECK(record.exit == ExitStatus{0, 0});
  CHECK(record.started.has_value());
  CHECK(record.usage.memory_peak_bytes > 0);
  CHECK(node.run("exit 37").exit == ExitStatus{37, 0});
  CHECK(node.run("kill -SEGV $$").exit == ExitStatus{0, 11});
  CHECK(node.run("sh -c 'kill -KILL $$'").exit == ExitStatus{137, 0});
  auto missing = node.job("");
  missing.script = "#!/no/such/shell\n";
  record = node.run(missing);
  CHECK(record.exit == ExitStatus{127, 0});
  CHECK(record.message ==
        "/no/such/shell does not exist on n1 (the first line of the script names it)");
  CHECK(has(node.output(), "/no/such/shell does not exist on n1"));
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("the self-test of the runtime passes, and says which protections are on") {
  if (!can_run()) return;
  Node node([](RuntimeOptions& options) { options.self_test = true; });
  const auto& probe = node.runtime().probe();
  CHECK(has(probe.runtime, "run"));
  CHECK(probe.cgroup_version != 0);
  const auto on = [&](const std::string& layer) {
    for (const auto& line : probe.layers_on)
      if (has(line, layer)) return true;
    return false;
  };
  for (const char* layer :
       {"user namespace", "system call filter", "memory limit", "device filter"})
    CHECK_MESSAGE(on(layer), layer);
}

TEST_CASE("the self-test passes although its shim was killed once") {
  if (!can_run()) return;
  std::string killed;
  Node node([&](RuntimeOptions& options) {
    const std::string bin = options.config.state_dir + ".bin", shim = bin + "/gantry-shim";
    killed = bin + "/killed";
    REQUIRE(::mkdir(bin.c_str(), 0755) == 0);
    REQUIRE(::symlink((options.bin_dir + "/gantry-init").c_str(), (bin + "/gantry-init").c_str()) ==
            0);
    std::ofstream(shim) << "#!/bin/sh\nmkdir " << killed << " 2>/dev/null && kill -9 $$\nexec "
                        << options.bin_dir << "/gantry-shim \"$@\"\n";
    REQUIRE(::chmod(shim.c_str(), 0755) == 0);
    options.bin_dir = bin;
    options.self_test = true;
  });
  CHECK(::access(killed.c_str(), F_OK) == 0);
  CHECK(node.runtime().probe().refused.empty());
}

TEST_CASE("a job runs as its user, without any privilege") {
  if (!can_run()) return;
  Node node;
  auto request =
      node.job("id -u; id -G; grep -E '^(Cap(Eff|Bnd|Prm)|NoNewPrivs|Seccomp):' /proc/self/status");
  request.owner.groups = {Gid{20077}};
  node.run(request);
  const auto out = node.output();
  CHECK_MESSAGE(out.starts_with("20001\n20001 20077\n"), out);
  CHECK(has(out, "CapEff:\t0000000000000000"));
  CHECK(has(out, "CapBnd:\t0000000000000000"));
  CHECK(has(out, "NoNewPrivs:\t1"));
  CHECK(has(out, "Seccomp:\t2"));
}

TEST_CASE("root does not run jobs unless the node allows it") {
  if (!can_run()) return;
  Node node;
  auto request = node.job("id -u");
  request.owner.uid = Uid{0};
  request.owner.gid = Gid{0};
  const auto record = node.run(request);
  CHECK(record.cause == ExitCause::refused);
  CHECK(has(record.message, "node n1: jobs of root are not allowed"));

  Node liberal([](RuntimeOptions& options) { options.config.allow_root_jobs = true; });
  request = liberal.job("id -u; grep CapEff /proc/self/status");
  request.owner.uid = Uid{0};
  request.owner.gid = Gid{0};
  request.owner.home = request.work_dir = "/";
  request.std_out = liberal.dir() + "/root-out";
  CHECK(liberal.run(request).exit == ExitStatus{0, 0});
  const auto out = liberal.read(liberal.dir() + "/root-out");
  CHECK_MESSAGE(has(out, "0\nCapEff:\t0000000000000000"), out);
}

TEST_CASE("a job sees only its own processes, network, temporary files and devices") {
  if (!can_run()) return;
  Node node;
  node.write("/tmp/gantry-test-secret", "secret", 0644, false);
  node.run(
      "ls /proc | grep -c '^[0-9]'\n"
      "ls /sys/class/net | tr '\\n' ' '; echo\n"
      "ls /tmp | wc -l\n"
      "ls /dev | tr '\\n' ' '; echo\n"
      "test -e /dev/vda && echo disk; test -e /dev/kmsg && echo kmsg\n"
      "mknod /tmp/n c 1 1 2>&1; touch /tmp/mine && echo tmp\n"
      "unshare -U true 2>&1; echo u=$?\n"
      "hostname; ls /run\n");
  ::unlink("/tmp/gantry-test-secret");
  const auto out = node.output();
  const auto lines = split(out, '\n');
  REQUIRE(lines.size() > 6);
  CHECK(std::stoi(lines[0]) <= 5);
  CHECK(lines[1] == "lo ");
  CHECK(lines[2] == "0");
  CHECK_FALSE(has(out, "disk"));
  CHECK_FALSE(has(out, "kmsg"));
  CHECK(has(out, "Operation not permitted"));
  CHECK(has(out, "tmp\n"));
  CHECK_FALSE(has(out, "u=0"));
  CHECK(has(out, "n1\ngantry\n"));
}

TEST_CASE("the root is read-only; home and working directory are writable") {
  if (!can_run()) return;
  Node node;
  const std::string work = node.dir() + "/work";
  ::mkdir(work.c_str(), 0777);
  ::chmod(work.c_str(), 0777);
  auto request = node.job(
      "touch /usr/x 2>&1; touch /etc/x 2>&1; touch /x 2>&1; touch /var/x 2>&1\n"
      "touch $HOME/h && echo home; pwd; touch w && echo work");
  request.work_dir = work;
  request.std_out = node.home() + "/out";
  node.run(request);
  const auto out = node.output();
  CHECK_MESSAGE(has(out, "'/usr/x': Read-only file system"), out);
  CHECK(has(out, "'/etc/x': Read-only file system"));
  CHECK(has(out, "'/x': "));
  CHECK(has(out, "home\n" + work + "\nwork\n"));
  struct stat st {};
  CHECK(::stat((work + "/w").c_str(), &st) == 0);
  CHECK(st.st_uid == kTestUid);
}

TEST_CASE("two jobs do not see each other's processes and temporary files") {
  if (!can_run()) return;
  Node node;
  auto first = node.job("touch /tmp/mine; exec sleep 1000");
  REQUIRE(node.runtime().begin(first));
  REQUIRE(node.wait_for(first.key, EventKind::running));
  auto second = node.job("ls /tmp; ps ax | grep -c '[s]leep 1000'; kill -9 -1; echo done");
  second.std_out = "second";
  node.run(second);
  CHECK(node.read(node.home() + "/second").starts_with("0\n"));
  CHECK(node.runtime().usage(first.key).has_value());
  REQUIRE(node.runtime().kill(first.key));
  CHECK(node.wait_end(first.key).exit == ExitStatus{0, 9});
}

TEST_CASE("a job that exceeds its memory is reported as out of memory, with the peak") {
  if (!can_run()) return;
  Node node;
  auto request = node.job("dd if=/dev/zero of=/dev/null bs=200M count=1; echo survived=$?");
  const auto record = node.run(request);
  CHECK(record.cause == ExitCause::out_of_memory);
  CHECK(record.oom_kills >= 1);
  CHECK(record.usage.memory_peak_bytes >= 60 << 20);
  CHECK(record.usage.memory_peak_bytes <= 64 << 20);
  CHECK(has(record.message, "node n1: memory limit of 64M reached, and "));
  CHECK(has(record.message, "ask for more with --mem"));
  CHECK(has(node.output(), "memory limit of 64M reached"));
}

TEST_CASE("a job that asked for one core can use only that core") {
  if (!can_run()) return;
  Node node;
  auto request =
      node.job("grep Cpus_allowed_list /proc/self/status; nproc; taskset -p 3 $$ 2>&1; nproc");
  request.cpus = {1};
  node.run(request);
  const auto out = node.output();
  CHECK_MESSAGE(has(out, "Cpus_allowed_list:\t1\n1\n"), out);
  CHECK(out.ends_with("\n1\n"));
}

TEST_CASE("the number of processes is limited") {
  if (!can_run()) return;
  Node node;
  auto request = node.job("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 5 & done; echo no");
  request.pids_max = 6;
  const auto record = node.run(request);
  CHECK(record.exit != ExitStatus{0, 0});
  CHECK(has(node.output(), "ork"));  // part of "Cannot fork" or "fork: retry: ..."
}

TEST_CASE("the processor time of a job is measured") {
  if (!can_run()) return;
  Node node;
  const auto record = node.run("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done");
  CHECK(record.usage.cpu_user_us > 20'000);
  CHECK(record.ended.us - record.started->us >= record.usage.cpu_user_us / 2);
}

TEST_CASE("variables and arguments reach the script unchanged, and wrong ones are refused") {
  if (!can_run()) return;
  Node node;
  auto request = node.job("echo \"$A|$HOME|$USER|$TMPDIR|$0|$1|$2\"");
  request.env["A"] = "quote \" back \\ line\nend";
  request.argv = {"one", "two words"};
  node.run(request);
  CHECK(node.output() == "quote \" back \\ line\nend|" + node.home() +
                             "|tester|/tmp|/run/gantry/script|one|two words\n");
  request = node.job("true");
  request.env["B"] = "\xff\xfe";
  const auto record = node.run(request);
  CHECK(record.cause == ExitCause::refused);
  CHECK(has(record.message, "environment variable B is not UTF-8"));

  // The job's owner has to correct these mistakes. They are not the node's fault, and would fail on
  // every node.
  const auto refused = [&](const std::function<void(LaunchRequest&)>& change) {
    auto wrong = node.job("true");
    change(wrong);
    const auto end = node.run(wrong);
    CHECK_MESSAGE(end.cause == ExitCause::refused, end.message);
    return end.message;
  };
  CHECK(has(refused([](auto& r) { r.argv = {"\xff"}; }), "argument 1 is not UTF-8"));
  CHECK(has(refused([](auto& r) {
              r.argv = {"", std::string(200'000, 'a')};
            }),
            "argument 2 has 200000 bytes; the kernel takes 131071"));
  CHECK(has(refused([](auto& r) { r.env["LONG"] = std::string(200'000, 'a'); }),
            "environment variable LONG has"));
  CHECK(has(refused([](auto& r) {
              for (int i = 0; i < 40; ++i)
                r.env["E" + std::to_string(i)] = std::string(100'000, 'a');
            }),
            "more than the kernel takes"));
}

TEST_CASE("a job with the host's network is in the host's network namespace") {
  if (!can_run()) return;
  Node node;
  auto request = node.job("readlink /proc/self/ns/net");
  request.network = NetworkMode::host;
  CHECK(node.run(request).exit == ExitStatus{0, 0});
  char own[64]{};
  REQUIRE(::readlink("/proc/self/ns/net", own, sizeof own - 1) > 0);
  CHECK(node.output() == std::string(own) + "\n");
}
