// Tests the files of --output, --error and --input.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/runtime/node_fixture.h"

using namespace gantry;
using namespace gantry::runtime;
using namespace gantry::runtime::test;

TEST_CASE("output goes to the file that the pattern names, which belongs to the user") {
  if (!can_run()) return;
  Node node;
  auto request = node.job("echo out; echo err >&2");
  request.std_out = "o-%j-%x-%N";
  request.std_err = "e-%5j";
  node.run(request);
  const std::string out = node.home() + "/o-1-test-n1";
  CHECK(node.read(out) == "out\n");
  CHECK(node.read(node.home() + "/e-00001") == "err\n");
  struct stat st {};
  REQUIRE(::stat(out.c_str(), &st) == 0);
  CHECK(st.st_uid == kTestUid);
  CHECK((st.st_mode & 0777) == 0644);
  CHECK(::stat("/dev/null", &st) == 0);
  // crun gives its standard files to the user, but must not do so with /dev/null.
  CHECK(st.st_uid == 0);

  request = node.job("echo joined; echo too >&2");
  request.std_out.clear();
  node.run(request);
  CHECK(node.read(node.home() + "/gantry-2.out") == "joined\ntoo\n");
}

TEST_CASE("--open-mode selects between appending to and truncating the output file") {
  if (!can_run()) return;
  Node node;
  node.write(node.home() + "/out", "before\n", 0644, true);
  auto request = node.job("echo one");
  request.open_mode = OpenMode::append;
  node.run(request);
  CHECK(node.output() == "before\none\n");
  node.run("echo two");
  CHECK(node.output() == "two\n");
}

TEST_CASE("the input file is the job's standard input") {
  if (!can_run()) return;
  Node node;
  node.write(node.home() + "/in", "hello\n", 0600, true);
  auto request = node.job("cat; echo end");
  request.std_in = "in";
  node.run(request);
  CHECK(node.output() == "hello\nend\n");
}

TEST_CASE("a folder of the output that is made a little later is awaited") {
  if (!can_run()) return;
  Node node;
  auto request = node.job("echo there");
  request.std_out = "late/out";
  REQUIRE(node.runtime().begin(request));
  ::usleep(50'000);
  const std::string folder = node.home() + "/late";
  REQUIRE(::mkdir(folder.c_str(), 0777) == 0);
  REQUIRE(::chmod(folder.c_str(), 0777) == 0);
  CHECK(node.wait_end(request.key).exit == ExitStatus{});
  CHECK(node.read(folder + "/out") == "there\n");
}

TEST_CASE("a file that cannot be opened fails the start with the reason") {
  if (!can_run()) return;
  Node node;
  node.write(node.dir() + "/of-root", "keep", 0600, false);
  const auto cause = [&](const std::string& out, const std::string& in = "") {
    auto request = node.job("true");
    request.std_out = out;
    request.std_in = in;
    const auto record = node.run(request);
    CHECK(record.cause == ExitCause::refused);
    CHECK_FALSE(record.started.has_value());
    return record.message;
  };
  CHECK(cause("no/such/dir/out") == "node n1: output file " + node.home() +
                                        "/no/such/dir/out: the folder " + node.home() +
                                        "/no/such/dir does not exist");
  CHECK(cause(node.dir() + "/of-root").find("Permission denied") != std::string::npos);
  CHECK(cause("/etc/gantry-test-out").find("Permission denied") != std::string::npos);
  CHECK(cause("/proc/self/fd/1").find("Too many levels") != std::string::npos);
  CHECK(cause("out", "missing") ==
        "node n1: input file " + node.home() + "/missing: No such file or directory");
  CHECK(cause("out", node.home()) == "node n1: input file " + node.home() + ": is a directory");
  CHECK(cause("%q").find("allowed are %j") != std::string::npos);
  CHECK(node.read(node.dir() + "/of-root") == "keep");
  auto request = node.job("true");
  request.work_dir = "/no/such/place";
  request.std_out = "/dev/null";
  const auto record = node.run(request);
  CHECK(record.cause == ExitCause::refused);
  CHECK(record.message == "node n1: working directory /no/such/place does not exist");
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}
