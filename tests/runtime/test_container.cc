// What a job's container is: who it runs as, what it sees, how its exit is told.
#include <doctest/doctest.h>

#include "tests/runtime/node_fixture.h"

using namespace gantry;
using namespace gantry::runtime;
using namespace gantry::runtime::test;

TEST_CASE("exit codes and signals are told exactly") {
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
  CHECK(remains(node).empty());
}

TEST_CASE("the self-test of the runtime passes, and says which layers are on") {
  if (!can_run()) return;
  Node node([](RuntimeOptions& options) { options.self_test = true; });
  for (const auto& line : node.runtime().probe().refused) MESSAGE(line);
  for (const auto& line : node.runtime().probe().layers_on) MESSAGE("on: ", line);
  for (const auto& line : node.runtime().probe().layers_off) MESSAGE("off: ", line);
  MESSAGE(node.runtime().probe().runtime);
}

TEST_CASE("look around") {
  if (!can_run()) return;
  Node node;
  auto r = node.run("id; cat /proc/self/status | grep -E 'Cap|Seccomp|NoNew|Groups|Uid'; ls -la / /dev /tmp /run /run/gantry; ps ax; cat /proc/self/mountinfo | wc -l; mount | tail -50; cat /proc/self/cgroup; ip a 2>/dev/null; env; pwd; cat /proc/self/limits; cat /proc/self/oom_score_adj; ls -la ~");
  MESSAGE(r.message);
  MESSAGE(node.output());
}
