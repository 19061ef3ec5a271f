// srun's own options, without those that describe a job.
#pragma once

#include "cli/slurm/frame.h"
#include "cli/slurm/step/task_script.h"
#include "cli/slurm/submit/job_options.h"

namespace gantry::cli::slurm {

struct SrunRequest : SlurmRequest {
  std::optional<std::uint32_t> relative;  // -r
  std::string input_file;                 // -i FILE
  bool list_mpi = false;                  // --mpi=list
  bool multi_prog = false;
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
// A name with a slash is a path from here; another name is looked up in PATH, where the task runs.
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
Result<void> set_het_group(SrunRequest& r, std::string_view text);   // in srun_parts.cc
}  // namespace srun

inline constexpr Option kOnlySrunOptions[] = {
    {.name = "cpu-bind",
     .arg = Arg::required,
     .value = "[verbose,]HOW",
     .help = "CPUs of each task: cores or threads (its own cores, the default), sockets or ldoms "
             "(all of the step's on their sockets or NUMA nodes), none (all of the step's), rank, "
             "map_cpu:LIST, mask_cpu:LIST (CPUs as the node numbers them); verbose: each task says "
             "which",
     .set = call<srun::set_cpu_bind>,
     .env = "CPU_BIND"},
    {.name = "debugger-test",
     .help = "Each task says where it is, as a debugger would be told, and stops itself before its "
             "program (it goes on with SIGCONT)",
     .set = call<srun::set_stopped>},
    {.name = "disable-status",
     .letter = 'X',
     .help = "Ctrl-C goes to the tasks at once; without this the first one says how they are",
     .set = put<&StepOptions::disable_status>,
     .env = "DISABLE_STATUS"},
    {.name = "epilog",
     .arg = Arg::required,
     .value = "PROGRAM|none",
     .help = "Run here behind the step, with srun's environment",
     .set = call<srun::set_beside<&SrunRequest::epilog>>,
     .env = "EPILOG"},
    {.name = "help", .letter = 'h', .help = "Show this help", .set = always},
    {.name = "het-group",
     .arg = Arg::required,
     .value = "N[,N...|-N]",
     .help = "In these components of the heterogeneous job: their tasks are numbered through "
             "(default: the first, or of A : B one each)",
     .set = call<srun::set_het_group>},
    {.name = "input",
     .letter = 'i',
     .arg = Arg::required,
     .value = "FILE|N|all|none",
     .help = "What the tasks read: a file; or our standard input, by task N, all of them (default) "
             "or none",
     .set = call<srun::set_input>,
     .env = "STDINMODE"},
    {.name = "jobid",
     .arg = Arg::required,
     .value = "JOB",
     .help = "Run in this job of yours instead of the one we are in",
     .set = call<srun::set_jobid>},
    {.name = "kill-on-bad-exit",
     .letter = 'K',
     .arg = Arg::optional,
     .value = "0|1",
     .help = "End all tasks when one ends with an exit code other than 0",
     .set = call<srun::set_kill>,
     .env = "KILL_BAD_EXIT"},
    {.name = "meeting-point",
     .help = "Give the tasks MASTER_ADDR and MASTER_PORT, the address at which PyTorch's launchers "
             "meet: the step's first node and a free port (ours)",
     .set = put<&StepOptions::meeting_point>},
    {.name = "mpi",
     .arg = Arg::required,
     .value = "none|pmix|pmi2|list",
     .help = "pmix, pmi2: a PMIx or PMI-1 and PMI-2 server beside the tasks on each node, and one "
             "task's failure ends all; none: launchers start their own daemons (default); list: "
             "what there is",
     .set = call<srun::set_mpi>,
     .env = "MPI_TYPE"},
    {.name = "multi-prog",
     .help = "The operand is a file that says which tasks run which program",
     .set = put<&SrunRequest::multi_prog>},
    {.name = "open-mode",
     .arg = Arg::required,
     .value = "append|truncate",
     .help = "What becomes of output files that exist (default truncate)",
     .set = call<srun::set_open_mode>,
     .env = "OPEN_MODE"},
    {.name = "preserve-env",
     .letter = 'E',
     .help = "The tasks keep the numbers of nodes and tasks that srun's own environment has",
     .set = put<&StepOptions::keep_sizes>},
    {.name = "prolog",
     .arg = Arg::required,
     .value = "PROGRAM|none",
     .help = "Run here before the step, with srun's environment",
     .set = call<srun::set_beside<&SrunRequest::prolog>>,
     .env = "PROLOG"},
    {.name = "verbose",
     .letter = 'v',
     .help = "Say on standard error which tasks are started where",
     .set = put<&JobRequest::verbose>,
     .env = "DEBUG"},
    {.name = "quit-on-interrupt",
     .help = "The first Ctrl-C ends the step, not only the second one",
     .set = put<&StepOptions::quit_on_interrupt>,
     .env = "QUIT_ON_INTERRUPT"},
    {.name = "relative",
     .letter = 'r',
     .arg = Arg::required,
     .value = "N",
     .help = "On nodes of the job from the Nth on, counted from 0",
     .set = call<srun::set_relative>},
    {.name = "slurmd-debug",
     .arg = Arg::required,
     .value = "LEVEL",
     .help = "How much the node's daemon tells: errors, which are always told and the only thing "
             "that it tells; quiet to debug5, or 0 to 9",
     .set = call<srun::set_node_words>,
     .env = "SLURMD_DEBUG"},
    {.name = "task-epilog",
     .arg = Arg::required,
     .value = "PROGRAM|none",
     .help = "Each task runs this behind its program, for at most 5 seconds",
     .set = call<srun::set_around<&AroundTask::epilog>>,
     .env = "TASK_EPILOG"},
    {.name = "task-prolog",
     .arg = Arg::required,
     .value = "PROGRAM|none",
     .help = "Each task runs this before its program; lines \"export NAME=VALUE\", \"unset NAME\" "
             "and \"print TEXT\" of its output are carried out",
     .set = call<srun::set_around<&AroundTask::prolog>>,
     .env = "TASK_PROLOG"},
    {.name = "threads",
     .letter = 'T',
     .arg = Arg::required,
     .value = "N",
     .help = "Nodes that are asked at a time to start their tasks (default: all)",
     .set = call<srun::set_threads>,
     .env = "THREADS"},
    {.name = "test-only",
     .help = "Check the job and say when it could start; run nothing",
     .set = put<&JobRequest::test_only>},
    {.name = "unbuffered",
     .letter = 'u',
     .help = "Output as it comes, not in whole lines",
     .set = put<&StepOptions::unbuffered>,
     .env = "UNBUFFEREDIO"},
    {.name = "wait",
     .letter = 'W',
     .arg = Arg::required,
     .value = "SECONDS",
     .help = "End the other tasks so long after the first one has ended (default 0: never)",
     .set = call<srun::set_wait>,
     .env = "WAIT"},
    {.name = "accel-bind", .refused = "a job's tasks see all GPUs that it has on a node"},
    {.name = "bcast", .refused = "copy files with cp: the nodes see the same directories"},
    {.name = "bcast-exclude", .refused = "there is no --bcast"},
    {.name = "compress", .refused = "there is no --bcast"},
    {.name = "external-launcher", .refused = "use --overlap with --ntasks-per-node=1"},
    {.name = "interactive", .refused = "use salloc"},
    {.name = "no-allocate", .letter = 'Z', .refused = "tasks run within a job"},
    {.name = "send-libs", .refused = "there is no --bcast"},
    {.name = "treewidth", .refused = "all nodes are asked at once"},
};

inline constexpr auto kSrunOptions =
    in_order(Family::slurm,
             {"cpu-bind",
              "debugger-test",
              "disable-status",
              "epilog",
              "error",
              "exact",
              "help",
              "het-group",
              "immediate",
              "input",
              "jobid",
              "kill-on-bad-exit",
              "label",
              "meeting-point",
              "mpi",
              "multi-prog",
              "open-mode",
              "output",
              "overlap",
              "preserve-env",
              "prolog",
              "pty",
              "quiet",
              "verbose",
              "quit-on-interrupt",
              "relative",
              "slurmd-debug",
              "task-epilog",
              "task-prolog",
              "threads",
              "test-only",
              "unbuffered",
              "wait",
              "accel-bind",
              "bcast",
              "bcast-exclude",
              "compress",
              "external-launcher",
              "interactive",
              "no-allocate",
              "send-libs",
              "treewidth"},
             join(kOnlySrunOptions, kOnlySlurmOptions), kStepOptionTable, kJobOptionTable);

}  // namespace gantry::cli::slurm
