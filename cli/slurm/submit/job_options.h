// The options that describe a job, as in sbatch, srun and salloc: those that Gantry's commands have
// too, and those that only Slurm has.
#pragma once

#include "cli/slurm/frame.h"
#include "cli/slurm/submit/job_request.h"
#include "cli/slurm/submit/modest_options.h"
#include "cli/step/step_option_table.h"
#include "cli/submit/access_option_table.h"
#include "cli/submit/job_option_table.h"
#include "cli/submit/place_option_table.h"
#include "cli/submit/refused_option_table.h"

namespace gantry::cli::slurm {

inline constexpr Option kOnlySlurmOptions[] = {
    takes("clusters", 'M', "NAMES", "Only this cluster's name is accepted", call<set::clusters>)
        .from_env("CLUSTERS"),
    may_take("no-kill", 'k', "off",
             "If a node is lost that does not run the script, the job goes on without it; off: it "
             "ends, or is requeued",
             call<set::no_kill>)
        .from_env("NO_KILL"),
    takes("profile", "none", "none; usage is always recorded, see sacct", call<set::none>)
        .from_env("PROFILE"),
    takes("qos", 'q', "NAME", "Priority class of the cluster; normal is the tenant's default one",
          call<set::qos>)
        .from_env("QOS"),
    may_take("propagate", "ALL|NONE|NAME,...",
             "Soft limits (setrlimit) that the job has from here: AS, CORE, CPU, DATA, FSIZE, "
             "MEMLOCK, NOFILE, NPROC, RSS, STACK (default ALL), within the node's hard ones",
             call<set::propagate>),
    takes("time-min", "TIME",
          "The time limit may be lowered to this, if the job can start earlier so",
          call<set::time_min>),
    takes("wckey", "KEY", "Recorded with the job and shown by squeue", call<set::wckey>)
        .from_env("WCKEY"),
    flag("contiguous", "Nodes that follow each other in the configuration", call<set::contiguous>)
        .from_env("CONTIGUOUS"),
    flag("spread-job", "As many nodes as the job may have, with its tasks spread evenly",
         call<set::spread_job>)
        .from_env("SPREAD_JOB"),
    takes("cpus-per-gpu", "N", "Cores for each GPU, dealt to the tasks of a node",
          call<set::cpus_per_gpu>)
        .from_env("CPUS_PER_GPU"),
    takes("distribution", 'm',
          "block|cyclic|plane=N|arbitrary[:block|cyclic|fcyclic][,pack|nopack]",
          "block (node by node, the default), cyclic (round the nodes), plane (round the nodes, N "
          "tasks at a time) or arbitrary (as --nodelist or the file of SLURM_HOSTFILE lists their "
          "nodes) is how tasks are numbered; then how a node's tasks get its cores: block (as they "
          "are numbered, the default), cyclic (the next task on the next socket), fcyclic (the "
          "next core on the next socket); pack: a step fills its nodes one by one (default: "
          "nopack, its tasks are dealt evenly)",
          call<set::distribution>)
        .from_env("DISTRIBUTION"),
    takes("hint", "nomultithread", "Whole cores, which tasks always have", call<set::hint>)
        .from_env("HINT"),
    takes("mem-bind", "[verbose,]HOW",
          "NUMA nodes whose memory each task of a step uses: none (all), local, rank, "
          "map_mem:LIST, mask_mem:LIST; prefer: others where these are full",
          call<set::mem_bind>)
        .from_env("MEM_BIND"),
    takes("nodefile", 'F', "FILE", "Names of nodes, one a line: these at least",
          call<set::nodefile>),
    takes("ntasks-per-gpu", "N",
          "Tasks for each GPU, which see that one: of --ntasks the GPUs follow, else of the GPUs "
          "the tasks",
          call<set::tasks_per_gpu>)
        .from_env("NTASKS_PER_GPU"),
    flag("oversubscribe", 's',
         "Others may run on the job's nodes, which is always so; its cores are its own",
         call<set::oversubscribe>)
        .from_env("OVERSUBSCRIBE"),
    takes("switches", "1[@TIME]",
          "All nodes on one switch, the narrowest level of the topology, if that can be; with "
          "@UNLIMITED not otherwise",
          call<set::switches>)
        .from_env("REQ_SWITCH"),
    takes("tres-per-task", "cpu=N,gres/gpu=N", "Cores and GPUs for each task",
          call<set::tres_per_task>)
        .from_env("TRES_PER_TASK"),
    flag("use-min-nodes", "The smallest number of nodes, which is always taken", always)
        .from_env("USE_MIN_NODES"),
    may_take("immediate", 'I', "SECONDS",
             "Give up if there is no allocation in this time (default 1)", call<set::immediate>)
        .from_env("IMMEDIATE"),
    takes("wait-all-nodes", "1", "1: start when all nodes are ready, which is always so",
          call<set::one>)
        .from_env("WAIT_ALL_NODES"),
};

inline constexpr auto kSlurmJobOptions =
    in_order(Family::slurm,
             {"account",
              "acctg-freq",
              "begin",
              "chdir",
              "clusters",
              "comment",
              "cpus-per-task",
              "deadline",
              "dependency",
              "export",
              "hold",
              "job-name",
              "kill-on-invalid-dep",
              "labels",
              "mail-type",
              "mail-user",
              "network",
              "nice",
              "no-kill",
              "ntasks",
              "ntasks-per-node",
              "partition",
              "priority",
              "profile",
              "propagate",
              "qos",
              "signal",
              "time",
              "time-min",
              "type",
              "wckey",
              "constraint",
              "container-image",
              "container-mounts",
              "container-workdir",
              "container-writable",
              "contiguous",
              "cpus-per-gpu",
              "distribution",
              "exclude",
              "exclusive",
              "extra-node-info",
              "gpu-bind",
              "gpu-freq",
              "gpu-names",
              "gpus",
              "gpus-per-node",
              "gpus-per-socket",
              "gpus-per-task",
              "gres",
              "hint",
              "mem",
              "mem-bind",
              "mem-per-cpu",
              "mem-per-gpu",
              "mincpus",
              "nodefile",
              "licenses",
              "nodelist",
              "nodes",
              "ntasks-per-core",
              "ntasks-per-gpu",
              "ntasks-per-socket",
              "overcommit",
              "oversubscribe",
              "reservation",
              "sandbox",
              "sockets-per-node",
              "spread-job",
              "switches",
              "threads-per-core",
              "tmp",
              "tres-per-task",
              "use-min-nodes"},
             join(kOnlySlurmOptions, kModestOptions), kJobOptionTable, kPlaceOptionTable,
             kAccessOptionTable, kStepOptionTable);

inline constexpr auto kSlurmRefused = all_in<Family::slurm, kRefusedOptionTable>();

}  // namespace gantry::cli::slurm
