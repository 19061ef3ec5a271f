// The test compares what the commands under Slurm's names print with the files in golden/. The
// controller gives canned replies. With GANTRY_UPDATE_GOLDEN=1 the test rewrites the files, and the
// reviewer reads the difference.
#include <doctest/doctest.h>

#include <regex>

#include "tests/cli/fake_controller.h"
#include "tests/golden/golden.h"
#include "tests/slurm/queue_of_slurm.h"

using namespace gantry;
using namespace gantry::test;

namespace {

std::string shown_run(const Run& run) {
  std::string text = run.out;
  if (!run.err.empty()) text += "--- standard error\n" + run.err;
  if (run.status != 0) text += "--- exit status " + std::to_string(run.status) + "\n";
  return text;
}

const std::map<std::string, std::vector<std::string>> kQueueRuns{
    {"squeue", {"slurm/squeue"}},
    {"squeue_long", {"slurm/squeue", "-l"}},
    {"squeue_cluster", {"slurm/squeue", "-M", "fake"}},
    {"squeue_start", {"slurm/squeue", "--start"}},
    {"squeue_each", {"slurm/squeue", "-r", "-h", "-o", "%i %t"}},
    {"squeue_doubled", {"slurm/squeue", "-ho", "%%i|%%T|%%N|%%r"}},
    {"squeue_blank", {"slurm/squeue", "-a", "-r", "-h", "-o", " %A,%T,%r", "--states=all"}},
    {"squeue_widths", {"slurm/squeue", "-o", "%.6i:%4t:%.3j:%2t%12j;"}},
    {"squeue_letters",
     {"slurm/squeue", "-h", "-j", "12", "-o",
      "%a|%A|%B|%b|%c|%C|%d|%D|%e|%E|%f|%F|%h|%H|%i|%I|%j|%J|%k|%K|%l|%L|%m|%M|%n|%N|%o|%O|%p|%P|"
      "%q|%Q|%r|%R|%s|%S|%t|%T|%u|%U|%v|%V|%w|%W|%x|%X|%y|%Y|%z|%Z"}},
    {"squeue_all", {"slurm/squeue", "-j", "15", "-o", "%all"}},
    {"squeue_names",
     {"slurm/squeue", "-O", "JobArrayID,StateCompact,Reason:10,name:.6,UserName:@,,"}},
    {"squeue_separators",
     {"slurm/squeue", "--all", "--states=all", "--noconvert", "-O",
      "account:\x1f,jobid:\x1f,tres-per-node:\x1f,comment:\x1f,nodelist:\x1f,"}},
    {"squeue_unknown_letter", {"slurm/squeue", "-h", "-o", "%i %!"}},
    {"squeue_unknown_name", {"slurm/squeue", "-h", "-O", "jobid,colour"}},
    {"squeue_sort", {"slurm/squeue", "-h", "-S", "-i,u", "-o", "%i %u", "-t", "all"}},
    {"squeue_json", {"slurm/squeue", "--json", "-j", "12"}},
    {"squeue_json_pending", {"slurm/squeue", "--json=v0.0.43", "-j", "13"}},
    {"squeue_yaml", {"slurm/squeue", "--yaml", "-j", "15"}},
    {"squeue_unknown", {"slurm/squeue", "-j", "99"}},
    {"squeue_unknown_of_two", {"slurm/squeue", "-j", "99,98"}},
    {"squeue_unknown_user", {"slurm/squeue", "-u", "nobody-of-this-name", "-j", "98"}},
    {"squeue_usage", {"slurm/squeue", "--usage"}},
    {"squeue_steps", {"slurm/squeue", "-s"}},
    {"squeue_only_state", {"slurm/squeue", "--only-job-state"}},
    {"squeue_two_forms", {"slurm/squeue", "-o", "%i", "-O", "jobid"}},
    {"squeue_long_form", {"slurm/squeue", "-l", "-o", "%i"}},
    {"squeue_ended", {"slurm/squeue", "-h", "-t", "all", "-o", "%i %T %r %R %e"}},
    {"squeue_steps_names", {"slurm/squeue", "-s", "-O", "StepID,stepname:8,NumTasks:4,StepState"}},
    {"squeue_steps_fields", {"slurm/squeue", "-h", "--steps", "-o", "%i|%A|%C|%U|%S"}},
    {"sacct_qos", {"slurm/sacct", "-X", "-P", "-o", "JobID,QOS,WCKey", "-q", "normal"}},
    {"sacct", {"slurm/sacct"}},
    {"sacct_parsable2", {"slurm/sacct", "-o", "JobID,State,NodeList", "--parsable2", "-a"}},
    {"sacct_parsable",
     {"slurm/sacct", "--parsable", "-n", "--delimiter=^|^", "--format=jobid,state"}},
    {"sacct_allocations",
     {"slurm/sacct", "-X", "--noheader", "--format=jobid,state%20", "-j", "12,15"}},
    {"sacct_widths", {"slurm/sacct", "-o", "JobID%4,JobName%-20,State%12,ExitCode"}},
    {"sacct_usage",
     {"slurm/sacct", "-P", "-o",
      "JobIDRaw,UserCPU,SystemCPU,TotalCPU,MaxRSS,AveRSS,MaxRSSNode,AllocCPUS,Elapsed,ReqMem,"
      "AllocTRES,ReqTRES,TRESUsageInTot,TRESUsageOutAve,NTasks,Timelimit,TimelimitRaw,Start,End"}},
    {"sacct_noconvert", {"slurm/sacct", "-Pno", "JobID,MaxRSS,ReqMem", "--noconvert"}},
    {"sacct_units", {"slurm/sacct", "-Pno", "JobID,MaxRSS,ReqMem", "--units", "G"}},
    {"sacct_step", {"slurm/sacct", "-j", "12.batch", "-o", "JobID,State,NCPUS"}},
    {"sacct_helpformat", {"slurm/sacct", "--helpformat"}},
    {"sacct_unknown", {"slurm/sacct", "-j", "99", "-P"}},
    {"sacct_json", {"slurm/sacct", "--json", "-j", "12"}},
    {"sacct_all", {"slurm/sacct", "-X", "-P", "-j", "12", "--format=ALL"}},
    {"sacct_field", {"slurm/sacct", "-a", "-X", "--format=Allocgres", "--state=RUNNING"}},
    {"sinfo", {"slurm/sinfo"}},
    {"sinfo_all_nodes", {"slurm/sinfo", "-N"}},
    {"sinfo_nodes_long", {"slurm/sinfo", "-Nl"}},
    {"sinfo_long", {"slurm/sinfo", "-l"}},
    {"sinfo_summary", {"slurm/sinfo", "-s"}},
    {"sinfo_reasons", {"slurm/sinfo", "-R"}},
    {"sinfo_joined", {"slurm/sinfo", "-aho", "%F/%C"}},
    {"sinfo_names", {"slurm/sinfo", "-ahNO", "nodehost:20,gres:20,gresused:20,statelong"}},
    {"sinfo_exporter", {"slurm/sinfo", "-h", "-o", " %D,%T"}},
    {"sinfo_backslash", {"slurm/sinfo", "-h", "--Node", "-o", "%N\\x1f%t"}},
    {"sinfo_csv", {"slurm/sinfo", "--format", "%P,%m", "--noconvert"}},
    {"sinfo_letters",
     {"slurm/sinfo", "-h", "-N", "-n", "n01", "-o",
      "%P|%R|%C|%D|%F|%T|%t|%n|%N|%G|%c|%m|%f|%l|%L|%a|%e|%O|%z|%X|%Y|%Z|%w|%E|%H"}},
    {"sinfo_states", {"slurm/sinfo", "-h", "-t", "idle,drain", "-o", "%N %T"}},
    {"sinfo_states_joined", {"slurm/sinfo", "-h", "-t", "mix&alloc,down&idle", "-o", "%N %T"}},
    {"sinfo_all_names", {"slurm/sinfo", "-O", "all", "-n", "n01"}},
    {"sinfo_reservations", {"slurm/sinfo", "-T"}},
    {"sinfo_json", {"slurm/sinfo", "--json"}},
    {"scontrol_job", {"slurm/scontrol", "show", "job", "12"}},
    {"scontrol_job_details", {"slurm/scontrol", "show", "jobid", "-dd", "12"}},
    {"scontrol_job_line", {"slurm/scontrol", "-o", "show", "job", "12"}},
    {"scontrol_job_pending", {"slurm/scontrol", "show", "job=15"}},
    {"scontrol_job_unknown", {"slurm/scontrol", "show", "job", "99"}},
    {"scontrol_node", {"slurm/scontrol", "show", "node=n01"}},
    {"scontrol_node_one_unknown", {"slurm/scontrol", "-o", "show", "node", "n02,n99,n01"}},
    {"scontrol_nodes_line", {"slurm/scontrol", "-a", "show", "-o", "nodes"}},
    {"scontrol_node_unknown", {"slurm/scontrol", "show", "node", "n99"}},
    {"scontrol_partition", {"slurm/scontrol", "show", "part"}},
    {"scontrol_partition_line", {"slurm/scontrol", "show", "part", "-o"}},
    {"scontrol_reservation", {"slurm/scontrol", "-a", "show", "-o", "reservations", "course"}},
    {"scontrol_step", {"slurm/scontrol", "show", "step", "12.batch"}},
    {"scontrol_config", {"slurm/scontrol", "show", "config"}},
    {"scontrol_hostnames", {"slurm/scontrol", "show", "hostname", "n[1-3,7],x"}},
    {"scontrol_hostlist", {"slurm/scontrol", "show", "hostlist", "n3,n1,n2,x"}},
    {"scontrol_hostlistsorted", {"slurm/scontrol", "show", "hostlistsorted", "n3,n1,n2,x"}},
    {"scontrol_ping", {"slurm/scontrol", "ping"}},
    {"sshare", {"slurm/sshare", "-a"}},
    {"sshare_long", {"slurm/sshare", "-a", "--long"}},
    {"sshare_exporter", {"slurm/sshare", "-n", "-P", "-o", "account,fairshare"}},
    {"sshare_users", {"slurm/sshare", "-U", "-u", "alice", "--format", "Account%20", "--noheader"}},
    {"sprio", {"slurm/sprio"}},
    {"sprio_users", {"slurm/sprio", "-u", "alice"}},
    {"sprio_weights", {"slurm/sprio", "-w"}},
    {"sprio_norm", {"slurm/sprio", "-n", "-h"}},
    {"sprio_fields", {"slurm/sprio", "-h", "-o", "%i|%r|%u|%Y|%A|%F|%Q|%n|%o|%c"}},
    {"sdiag", {"slurm/sdiag"}},
    {"sdiag_by_time", {"slurm/sdiag", "-t"}},
    {"sdiag_reset", {"slurm/sdiag", "--reset"}},
    {"sacctmgr_stats", {"slurm/sacctmgr", "show", "stats"}},
    {"squeue_each_partition",
     {"slurm/squeue", "-h", "-P", "-p", "day", "-S", "p", "-o", "%i %P %Q"}},
    {"sstat", {"slurm/sstat", "-j", "12.batch", "-P", "-o", "JobID,MaxRSS,AveCPU,NTasks"}},
    {"sstat_nothing", {"slurm/sstat", "-j", "11"}},
    {"sreport_accounts",
     {"slurm/sreport", "cluster", "AccountUtilizationByUser", "start=2026-01-31",
      "end=2026-02-01"}},
    {"sreport_sizes",
     {"slurm/sreport", "-P", "job", "sizes", "start=2026-01-31", "end=2026-02-01"}},
    {"sreport_top",
     {"slurm/sreport", "-nP", "-t", "hours", "user", "topusage", "start=2026-01-31T08:00",
      "end=2026-02-01", "format=Login,Account,Used", "topcount=1"}},
    {"sattach_layout", {"slurm/sattach", "--layout", "12.0"}},
    {"sattach_batch", {"slurm/sattach", "12.batch"}},
    {"sattach_help", {"slurm/sattach", "--help"}},
    {"strigger_get", {"slurm/strigger", "--get"}},
    {"strigger_down", {"slurm/strigger", "-N", "--get", "--down"}},
    {"strigger_clear", {"slurm/strigger", "-v", "--clear", "--id=3"}},
    {"strigger_help", {"slurm/strigger", "--help"}},
    {"sacctmgr_users",
     {"slurm/sacctmgr", "-nP", "show", "users", "withassoc", "format=account,qos", "where",
      "user=alice", "cluster=fake"}},
    {"sacctmgr_user", {"slurm/sacctmgr", "-n", "-s", "list", "user", "alice", "format=account%20"}},
    {"sacctmgr_associations",
     {"slurm/sacctmgr", "list", "Association", "format=account", "-P", "-n", "user=bob"}},
    {"sacctmgr_accounts", {"slurm/sacctmgr", "list", "accounts"}},
    {"sacctmgr_all_users", {"slurm/sacctmgr", "show", "user"}},
    {"sacctmgr_assoc", {"slurm/sacctmgr", "-p", "show", "assoc"}},
    {"sacctmgr_assoc_sets",
     {"slurm/sacctmgr", "-np", "list", "assoc", "wopi", "wopl", "withd",
      "format=lft,rgt,account,user"}},
    {"sacctmgr_users_assoc", {"slurm/sacctmgr", "-P", "show", "user", "alice", "withassoc"}},
    {"sacctmgr_admin", {"slurm/sacctmgr", "-nP", "list", "user", "root", "format=admin"}},
    {"sacctmgr_events", {"slurm/sacctmgr", "-P", "list", "event"}},
    {"sacctmgr_reservations", {"slurm/sacctmgr", "-P", "list", "reservation"}},
    {"sacctmgr_federation", {"slurm/sacctmgr", "-P", "show", "federation"}},
    {"sacctmgr_account_texts",
     {"slurm/sacctmgr", "-i", "add", "account", "scoring", "parent=fraud", "description=Scores",
      "organization=Bank"}},
    {"sacctmgr_user_default",
     {"slurm/sacctmgr", "-i", "modify", "user", "alice", "set", "DefaultAccount=research"}},
    {"sacctmgr_user_default_none",
     {"slurm/sacctmgr", "-i", "modify", "user", "alice", "set", "DefaultAccount=nope"}},
    {"sacctmgr_user_fairshare",
     {"slurm/sacctmgr", "-i", "modify", "user", "alice", "set", "fairshare=4"}},
    {"sacctmgr_qos", {"slurm/sacctmgr", "show", "qos"}},
    {"sacctmgr_qos_all",
     {"slurm/sacctmgr", "-nP", "list", "qos", "where", "name=normal,production-critical",
      "format=name,priority,gracetime,preempt,preemptexempttime,preemptmode,descr,flags"}},
    {"sacctmgr_qos_add",
     {"slurm/sacctmgr", "-i", "add", "qos", "high,higher", "Priority=800", "GraceTime=60",
      "Preempt=normal,best-effort"}},
    {"sacctmgr_qos_add_known", {"slurm/sacctmgr", "-i", "add", "qos", "normal"}},
    {"sacctmgr_qos_asked", {"slurm/sacctmgr", "add", "qos", "high", "Description=soon"}},
    {"sacctmgr_qos_modify",
     {"slurm/sacctmgr", "-i", "modify", "qos", "where", "name=normal", "set", "Priority=510"}},
    {"sacctmgr_qos_modify_none",
     {"slurm/sacctmgr", "-i", "modify", "qos", "nope", "set", "Priority=510"}},
    {"sacctmgr_qos_delete_default", {"slurm/sacctmgr", "-i", "delete", "qos", "normal"}},
    {"sacctmgr_qos_delete_none", {"slurm/sacctmgr", "-i", "delete", "qos", "nope"}},
    {"sacctmgr_account_qos",
     {"slurm/sacctmgr", "-i", "modify", "account", "fraud", "set", "QOS-=best-effort"}},
    {"sacctmgr_account_add",
     {"slurm/sacctmgr", "-i", "add", "account", "risk", "description=Risk"}},
    {"sacctmgr_account_add_known", {"slurm/sacctmgr", "-i", "add", "account", "fraud"}},
    {"sacctmgr_account_modify_none",
     {"slurm/sacctmgr", "-i", "modify", "account", "nope", "set", "fairshare=3"}},
    {"sacctmgr_account_delete_none", {"slurm/sacctmgr", "-i", "delete", "account", "nope"}},
    {"sacctmgr_user_add", {"slurm/sacctmgr", "-i", "add", "user", "zoe,alice", "account=research"}},
    {"sacctmgr_user_add_nowhere", {"slurm/sacctmgr", "-i", "add", "user", "zoe", "account=nope"}},
    {"sacctmgr_user_delete_none", {"slurm/sacctmgr", "-i", "delete", "user", "zoe"}},
    {"sacctmgr_cluster_add_own", {"slurm/sacctmgr", "-i", "add", "cluster", "fake"}},
    {"sacctmgr_cluster_add", {"slurm/sacctmgr", "-i", "add", "cluster", "other"}},
    {"sacctmgr_cluster_delete",
     {"slurm/sacctmgr", "-i", "delete", "cluster", "where", "name=other"}},
    {"sacctmgr_cluster_delete_own", {"slurm/sacctmgr", "-i", "delete", "cluster", "fake"}},
    {"sacctmgr_problem", {"slurm/sacctmgr", "show", "problem"}},
    {"sacctmgr_resource", {"slurm/sacctmgr", "-p", "show", "resource"}},
    {"sacctmgr_wckey", {"slurm/sacctmgr", "list", "wckey"}},
    {"sacctmgr_runaway", {"slurm/sacctmgr", "show", "runawayjobs"}},
    {"sacctmgr_cluster", {"slurm/sacctmgr", "-nP", "show", "cluster", "format=cluster,rpc"}},
    {"sacctmgr_tres", {"slurm/sacctmgr", "-n", "show", "tres"}},
    {"sbatch_help", {"slurm/sbatch", "--help"}},
    {"salloc_help", {"slurm/salloc", "-h"}},
    {"srun_usage", {"slurm/srun", "--usage"}},
    {"sprio_help", {"slurm/sprio", "--help"}},
    {"sprio_usage", {"slurm/sprio", "--usage", "job", "sizes"}},
    {"sshare_help", {"slurm/sshare", "--usage"}},
    {"sacct_help", {"slurm/sacct", "-h"}},
    {"sstat_usage", {"slurm/sstat", "--usage"}},
    {"sbcast_usage", {"slurm/sbcast", "--usage"}},
    {"scontrol_help", {"slurm/scontrol", "help"}},
    {"sreport_help", {"slurm/sreport", "--help"}},
    {"scancel_help", {"slurm/scancel", "--help"}},
};

}  // namespace

TEST_CASE("the commands under Slurm's names print what the golden files say") {
  FakeController fake;
  fill_queue(fake);
  for (const auto& [name, argv] : kQueueRuns) {
    std::string text = shown_run(fake.run(argv));
    // The long output of squeue and sinfo begins with the current date, which is removed here.
    if (name.ends_with("_long") && !name.starts_with("sshare"))
      text.replace(0, text.find('\n'), "DATE");
    // Each run has another port and another folder.
    if (name == "scontrol_config")
      text = std::regex_replace(
          text, std::regex("(SLURM_CONF|AccountingStoragePort|SlurmctldPort)( += )[^\n]*"),
          "$1$2OTHER");
    check_golden("tests/slurm/golden/" + name + ".txt", text);
  }
  const Run relative =
      fake.run({"slurm/squeue", "-h", "-j", "12", "-o", "%S"}, {}, {{"SLURM_TIME_FORMAT", "%s"}});
  CHECK(relative.out == "1769846280\n");
}

TEST_CASE("squeue asks the controller for exactly the jobs that its options name") {
  FakeController fake;
  fill_queue(fake);
  (void)fake.run({"slurm/squeue", "-u", "root,0", "-n", "x", "-p", "batch", "-w", "n[01-02]", "-t",
                  "pd,RUNNING", "-A", "vision"});
  proto::JobFilter filter = fake.last<proto::ListJobs>().filter;
  CHECK(filter.users == std::vector<std::string>{"root", "root"});
  CHECK(filter.nodes == std::vector<std::string>{"n01", "n02"});
  CHECK(filter.states == std::vector<std::string>{"pd", "RUNNING"});
  (void)fake.run({"slurm/squeue", "-j", "12,14_[1-2]"}, {},
                 {{"SQUEUE_PARTITION", "debug"}, {"SQUEUE_STATES", "all"}});
  filter = fake.last<proto::ListJobs>().filter;
  CHECK(filter.jobs.size() == 2);
  CHECK(filter.partitions == std::vector<std::string>{"debug"});
  CHECK(filter.states == std::vector<std::string>{"all"});
  // The usual fields need only one question to the controller.
  CHECK(fake.count(proto::MessageType::ShowJob) == 0);
}

TEST_CASE("every command under a Slurm name has help, a manual page and Slurm's version") {
  for (const char* name :
       {"sbatch", "squeue", "scancel", "sacct", "sinfo", "scontrol", "srun", "salloc"}) {
    CAPTURE(name);
    const std::string path = std::string("slurm/") + name;
    CHECK(run_program({{path, "--help"}, {}, {}, {}}).out.find("\nExamples:\n") !=
          std::string::npos);
    CHECK(run_program({{path, "--version"}, {}, {}, {}}).out == "slurm 25.05.0\n");
    CHECK(run_program({{path, "-V"}, {}, {}, {}}).out == "slurm 25.05.0\n");
    CHECK(run_program({{path, "--version=gantry"}, {}, {}, {}}).out == "gantry 0.1.0\n");
    CHECK(run_program({{"gantry", "man", name}, {}, {}, {}}).out.find(".SH NAME") !=
          std::string::npos);
  }
  const Run completion = run_program({{"gantry", "slurm", "completion"}, {}, {}, {}});
  CHECK(completion.out.find("_gantry_complete sbatch") != std::string::npos);
}

TEST_CASE("the words that scripts look for in the help of Slurm's commands") {
  const auto has = [](const char* name, const char* option, std::vector<std::string> words) {
    const Run run = run_program({{std::string("slurm/") + name, option}, {}, {}, {}});
    CAPTURE(name);
    CHECK(run.status == 0);
    CHECK(run.err.empty());
    for (const std::string& word : words) {
      CAPTURE(word);
      CHECK(run.out.find(word) != std::string::npos);
    }
  };
  for (const char* name : {"squeue", "sinfo", "scancel", "sprio", "sdiag", "sbcast", "strigger"})
    has(name, "--help", {std::string("Usage: ") + name, "\nHelp options:\n"});
  for (const char* name : {"sbatch", "srun", "salloc"})
    has(name, "--help",
        {std::string("Usage: ") + name, "\nParallel run options:\n", "\nConstraint options:\n",
         "\nConsumable resources related options:\n"});
  for (const char* name : {"scontrol", "sacctmgr", "sreport"})
    for (const char* option : {"--help", "--usage", "-h"})
      has(name, option, {"Valid <OPTION> values are:", "Valid <COMMAND> values are:"});
  has("sacctmgr", "--usage",
      {"commit changes immediately", "display tool version number", "add cluster"});
  has("sacct", "--help", {"sacct [<OPTION>]", "Valid <OPTION> values are:", "--duplicates"});
  has("sstat", "-h", {"sstat [<OPTION>]", "Valid <OPTION> values are:", "-e, --helpformat"});
  has("sshare", "--help",
      {"Usage: sshare [OPTION]", "Valid OPTIONs are", "display more information"});
  has("srun", "--usage", {"Usage: srun ", " executable [args...]"});
}

TEST_CASE("the beginning of a field's name is enough for sacct, and exact names go first") {
  FakeController fake;
  fill_queue(fake);
  const Run whole = fake.run({"slurm/sacct", "-P", "-o", "JobID,Elapsed,State"});
  CHECK(fake.run({"slurm/sacct", "-P", "-o", "job,elaps,state"}).out == whole.out);
  CHECK(fake.run({"slurm/sacct", "-P", "-o", "nosuch"}).err ==
        "sacct: error: Invalid field requested: \"nosuch\"\n");
}

TEST_CASE("docs/slurm-options.md agrees with the option tables") {
  check_golden("docs/slurm-options.md",
               run_program({{"gantry", "slurm", "options"}, {}, {}, {}}).out);
}
