// Tests how a node behaves when a part of it is stopped or removed: a shim, its state directory.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <cstdio>

#include "noded/runtime/job_dir.h"
#include "tests/runtime/node_fixture.h"

using namespace gantry;
using namespace gantry::runtime;
using namespace gantry::runtime::test;

TEST_CASE("a stopped shim does not save its job from being killed") {
  if (!can_run()) return;
  Node node;
  auto request = node.job("trap '' TERM; while :; do sleep 1; done");
  REQUIRE(node.runtime().begin(request).has_value());
  REQUIRE(node.wait_for(request.key, EventKind::running));
  const int shim = node.shim_pid(request.key);
  ::kill(shim, SIGSTOP);
  const auto state = [&] { return node.read("/proc/" + std::to_string(shim) + "/stat"); };
  for (int i = 0; i < 1000 && !has(state(), ") T "); ++i) node.pump(5);
  // A single call of kill() is enough.
  REQUIRE(node.runtime().kill(request.key).has_value());
  const auto record = node.wait_end(request.key);
  CHECK(record.cause == ExitCause::shim_lost);
  REQUIRE(record.ran);
  CHECK(*record.ran > Duration{});
  CHECK(*record.ran < record.ended - *record.started + seconds(1));
  CHECK(::kill(shim, 0) != 0);
  CHECK_FALSE(list_dir(job_dir(node.state_dir(), request.key)).empty());
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("the exit record says how long a job ran, and has no time for a job that never ran") {
  if (!can_run()) return;
  Node node;
  const auto record = node.run("sleep 1");
  REQUIRE(record.ran);
  CHECK(*record.ran >= seconds(1));
  CHECK(*record.ran < record.ended - *record.started + milliseconds(100));
  auto request = node.job("true");
  request.work_dir = "/of/nobody";
  const auto never = node.run(request);
  CHECK_FALSE(never.started);
  CHECK_FALSE(never.ran);
}

TEST_CASE("without its state directory a node starts no job, and running jobs end in order") {
  if (!can_run()) return;
  Node node;
  const std::string state = node.state_dir(), away = state + ".away";
  const auto start = [&](const char* script) {
    auto request = node.job(script);
    REQUIRE(node.runtime().begin(request).has_value());
    REQUIRE(node.wait_for(request.key, EventKind::running));
    return request.key;
  };
  const auto is_refused = [&] {
    CHECK(has(node.runtime().trouble(), "state directory " + state + " is gone or another one"));
    const auto begun = node.runtime().begin(node.job("true"));
    CHECK((!begun && has(begun.error().message, "node n1: the node daemon's state directory")));
  };
  CHECK(node.runtime().trouble().empty());
  const auto first = start("sleep 1");
  REQUIRE(::rename(state.c_str(), away.c_str()) == 0);
  is_refused();
  // a new directory at the same path is not accepted either
  REQUIRE(::mkdir(state.c_str(), 0700) == 0);
  REQUIRE(::mkdir((state + "/jobs").c_str(), 0700) == 0);
  is_refused();
  const auto record = node.wait_end(first);
  CHECK(record.cause == ExitCause::shim_lost);
  CHECK(has(record.message, "is gone or another one"));
  CHECK(list_dir(state + "/jobs").empty());
  remove_tree(state);
  REQUIRE(::rename(away.c_str(), state.c_str()) == 0);
  CHECK(node.runtime().trouble().empty());
  // Another file system over the directory has the same effect, until it is unmounted.
  const auto second = start("sleep 1");
  REQUIRE(::mount("tmpfs", state.c_str(), "tmpfs", 0, "size=1m") == 0);
  is_refused();
  CHECK(node.wait_end(second).cause == ExitCause::shim_lost);
  REQUIRE(::umount2(state.c_str(), MNT_DETACH) == 0);
  CHECK(node.run("true").exit == ExitStatus{});
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}
