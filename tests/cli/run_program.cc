#include "tests/cli/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/assert.h"
#include "tests/places.h"

namespace gantry::test {
namespace {

struct Pipe {
  int read = -1;
  int write = -1;
  Pipe() {
    std::array<int, 2> ends{};
    GANTRY_ASSERT(::pipe2(ends.data(), O_CLOEXEC) == 0, "pipe");
    read = ends[0];
    write = ends[1];
  }
};

void close_end(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

// Writes the input and reads both outputs at the same time, so that neither side waits for ever.
void talk(Pipe& in, Pipe& out, Pipe& err, const std::string& input, Run& run) {
  std::size_t written = 0;
  if (input.empty()) close_end(in.write);
  while (out.read >= 0 || err.read >= 0) {
    std::array<pollfd, 3> fds{
        {{in.write, POLLOUT, 0}, {out.read, POLLIN, 0}, {err.read, POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), -1);
    if (in.write >= 0 && fds[0].revents != 0) {
      const ssize_t n = ::write(in.write, input.data() + written, input.size() - written);
      written += n > 0 ? static_cast<std::size_t>(n) : 0;
      if (n <= 0 || written == input.size()) close_end(in.write);
    }
    std::array<char, 65536> buffer;
    const auto drain = [&](int& fd, std::string& text) {
      const ssize_t n = ::read(fd, buffer.data(), buffer.size());
      if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
      if (n == 0) close_end(fd);
    };
    if (out.read >= 0 && fds[1].revents != 0) drain(out.read, run.out);
    if (err.read >= 0 && fds[2].revents != 0) drain(err.read, run.err);
  }
  close_end(in.write);
}

}  // namespace

Run run_program(const Call& call) {
  std::vector<std::string> words = call.argv;
  const bool is_path = call.argv[0].starts_with('/');
  const std::string program = is_path ? call.argv[0] : program_dir() + "/" + call.argv[0];
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "TZ=UTC",
                                     "ASAN_OPTIONS=detect_leaks=0"};
  for (const auto& [name, value] : call.environment) variables.push_back(name + "=" + value);
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);
  Pipe in;
  Pipe out;
  Pipe err;
  ::signal(SIGPIPE, SIG_IGN);
  const pid_t pid = ::fork();
  GANTRY_ASSERT(pid >= 0, "fork");
  if (pid == 0) {
    ::signal(SIGPIPE, SIG_DFL);
    ::dup2(in.read, 0);
    ::dup2(out.write, 1);
    ::dup2(err.write, 2);
    if (!call.directory.empty() && ::chdir(call.directory.c_str()) != 0) ::_exit(126);
    ::execve(program.c_str(), argv.data(), envp.data());
    ::_exit(127);
  }
  close_end(in.read);
  close_end(out.write);
  close_end(err.write);
  Run run;
  talk(in, out, err, call.input, run);
  int status = 0;
  ::waitpid(pid, &status, 0);
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return run;
}

ScratchDir::ScratchDir() {
  std::string name = "/tmp/gantry-cli-XXXXXX";
  GANTRY_ASSERT(::mkdtemp(name.data()) != nullptr, "mkdtemp");
  path_ = name;
}
ScratchDir::~ScratchDir() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}
std::string ScratchDir::file(const std::string& name, const std::string& text) const {
  std::ofstream(path_ + "/" + name, std::ios::binary) << text;
  return path_ + "/" + name;
}

}  // namespace gantry::test
