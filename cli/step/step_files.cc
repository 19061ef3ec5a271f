#include "cli/step/step_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/step/step_run.h"
#include "common/job/output_pattern.h"

namespace gantry::cli {
namespace {

// Whether the pattern names a file for each task or node. With a backslash it is taken literally.
bool names_tasks(const std::string& pattern) {
  if (pattern.find('\\') != std::string::npos) return false;
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    std::size_t at = i + 1;
    while (at + 1 < pattern.size() && pattern[at] >= '0' && pattern[at] <= '9') ++at;
    if (pattern[at] == 't' || pattern[at] == 'n' || pattern[at] == 'N') return true;
    i = at;
  }
  return false;
}

std::string env(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

PatternValues values_of(const StepOptions& options, const proto::StepPermission& permission) {
  PatternValues v;
  v.job = permission.key.job;
  v.step = permission.step;
  v.user = permission.owner.user;
  v.name = options.spec.name.empty() ? env("SLURM_JOB_NAME") : options.spec.name;
  if (const auto array = number_of_env("SLURM_ARRAY_JOB_ID")) v.array_job = JobId(*array);
  if (const std::string task = env("SLURM_ARRAY_TASK_ID"); v.array_job != JobId{} && !task.empty())
    v.array_task = static_cast<std::uint32_t>(std::strtoul(task.c_str(), nullptr, 10));
  return v;
}

}  // namespace

StepFiles::~StepFiles() {
  for (const auto& [name, fd] : by_name_) ::close(fd);
}

bool StepFiles::are_here(const StepOptions& options) {
  if (options.manner != Manner::slurm || options.terminal) return false;
  bool any = false, here = options.label;
  for (const std::string* pattern : {&options.std_out, &options.std_err}) {
    any = any || !pattern->empty();
    here = here || (!pattern->empty() && !names_tasks(*pattern));
  }
  return any && here;
}

Result<void> StepFiles::open_for(std::uint32_t rank, bool std_err, const std::string& path,
                                 int flags) {
  auto known = by_name_.find(path);
  if (known == by_name_.end()) {
    const int fd = ::open(path.c_str(), flags, 0666);
    if (fd < 0)
      return fail(ErrorCode::io_error,
                  fmt::format("Could not open {} file {}: {}", std_err ? "stderr" : "stdout", path,
                              std::strerror(errno)));
    known = by_name_.emplace(path, fd).first;
  }
  by_task_[{rank, std_err}] = known->second;
  return {};
}

Result<void> StepFiles::open(const StepOptions& options, const proto::StepPermission& permission,
                             std::uint32_t first_rank) {
  if (!are_here(options)) return {};
  const bool append = options.open_mode == OpenMode::append;
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC);
  PatternValues values = values_of(options, permission);
  for (std::uint32_t n = 0; n < permission.nodes.size(); ++n) {
    const proto::StepNode& node = permission.nodes[n];
    values.node = node.node;
    values.node_index = n;
    for (std::uint32_t i = 0; i < node.tasks; ++i) {
      values.task = first_rank + node.rank(i);
      for (const bool std_err : {false, true}) {
        const std::string& own = std_err ? options.std_err : options.std_out;
        const std::string& pattern = own.empty() && std_err ? options.std_out : own;
        if (pattern.empty()) continue;
        ASSIGN(path, expand_pattern(pattern, values));
        if (!path->starts_with('/')) path->insert(0, options.spec.work_dir + '/');
        TRY(open_for(values.task, std_err, *path, flags));
      }
    }
  }
  return {};
}

int StepFiles::fd_of(std::uint32_t rank, bool std_err) const {
  const auto found = by_task_.find({rank, std_err});
  return found == by_task_.end() ? -1 : found->second;
}

}  // namespace gantry::cli
