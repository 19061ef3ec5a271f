// The options that gbatch and sbatch have apart from those of all jobs; see submit_option.h.
#pragma once

#include "cli/submit/job_setters.h"
#include "cli/submit/submit_option.h"

namespace gantry::cli {

inline constexpr SubmitOption kBatchOptionTable[] = {
    {.option =
         takes("array", 'a', "INDEXES",
               "Submit one task for each index: 0-9, 1,3,7, 0-100:10; %N lets N run at a time",
               call<job::set_array>)
             .from_env("ARRAY_INX"),
     .slurm = {.help = "One task for each index: 0-9, 1,3,7, 0-100:10; %N lets N run at a time"}},
    {.option = takes("input", 'i', "FILE", "Standard input of the script (default /dev/null)",
                     call<job::spec_word<&JobSpec::std_in>>)
                   .from_env("INPUT")},
    {.option = takes("output", 'o', "FILE",
                     "Standard output; %j job, %A array, %a task, %x name, %u user, %N node "
                     "(default gantry-%j.out)",
                     call<job::spec_word<&JobSpec::std_out>>)
                   .from_env("OUTPUT"),
     .slurm =
         {.help =
              "Standard output: %A array, %a task, %j job, %J job.step, %N node, %n its number, %s "
              "step, %t task, %u user, %x name (default slurm-%j.out, of arrays slurm-%A_%a.out)"}},
    {.option = takes("error", 'e', "FILE", "Standard error (default: joined to the output)",
                     call<job::spec_word<&JobSpec::std_err>>)
                   .from_env("ERROR"),
     .slurm = {.help = "Standard error of the script (default: joined to the output)"}},
    {.option = takes("open-mode", "append|truncate",
                     "What becomes of output files that exist (default truncate)",
                     call<job::set_open_mode>)
                   .from_env("OPEN_MODE")},
    {.option = flag("parsable", "Print only the job id", put<&JobRequest::parsable>),
     .slurm = {.help = "Print only the job id, and ;CLUSTER when one was named"}},
    {.option = flag("test-only", "Check the job and say when it could start; submit nothing",
                    put<&JobRequest::test_only>)},
    {.option = flag("verbose", 'v', "Show on standard error what is submitted",
                    put<&JobRequest::verbose>),
     .slurm = {.env = "DEBUG"}},
    {.option = flag("wait", 'W', "Wait for the end of the job and return its exit code",
                    put<&JobRequest::wait>)
                   .from_env("WAIT")},
    {.option = takes("wrap", "COMMAND", "Submit this shell command instead of a script",
                     put<&JobRequest::wrap>)
                   .not_in_scripts()},
};

}  // namespace gantry::cli
