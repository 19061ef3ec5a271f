#include "cli/slurm/step/srun_bcast.h"

#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "cli/slurm/frame.h"
#include "common/text/split.h"

extern char** environ;  // declared by POSIX

namespace gantry::cli::slurm {

namespace srun {
Result<void> set_bcast(SrunRequest& r, std::string_view text) {
  r.bcast = text;
  return {};
}

}  // namespace srun

namespace {

// The file that would be executed for this name.
std::optional<std::string> file_of_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "" : path, ':'))
    if (const std::string file = folder + "/" + name; ::access(file.c_str(), X_OK) == 0)
      return file;
  return std::nullopt;
}

}  // namespace

bool broadcast_program(const Invocation& call, const SrunRequest& r, JobId job,
                       std::vector<std::string>& argv) {
  if (!r.bcast) return true;
  const auto source = file_of_program(argv[0]);
  if (!source) {
    complain(call, fmt::format("--bcast: {} is not found in PATH", argv[0]));
    return false;
  }
  std::string to = *r.bcast;
  if (to.empty()) to = fmt::format("/tmp/slurm_bcast_{}.{}", job.value(), ::getpid());
  if (to.back() == '/') to += source->substr(source->rfind('/') + 1);
  std::vector<std::string> words{"sbcast", "--force", fmt::format("--jobid={}", job.value()),
                                 *source, to};
  std::vector<char*> plain;
  for (std::string& word : words) plain.push_back(word.data());
  plain.push_back(nullptr);
  pid_t pid = 0;
  if (const int error =
          ::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, plain.data(), environ);
      error != 0) {
    complain(call, fmt::format("--bcast: cannot start sbcast: {}", std::strerror(error)));
    return false;
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    complain(call, fmt::format("Failed to broadcast '{}'. Step launch aborted.", *source));
    return false;
  }
  argv[0] = to;
  return true;
}

}  // namespace gantry::cli::slurm
