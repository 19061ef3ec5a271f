#include "cli/slurm/step/srun_program.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "cli/files.h"
#include "cli/slurm/step/multi_prog.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {

namespace srun {

std::string absolute_program(std::string_view text) {
  if (text.starts_with('/') || text.find('/') == std::string_view::npos) return std::string(text);
  std::error_code ignored;
  return (std::filesystem::current_path(ignored) / text).lexically_normal().string();
}
Result<void> set_stopped(SrunRequest& r, std::string_view) {
  r.around.stopped = true;
  return {};
}
Result<void> set_threads(SrunRequest& r, std::string_view text) {
  ASSIGN(n, parse_integer("the number of nodes at a time", text, 1, 65'536));
  r.at_a_time = static_cast<std::uint32_t>(*n);
  return {};
}
Result<void> set_node_words(SrunRequest&, std::string_view text) {
  constexpr std::string_view kLevels[] = {"quiet", "fatal",  "error",  "info",   "verbose",
                                          "debug", "debug2", "debug3", "debug4", "debug5"};
  const bool number = text.size() == 1 && text[0] >= '0' && text[0] <= '9';
  if (number || std::find(std::begin(kLevels), std::end(kLevels), text) != std::end(kLevels))
    return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("\"{}\" is not 0 to 9, quiet, fatal, error, info, verbose or debug to "
                          "debug5",
                          text));
}

}  // namespace srun

std::optional<std::vector<std::string>> program_of(const Invocation& call, SrunRequest& r,
                                                   const std::vector<std::string>& operands) {
  std::string choose;
  if (r.multi_prog) {
    const auto text = read_small_file(operands[0]);
    if (!text || !*text) {
      complain(call, fmt::format("Could not open multi_prog config file {}", operands[0]));
      return std::nullopt;
    }
    auto script = multi_prog_script(**text, r.tasks.value_or(0), operands[0]);
    if (!script) {
      complain(call, script.error().message);
      return std::nullopt;
    }
    choose = std::move(*script);
  }
  auto command = task_command(r.around, choose, operands);
  if (choose.empty() && command.size() != operands.size() && r.spec.name.empty())
    r.spec.name = operands[0].substr(operands[0].rfind('/') + 1);
  return command;
}

void run_beside(const Invocation& call, const std::string& program,
                const std::vector<std::string>& command) {
  if (program.empty()) return;
  std::vector<const char*> argv{program.c_str()};
  for (const std::string& word : command) argv.push_back(word.c_str());
  argv.push_back(nullptr);
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execvp(argv[0], const_cast<char**>(argv.data()));
    ::_exit(127);
  }
  int status = 0;
  while (pid > 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (pid < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127))
    complain(call, fmt::format("{} could not be run", program));
}

}  // namespace gantry::cli::slurm
