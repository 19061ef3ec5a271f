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
    {.option =
         {.name = "error",
          .letter = 'e',
          .arg = Arg::required,
          .value = "FILE",
          .help = "Standard error of the tasks, on their nodes: %j job, %s step, %t task, %N node "
                  "(default: here)",
          .set = put<&StepOptions::std_err>},
     .slurm = {.help = "Standard error of the tasks: a file, with %j job, %s step, %t task, %N "
                       "node, %n its number; none; or task N's here (default: all here)",
               .env = "STDERRMODE"}},
    {.option = {.name = "exact",
                .help = "Only cores that no other step has: wait for them",
                .set = put<&StepOptions::exact>},
     .slurm =
         {.help =
              "Only cores that no other step has: wait for them (so does --exclusive inside a job)",
          .env = "EXACT"}},
    {.option = {.name = "label",
                .letter = 'l',
                .help = "Put the number of the task in front of each line",
                .set = put<&StepOptions::label>},
     .slurm = {.env = "LABELIO"}},
    {.option = {.name = "output",
                .letter = 'o',
                .arg = Arg::required,
                .value = "FILE",
                .help = "Standard output of the tasks, on their nodes (default: here)",
                .set = put<&StepOptions::std_out>},
     .slurm = {.help = "Standard output of the tasks: a file; none; or task N's here (default: all "
                       "here)",
               .env = "STDOUTMODE"}},
    {.option = {.name = "overlap",
                .help = "Share cores with other steps of the job, even if others are free",
                .set = put<&StepOptions::overlap>},
     .slurm = {.env = "OVERLAP"}},
    {.option = {.name = "pty",
                .help =
                    "Give task 0 a terminal, which is ours; the other tasks have no standard files",
                .set = put<&StepOptions::terminal>},
     .slurm = {.env = "PTY"}},
    {.option =
         {.name = "gpu-bind",
          .arg = Arg::required,
          .value = "HOW",
          .help =
              "GPUs that each task sees: none (all), closest, per_task:N, single:N, map_gpu:LIST, "
              "mask_gpu:LIST",
          .set = call<set_gpu_bind>},
     .slurm = {.help = "GPUs that each task of a step sees: none (all), closest, per_task:N, "
                       "single:N, map_gpu:LIST, mask_gpu:LIST",
               .env = "GPU_BIND"}},
};

}  // namespace gantry::cli
