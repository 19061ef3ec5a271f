#include "cli/slurm/step/srun_program.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "cli/files.h"
#include "cli/slurm/step/task_script.h"
#include "cli/step/step_run.h"
#include "common/text/split.h"
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

namespace srun {
Result<void> set_cpu_bind(SrunRequest& r, std::string_view text) {
  ASSIGN(bind, parse_cpu_bind(text));
  r.cpu_bind = std::move(*bind);
  r.cpu_bind_text = text;
  return {};
}

}  // namespace srun

namespace {

// "verbose,map_cpu:0,1" has the type "map_cpu:" and the list "0,1"; "none" has only a type.
struct BindText {
  std::string type, list;
};

BindText read_bind(std::string_view text) {
  BindText out;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    if (const std::size_t colon = word.find(':'); colon != std::string_view::npos) {
      out.type = word.substr(0, colon + 1);
      out.list = text.substr(colon + 1);
      return out;
    }
    constexpr std::string_view kOthers[] = {"v",      "verbose", "q",    "quiet",
                                            "prefer", "p",       "sort", "nosort"};
    if (std::find(std::begin(kOthers), std::end(kOthers), word) == std::end(kOthers))
      out.type = word;
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return out;
}

void put_binding(const std::string& name, const std::string& text, const TaskBind& bind,
                 std::map<std::string, std::string>& out) {
  if (text.empty()) return;
  const BindText parts = read_bind(text);
  const std::string told = bind.verbose ? "verbose" : "quiet";
  const std::string prefer = bind.prefer ? ",prefer" : "";
  out[name] = told + prefer + (parts.type.empty() ? "" : "," + parts.type + parts.list);
  out[name + "_VERBOSE"] = told;
  out[name + "_TYPE"] = parts.type;
  out[name + "_LIST"] = parts.list;
}

}  // namespace

void put_bind_variables(const SrunRequest& r, std::map<std::string, std::string>& out) {
  put_binding("SLURM_CPU_BIND", r.cpu_bind_text, r.cpu_bind, out);
  put_binding("SLURM_MEM_BIND", r.mem_bind_text, r.mem_bind, out);
  if (!r.mem_bind_text.empty()) out["SLURM_MEM_BIND_PREFER"] = r.mem_bind.prefer ? "prefer" : "";
}

void take_tasks_of_node_info(SrunRequest& r, const std::string& group) {
  if (r.threads_of_node == 0 || r.tasks || r.spec.shape.tasks_per_node) return;
  const auto nodes = number_of_env(("SLURM_JOB_NUM_NODES" + group).c_str());
  r.tasks = r.threads_of_node * (r.nodes ? r.nodes->first : nodes.value_or(1));
}

void say_gpu_clocks(const SrunRequest& r) {
  const auto words = split(r.gpu_freq, ',');
  if (std::find(words.begin(), words.end(), "verbose") != words.end())
    fmt::print(stderr, "GpuFreq=control_disabled\n");
}

}  // namespace gantry::cli::slurm
