// The options that gbatch and sbatch have apart from those of all jobs; see submit_option.h.
#pragma once

#include "cli/submit/job_setters.h"
#include "cli/submit/submit_option.h"

namespace gantry::cli {

inline constexpr SubmitOption kBatchOptionTable[] = {
    {.option = {.name = "array",
                .letter = 'a',
                .arg = Arg::required,
                .value = "INDEXES",
                .help =
                    "Submit one task for each index: 0-9, 1,3,7, 0-100:10; %N lets N run at a time",
                .set = call<job::set_array>,
                .env = "ARRAY_INX"},
     .slurm = {.help = "One task for each index: 0-9, 1,3,7, 0-100:10; %N lets N run at a time"}},
    {.option = {.name = "input",
                .letter = 'i',
                .arg = Arg::required,
                .value = "FILE",
                .help = "Standard input of the script (default /dev/null)",
                .set = call<job::spec_word<&JobSpec::std_in>>,
                .env = "INPUT"}},
    {.option =
         {.name = "output",
          .letter = 'o',
          .arg = Arg::required,
          .value = "FILE",
          .help = "Standard output; %j job, %A array, %a task, %x name, %u user, %N node (default "
                  "gantry-%j.out)",
          .set = call<job::spec_word<&JobSpec::std_out>>,
          .env = "OUTPUT"},
     .slurm =
         {.help =
              "Standard output: %A array, %a task, %j job, %J job.step, %N node, %n its number, %s "
              "step, %t task, %u user, %x name (default slurm-%j.out, of arrays slurm-%A_%a.out)"}},
    {.option = {.name = "error",
                .letter = 'e',
                .arg = Arg::required,
                .value = "FILE",
                .help = "Standard error (default: joined to the output)",
                .set = call<job::spec_word<&JobSpec::std_err>>,
                .env = "ERROR"},
     .slurm = {.help = "Standard error of the script (default: joined to the output)"}},
    {.option = {.name = "open-mode",
                .arg = Arg::required,
                .value = "append|truncate",
                .help = "What becomes of output files that exist (default truncate)",
                .set = call<job::set_open_mode>,
                .env = "OPEN_MODE"}},
    {.option = {.name = "parsable",
                .help = "Print only the job id",
                .set = put<&JobRequest::parsable>},
     .slurm = {.help = "Print only the job id, and ;CLUSTER when one was named"}},
    {.option = {.name = "test-only",
                .help = "Check the job and say when it could start; submit nothing",
                .set = put<&JobRequest::test_only>}},
    {.option = {.name = "verbose",
                .letter = 'v',
                .help = "Show on standard error what is submitted",
                .set = put<&JobRequest::verbose>},
     .slurm = {.env = "DEBUG"}},
    {.option = {.name = "wait",
                .letter = 'W',
                .help = "Wait for the end of the job and return its exit code",
                .set = put<&JobRequest::wait>,
                .env = "WAIT"}},
    {.option = {.name = "wrap",
                .arg = Arg::required,
                .value = "COMMAND",
                .help = "Submit this shell command instead of a script",
                .set = put<&JobRequest::wrap>,
                .directive = false}},
};

}  // namespace gantry::cli
