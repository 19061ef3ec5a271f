// SrunRequest has the values of srun's own options, and the functions here set them.
#pragma once

#include "cli/slurm/frame.h"
#include "cli/slurm/step/task_script.h"
#include "cli/slurm/submit/job_request.h"

namespace gantry::cli::slurm {

struct SrunRequest : SlurmRequest {
  std::optional<std::uint32_t> relative;  // -r
  std::string input_file;                 // -i FILE
  bool list_mpi = false;                  // --mpi=list
  bool multi_prog = false;
  std::string cpu_bind_text;          // --cpu-bind as it was given; "" = not given
  std::optional<std::string> bcast;   // destination of the copied program; "" = a name is made
  std::string prolog, epilog;         // programs to run on this host; "" = none
  std::vector<std::uint32_t> groups;  // --het-group; empty: not given
  AroundTask around;
};

namespace srun {
Result<void> set_jobid(SrunRequest& r, std::string_view text);
Result<void> set_input(SrunRequest& r, std::string_view text);
Result<void> set_open_mode(SrunRequest& r, std::string_view text);
Result<void> set_kill(SrunRequest& r, std::string_view text);
Result<void> set_wait(SrunRequest& r, std::string_view text);
Result<void> set_relative(SrunRequest& r, std::string_view text);
Result<void> set_cpu_bind(SrunRequest& r, std::string_view text);
Result<void> set_mpi(SrunRequest& r, std::string_view text);
// A name with a slash is a path relative to the current directory; other names are looked up in
// PATH where the task runs.
std::string absolute_program(std::string_view text);
template <std::string SrunRequest::*Program>
Result<void> set_beside(SrunRequest& r, std::string_view text) {
  r.*Program = text == "none" ? "" : text;
  return {};
}
template <std::string AroundTask::*Program>
Result<void> set_around(SrunRequest& r, std::string_view text) {
  r.around.*Program = text == "none" ? "" : absolute_program(text);
  return {};
}
Result<void> set_stopped(SrunRequest& r, std::string_view text);
Result<void> set_threads(SrunRequest& r, std::string_view text);
Result<void> set_node_words(SrunRequest& r, std::string_view text);  // --slurmd-debug
Result<void> set_bcast(SrunRequest& r, std::string_view text);
Result<void> set_het_group(SrunRequest& r, std::string_view text);  // in srun_parts.cc
}  // namespace srun

}  // namespace gantry::cli::slurm
