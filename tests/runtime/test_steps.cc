// Tests steps: tasks that enter the container of a running job.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include "tests/eventually.h"
#include "tests/runtime/node_fixture.h"

using namespace gantry;
using namespace gantry::runtime;
using namespace gantry::runtime::test;

namespace {

StepRequest step_of(const LaunchRequest& job, std::uint32_t number, const std::string& command,
                    std::uint32_t tasks) {
  StepRequest step;
  step.key = job.key;
  step.step = StepId{number};
  step.argv = {"/bin/sh", "-c", command};
  for (std::uint32_t i = 0; i < tasks; ++i)
    step.task_env.push_back({{"SLURM_PROCID", std::to_string(i)}});
  step.std_out = "step-%s-%t";
  return step;
}

LaunchRequest holder(Node& node) {
  auto job = node.job("");
  job.kind = LaunchKind::holder;
  job.cpus = {0};
  REQUIRE(node.runtime().begin(job));
  REQUIRE(node.wait_for(job.key, EventKind::running));
  return job;
}

}  // namespace

TEST_CASE("tasks of a step are as confined as their job, and run in its namespaces") {
  if (!can_run()) return;
  Node node;
  const auto job = holder(node);
  const auto step = step_of(
      job, 0,
      "echo rank $SLURM_PROCID; id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' "
      "/proc/self/status; cat /proc/1/comm; ls /sys/class/net; nproc; pwd; ls /proc/self/fd; "
      "touch /usr/x 2>&1; unshare -U true 2>&1; echo u=$?; exit $SLURM_PROCID",
      3);
  REQUIRE(node.runtime().begin_step(step));
  const auto record = node.wait_step(job.key, step.step);
  CHECK_MESSAGE(record.cause == ExitCause::exited, record.message);
  CHECK(record.exit == ExitStatus{2, 0});
  REQUIRE(record.tasks.size() == 3);
  CHECK(record.tasks[1] == ExitStatus{1, 0});
  const auto out = node.read(node.home() + "/step-0-1");
  CHECK_MESSAGE(out.starts_with("rank 1\n20001\nCapBnd") == false, out);
  CHECK(has(out, "rank 1\n20001\n"));
  CHECK(has(out, "CapEff:\t0000000000000000"));
  CHECK(has(out, "CapBnd:\t0000000000000000"));
  CHECK(has(out, "NoNewPrivs:\t1"));
  CHECK(has(out, "Seccomp:\t2"));
  // ls has opened descriptor 3 itself.
  CHECK(has(out, "gantry-init\nlo\n1\n" + node.home() + "\n0\n1\n2\n3\n"));
  CHECK(has(out, "Read-only file system"));
  CHECK_FALSE(has(out, "u=0"));
  REQUIRE(node.runtime().kill(job.key));
  node.wait_end(job.key);
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("a step shares the job's memory limit, /tmp and processes") {
  if (!can_run()) return;
  Node node;
  const auto job = holder(node);
  REQUIRE(node.runtime().begin_step(step_of(job, 0, "echo x > /tmp/shared", 1)));
  node.wait_step(job.key, StepId{0});
  REQUIRE(node.runtime().begin_step(
      step_of(job, 1, "cat /tmp/shared; dd if=/dev/zero of=/dev/null bs=200M count=1", 1)));
  // With cgroup v1 one process of the step is killed, with v2 the whole job (memory.oom.group).
  const auto exit = node.wait_step(job.key, StepId{1}).exit;
  CHECK((exit == ExitStatus{137, 0} || exit == ExitStatus{0, 9}));
  CHECK(node.read(node.home() + "/step-1-0").starts_with("x\n"));
  if (exit.signal == 0) REQUIRE(node.runtime().signal(job.key, SIGTERM, proto::SignalScope::full));
  const auto record = node.wait_end(job.key);  // a holder without processes ends by SIGTERM
  CHECK(record.oom_kills >= 1);
}

TEST_CASE("signals reach the tasks of a step alone, and its end ends all of its processes") {
  if (!can_run()) return;
  Node node;
  const auto job = holder(node);
  auto step = step_of(job, 0,
                      "trap 'echo got; sleep 0.3; exit 7' USR1; (setsid sleep 1000 &) ; "
                      "sh -c 'trap \"echo heard\" USR1; while :; do sleep 0.02; done' & "
                      "echo ready; while :; do sleep 0.02; done",
                      2);
  REQUIRE(node.runtime().begin_step(step));
  eventually([&] { return has(node.read(node.home() + "/step-0-1"), "ready"); });
  eventually([&] { return has(node.read(node.home() + "/step-0-0"), "ready"); });
  REQUIRE(node.runtime().signal(job.key, SIGUSR1, proto::SignalScope::steps));
  const auto record = node.wait_step(job.key, StepId{0});
  CHECK(record.exit == ExitStatus{7, 0});
  CHECK(node.read(node.home() + "/step-0-0") ==
        "ready\ngot\n");  // not the processes that a task has started
  // Processes that the tasks left running have ended with the step; the job has not.
  auto look = step_of(job, 1, "ls /proc | grep -c '^[0-9]'", 1);
  REQUIRE(node.runtime().begin_step(look));
  node.wait_step(job.key, StepId{1});
  CHECK(std::stoi(node.read(node.home() + "/step-1-0")) <= 5);

  REQUIRE(node.runtime().begin_step(step_of(job, 2, "echo runs; sleep 1000", 2)));
  eventually([&] { return has(node.read(node.home() + "/step-2-0"), "runs"); });
  REQUIRE(node.runtime().kill_step(job.key, StepId{2}));
  CHECK(node.wait_step(job.key, StepId{2}).exit == ExitStatus{0, 9});
  CHECK(node.runtime().usage(job.key).has_value());
}

TEST_CASE("a signal for a step whose tasks do not run yet is delivered when they run") {
  if (!can_run()) return;
  Node node;
  const auto job = holder(node);
  auto step = step_of(job, 0, "", 2);
  step.argv = {"sleep", "1000"};
  REQUIRE(node.runtime().signal_step(job.key, StepId{0}, SIGUSR1));  // srun is on its way here
  REQUIRE(node.runtime().begin_step(step));
  CHECK(node.wait_step(job.key, StepId{0}).exit == ExitStatus{0, SIGUSR1});
  step.step = StepId{1};
  REQUIRE(node.runtime().begin_step(step));
  REQUIRE(node.runtime().signal(job.key, SIGUSR2, proto::SignalScope::steps));
  CHECK(node.wait_step(job.key, StepId{1}).exit == ExitStatus{0, SIGUSR2});
  CHECK_FALSE(node.runtime().signal_step({JobId{99}, Attempt{1}}, StepId{0}, SIGUSR1));
  REQUIRE(node.runtime().kill(job.key));
  node.wait_end(job.key);
}

TEST_CASE("a step has a time limit and a memory limit of its own, and its usage is told") {
  if (!can_run()) return;
  Node node;
  auto job = node.job("");
  job.kind = LaunchKind::holder;
  job.cpus = {0};
  job.memory = 256 << 20;
  REQUIRE(node.runtime().begin(job));
  REQUIRE(node.wait_for(job.key, EventKind::running));
  auto step = step_of(job, 0, "trap '' TERM; sleep 1000", 1);
  step.time_limit = milliseconds(200);
  step.kill_wait = milliseconds(200);
  REQUIRE(node.runtime().begin_step(step));
  const auto late = node.wait_step(job.key, StepId{0});
  CHECK(late.timed_out);
  CHECK(late.exit == ExitStatus{0, SIGKILL});
  CHECK(late.usage.memory_peak_bytes > 0);

  step = step_of(job, 1, "dd if=/dev/zero of=/dev/null bs=100M count=1", 1);
  step.memory = 30 << 20;
  REQUIRE(node.runtime().begin_step(step));
  const auto large = node.wait_step(job.key, StepId{1});
  CHECK((large.exit == ExitStatus{0, SIGKILL} || large.exit == ExitStatus{137, 0}));
  CHECK(large.cause == ExitCause::out_of_memory);

  step = step_of(job, 2, "echo begun; while :; do :; done", 1);
  REQUIRE(node.runtime().begin_step(step));
  eventually([&] { return has(node.read(node.home() + "/step-2-0"), "begun"); });
  const auto told = node.runtime().usage();
  REQUIRE(told.size() == 1);
  REQUIRE(told[0].steps.size() == 1);
  CHECK(told[0].steps[0].step == StepId{2});
  CHECK(told[0].steps[0].usage.memory_peak_bytes > 0);
  REQUIRE(node.runtime().kill(job.key));
  CHECK(node.wait_end(job.key).oom_kills == 0);  // the limit was the step's
}

TEST_CASE("the number of steps at a time is limited, as each has a process of root") {
  if (!can_run()) return;
  Node node;
  auto job = node.job("");
  job.kind = LaunchKind::holder;
  job.cpus = {0};
  job.memory = 512 << 20;
  job.pids_max = 1024;
  REQUIRE(node.runtime().begin(job));
  REQUIRE(node.wait_for(job.key, EventKind::running));
  auto step = step_of(job, 0, "", 1);
  step.argv = {"sleep", "1000"};
  step.std_out = "/dev/null";
  std::uint32_t begun = 0;
  for (; begun < 300; ++begun) {
    step.step = StepId{begun};
    const auto r = node.runtime().begin_step(step);
    if (r) continue;
    CHECK(r.error().code == ErrorCode::too_many);
    break;
  }
  CHECK(begun == 256 + 4);
  REQUIRE(node.runtime().kill_step(job.key, StepId{0}));
  node.wait_step(job.key, StepId{0});
  CHECK(node.runtime().begin_step(step).has_value());
  REQUIRE(node.runtime().kill(job.key));
  node.wait_end(job.key);
}

TEST_CASE("a missing program or directory gives 127 or 126, and a step needs a running job") {
  if (!can_run()) return;
  Node node;
  const auto job = holder(node);
  auto step = step_of(job, 0, "", 1);
  step.argv = {"no-such-program"};
  REQUIRE(node.runtime().begin_step(step));
  CHECK(node.wait_step(job.key, StepId{0}).exit == ExitStatus{127, 0});
  step = step_of(job, 1, "true", 1);
  step.work_dir = "/no/such/dir";
  step.std_out = "/dev/null";
  REQUIRE(node.runtime().begin_step(step));
  CHECK(node.wait_step(job.key, StepId{1}).exit == ExitStatus{126, 0});
  step.key.job = JobId{99};
  CHECK_FALSE(node.runtime().begin_step(step).has_value());
}

TEST_CASE("killing a step's shim ends the step; killing the job's ends both") {
  if (!can_run()) return;
  Node node;
  const auto job = holder(node);
  REQUIRE(node.runtime().begin_step(step_of(job, 0, "echo runs; sleep 1000", 2)));
  const std::string lock = node.state_dir() + "/jobs/1.1/steps/0/shim.lock";
  eventually([&] { return has(node.read(node.home() + "/step-0-0"), "runs"); });
  ::kill(std::atoi(node.read(lock).c_str()), SIGKILL);
  CHECK(node.wait_step(job.key, StepId{0}).cause == ExitCause::shim_lost);
  REQUIRE(node.runtime().begin_step(step_of(job, 1, "echo runs; sleep 1000", 1)));
  eventually([&] { return has(node.read(node.home() + "/step-1-0"), "runs"); });
  ::kill(node.shim_pid(job.key), SIGKILL);
  CHECK(node.wait_end(job.key).cause == ExitCause::shim_lost);
  eventually([&] { return remains(node).empty(); });
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}
