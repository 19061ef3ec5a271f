// The options of the tasks that a command starts, for grun and srun; see submit_option.h.
#pragma once

#include "cli/step/step_options.h"
#include "cli/submit/submit_option.h"
#include "common/job/gpu_bind.h"

namespace gantry::cli {

inline Result<void> set_gpu_bind(StepOptions& options, std::string_view text) {
  TRY(parse_gpu_bind(text));
  options.gpu_bind = text;
  return {};
}

inline constexpr SubmitOption kStepOptionTable[] = {
    {.option = takes("error", 'e', "FILE",
                     "Standard error of the tasks, on their nodes: %j job, %s step, %t task, %N "
                     "node (default: here)",
                     put<&StepOptions::std_err>),
     .slurm = {.help = "Standard error of the tasks: a file, with %j job, %s step, %t task, %N "
                       "node, %n its number; none; or task N's here (default: all here)",
               .env = "STDERRMODE"}},
    {.option = flag("exact", "Only cores that no other step has: wait for them",
                    put<&StepOptions::exact>),
     .slurm =
         {.help =
              "Only cores that no other step has: wait for them (so does --exclusive inside a job)",
          .env = "EXACT"}},
    {.option = flag("label", 'l', "Put the number of the task in front of each line",
                    put<&StepOptions::label>),
     .slurm = {.env = "LABELIO"}},
    {.option = takes("output", 'o', "FILE",
                     "Standard output of the tasks, on their nodes (default: here)",
                     put<&StepOptions::std_out>),
     .slurm = {.help = "Standard output of the tasks: a file; none; or task N's here (default: all "
                       "here)",
               .env = "STDOUTMODE"}},
    {.option = flag("overlap", "Share cores with other steps of the job, even if others are free",
                    put<&StepOptions::overlap>),
     .slurm = {.env = "OVERLAP"}},
    {.option = flag("pty",
                    "Give task 0 a terminal, which is ours; the other tasks have no standard files",
                    put<&StepOptions::terminal>),
     .slurm = {.env = "PTY"}},
    {.option = takes("gpu-bind", "HOW",
                     "GPUs that each task sees: none (all), closest, per_task:N, single:N, "
                     "map_gpu:LIST, mask_gpu:LIST",
                     call<set_gpu_bind>),
     .slurm = {.help = "GPUs that each task of a step sees: none (all), closest, per_task:N, "
                       "single:N, map_gpu:LIST, mask_gpu:LIST",
               .env = "GPU_BIND"}},
};

}  // namespace gantry::cli
