// Each option of the listing commands and of scancel has a line here, as options_test.cc has those
// of the commands that submit.
#include "tests/slurm/options_bench.h"

using namespace gantry;
using namespace gantry::test;

TEST_CASE("options of squeue") {
  Bench bench;
  bench.command = "squeue";
  fill_queue(bench.fake);
  check_options(bench, {
                           {"account", {"-A", "vision"}, "\"accounts\":[\"vision\"]"},
                           {"accounts", {"--accounts=vision"}, "\"accounts\":[\"vision\"]"},
                           {"all", {"-a"}, "="},
                           {"array", {"-r"}, "              13_4 "},
                           {"array-unique", {"--array-unique"}, "              13_4 "},
                           {"cluster", {"--cluster=fake"}, "CLUSTER: fake\n"},
                           {"clusters", {"-M", "fake"}, "CLUSTER: fake\n"},
                           {"format", {"-o", "[%i]"}, "[12]\n"},
                           {"Format", {"-O", "JobID:@"}, "\n12@"},
                           {"hide", {"--hide"}, "="},
                           {"iterate", {}, "@slurm_clients_test.py case_iterate"},
                           {"job", {"--job=12"}, "\"jobs\":[{\"job\":12"},
                           {"jobs", {"--jobs=12"}, "\"jobs\":[{\"job\":12"},
                           {"json", {"--json"}, "\"data_parser\""},
                           {"licenses", {"-L", "nope"}, "!train"},
                           {"local", {"--local"}, "="},
                           {"long", {"-l"}, "TIME_LIMI"},
                           {"me", {"--me"}, "\"users\":[\""},
                           {"name", {"-n", "train"}, "\"names\":[\"train\"]"},
                           {"noconvert", {"--noconvert"}, "="},
                           {"node", {"--node=n01"}, "\"nodes\":[\"n01\"]"},
                           {"nodelist", {"-w", "n01"}, "\"nodes\":[\"n01\"]"},
                           {"nodes", {"--nodes=n01"}, "\"nodes\":[\"n01\"]"},
                           {"noheader", {"-h"}, "!NODELIST(REASON)"},
                           {"notme", {}, "@slurm_clients_test.py case_notme"},
                           {"only-job-state", {"--only-job-state", "-o", "%i %T"}, "12 RUNNING"},
                           {"partition", {"-p", "debug"}, "\"partitions\":[\"debug\"]"},
                           {"partitions", {"--partitions=debug"}, "\"partitions\":[\"debug\"]"},
                           {"priority", {"-P"}, "="},
                           {"qos", {"-q", "nope"}, "!train"},
                           {"reservation", {"-R", "course"}, "\"reservations\":[\"course\"]"},
                           {"sort", {"-h", "-S", "-i", "-o", "%i"}, "15\n"},
                           {"start", {"--start"}, "START_TIME"},
                           {"states", {"-t", "PD"}, "\"states\":[\"PD\"]"},
                           {"steps", {"-s"}, "STEPID"},
                           {"user", {"-u", "root"}, "\"users\":[\"root\"]"},
                           {"users", {"-u", "daemon", "--users=root"}, "\"users\":[\"root\"]"},
                           {"verbose", {"-v"}, "\nverbose     = 1\n"},
                           {"yaml", {"--yaml"}, "\"jobs\":\n"},
                       });
}

TEST_CASE("options of scancel") {
  Bench bench;
  bench.command = "scancel";
  bench.usual = {"12"};
  proto::JobsDone done;
  proto::JobRef gone;
  gone.job = JobId{12};
  done.not_active.push_back(gone);
  bench.fake.answer<proto::CancelJobs>(done);
  check_options(bench, {
                           {"account", {"-A", "vision"}, "\"accounts\":[\"vision\"]"},
                           {"batch", {"-b"}, "\"scope\":\"batch\""},
                           {"clusters", {"-M", "nope"}, "can't be reached now"},
                           {"cluster", {"--cluster=nope"}, "can't be reached now"},
                           {"ctld", {"--ctld"}, "="},
                           {"full", {"-f"}, "\"scope\":\"full\""},
                           {"interactive", {}, "@slurm_clients_test.py case_scancel_choices"},
                           {"jobname", {"--jobname=x"}, "\"names\":[\"x\"]"},
                           {"me", {"--me"}, "\"all_mine\":true"},
                           {"name", {"-n", "x"}, "\"names\":[\"x\"]"},
                           {"nodelist", {"-w", "n1"}, "\"nodes\":[\"n1\"]"},
                           {"partition", {"-p", "debug"}, "\"partitions\":[\"debug\"]"},
                           {"qos", {}, "@slurm_clients_test.py case_scancel_choices"},
                           {"hurry", {"-H"}, "="},
                           {"quiet", {"-Q"}, "!Terminating job 12", {{"SCANCEL_VERBOSE", "1"}}},
                           {"reservation", {"-R", "r"}, "\"reservations\":[\"r\"]"},
                           {"signal", {"-s", "USR1"}, "\"signal\":10"},
                           {"state", {"-t", "PENDING"}, "\"states\":[\"PENDING\"]"},
                           {"user", {"-u", "daemon"}, "\"users\":[\"daemon\"]"},
                           {"verbose", {"-v"}, "Terminating job 12"},
                           {"wckey", {}, "@slurm_clients_test.py case_scancel_choices"},
                       });
}

TEST_CASE("options of sacct") {
  Bench bench;
  bench.command = "sacct";
  fill_queue(bench.fake);
  check_options(bench, {
                           {"accounts", {"-A", "vision"}, "\"accounts\":[\"vision\"]"},
                           {"allclusters", {"-L"}, "="},
                           {"allocations", {"-X"}, "!12.batch"},
                           {"allusers", {"-a"}, "="},
                           {"array", {"--array"}, "="},
                           {"brief", {"-b"}, "!Partition"},
                           {"clusters", {"-M", "nope"}, "can't be reached now"},
                           {"cluster", {"--cluster=nope"}, "can't be reached now"},
                           {"delimiter", {"-P", "--delimiter=;"}, "12.batch;"},
                           {"duplicates", {"-D"}, "\"duplicates\":true"},
                           {"endtime", {"-E", "2030-01-01"}, "\"end\":18"},
                           {"format", {"-o", "Submit"}, "Submit"},
                           {"fields", {"--fields=Submit"}, "Submit"},
                           {"gid", {"-g", "daemon"}, "!12.batch"},
                           {"group", {"--group=daemon"}, "!12.batch"},
                           {"help", {"-h"}, "\nExamples:\n"},
                           {"helpformat", {"-e"}, "TRESUsageOutAve"},
                           {"jobs", {"-j", "12"}, "\"jobs\":[{\"job\":12"},
                           {"json", {"--json"}, "\"data_parser\""},
                           {"local", {"--local"}, "="},
                           {"long", {"-l"}, "MaxRSSNode"},
                           {"name", {"--name=train"}, "\"names\":[\"train\"]"},
                           {"ncpus", {"-I", "4711"}, "!12.batch"},
                           {"nnodes", {"-i", "100-200"}, "!12.batch"},
                           {"noconvert", {"--noconvert", "-o", "ReqMem%20"}, " 34359738368 "},
                           {"nodelist", {"-N", "n01"}, "\"nodes\":[\"n01\"]"},
                           {"noheader", {"-n"}, "!JobName"},
                           {"parsable", {"-p"}, "12.batch|"},
                           {"parsable2", {"-P"}, "12.batch|"},
                           {"partition", {"-r", "debug"}, "\"partitions\":[\"debug\"]"},
                           {"qos", {"-q", "nope"}, "!12.batch"},
                           {"reason", {"-R", "Dependency"}, "!12.batch"},
                           {"starttime", {"-S", "2026-01-01"}, "\"start\":17672"},
                           {"state", {"-s", "CD"}, "\"states\":[\"CD\"]"},
                           {"timelimit-max", {"-K", "1"}, "!12.batch"},
                           {"timelimit-min", {"-k", "1"}, "!12.batch"},
                           {"truncate", {"-T"}, "="},
                           {"use-local-uid", {"--use-local-uid"}, "="},
                           {"units", {"--units=M", "-o", "ReqMem%20"}, "32768M"},
                           {"user", {"-u", "root"}, "\"users\":[\"root\"]"},
                           {"uid", {"--uid=root"}, "\"users\":[\"root\"]"},
                           {"verbose", {"-v"}, "\nverbose     = 1\n"},
                           {"whole-hetjob", {"--whole-hetjob=yes"}, "="},
                           {"yaml", {"--yaml"}, "\"jobs\":\n"},
                           {"wckeys", {"-W", "nope"}, "!12.batch"},
                       });
}

TEST_CASE("options of sinfo") {
  Bench bench;
  bench.command = "sinfo";
  fill_queue(bench.fake);
  check_options(bench, {
                           {"all", {"-a"}, "="},
                           {"clusters", {"-M", "fake"}, "CLUSTER: fake\n"},
                           {"cluster", {"--cluster=nope"}, "can't be reached now"},
                           {"dead", {"-d"}, "!idle"},
                           {"exact", {"-e"}, "="},
                           {"format", {"-o", "[%R]"}, "[batch]"},
                           {"Format", {"-O", "NodeHost"}, "HOSTNAMES"},
                           {"hide", {"--hide"}, "="},
                           {"iterate", {}, "@slurm_clients_test.py case_iterate"},
                           {"json", {"--json"}, "\"data_parser\""},
                           {"local", {"--local"}, "="},
                           {"long", {"-l"}, "JOB_SIZE"},
                           {"Node", {"-N"}, "!AVAIL"},
                           {"nodes", {"-n", "n01"}, "!n03"},
                           {"noconvert", {"--noconvert"}, "="},
                           {"noheader", {"-h"}, "!PARTITION"},
                           {"partition", {"-p", "debug"}, "!batch"},
                           {"reservation", {"-T"}, "course"},
                           {"responding", {"-r"}, "!down*"},
                           {"list-reasons", {"-R"}, "REASON"},
                           {"states", {"-t", "drain"}, "!idle"},
                           {"sort", {}, "@slurm_clients_test.py case_sort_of_sinfo"},
                           {"summarize", {"-s"}, "NODES(A/I/O/T)"},
                           {"verbose", {"-v"}, "\nverbose     = 1\n"},
                           {"yaml", {"--yaml"}, "\"sinfo\":\n"},
                       });
}
