// Tests which processes count as MPS daemons. NVIDIA's MPS program is not needed.
#include "noded/gpu/mps.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "noded/machine/files.h"
#include "tests/eventually.h"
#include "tests/skip.h"

namespace gantry::gpu {
namespace {

// Starts, as an ordinary user, a set-uid program of root with this environment variable.
pid_t users_process(const std::string& program, const std::string& variable) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  const char* env[] = {variable.c_str(), nullptr};
  const char* argv[] = {program.c_str(), "1000", nullptr};
  if (::setresgid(20001, 20001, 20001) == 0 && ::setresuid(20001, 20001, 20001) == 0)
    ::execve(argv[0], const_cast<char**>(argv), const_cast<char**>(env));
  ::_exit(127);
}

TEST_CASE("a user's set-uid program is not taken for an MPS daemon, whatever its environment is") {
  if (::geteuid() != 0) SKIP_CASE("only root can be two users");
  std::string dir = "/var/tmp/gantry-mps-XXXXXX";
  REQUIRE(::mkdtemp(dir.data()) != nullptr);
  ::chmod(dir.c_str(), 0711);
  const std::string program = dir + "/sleep";
  {
    const auto text = runtime::read_file("/bin/sleep");
    REQUIRE(text.has_value());
    const Fd out(::open(program.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0755));
    REQUIRE(::write(out.get(), text->data(), text->size()) == static_cast<ssize_t>(text->size()));
  }
  REQUIRE(::chmod(program.c_str(), 04755) == 0);
  const std::string mps_dir = dir + "/mps";
  const pid_t pid = users_process(program, "CUDA_MPS_PIPE_DIRECTORY=" + mps_dir + "/GPU-1/pipe");
  const std::string status = "/proc/" + std::to_string(pid) + "/status";
  const std::string expected = "\nUid:\t20001\t0\t0\t0\n";
  CHECK(eventually(
      [&] { return runtime::read_file(status).value_or("").find(expected) != std::string::npos; }));
  Mps mps("/bin/true", mps_dir);
  const auto served = mps.serve("blue", "GPU-1");
  CHECK_MESSAGE(served.has_value(), served.error().message);
  mps.keep({});
  CHECK(::kill(pid, 0) == 0);
  CHECK(::waitpid(pid, nullptr, WNOHANG) == 0);  // the process was not killed
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  runtime::remove_tree(dir);
}

}  // namespace
}  // namespace gantry::gpu
