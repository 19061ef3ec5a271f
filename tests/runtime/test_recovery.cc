// Tests held starts, signals, hooks, and the kill of a shim or of noded.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "common/codec/codec.h"
#include "noded/runtime/job_dir.h"
#include "noded/runtime/records.h"
#include "tests/eventually.h"
#include "tests/places.h"
#include "tests/runtime/node_fixture.h"

using namespace gantry;
using namespace gantry::runtime;
using namespace gantry::runtime::test;

namespace {

using Stage = RecoveredAttempt::Stage;
using proto::SignalScope;

void start(Node& node, const LaunchRequest& request) {
  REQUIRE(node.runtime().begin(request));
  REQUIRE(node.wait_for(request.key, EventKind::running));
}

// Waits until the job has written something, because by then its traps are set.
void await_output(Node& node) {
  eventually([&] { return has(node.output(), "ready"); });
}

}  // namespace

TEST_CASE("a held job waits for its release") {
  if (!can_run()) return;
  Node node;
  auto request = node.job("echo ran");
  request.hold = true;
  REQUIRE(node.runtime().begin(request));
  REQUIRE(node.wait_for(request.key, EventKind::held));
  CHECK(node.output().empty());
  REQUIRE(node.runtime().release(request.key));
  CHECK(node.wait_end(request.key).exit == ExitStatus{0, 0});
  CHECK(node.output() == "ran\n");
}

TEST_CASE("SIGTERM reaches the script and its children; a signal can go to the batch shell alone") {
  if (!can_run()) return;
  Node node;
  auto request = node.job(
      "trap 'echo shell' USR1; trap 'echo term; exit 3' TERM\n"
      "(trap 'echo child' USR1; trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done) &\n"
      "while :; do wait; done");
  start(node, request);
  await_output(node);
  REQUIRE(node.runtime().signal(request.key, SIGUSR1, SignalScope::batch_shell));
  eventually([&] { return has(node.output(), "shell"); });
  CHECK(node.output() == "ready\nshell\n");
  REQUIRE(node.runtime().signal(request.key, SIGTERM, SignalScope::full));
  const auto record = node.wait_end(request.key);
  CHECK(record.exit == ExitStatus{3, 0});
  CHECK(has(node.output(), "term"));
}

TEST_CASE("a process that reuses the number of an ended batch shell gets no signal for it") {
  if (!can_run()) return;
  Node node;
  auto request = node.job("echo ready; exec sleep 1000");
  start(node, request);
  await_output(node);
  const pid_t stranger = ::fork();
  REQUIRE(stranger >= 0);
  if (stranger == 0)
    for (;;) ::pause();
  // The record is changed as if the kernel had given the shell's number to another process.
  const std::string path = job_dir(node.state_dir(), request.key) + "/" + kRunningFile;
  auto record = codec::decode<RunningRecord>(node.read(path));
  REQUIRE(record);
  REQUIRE(record->child_pid > 0);
  record->child_pid = stranger;
  node.write(path, codec::encode(*record), 0600, false);
  REQUIRE(node.runtime().signal(request.key, SIGKILL, SignalScope::batch_shell));
  ::usleep(300'000);  // tidy-allow(sleep): a signal that does not come gives no event
  CHECK(::waitpid(stranger, nullptr, WNOHANG) == 0);
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
  REQUIRE(node.runtime().kill(request.key));
  node.wait_end(request.key);
}

TEST_CASE("SIGTERM ends a script without a trap") {
  if (!can_run()) return;
  Node node;
  auto request = node.job("exec sleep 1000");
  start(node, request);
  REQUIRE(node.runtime().notice(request.key, "*** cancelled ***"));
  REQUIRE(node.runtime().signal(request.key, SIGTERM, SignalScope::full));
  CHECK(node.wait_end(request.key).exit == ExitStatus{0, SIGTERM});
  CHECK(node.output() == "*** cancelled ***\n");
}

TEST_CASE("a killed shim ends its job as a failure with this reason, and nothing is left") {
  if (!can_run()) return;
  Node node;
  auto request = node.job("sleep 1000 & setsid sleep 1000 & sleep 1000");
  start(node, request);
  ::kill(node.shim_pid(request.key), SIGKILL);
  const auto record = node.wait_end(request.key);
  CHECK(record.cause == ExitCause::shim_lost);
  CHECK(record.message == "shim of job 1 on node n1 was killed");
  CHECK(record.started.has_value());
  eventually([&] { return remains(node).empty(); });
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("a restart of noded keeps running jobs, and finds jobs that ended meanwhile") {
  if (!can_run()) return;
  Node node;
  auto stays = node.job("echo ready; while [ ! -e $HOME/go ]; do sleep 0.02; done; exit 5");
  auto ends = node.job("exit 6");
  auto dies = node.job("sleep 1000");
  ends.std_out = dies.std_out = "/dev/null";
  start(node, stays);
  start(node, dies);
  REQUIRE(node.runtime().begin(ends));
  const auto found = node.restart([&] {
    const std::string record = node.state_dir() + "/jobs/2.1/exit.msgpack";
    eventually([&] { return ::access(record.c_str(), F_OK) == 0; });
    ::kill(node.shim_pid(dies.key), SIGKILL);
    ::usleep(50'000);
  });
  REQUIRE(found.size() == 3);
  CHECK(found[0].key == stays.key);
  CHECK(found[0].stage == Stage::running);
  CHECK(found[0].started.has_value());
  CHECK(found[0].request.name == "test");
  CHECK(found[1].stage == Stage::ended);
  CHECK(found[1].record.exit == ExitStatus{6, 0});
  CHECK(found[2].stage == Stage::ended);
  CHECK(found[2].record.cause == ExitCause::shim_lost);
  node.write(node.home() + "/go", "", 0644, true);
  CHECK(node.wait_end(stays.key).exit == ExitStatus{5, 0});
  for (const auto& one : found) node.runtime().forget(one.key);
  CHECK(node.restart().empty());
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("an attempt that noded recorded but did not start can be resumed") {
  if (!can_run()) return;
  Node node;
  auto request = node.job("exit 4");
  REQUIRE(node.runtime().begin(request));
  // Makes the state in which noded was killed after it wrote the record and before it started the
  // shim.
  ::kill(node.shim_pid(request.key) > 0 ? node.shim_pid(request.key) : 0x7ffffff, SIGKILL);
  node.wait_end(request.key);
  const std::string dir = node.state_dir() + "/jobs/1.1/";
  for (const char* name : {"exit.msgpack", "running.msgpack", "shim.lock"})
    ::unlink((dir + name).c_str());
  const auto found = node.restart();
  REQUIRE(found.size() == 1);
  CHECK(found[0].stage == Stage::never_started);
  REQUIRE(node.runtime().resume(request.key));
  CHECK(node.wait_end(request.key).exit == ExitStatus{4, 0});
}

// In this test noded does nothing after it started the jobs, as if it had been killed.
TEST_CASE("a shim ends its job when its node was without the controller for too long") {
  if (!can_run()) return;
  Node node;
  const auto say = [&node](Duration silent, Duration fence_after) {
    node.write(node.state_dir() + "/" + kContactFile,
               contact_text({Instant{}, since_boot() - silent, fence_after}), 0600, false);
  };
  say(Duration{}, minutes(10));
  auto request = node.job("sleep 100 & echo ready; wait");
  start(node, request);
  await_output(node);
  auto stays = node.job("echo stays");
  stays.hold = true;
  REQUIRE(node.runtime().begin(stays));
  REQUIRE(node.wait_for(stays.key, EventKind::held));
  say(seconds(3), seconds(1));
  for (const auto& key : {request.key, stays.key}) {
    const auto record = node.wait_end(key);
    CHECK(record.cause == ExitCause::fenced);
    CHECK(record.exit == ExitStatus{0, SIGKILL});
    CHECK(has(record.message, "no contact with the controller"));
    node.runtime().forget(key);
  }
  // The time has passed, so this job must not begin.
  CHECK(node.run("echo never").cause == ExitCause::fenced);
  ::unlink((node.state_dir() + "/" + kContactFile).c_str());
  CHECK(node.run("exit 7").exit == ExitStatus{7, 0});
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("prolog and epilog run as root around the job, and a failed prolog refuses it") {
  if (!can_run()) return;
  Node node;
  node.write(node.dir() + "/prolog",
             "#!/bin/sh\necho \"prolog $(id -u) $SLURM_JOB_ID $GANTRY_JOB_USER\" >> " + node.dir() +
                 "/log\n",
             0755, false);
  node.write(node.dir() + "/epilog",
             "#!/bin/sh\necho \"epilog $GANTRY_EXIT_CODE\" >> " + node.dir() + "/log\n[ -d " +
                 node.home() + " ] || exit 1\n",
             0755, false);
  node.write(node.dir() + "/bad", "#!/bin/sh\necho the disk is sick >&2\nexit 1\n", 0755, false);
  auto request = node.job("exit 2");
  request.prolog = node.dir() + "/prolog";
  request.epilog = node.dir() + "/epilog";
  CHECK(node.run(request).exit == ExitStatus{2, 0});
  CHECK(node.read(node.dir() + "/log") == "prolog 0 1 tester\nepilog 2\n");
  request = node.job("echo ran");
  request.prolog = node.dir() + "/bad";
  const auto record = node.run(request);
  CHECK(record.cause == ExitCause::launch_failed);
  CHECK(record.message ==
        "node n1: prolog " + node.dir() + "/bad: exit status 1: the disk is sick");
  CHECK(node.output().empty());
}

TEST_CASE("prolog and epilog get no variables of the user") {
  if (!can_run()) return;
  Node node;
  const std::string log = node.dir() + "/log";
  node.write(node.dir() + "/hook", "#!/bin/bash\nid -u >> " + log + "\nenv >> " + log + "\n", 0755,
             false);
  node.write(node.home() + "/evil", "echo evil >> " + log + "\n", 0755, true);
  auto request = node.job("true");
  request.prolog = request.epilog = node.dir() + "/hook";
  for (const char* name :
       {"GANTRY_NODE", "GANTRY_JOB_USER", "GANTRY_JOB_UID", "GANTRY_CGROUP", "GANTRY_HOOK",
        "GANTRY_EXIT_CODE", "GANTRY_EXIT_SIGNAL", "SLURM_JOB_USER", "SLURM_CONF", "GANTRY_ANY",
        "PATH", "LD_PRELOAD", "LD_AUDIT", "IFS", "PYTHONPATH", "BASH_FUNC_id%%"})
    request.env[name] = "spoofed";
  request.env["BASH_ENV"] = request.env["ENV"] = node.home() + "/evil";
  CHECK(node.run(request).exit == ExitStatus{0, 0});
  const std::string said = node.read(log);
  CHECK_MESSAGE(!has(said, "spoofed"), said);
  CHECK_MESSAGE(!has(said, "evil"), said);
  for (const char* line : {"GANTRY_NODE=n1\n", "GANTRY_JOB_USER=tester\n", "GANTRY_JOB_UID=20001\n",
                           "GANTRY_HOOK=prolog\n", "GANTRY_HOOK=epilog\n", "GANTRY_EXIT_CODE=0\n",
                           "SLURM_JOB_ID=1\n", "GANTRY_CGROUP=/"})
    CHECK_MESSAGE(has(said, line), line);
}

TEST_CASE("the epilog runs even if the job's shim was killed") {
  if (!can_run()) return;
  Node node;
  node.write(
      node.dir() + "/epilog",
      "#!/bin/sh\necho \"$SLURM_JOB_ID signal $GANTRY_EXIT_SIGNAL\" >> " + node.dir() + "/log\n",
      0755, false);
  auto watched = node.job("sleep 1000");
  watched.epilog = node.dir() + "/epilog";
  start(node, watched);
  ::kill(node.shim_pid(watched.key), SIGKILL);
  CHECK(node.wait_end(watched.key).cause == ExitCause::shim_lost);
  CHECK(node.read(node.dir() + "/log") == "1 signal 9\n");
  auto lost = node.job("sleep 1000");  // this shim is killed while no noded runs
  lost.epilog = watched.epilog;
  start(node, lost);
  const auto found = node.restart([&] { ::kill(node.shim_pid(lost.key), SIGKILL); });
  CHECK(std::any_of(found.begin(), found.end(), [&](const RecoveredAttempt& one) {
    return one.key == lost.key && one.record.cause == ExitCause::shim_lost;
  }));
  CHECK(node.read(node.dir() + "/log") == "1 signal 9\n2 signal 9\n");
}

TEST_CASE("a kill ends a start that is still in its prolog") {
  if (!can_run()) return;
  Node node;
  node.write(node.dir() + "/slow", "#!/bin/sh\ntouch " + node.dir() + "/began\nsleep 1000\n", 0755,
             false);
  auto request = node.job("echo ran");
  request.prolog = node.dir() + "/slow";
  REQUIRE(node.runtime().begin(request));
  eventually([&] { return ::access((node.dir() + "/began").c_str(), F_OK) == 0; });
  REQUIRE(node.runtime().kill(request.key));
  const auto record = node.wait_end(request.key);
  CHECK(record.cause == ExitCause::launch_failed);
  CHECK(has(record.message, "ended by order"));
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("scratch is a directory on the disk, and is removed with the job") {
  if (!can_run()) return;
  Node node([](RuntimeOptions& options) { options.scratch_dir = "/var/tmp"; });
  auto request = node.job("echo x > /tmp/file; stat -c %d /tmp; ls /tmp");
  request.scratch = 1 << 20;
  CHECK(node.run(request).exit == ExitStatus{0, 0});
  struct stat st {};
  REQUIRE(::stat("/var/tmp", &st) == 0);
  CHECK(has(node.output(), std::to_string(st.st_dev) + "\n"));
  CHECK(has(node.output(), "file"));
  CHECK(::access("/var/tmp/gantry-n1-1.1", F_OK) != 0);
}

TEST_CASE("a job that exceeds its scratch space is ended with the reason") {
  if (!can_run()) return;
  Node node([](RuntimeOptions& options) { options.scratch_dir = "/var/tmp"; });
  // The scratch directory is measured every 5 s; a file with two names counts once.
  auto request = node.job(
      "head -c 3000000 /dev/zero > /tmp/a; ln /tmp/a /tmp/b; sleep 7; "
      "head -c 2000000 /dev/zero > /tmp/c; sleep 1000");
  request.scratch = 4'000'000;
  const auto record = node.run(request);
  CHECK(record.exit == ExitStatus{0, SIGKILL});
  CHECK(has(record.message, "exceeded its scratch space of 4000000 bytes (--tmp): 50"));
  CHECK(has(node.output(), "exceeded its scratch space"));
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("files without a byte count as scratch, because a disk has only so many files") {
  if (!can_run()) return;
  Node node([](RuntimeOptions& options) { options.scratch_dir = "/var/tmp"; });
  auto request = node.job("cd /tmp; for i in $(seq 2000); do : > $i; done; sleep 1000");
  request.scratch = 4'000'000;
  const auto record = node.run(request);
  CHECK(record.exit == ExitStatus{0, SIGKILL});
  CHECK(has(record.message, "exceeded its scratch space of 4000000 bytes (--tmp): 8"));
}

TEST_CASE("deleted files count as scratch as long as a process holds them") {
  if (!can_run()) return;
  Node node([](RuntimeOptions& options) { options.scratch_dir = "/var/tmp"; });
  const auto python = [&](const std::string& body) {
    auto request = node.job("exec python3 - <<'END'\nimport mmap, os, socket, threading, time\n" +
                            body + "\nEND\n");
    request.scratch = 4'000'000;
    return request;
  };
  const std::string make = "f = open('/tmp/a', 'w+b'); f.write(bytes(5_000_000)); f.flush()\n";
  const auto begun = [&](LaunchRequest request) {
    REQUIRE(node.runtime().begin(request));
    return request;
  };
  const std::vector<std::string> bodies{
      make + "os.remove('/tmp/a'); time.sleep(12)",
      make + "m = mmap.mmap(f.fileno(), 0); os.remove('/tmp/a'); f.close(); time.sleep(12)",
      std::string("d = os.open('/tmp', os.O_TMPFILE | os.O_RDWR)\n"
                  "os.write(d, bytes(5_000_000)); time.sleep(12)"),
      // A thread with its own descriptors holds the file, whose directory is deleted as well.
      std::string("import ctypes\nos.mkdir('/tmp/d')\n"
                  "f = os.open('/tmp/d/a', os.O_CREAT | os.O_RDWR); os.write(f, "
                  "bytes(5_000_000)); os.remove('/tmp/d/a'); os.rmdir('/tmp/d')\n"
                  "own = threading.Event()\n"
                  "def hold():\n    assert ctypes.CDLL(None).unshare(0x400) == 0\n"
                  "    own.set()\n    time.sleep(12)\n"
                  "threading.Thread(target=hold).start(); own.wait(); os.close(f)\n"
                  "time.sleep(12)")};
  // All run at once, because each of them has to wait for a measurement.
  std::vector<LaunchRequest> jobs;
  for (const std::string& body : bodies) jobs.push_back(begun(python(body)));
  const LaunchRequest allowed = begun(python(
      "f = open('" + node.home() +
      "/a', 'w+b'); f.write(bytes(5_000_000)); f.flush()\n"
      "os.remove(f.name)\n"
      "g = open('/tmp/a', 'w+b'); g.write(bytes(2_000_000)); g.flush(); h = os.dup(g.fileno())\n"
      "os.remove('/tmp/a')\nif os.fork() == 0: time.sleep(12); os._exit(0)\ntime.sleep(12)"));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::string& body = bodies[i];
    const auto record = node.wait_end(jobs[i].key);
    CHECK(record.exit == ExitStatus{0, SIGKILL});
    CHECK_MESSAGE(has(record.message, "exceeded its scratch space of 4000000 bytes (--tmp): 50"),
                  body, record.message);
    CHECK(has(record.message, " of them by files that are deleted and still open"));
  }
  // A deleted file elsewhere on the same disk does not count as scratch. A file of half the limit
  // is allowed, although two processes hold it.
  const auto other = node.wait_end(allowed.key);
  CHECK_MESSAGE((other.exit == ExitStatus{0, 0}), other.message);
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("deep scratch directories count and are removed; too deep ones count as too much") {
  if (!can_run()) return;
  Node node([](RuntimeOptions& options) { options.scratch_dir = "/var/tmp"; });
  const auto nested = [&](int levels) {
    auto request = node.job("exec python3 -c \"import os, time\nos.chdir('/tmp')\nfor i in range(" +
                            std::to_string(levels) +
                            "): os.mkdir('n' * 250); os.chdir('n' * 250)\n"
                            "open('large', 'wb').write(bytes(5_000_000))\ntime.sleep(12)\"");
    request.scratch = 4'000'000;
    REQUIRE(node.runtime().begin(request));
    return request.key;
  };
  const auto why = [&](const AttemptKey& key) {
    const auto record = node.wait_end(key);
    CHECK(record.exit == ExitStatus{0, SIGKILL});
    CHECK(::access(("/var/tmp/gantry-n1-" + job_name(key)).c_str(), F_OK) != 0);
    return record.message;
  };
  const AttemptKey deep = nested(300), too_deep = nested(600);
  CHECK(has(why(deep), "exceeded its scratch space of 4000000 bytes (--tmp)"));
  CHECK(has(why(too_deep), "has more than 500 directories in each other in /tmp"));
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

// The effect of kill -9 depends on its moment: the lock is not signed yet, the prolog runs, the OCI
// runtime works, the job runs, the record is half written. In every case nothing may be left, and
// each attempt must end exactly once.
TEST_CASE("shims and noded that are killed at any moment leave nothing behind") {
  if (!can_run()) return;
  Node node;
  constexpr int kJobs = 36;
  std::vector<AttemptKey> keys;
  std::set<AttemptKey> lost;
  for (int i = 0; i < kJobs; ++i) {
    auto request = node.job("sleep 0.02; (setsid sleep 1000 &) ; exit 3");
    request.std_out = "/dev/null";
    REQUIRE(node.runtime().begin(request));
    keys.push_back(request.key);
    ::usleep(static_cast<useconds_t>(i * 1700 % 60'000));
    if (const int pid = node.shim_pid(request.key); pid > 0) ::kill(pid, SIGKILL);
    if (i % 9 != 8) continue;
    for (const auto& found : node.restart()) {
      if (found.stage == Stage::never_started) REQUIRE(node.runtime().resume(found.key));
      if (found.stage != Stage::ended) continue;
      CHECK((found.record.cause == ExitCause::shim_lost || found.record.exit == ExitStatus{3, 0}));
      if (found.record.cause == ExitCause::shim_lost) lost.insert(found.key);
    }
  }
  for (const auto& found : node.restart())
    if (found.stage == Stage::never_started) REQUIRE(node.runtime().resume(found.key));
  for (const auto& key : keys) {
    const std::string dir = node.state_dir() + "/jobs/" + std::to_string(key.job.value()) + ".1";
    for (int i = 0; i < 600 && ::access((dir + "/exit.msgpack").c_str(), F_OK) != 0; ++i)
      node.pump(100);
    CHECK_MESSAGE(::access((dir + "/exit.msgpack").c_str(), F_OK) == 0, dir);
  }
  CHECK_FALSE(lost.empty());
  eventually([&] { return remains(node).empty(); });
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("shims forked by a template look like started ones, and outlive the template") {
  if (!can_run()) return;
  Node node;
  const auto words = [](int pid) {
    return read_file("/proc/" + std::to_string(pid) + "/cmdline").value_or("");
  };
  const auto parent = [](int pid) {
    const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat").value_or("");
    const auto fields = split(stat.substr(stat.rfind(')') + 2), ' ');
    return std::atoi(fields[1].c_str());
  };
  const std::string shim = program_dir() + "/gantry-shim";
  const auto template_words = shim + '\0' + "template" + '\0' + node.state_dir() + '\0';
  const auto first = node.job("sleep 600");
  start(node, first);
  const int pid = node.shim_pid(first.key);
  CHECK(words(pid) == shim + '\0' + "job" + '\0' + node.state_dir() + '\0' + "1.1" + '\0');
  const int before = parent(pid);
  CHECK(words(before) == template_words);
  REQUIRE(::kill(before, SIGKILL) == 0);

  // This works whether or not the node has noticed the loss yet.
  const auto second = node.job("sleep 600");
  start(node, second);
  const auto third = node.job("sleep 600");
  start(node, third);
  const int after = parent(node.shim_pid(third.key));
  CHECK(after != before);
  CHECK(words(after) == template_words);
  for (const auto& job : {first, second, third}) {
    REQUIRE(node.runtime().kill(job.key));
    const auto record = node.wait_end(job.key);
    CHECK(record.cause == ExitCause::exited);
    CHECK(record.exit == ExitStatus{0, 9});
  }
}
