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
