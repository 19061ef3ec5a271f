// The options of the section `noded`; see options.h.
#include "config/option_rules.h"

namespace gantry::config {
std::vector<Option> options_of(NodedConfig& c) {
  return {
      {"state_dir", &c.state_dir, form(Form::path),
       "Directory for the records of running jobs; on a local disk, mode 0700."},
      {"run_dir", &c.run_dir, form(Form::path), "Directory for sockets and bundles; may be tmpfs."},
      {"key_file", &c.key_file, form(Form::path), "The node's secret key, mode 0600."},
      {"listen_host", &c.listen_host, kByType, "Address that a node listens on for steps."},
      {"listen_port", &c.listen_port, between(0, 65535), "TCP port for steps; 0 = any free port."},
      {"runtimes", &c.runtimes, form(Form::runtime),
       "OCI runtimes, tried in order: crun, runc, or an absolute path. `process` runs jobs without "
       "a container, is for development only and must be named. `none`, which must stand alone, "
       "runs nothing at all: for measuring the rest."},
      {"gvisor", &c.gvisor, kByType,
       "Runtime of the sandbox `gvisor`, by name or path; `none` = the node does not have it. It "
       "is tried when the node daemon starts."},
      {"vm_runtime", &c.vm_runtime, form(Form::path_or_none),
       "OCI runtime that runs a container as a virtual machine, for the sandbox `vm`: a program "
       "with the command line of runc. Left out = the node does not have it."},
      {"image_check", &c.image_check, kByType,
       "Program, as a path, and arguments that look at each image before its first use on the "
       "node: it is called with the image's name and its digest besides, in the unpacked image, as "
       "an unprivileged user, and has five minutes. Another exit status than 0 refuses the image, "
       "with the program's last line. What passed is not looked at again. Left out = nobody "
       "looks."},
      {"cgroup_root", &c.cgroup_root, form(Form::word),
       "Cgroup of all jobs, below the cgroup mount or below the daemon's own cgroup."},
      {"image_dirs", &c.image_dirs, form(Form::path),
       "Directories below which local images lie that jobs may name as --container-image: root "
       "filesystems, squashfs files, oci: layouts and archives. Registries are not held to it. [] "
       "= wherever the job's user can read."},
      {"image_cache_dir", &c.image_cache_dir, form(Form::path),
       "Where images are unpacked, once per node, each by its digest."},
      {"image_cache_size", &c.image_cache_size, bytes(kMiB, std::int64_t{1} << 50),
       "How much all unpacked images of a node may take; those that were used least recently are "
       "removed, none that a job uses."},
      {"image_size", &c.image_size, bytes(kMiB, std::int64_t{1} << 50),
       "How large an image may be, unpacked; jobs with a larger one are refused."},
      {"image_files", &c.image_files, between(1'000, 100'000'000),
       "How many files, directories and links an image may have."},
      {"writable_paths", &c.writable_paths, form(Form::path),
       "Directories that stay writable with a host-view root, besides the user's home and the "
       "job's working directory."},
      {"storage", &c.storage, form(Form::path),
       "Directories of the site's storage. No job sees what lies below them, but for the directory "
       "of its tenant and the datasets that it asks for (docs/storage.md). They and all "
       "directories above belong to root, and nobody else may write to them."},
      {"stage_timeout", &c.stage_timeout, kByType,
       "How long one copy from or to an object store may take (--stage-in, --stage-out)."},
      {"resolvers", &c.resolvers, form(Form::ip_address),
       "Addresses of the name servers that jobs may ask whose network profile has `resolvers`; "
       "left out = those of the machine's /etc/resolv.conf that are not its own."},
      {"ready_networks", &c.ready_networks, between(0, 1024),
       "How many networks the node makes in advance, when no job starts, for jobs that are to "
       "come; each one is given to one job and removed after it. 0 = none: a job's start waits for "
       "it."},
      {"cni", &c.cni, form(Form::path_or_none),
       "File with a list of CNI plugins (a .conflist), which run for each job that has a network "
       "of its own and give it more links beside eth0. A job that they refuse does not start."},
      {"cni_dirs", &c.cni_dirs, form(Form::path), "Directories in which those plugins are."},
      {"metrics_host", &c.metrics_host, kByType,
       "Address of the node that its metrics are served on."},
      {"metrics_port", &c.metrics_port, between(0, 65535),
       "TCP port of HTTP GET /metrics of the node and its jobs, for Prometheus; 0 = none. Where "
       "several nodes are on one machine, the second has the next port, and so on."},
      {"metrics_tokens", &c.metrics_tokens, form(Form::path),
       "File, mode 0600, with a line `TENANT TOKEN` for each who may ask there: a token shows the "
       "jobs of its tenant, that of * the node and all jobs."},
      {"prolog", &c.prolog, form(Form::path_or_none),
       "Program that runs as root before each job; a failure drains the node."},
      {"epilog", &c.epilog, form(Form::path_or_none), "Program that runs as root after each job."},
      {"allow_root_jobs", &c.allow_root_jobs, kByType, "Whether root may run jobs."},
      {"tmp_bytes", &c.tmp_bytes, bytes(0, std::int64_t{1} << 50),
       "Size of a job's private /tmp; 0 = half of the job's memory."},
      {"pids_max", &c.pids_max, between(16, 4'194'304),
       "Processes and threads of one job on a node."},
      {"gpu_library", &c.gpu_library, kByType,
       "NVIDIA's management library, by name or path; `none` = do not look for GPUs. %n is the "
       "node's name."},
      {"gpu_root", &c.gpu_root, form(Form::path),
       "Directory with the dev, proc and sys that the GPU driver shows; `/` but in tests. %n is "
       "the node's name."},
      {"gres_command", &c.gres_command, form(Form::path_or_none),
       "Program that runs as root when the node daemon starts and prints the device files and "
       "variables of the node's gres as JSON; docs/gpus.md."},
      {"mps_control", &c.mps_control, kByType,
       "NVIDIA's program that controls MPS daemons, by name on PATH or by path; for nodes with "
       "gpu_sharing mps."},
      {"gpu_sample", &c.gpu_sample, between(kSecond / 10, 600 * kSecond),
       "How often the node looks at what jobs do on their GPUs."},
      {"gpu_scrub", &c.gpu_scrub, kByType,
       "Whether a GPU's memory is overwritten before another tenant gets it. when-possible: a node "
       "that cannot says so with the job. required: the GPU is closed until it can. off: it is "
       "not."},
      {"cuda_library", &c.cuda_library, kByType,
       "NVIDIA's library of the driver, by name or path, that overwrites memory; %n is the node's "
       "name."},
      {"gpu_probe", &c.gpu_probe, form(Form::path_or_none),
       "Program that runs as root before and after each job, once for each of its GPUs and slices, "
       "and says whether that is well; docs/gpus.md."},
      {"cdi_dirs", &c.cdi_dirs, form(Form::path),
       "Directories with CDI specifications, of rising weight: what a container needs of the "
       "driver besides device files."},
      {"neighbours", &c.neighbours, kByType,
       "The node looks who holds up whom on cpu, memory, disks and links; docs/neighbours.md."},
      {"neighbour_throttle", &c.neighbour_throttle, kByType,
       "A job that holds up others is held back for a while, never below what it asked for."},
      {"neighbour_sample", &c.neighbour_sample, between(kSecond, 60 * kSecond),
       "How often the node looks."},
      {"neighbour_hold", &c.neighbour_hold, between(5 * kSecond, 3600 * kSecond),
       "For how long a job is held back at first; twice as long each time that it comes back."},
      {"neighbour_cpu", &c.neighbour_cpu, between(1, 100),
       "Percent of the time in which somebody waits for cpu, from which on that is too much."},
      {"neighbour_memory", &c.neighbour_memory, between(1, 100), "The same, for memory."},
      {"neighbour_disk", &c.neighbour_disk, between(1, 100),
       "Percent of the time in which a disk is busy, from which on it is full."},
      {"neighbour_network", &c.neighbour_network, between(1, 100),
       "Percent of what a link can carry, from which on it is full."},
      {"neighbour_memory_bandwidth", &c.neighbour_memory_bandwidth, between(1, 100),
       "Percent of memory_bandwidth, from which on it is full."},
      {"memory_bandwidth", &c.memory_bandwidth, bytes(0, std::int64_t{1} << 50),
       "Bytes per second that the node's memory can move, to judge what resctrl counts; 0 = not "
       "known."},
  };
}

}  // namespace gantry::config
