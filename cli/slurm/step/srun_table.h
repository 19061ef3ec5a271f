// srun's own options, without those that describe a job.
#pragma once

#include "cli/slurm/frame.h"
#include "cli/slurm/step/srun_request.h"
#include "cli/slurm/submit/job_options.h"

namespace gantry::cli::slurm {

inline constexpr Option kOnlySrunOptions[] = {
    takes("cpu-bind", "[verbose,]HOW",
          "CPUs of each task: cores or threads (its own cores, the default), sockets or ldoms (all "
          "of the step's on their sockets or NUMA nodes), none (all of the step's), rank, "
          "map_cpu:LIST, mask_cpu:LIST (CPUs as the node numbers them); verbose: each task says "
          "which",
          call<srun::set_cpu_bind>)
        .from_env("CPU_BIND"),
    flag("debugger-test",
         "Each task says where it is, as a debugger would be told, and stops itself before its "
         "program (it goes on with SIGCONT)",
         call<srun::set_stopped>),
    flag("disable-status", 'X',
         "Ctrl-C goes to the tasks at once; without this the first one says how they are",
         put<&StepOptions::disable_status>)
        .from_env("DISABLE_STATUS"),
    takes("epilog", "PROGRAM|none", "Run here behind the step, with srun's environment",
          call<srun::set_beside<&SrunRequest::epilog>>)
        .from_env("EPILOG"),
    flag("help", 'h', "Show this help", always),
    takes("het-group", "N[,N...|-N]",
          "In these components of the heterogeneous job: their tasks are numbered through "
          "(default: the first, or of A : B one each)",
          call<srun::set_het_group>),
    takes("input", 'i', "FILE|N|all|none",
          "What the tasks read: a file (with %t, %n and the like each its own, on its node); or "
          "our standard input, by task N, all of them (default) or none",
          call<srun::set_input>)
        .from_env("STDINMODE"),
    takes("jobid", "JOB", "Run in this job of yours instead of the one we are in",
          call<srun::set_jobid>),
    may_take("kill-on-bad-exit", 'K', "0|1",
             "End all tasks when one ends with an exit code other than 0", call<srun::set_kill>)
        .from_env("KILL_BAD_EXIT"),
    flag("meeting-point",
         "Give the tasks MASTER_ADDR and MASTER_PORT, the address at which PyTorch's launchers "
         "meet: the step's first node and a free port (ours)",
         put<&StepOptions::meeting_point>),
    takes("mpi", "none|pmix|pmi2|list",
          "pmix, pmi2: a PMIx or PMI-1 and PMI-2 server beside the tasks on each node, and one "
          "task's failure ends all; none: launchers start their own daemons (default); list: what "
          "there is",
          call<srun::set_mpi>)
        .from_env("MPI_TYPE"),
    flag("multi-prog", "The operand is a file that says which tasks run which program",
         put<&SrunRequest::multi_prog>),
    takes("open-mode", "append|truncate",
          "What becomes of output files that exist (default truncate)", call<srun::set_open_mode>)
        .from_env("OPEN_MODE"),
    flag("preserve-env", 'E',
         "The tasks keep the numbers of nodes and tasks that srun's own environment has",
         put<&StepOptions::keep_sizes>),
    takes("prolog", "PROGRAM|none", "Run here before the step, with srun's environment",
          call<srun::set_beside<&SrunRequest::prolog>>)
        .from_env("PROLOG"),
    flag("verbose", 'v', "Say on standard error which tasks are started where",
         put<&JobRequest::verbose>)
        .from_env("DEBUG"),
    flag("quit-on-interrupt", "The first Ctrl-C ends the step, not only the second one",
         put<&StepOptions::quit_on_interrupt>)
        .from_env("QUIT_ON_INTERRUPT"),
    takes("relative", 'r', "N", "On nodes of the job from the Nth on, counted from 0",
          call<srun::set_relative>),
    takes("slurmd-debug", "LEVEL",
          "How much the node's daemon tells: errors, which are always told and the only thing that "
          "it tells; quiet to debug5, or 0 to 9",
          call<srun::set_node_words>)
        .from_env("SLURMD_DEBUG"),
    takes("task-epilog", "PROGRAM|none",
          "Each task runs this behind its program, for at most 5 seconds",
          call<srun::set_around<&AroundTask::epilog>>)
        .from_env("TASK_EPILOG"),
    takes("task-prolog", "PROGRAM|none",
          "Each task runs this before its program; lines \"export NAME=VALUE\", \"unset NAME\" and "
          "\"print TEXT\" of its output are carried out",
          call<srun::set_around<&AroundTask::prolog>>)
        .from_env("TASK_PROLOG"),
    takes("threads", 'T', "N", "Nodes that are asked at a time to start their tasks (default: all)",
          call<srun::set_threads>)
        .from_env("THREADS"),
    flag("test-only", "Check the job and say when it could start; run nothing",
         put<&JobRequest::test_only>),
    flag("unbuffered", 'u', "Output as it comes, not in whole lines", put<&StepOptions::unbuffered>)
        .from_env("UNBUFFEREDIO"),
    takes("wait", 'W', "SECONDS",
          "End the other tasks so long after the first one has ended (default 0: never)",
          call<srun::set_wait>)
        .from_env("WAIT"),
    refuses("accel-bind", "a job's tasks see all GPUs that it has on a node"),
    may_take("bcast", "FILE",
             "Copy the program to this file of the nodes, as sbcast does, and run it from there "
             "(default: a file in the job's /tmp)",
             call<srun::set_bcast>)
        .from_env("BCAST"),
    refuses("bcast-exclude", "only the program itself is copied"),
    refuses("compress", "the streams are not compressed"),
    refuses("external-launcher", "use --overlap with --ntasks-per-node=1"),
    refuses("interactive", "use salloc"),
    refuses("no-allocate", 'Z', "tasks run within a job"),
    refuses("send-libs", "only the program itself is copied"),
    refuses("treewidth", "all nodes are asked at once"),
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
