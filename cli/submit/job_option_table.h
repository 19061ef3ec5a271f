// The options that say what a job is and when it may run, and --quiet; see submit_option.h.
#pragma once

#include "cli/submit/job_setters.h"
#include "cli/submit/label_options.h"
#include "cli/submit/submit_option.h"

namespace gantry::cli {

inline constexpr SubmitOption kJobOptionTable[] = {
    {.option = takes("account", 'A', "NAME", "Account to charge (free text)",
                     call<job::spec_word<&JobSpec::account>>)
                   .from_env("ACCOUNT"),
     .slurm = {.help = "Charge the job to this account: a project of the tenant"}},
    {.option = takes("begin", 'b', "TIME",
                     "Not before this time: 2026-01-31T08:00, 16:00, now+2hours, tomorrow",
                     call<job::set_begin>),
     .slurm = {.help = "Not before this time: 2026-01-31T08:00, 16:00, now+2hours, tomorrow, noon, "
                       "fika, teatime, midnight, noon-tomorrow"}},
    {.option = takes("chdir", 'D', "DIR", "Working directory of the job (default: the present one)",
                     put<&JobRequest::chdir>)},
    {.option = takes("checkpoint-file", "PATH",
                     "File that the job writes or touches when it has saved its work, on its first "
                     "node: what was done before is not lost when the job has to leave",
                     call<job::spec_word<&JobSpec::checkpoint_file>>)
                   .from_env("CHECKPOINT_FILE"),
     .families = Families::gantry},
    {.option = takes("comment", "TEXT", "Shown with the job and kept in accounting",
                     call<job::spec_text<&JobSpec::comment>>)},
    {.option = takes("container-image", "IMAGE",
                     "Root filesystem: DIR, oci:DIR[:REF], oci-archive:FILE, FILE.sqsh or "
                     "docker://HOST/IMAGE:TAG (default: the node's own, read-only)",
                     call<job::container_text<&ContainerSpec::image>>)
                   .from_env("CONTAINER_IMAGE"),
     .slurm = {.help = "Root filesystem: DIR, oci:DIR[:REF], FILE.sqsh, docker://HOST/IMAGE:TAG "
                       "(ours, and Pyxis')"}},
    {.option = takes("container-mounts", "SRC:DST[:rw],...",
                     "Directories to mount into the container", call<job::set_mounts>)
                   .from_env("CONTAINER_MOUNTS"),
     .slurm = {.help = "Directories to mount into the container (ours, and Pyxis')"}},
    {.option = takes("container-workdir", "DIR", "Working directory inside the container",
                     call<job::container_text<&ContainerSpec::work_dir>>),
     .slurm = {.help = "Working directory inside the container (ours, and Pyxis')"}},
    {.option = flag("container-writable",
                    "Let the job write to its root; what it writes is lost at its end",
                    call<job::set_container_writable>),
     .slurm = {.help = "Let the job write to its root; what it writes is lost (ours, and Pyxis')"}},
    {.option =
         takes("cpus-per-task", 'c', "N", "Cores for each task (default 1)", call<job::set_cpus>)},
    {.option = takes(
         "deadline", "TIME",
         "End the job unless it can be done by then; gbatch says at once whether that is expected",
         call<job::set_deadline>),
     .slurm = {.help =
                   "End the job unless it can be done by then; without --time its limit is what "
                   "is left until then",
               .set = call<job::set_deadline_or_past>}},
    {.option = takes("dependency", 'd', "TYPE:JOB,...",
                     "Wait for other jobs: after, afterany, afterok, afternotok, aftercorr, "
                     "singleton; parted by , (all) or ? (any)",
                     call<job::set_dependency>),
     .slurm = {.value = "TYPE:JOB[,...]",
               .help = "after, afterany, afterok, afternotok, aftercorr, singleton; parted by , "
                       "(all) or ? (any)"}},
    {.option = takes("export", "ALL|NONE|NAME[=VALUE],...", "Environment of the job (default ALL)",
                     call<job::set_export>)
                   .from_env("EXPORT")},
    {.option = flag("hold", 'H', "Submit held; gctl release lets it go", call<job::set_hold>),
     .slurm = {.help = "Submit held; scontrol release lets it go"}},
    {.option = takes("job-name", 'J', "NAME", "Name of the job (default: name of the script)",
                     call<job::spec_word<&JobSpec::name>>)
                   .from_env("JOB_NAME")},
    {.option = takes("kill-on-invalid-dep", "yes|no",
                     "Whether a dependency that can never be met cancels the job (default yes)",
                     call<job::set_kill_on_invalid>),
     .slurm = {.help = "Whether a dependency that can never be met cancels the job (default no)"}},
    {.option = takes("mail-type", "EVENT,...",
                     "Send mail at NONE, BEGIN, END, FAIL, REQUEUE, INVALID_DEPEND, TIME_LIMIT or "
                     "ALL; of each task of an array with ARRAY_TASKS",
                     call<job::set_mail_type>)},
    {.option = takes("labels", "KEY=VALUE,...",
                     "Labels of the job, for reports and for rules of its tenant, which may want "
                     "some; given again, it adds",
                     call<job::set_labels>),
     .slurm = {.help = "Labels of the job, for reports and for rules of its tenant (ours)"}},
    {.option = takes("type", "training|inference|interactive",
                     "The kind of work, for reports and for rules of its tenant",
                     call<job::set_work_type>),
     .slurm = {.help = "The kind of work, for reports and for rules of its tenant (ours)"}},
    {.option =
         takes("mail-user", "ADDRESS,...", "Who gets it (default: you)", call<job::set_mail_user>)},
    {.option = takes("io", "RATE",
                     "Limit what the job reads, and what it writes, on each disk of a node to this "
                     "many bytes per second, such as 200M; it is never held back below it",
                     call<job::set_io>),
     .families = Families::gantry},
    {.option = takes("net", "RATE",
                     "Limit what each of the job's nodes sends and receives to this many bits per "
                     "second, such as 500M or 10G",
                     call<job::set_net>),
     .families = Families::gantry},  // under Slurm's names --net is short for --network
    {.option = takes("network", "job[,PROFILE]|none|host",
                     "job: the job's parts reach each other (default where there is one), and what "
                     "the tenant's network profile names; none: loopback only; host: where the "
                     "partition allows it",
                     call<job::set_network>)
                   .from_env("NETWORK")},
    {.option =
         may_take("nice", "N", "Lower the priority by N (default 100); below 0 for administrators",
                  call<job::set_nice>)},
    {.option = flag("no-requeue", "Never start the job a second time", call<job::set_no_requeue>)
                   .from_env("NO_REQUEUE")},
    {.option = takes("ntasks", 'n', "N",
                     "Number of tasks (default: one per node), on as few nodes as hold them",
                     call<job::set_tasks>)},
    {.option = takes("ntasks-per-node", "N", "Tasks on each node", call<job::set_tasks_per_node>)},
    {.option = takes("partition", 'p', "PARTITION", "Queue to submit to",
                     call<job::spec_word<&JobSpec::partition>>)
                   .from_env("PARTITION"),
     .slurm = {.value = "NAME,...",
               .help = "Partition (queue) to submit to; of several the first in which the job can "
                       "start now, else where it would start first"}},
    {.option = takes("priority", "N", "Fixed priority (administrators)", call<job::set_priority>)},
    {.option =
         takes("priority-class", "CLASS",
               "Priority class of the cluster: normal, best-effort, ... (default: the tenant's)",
               call<job::spec_word<&JobSpec::priority_class>>)
             .from_env("PRIORITY_CLASS"),
     .families = Families::gantry},
    {.option = flag("quiet", 'Q', "Print nothing but errors", put<&JobRequest::quiet>)},
    {.option = flag("requeue", "May be started again after a node failure (default)",
                    call<job::set_requeue>)
                   .from_env("REQUEUE")},
    {.option = takes("signal", "[B:]SIGNAL[@SECONDS]",
                     "Signal to send before the time limit (default 60 seconds before)",
                     call<job::set_signal>)
                   .from_env("SIGNAL")},
    {.option = takes("tenant-class", "CLASS",
                     "Class of the tenant's own, which orders its jobs among themselves",
                     call<job::spec_word<&JobSpec::tenant_class>>),
     .families = Families::gantry},
    {.option = takes("time", 't', "TIME", "Time limit: minutes, H:M:S, D-H, D-H:M:S or UNLIMITED",
                     call<job::set_time>)
                   .from_env("TIMELIMIT"),
     .slurm = {.help = "Time limit: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S, UNLIMITED",
               .set = call<job::set_time_or_none>}},
};

}  // namespace gantry::cli
