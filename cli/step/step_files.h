// Output files that the client writes itself, as Slurm's srun does: with --label, and files that
// are not one for each task or node. The others are opened by the nodes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "cli/step/step_options.h"
#include "common/proto/steps.h"
#include "common/result.h"

namespace gantry::cli {

class StepFiles {
 public:
  StepFiles() = default;
  ~StepFiles();
  StepFiles(StepFiles&& other) noexcept { *this = std::move(other); }
  StepFiles& operator=(StepFiles&& other) noexcept {
    std::swap(by_name_, other.by_name_);
    std::swap(by_task_, other.by_task_);
    return *this;
  }

  // Whether the client writes the files of these options. It writes all of them or none.
  static bool are_here(const StepOptions& options);
  // Opens them for all tasks of the permission, whose ranks count from `first_rank` on. The error
  // is in Slurm's words.
  Result<void> open(const StepOptions& options, const proto::StepPermission& permission,
                    std::uint32_t first_rank);

  // -1 if this output of the task has no file here.
  [[nodiscard]] int fd_of(std::uint32_t rank, bool std_err) const;

 private:
  Result<void> open_for(std::uint32_t rank, bool std_err, const std::string& path, int flags);

  std::map<std::string, int> by_name_;
  std::map<std::pair<std::uint32_t, bool>, int> by_task_;
};

}  // namespace gantry::cli
