// Wrong uses of the commands under Slurm's names give Slurm's kind of message and its exit status,
// before anything is sent to the controller.
#include <doctest/doctest.h>

#include "tests/cli/run_program.h"

using namespace gantry::test;

namespace {

struct Mistake {
  std::vector<std::string> argv;
  int status;
  std::string first;  // the first line of standard error
  std::string input = "#!/bin/sh\ntrue\n";
  std::map<std::string, std::string> environment = {};
};

std::string with(const std::string& line) {
  return "#!/bin/sh\n" + line + "\ntrue\n";
}

const std::vector<Mistake>& submit_mistakes() {
  static const std::string sbatch = "slurm/sbatch";
  static const std::string failed = "sbatch: error: Batch job submission failed: ";
  static const std::string gres = "sbatch: error: Invalid generic resource (gres) specification";
  static const std::vector<Mistake> all{
      {{sbatch, "--foo"}, 255, "sbatch: unrecognized option '--foo'"},
      {{sbatch, "--foo=3"}, 255, "sbatch: unrecognized option '--foo=3'"},
      {{sbatch, "-Z"}, 255, "sbatch: invalid option -- 'Z'"},
      {{sbatch, "-t"}, 255, "sbatch: option requires an argument -- 't'"},
      {{sbatch, "--time"}, 255, "sbatch: option '--time' requires an argument"},
      {{sbatch, "--hold=3"}, 255, "sbatch: option '--hold' doesn't allow an argument"},
      {{sbatch, "--ti=3"},
       255,
       "sbatch: option '--ti=3' is ambiguous; possibilities: '--time' '--time-min'"},
      {{sbatch, "-n", "x"}, 1, "sbatch: error: Invalid numeric value \"x\" for --ntasks."},
      {{sbatch, "-n", "0"}, 1, "sbatch: error: Invalid numeric value \"0\" for --ntasks."},
      {{sbatch, "-c", "x"}, 1, "sbatch: error: Invalid numeric value \"x\" for --cpus-per-task."},
      {{sbatch, "--ntasks-per-node=x"},
       1,
       "sbatch: error: Invalid numeric value \"x\" for --ntasks-per-node."},
      {{sbatch, "-N", "x"}, 255, "sbatch: error: \"x\" is not a valid node count"},
      {{sbatch, "-t", "soon"}, 255, "sbatch: error: Invalid --time specification"},
      {{sbatch, "-t", "1-x"}, 255, "sbatch: error: Invalid --time specification"},
      {{sbatch, "--mem=12X"}, 255, "sbatch: error: Invalid --mem specification"},
      {{sbatch, "--mem-per-cpu=q"}, 255, "sbatch: error: Invalid --mem-per-cpu specification"},
      {{sbatch, "-b", "bogus"}, 255, "sbatch: error: Invalid --begin specification"},
      {{sbatch, "--deadline=bogus"}, 255, "sbatch: error: Invalid --deadline specification"},
      {{sbatch, "--signal=FOO"}, 255, "sbatch: error: Invalid --signal specification"},
      {{sbatch, "--open-mode=x"}, 255, "sbatch: error: Invalid --open-mode specification"},
      {{sbatch, "--tmp=x"}, 255, "sbatch: error: Invalid --tmp specification"},
      {{sbatch, "--exclusive=foo"}, 255, "sbatch: error: Invalid --exclusive specification"},
      {{sbatch, "--kill-on-invalid-dep=maybe"},
       255,
       "sbatch: error: Invalid --kill-on-invalid-dep specification"},
      {{sbatch, "--get-user-env=x"}, 255, "sbatch: error: Invalid --get-user-env specification"},
      {{sbatch, "-m", "plane=x"}, 255, "sbatch: error: Invalid --distribution specification"},
      {{sbatch, "-m", "block:plane"}, 255, "sbatch: error: Invalid --distribution specification"},
      {{sbatch, "-m", "*:*:**"}, 255, "sbatch: error: Invalid --distribution specification"},
      {{sbatch, "--hint=multithread"}, 255, "sbatch: error: Invalid --hint specification"},
      {{sbatch, "-n1", ":", "-N2", "/nonexistent"}, 1, "sbatch: error: Unable to open file /no"},
      {{sbatch, "-n1", ":", "-o", "x"}, 1, "sbatch: error: --output is for the first component"},
      {{sbatch, "-n1", ":", "--foo"}, 255, "sbatch: unrecognized option '--foo'"},
      {{sbatch, "--gres=disk:x"}, 1, gres},
      {{sbatch, "--gpus=x"}, 1, gres},
      {{sbatch, "-a", "x"}, 1, failed + "Invalid job array specification"},
      {{sbatch, "-a", "5-1"}, 1, failed + "Invalid job array specification"},
      {{sbatch, "-d", "bogus"}, 1, failed + "Job dependency problem"},
      {{sbatch, "-w", "n[1"}, 1, failed + "Invalid node name specified"},
      {{sbatch, "-C", "a*2"}, 1, failed + "Invalid feature specification"},
      {{sbatch, "--mail-type=SOON"}, 255, "sbatch: error: Invalid --mail-type specification"},
      {{sbatch, "--mail-user=a b"}, 255, "sbatch: error: Invalid --mail-user specification"},
      {{sbatch, "--licenses=x:0"}, 255, "sbatch: error: Invalid --licenses specification"},
      {{sbatch, "-L", "a|b"}, 255, "sbatch: error: Invalid --licenses specification"},
      {{sbatch, "--ntasks-per-gpu=2", "--wrap=x"}, 1, "sbatch: error: --ntasks-per-gpu needs "},
      {{sbatch, "--switches=2"}, 255, "sbatch: error: Invalid --switches specification"},
      {{sbatch, "--switches=1@x"}, 255, "sbatch: error: Invalid --switches specification"},
      {{sbatch, "--ntasks-per-core=0"}, 255, "sbatch: error: Invalid --ntasks-per-core"},
      {{sbatch, "--ntasks-per-socket=2", "-n4", "-N2"},
       1,
       "sbatch: error: --ntasks-per-socket=2: a node may get 3 tasks, and tasks are not dealt to "
       "sockets; --ntasks-per-node=2 is taken with it"},
      {{sbatch, "-M", "nope"},
       1,
       "sbatch: error: 'nope' can't be reached now, or it is an invalid"},
      {{sbatch, "--wrap=x", "y"},
       1,
       "sbatch: error: Script arguments not permitted with --wrap option"},
      {{sbatch, "/nonexistent"}, 1, "sbatch: error: Unable to open file /nonexistent"},
      {{sbatch}, 1, "sbatch: error: Batch script is empty!", ""},
      {{sbatch}, 1, "sbatch: error: Batch script contains only whitespace!", " \n\n"},
      {{sbatch}, 1, "sbatch: error: This does not look like a batch script.  The first", "true\n"},
      {{sbatch},
       1,
       "sbatch: error: Batch script contains DOS line breaks (\\r\\n)",
       "#!/bin/sh\r\ntrue\r\n"},
      {{sbatch}, 255, "sbatch: unrecognized option '--foo'", with("#SBATCH --foo")},
      {{sbatch}, 255, "sbatch: error: Invalid --time specification", with("#SBATCH -t x")},
      {{sbatch},
       255,
       "sbatch: error: component 1: Invalid directive found in batch script: foo",
       with("#SBATCH -N1\n#SBATCH hetjob\n#SBATCH foo")},
      {{sbatch},
       255,
       "sbatch: error: Invalid directive found in batch script: foo",
       with("#SBATCH foo")},
      {{sbatch}, 1, "sbatch: error: --bb is not supported: ", with("#SBATCH --bb=x")},
      {{sbatch},
       255,
       "sbatch: error: Invalid --time specification",
       with(""),
       {{"SBATCH_TIMELIMIT", "x"}}},
  };
  return all;
}

const std::vector<Mistake>& queue_mistakes() {
  static const std::vector<Mistake> all{
      {{"slurm/squeue", "-Z"}, 1, "squeue: invalid option -- 'Z'"},
      {{"slurm/squeue", "--colour"}, 1, "squeue: unrecognized option '--colour'"},
      {{"slurm/squeue", "extra"}, 1, "squeue: error: Unrecognized option: extra"},
      {{"slurm/squeue", "-j", "abc"}, 1, "squeue: error: Invalid job id: abc"},
      {{"slurm/squeue", "-t", "foo"}, 1, "squeue: error: Invalid job state specified: foo"},
      {{"slurm/squeue", "-S", "a"}, 1, "squeue: error: Invalid sort specification: a"},
      {{"slurm/squeue", "-i", "x"}, 1, "squeue: error: --iterate=x"},
      {{"slurm/squeue", "-s", "--json"}, 1, "squeue: error: --steps is a table; "},
      {{"slurm/squeue", "-M", "nope"},
       1,
       "squeue: error: 'nope' can't be reached now, or it is an"},
      {{"slurm/squeue"},
       1,
       "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"},
      {{"slurm/scancel"}, 1, "scancel: error: No job identification provided"},
      {{"slurm/scancel", "abc"}, 1, "scancel: error: Invalid job id abc"},
      {{"slurm/scancel", "1_x"}, 1, "scancel: error: Invalid job id 1_x"},
      {{"slurm/scancel", "12.x"}, 1, "scancel: error: Invalid job id 12.x"},
      {{"slurm/scancel", "-s", "FOO", "1"}, 1, "scancel: error: Unknown job signal: FOO"},
      {{"slurm/scancel", "-t", "FOO"}, 1, "scancel: error: Invalid job state specified: FOO"},
      {{"slurm/scancel", "-t", "COMPLETED"},
       1,
       "scancel: error: Invalid job state specified: COMPLETED"},
      {{"slurm/scancel", "-n", ""}, 1, "scancel: error: an empty word matches no job"},
      {{"slurm/scancel", "0"}, 1, "scancel: error: Invalid job id 0"},
      {{"slurm/scancel", "0.1"}, 1, "scancel: error: Invalid job id 0.1"},
      {{"slurm/scancel", "--foo"}, 1, "scancel: unrecognized option '--foo'"},
  };
  return all;
}

const std::vector<Mistake>& other_mistakes() {
  static const std::string sacct = "slurm/sacct";
  static const std::string sinfo = "slurm/sinfo";
  static const std::string scontrol = "slurm/scontrol";
  static const std::vector<Mistake> all{
      {{sacct, "-nu", "u", "-o", "Account%256", "|", "tail", "-1"},
       1,
       "sacct: invalid option -- '1'"},
      {{sacct, "-o", "JobID", "extra"}, 1, "Error: Unknown arguments: extra"},
      {{sacct, "-o", "JobID,Colour"}, 1, "sacct: error: Invalid field requested: \"Colour\""},
      {{sacct, "-s", "foo"}, 1, "sacct: fatal: unrecognized job state value 'foo'"},
      {{sacct, "-j", "x"}, 1, "sacct: fatal: Bad job/step specified: x"},
      {{sacct, "-g", "nogroup-there"}, 1, "sacct: fatal: Invalid group id: nogroup-there"},
      {{sacct, "-I", "4-2"}, 1, "sacct: error: \"4-2\" is no number and no range"},
      {{sacct, "-k", "x"}, 1, "sacct: fatal: Invalid timelimit specification"},
      {{sacct, "-S", "soon"}, 1, "sacct: error: Invalid time specification (pos=0): soon"},
      {{sacct, "--units", "Q"}, 1, "sacct: error: Invalid unit type: Q"},
      {{sacct, "--delimiter="}, 1, "sacct: error: --delimiter must not be empty"},
      {{sacct, "-B"}, 1, "sacct: error: --batch-script is not supported: "},
      {{sacct}, 1, "sacct: error: there is no "},
      {{sinfo, "-t", "foo"}, 1, "sinfo: error: Bad state string: \"foo\""},
      {{sinfo, "-Q"}, 1, "sinfo: invalid option -- 'Q'"},
      {{sinfo, "-p", "batch", "-a"}, 1, "sinfo: error: Conflicting options, -a and -p, specified."},
      {{sinfo, "extra"}, 1, "sinfo: error: Unrecognized option: extra"},
      {{sinfo, "-S", "x"}, 1, "sinfo: error: Invalid sort specification: x"},
      {{sinfo, "-n", "n[1"}, 1, "sinfo: error: "},
      {{sinfo, "-M", "nope"}, 1, "sinfo: error: 'nope' can't be reached now, or it is an"},
      {{sinfo}, 1, "slurm_load_partitions: Unable to contact slurm controller (connect failure)"},
      {{scontrol, "bogus"}, 1, "invalid keyword: bogus"},
      {{scontrol, "show", "bogus"}, 1, "invalid entity:bogus for keyword:show "},
      {{scontrol, "show"}, 1, "too few arguments for keyword:show"},
      {{scontrol, "show", "job", "1", "2"}, 1, "too many arguments for keyword:show"},
      {{scontrol, "show", "hostnames"}, 1, "SLURM_JOB_NODELIST environment variable is not set"},
      {{scontrol, "show", "hostnames", "n[1"}, 1, "Invalid hostlist: n[1"},
      {{scontrol, "notify", "5"}, 1, "too few arguments for keyword:notify"},
      {{scontrol, "hold"}, 1, "too few arguments for keyword:hold"},
      {{scontrol, "requeue"}, 1, "too few arguments for keyword:requeue"},
      {{scontrol, "requeue", "x"}, 1, "Invalid job id specified for job x"},
      {{scontrol, "update"}, 1, "too few arguments for update keyword"},
      {{scontrol, "update", "foo=1"}, 1, "No valid entity in update command"},
      {{scontrol, "update", "jobid=1", "foo=2"},
       1,
       "Update of this parameter is not supported: foo=2"},
      {{scontrol, "update", "jobid=1", "nice=x"}, 1, "Invalid value: nice=x"},
      {{scontrol, "update", "NodeName=n1", "State=DRAIN"},
       1,
       "You must specify a reason when DOWNING or DRAINING a node. Request denied"},
      {{scontrol, "update", "NodeName=n1", "State=DOWN"}, 1, "You must specify a reason when DOWN"},
      {{scontrol, "update", "NodeName=n1", "State=POWER_UP"}, 1, "Invalid input: State=POWER_UP"},
      {{scontrol, "update", "NodeName=n1", "State=x"}, 1, "Invalid input: State=x"},
      {{scontrol, "update", "NodeName=n1", "Weight=7"},
       1,
       "Update of this parameter is not supported: Weight=7"},
      {{scontrol, "update", "NodeName=n1"}, 1, "No changes specified"},
      {{scontrol, "update", "PartitionName=p", "State=x"},
       1,
       "scontrol: error: Invalid input: State=x"},
      {{scontrol, "update", "PartitionName=p"}, 1, "scontrol: error: No changes specified"},
      {{scontrol, "update", "PartitionName=p", "Hidden=YES"},
       1,
       "scontrol: error: Update of this parameter is not supported: Hidden=YES"},
      {{scontrol, "create", "PartitionName=p", "MaxTime=soon"},
       1,
       "scontrol: error: Invalid input: MaxTime=soon"},
      {{scontrol, "create", "partition", "Nodes=n1"},
       1,
       "scontrol: error: Invalid input: partition"},
      {{scontrol, "create", "PartitionName=default"},
       1,
       "scontrol: error: PartitionName cannot be \"DEFAULT\"."},
      {{scontrol, "create", "foo=1"}, 1, "scontrol: error: Invalid creation entity: foo=1"},
      {{scontrol, "delete", "node=x"}, 1, "Invalid deletion entity: node=x"},
      {{scontrol, "suspend"}, 1, "too few arguments for keyword:suspend"},
      {{scontrol, "resume", "x"}, 1, "Invalid job id specified for job x"},
      {{scontrol, "top"}, 1, "too few arguments for keyword:top"},
      {{scontrol, "token", "life=1"}, 1, "scontrol: error: life=1: token takes username=NAME"},
      {{scontrol, "reconfigure", "now"}, 1, "too many arguments for keyword:reconfigure"},
      {{scontrol, "pidinfo", "1"}, 1, "Failed to locate job for requested pid"},
      {{scontrol, "takeover"}, 1, "scontrol: error: takeover is not supported: "},
      {{scontrol, "write", "x"}, 1, "scontrol: error: write batch_script JOB"},
      {{scontrol, "-F", "ping"}, 1, "scontrol: error: --future is not supported: "},
      {{scontrol, "show", "job", "1"},
       1,
       "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"},
  };
  return all;
}

void check_mistakes(const std::vector<Mistake>& all) {
  const ScratchDir files;
  for (const Mistake& mistake : all) {
    std::map<std::string, std::string> environment = mistake.environment;
    environment["GANTRY_CONF"] = files.path();
    const Run run = run_program({mistake.argv, environment, mistake.input, files.path()});
    std::string line;
    for (const std::string& word : mistake.argv) line += word + " ";
    CAPTURE(line);
    CAPTURE(run.err);
    CHECK(run.status == mistake.status);
    CHECK(run.err.starts_with(mistake.first));
    CHECK(run.out.empty());
  }
}

}  // namespace

TEST_CASE("sbatch refuses wrong uses as Slurm does") {
  check_mistakes(submit_mistakes());
}

TEST_CASE("squeue and scancel refuse wrong uses as Slurm does") {
  check_mistakes(queue_mistakes());
}

TEST_CASE("sacct, sinfo and scontrol refuse wrong uses as Slurm does") {
  check_mistakes(other_mistakes());
}

TEST_CASE("srun and salloc refuse wrong uses as Slurm does") {
  static const std::string srun = "slurm/srun";
  static const std::string salloc = "slurm/salloc";
  check_mistakes({
      {{srun}, 1, "srun: fatal: No command given to execute."},
      {{srun, "--foo", "true"}, 255, "srun: unrecognized option '--foo'"},
      {{srun, "-n", "x", "true"}, 1, "srun: error: Invalid numeric value \"x\" for --ntasks."},
      {{srun, "-t", "x", "true"}, 255, "srun: error: Invalid --time specification"},
      {{srun, "--mpi=openmpi", "true"}, 255, "srun: error: Invalid --mpi specification"},
      {{srun, "--cpu-bind=verbose,map_cpu:0x0", "true"},
       255,
       "srun: error: Invalid --cpu-bind specification\nsrun: error: Failed to validate number: "
       "0x0, "
       "the offending character is x\n"},
      {{srun, "--wait=x", "true"}, 255, "srun: error: Invalid --wait specification"},
      {{srun, "--jobid=x", "true"}, 255, "srun: error: Invalid --jobid specification"},
      {{srun, "--pty", "--output=x", "true"}, 1, "srun: error: --pty: a terminal is input and"},
      {{srun, "--pty", "--label", "true"}, 1, "srun: error: --pty: a terminal is input and"},
      {{srun, "--jobid=1", "--exclusive", "--overlap", "true"},
       1,
       "srun: error: --exclusive and --overlap exclude each other"},
      {{srun, "--jobid=1", "--exclusive=user", "true"},
       1,
       "srun: error: --exclusive=user is for allocations"},
      {{srun, "--het-group=1", "a", ":", "--het-group=0", "b"},
       1,
       "srun: error: --het-group names components of a job, and "},
      {{srun, "--jobid=12", "--het-group=x", "true"},
       1,
       "srun: error: Invalid --het-group specification: "},
      {{srun, "--jobid=12", "--het-group=0", "a", ":", "--het-group=0-1", "b"},
       1,
       "srun: fatal: Duplicate het groups in single srun not supported"},
      {{srun, "a", ":", "-l", "b"}, 1, "srun: error: --label is for the first component: "},
      {{srun, "--pty", "a", ":", "b"}, 1, "srun: error: --pty is not supported over several"},
      {{srun, "--mpi=pmix", "a", ":", "b"}, 1, "srun: error: --mpi=pmix is not supported over"},
      {{srun, "--mpi=pmi2", "a", ":", "b"}, 1, "srun: error: --mpi=pmi2 is not supported over"},
      {{srun, "a", ":"}, 1, "srun: fatal: No command given to execute."},
      {{srun, "--multi-prog", "/nonexistent"}, 1, "srun: error: Could not open multi_prog config"},
      {{srun, "--jobid=1", "--hold", "true"}, 1, "srun: error: --hold asks for an allocation"},
      {{srun, "--jobid=1", "--gres=fpga:1", "true"},
       1,
       "srun: error: --gres=fpga asks for an allocation; a step inside a job has the job's"},
      {{srun, "--jobid=1", "--gpus=0.5", "true"}, 1, "srun: error: a step has whole GPUs of its"},
      {{srun, "--jobid=1", "--mem=1G", "--mem-per-cpu=1G", "true"},
       1,
       "srun: error: --mem and --mem-per-cpu exclude each other"},
      {{srun, "--jobid=1", "-t", "x", "true"}, 255, "srun: error: Invalid --time specification"},
      {{srun, "--jobid=1", "--open-mode=x", "true"}, 255, "srun: error: Invalid --open-mode"},
      {{srun, "--jobid=1", "-i", "99999999", "true"}, 255, "srun: error: Invalid --input"},
      {{srun, "-i", "/nonexistent", "true"}, 1, "srun: error: Could not open stdin file"},
      {{salloc, "--foo"}, 255, "salloc: unrecognized option '--foo'"},
      {{salloc, "-t", "x"}, 255, "salloc: error: Invalid --time specification"},
      {{salloc, "-N1", ":", "--no-shell"}, 1, "salloc: error: --no-shell is for the first compon"},
      {{salloc, "--no-shell", "true"}, 1, "salloc: error: --no-shell runs no command"},
      {{salloc, "--x11"}, 1, "salloc: error: --x11 is not supported: "},
      {{salloc, "-M", "nope"}, 1, "salloc: error: 'nope' can't be reached now, or it is an"},
  });
}

TEST_CASE("sattach refuses wrong uses as Slurm does") {
  const std::string sattach = "slurm/sattach";
  check_mistakes({
      {{sattach}, 1, "sattach: error: no job step ID given"},
      {{sattach, "12.0", "13.0"}, 1, "sattach: error: too many parameters"},
      {{sattach, "12"}, 1, "sattach: error: Did not find a period in the step ID string"},
      {{sattach, "x.0"}, 1, "sattach: error: \"x\" does not look like a jobid"},
      {{sattach, "12.x"}, 1, "sattach: error: \"x\" does not look like a stepid"},
      {{sattach, "12.batch"},
       1,
       "sattach: error: a batch script writes to a file, not to an srun: gctl logs -f 12 follows "
       "it"},
      {{sattach, "--output-filter=x", "12.0"},
       1,
       "sattach: error: Invalid numeric value \"x\" for output-filter."},
      {{sattach, "--pty", "--error-filter=0", "12.0"},
       1,
       "sattach: error: don't specify both --pty and I/O filtering"},
      {{sattach, "-Qv", "12.0"},
       1,
       "sattach: error: don't specify both --verbose (-v) and --quiet (-Q)"},
      {{sattach, "--input-filter=2", "12.0"},
       1,
       "sattach: error: --input-filter: only task 0 of a step has an input"},
      {{sattach, "--debugger-test", "12.0"},
       1,
       "sattach: error: --debugger-test is not supported: no table of processes is kept for "
       "debuggers"},
  });
}

TEST_CASE("strigger refuses wrong uses as Slurm does") {
  const std::string strigger = "slurm/strigger";
  const std::string program = "--program=/bin/true";
  const std::string error = "strigger: error: ";
  const auto not_there = [&](const std::string& option) {
    return error + option + " is not supported: ";
  };
  check_mistakes({
      {{strigger},
       1,
       error + "You must use exactly one of the following options: --set, --get or --clear"},
      {{strigger, "--set", "--get"},
       1,
       error + "You must use exactly one of the following options: --set, --get or --clear"},
      {{strigger, "--clear"}, 1, error + "You must specify a --id, --jobid, or --user to clear"},
      {{strigger, "--set", program}, 1, error + "You must specify a trigger (--down, --drained, "},
      {{strigger, "--set", "--down"}, 1, error + "You must specify a --program value"},
      {{strigger, "--set", "--fini", program}, 1, error + "You must specify a --jobid value"},
      {{strigger, "--set", "--down", "-p", "true"},
       1,
       error + "The --program value must start with \"/\""},
      {{strigger, "--set", "--down", "-p", "/nonexistent"},
       1,
       error + "Invalid --program value, file not found"},
      {{strigger, "--set", "--down", "-p", "/etc"},
       1,
       error + "Invalid --program value, not regular file"},
      {{strigger, "--set", "--fini", "-j", "x", program}, 1, error + "Invalid jobid x"},
      {{strigger, "--set", "--down", "--offset=40000", program},
       1,
       error + "The --offset parameter must be between +/-32000"},
      {{strigger, "--set", "--down", "--flags=ONCE", program}, 1, error + "Invalid flags ONCE"},
      {{strigger, "--get", "--user=nobody-here"}, 1, error + "Invalid user nobody-here"},
      {{strigger, "--get", program}, 1, error + "--program, --offset and --flags are for --set"},
      {{strigger, "--set", "--primary_slurmctld_failure", program},
       1,
       not_there("--primary_slurmctld_failure")},
      {{strigger, "--set", "-B", program}, 1, not_there("--backup_slurmctld_failure")},
      {{strigger, "--set", "-h", program}, 1, not_there("--primary_database_failure")},
      {{strigger, "--set", "-F", program}, 1, not_there("--fail")},
  });
}

TEST_CASE("sbcast refuses wrong uses as Slurm does") {
  const std::map<std::string, std::string> in_job{{"SLURM_JOB_ID", "7"},
                                                  {"SLURM_JOB_NODELIST", "n1"}};
  check_mistakes({
      {{"slurm/sbcast"}, 1, "sbcast: error: Need two file names, have 0 names"},
      {{"slurm/sbcast", "a"}, 1, "sbcast: error: Need two file names, have 1 names"},
      {{"slurm/sbcast", "/etc/passwd", "b"},
       1,
       "sbcast: error: Need a job id to run this command."},
      {{"slurm/sbcast", "/nonexistent", "b"},
       1,
       "sbcast: error: Can't open `/nonexistent`: No such file or directory",
       "",
       in_job},
      {{"slurm/sbcast", "/etc", "b"}, 1, "sbcast: error: `/etc`: Not a regular file", "", in_job},
      {{"slurm/sbcast", "-j", "x", "a", "b"},
       1,
       "sbcast: error: the job must be a whole number from 1"},
      {{"slurm/sbcast", "-F", "0", "a", "b"},
       1,
       "sbcast: error: the fan-out must be a whole number from 1 to 64"},
      {{"slurm/sbcast", "--compress", "a", "b"}, 1, "sbcast: error: --compress is not supported: "},
  });
}

TEST_CASE("the accounting commands refuse wrong uses as Slurm does") {
  check_mistakes({
      {{"slurm/sacctmgr"}, 1, "sacctmgr: error: a command is missing"},
      {{"slurm/sacctmgr", "bogus"}, 1, "invalid keyword: bogus"},
      {{"slurm/sacctmgr", "show"}, 1, "No valid entity in list command"},
      {{"slurm/sacctmgr", "show", "bogus"}, 1, "No valid entity in list command"},
      {{"slurm/sacctmgr", "clear"}, 1, "sacctmgr: error: clear takes one word: stats"},
      {{"slurm/sacctmgr", "add", "cluster"}, 1, " Need name of cluster to add."},
      {{"slurm/sacctmgr", "archive", "dump"}, 1, "sacctmgr: error: archive is not supported: "},
      {{"slurm/sacctmgr", "add", "user", "x"}, 1, " Need name of account to add user to."},
      {{"slurm/sacctmgr", "add", "colour", "x"}, 1, " No valid entity in add command"},
      {{"slurm/sacctmgr", "add", "qos"}, 1, " Need name of qos to add."},
      {{"slurm/sacctmgr", "add", "qos", "x", "MaxJobs=many"},
       1,
       " Bad value for MaxJobsPerUser (many): "},
      {{"slurm/sacctmgr", "add", "qos", "x", "Flags=Fast"}, 1, " Flags: \"Fast\" is no flag of "},
      {{"slurm/sacctmgr", "add", "resource", "count=3"}, 1, " Need name of resource to add."},
      {{"slurm/sacctmgr", "modify", "qos", "x"}, 1, " You didn't give me anything to set"},
      {{"slurm/sacctmgr", "modify", "qos", "colour=red", "set", "Priority=1"},
       1,
       " Unknown condition: colour=red"},
      {{"slurm/sacctmgr", "modify", "qos", "x", "set", "colour=red"},
       1,
       " Unknown option: colour=red"},
      {{"slurm/sacctmgr", "delete", "qos", "where"},
       1,
       " No conditions given to remove, not executing."},
      {{"slurm/sacctmgr", "add", "account"}, 1, " Need name of account to act on."},
      {{"slurm/sacctmgr", "modify", "user", "alice"}, 1, " You didn't give me anything to set"},
      {{"slurm/sacctmgr", "delete", "account", "where"}, 1, " Need name of account to act on."},
      {{"slurm/sacctmgr", "load", "/nonexistent"}, 1, " Unable to open file \"/nonexistent\""},
      {{"slurm/sacctmgr", "-r", "delete", "user", "alice"}, 1, "sacctmgr: error: --readonly"},
      {{"slurm/sacctmgr", "show", "user", "colour=red"}, 1, " Unknown condition: colour=red"},
      {{"slurm/sacctmgr", "show", "user", "format=colour"}, 1, " Unknown field 'colour'"},
      {{"slurm/sshare", "-Z"}, 1, "sshare: invalid option -- 'Z'"},
      {{"slurm/sshare", "-o", "Colour"}, 1, "sshare: error: Invalid field requested: \"Colour\""},
      {{"slurm/sshare", "-m"}, 1, "sshare: error: --partition is not supported: "},
      {{"slurm/sprio", "extra"}, 1, "sprio: error: Unrecognized option: extra"},
      {{"slurm/sprio", "-j", "x"}, 1, "sprio: error: Invalid job id: x"},
      {{"slurm/sprio", "-S", "y"}, 1, "sprio: error: --sort is not supported: "},
      {{"slurm/sdiag", "--json"}, 1, "sdiag: error: --json is not supported: "},
      {{"slurm/sreport"}, 1, "sreport: error: a report is missing: "},
      {{"slurm/sreport", "reservation", "utilization"}, 1, "invalid keyword: reservation"},
      {{"slurm/sreport", "user", "sizes"}, 1, "Not valid report sizes\nValid user reports are"},
      {{"slurm/sreport", "user"}, 1, "too few arguments for keyword:user"},
      {{"slurm/scontrol", "delete", "x"},
       1,
       "scontrol: error: Proper format is 'delete <ENTITY>=<ID>'"},
      {{"slurm/scontrol", "show", "assoc_mgr", "colour=red"}, 1, "invalid option:colour=red"},
      {{"slurm/sreport", "user", "top", "start=soon"}, 1, "sreport: error: "},
      {{"slurm/sreport", "user", "top", "colour=red"}, 1, "sreport: error: Unknown condition: "},
      {{"slurm/sreport", "-t", "x", "user", "top"}, 1, "sreport: error: unknown time format x"},
      {{"slurm/sreport", "-T", "x"}, 1, "sreport: error: --tres is not supported: "},
      {{"slurm/sstat"}, 1, "sstat: error: You didn't give me any jobs to stat."},
      {{"slurm/sstat", "-j", "x"}, 1, "sstat: error: Invalid job id specified: x"},
      {{"slurm/sstat", "-j", "1", "-o", "Colour"}, 1, "sstat: error: Invalid field requested: "},
  });
}
