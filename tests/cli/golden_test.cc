// Compares what every command prints, against a controller that gives fixed replies, with the files
// in golden/. GANTRY_UPDATE_GOLDEN=1 rewrites these files, and the reviewer reads the difference.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/command.h"
#include "tests/cli/fake_controller.h"
#include "tests/cli/samples.h"
#include "tests/golden/golden.h"

using namespace gantry;
using namespace gantry::test;

namespace {

void check_output(const std::string& name, const std::string& text) {
  check_golden("tests/cli/golden/" + name + ".txt", text);
}

std::string shown(const Run& run) {
  std::string text = run.out;
  if (!run.err.empty()) text += "--- standard error\n" + run.err;
  if (run.status != 0) text += "--- exit status " + std::to_string(run.status) + "\n";
  return text;
}

void fill(FakeController& fake) {
  fake.on<proto::ListJobs>([](const proto::ListJobs& list) {
    proto::ListJobsReply reply;
    reply.now = kNow;
    // The list is given in two pages, so that each test also covers paging.
    const auto all = sample_jobs();
    for (const auto& row : all) {
      if (list.after.value() == 0 ? row.job.value() > 13 : row.job.value() <= 13) continue;
      reply.rows.push_back(row);
    }
    reply.more = list.after.value() == 0;
    reply.next = JobId{13};
    if (!list.filter.jobs.empty() && list.filter.jobs[0].job == JobId{99}) {
      reply.rows.clear();
      reply.more = false;
      reply.unknown.push_back(list.filter.jobs[0]);
    }
    return reply;
  });
  fake.answer<proto::ListNodes>(proto::ListNodesReply{sample_nodes(), kNow});
  fake.answer<proto::ListPartitions>(proto::ListPartitionsReply{sample_partitions()});
  fake.answer<proto::QueryHistory>(proto::HistoryReply{sample_history(), false, kNow, {}, {}});
  fake.answer<proto::TenantUsage>(sample_tenants());
  fake.answer<proto::ShareTree>(sample_shares());
  fake.answer<proto::PriorityTuples>(sample_priorities());
  fake.answer<proto::ShowJob>(proto::ShowJobReply{{sample_detail()}, kNow});
  fake.answer<proto::ShowStats>(proto::ShowStatsReply{{{"commits_total", 7}, {"turn_us", 12}}});
  fake.answer<proto::ShowConfig>(
      proto::ShowConfigReply{{{"cluster", "lab"}, {"controller.kill_wait", "30s"}}});
}

}  // namespace

TEST_CASE("each command prints what its golden file holds") {
  FakeController fake;
  fill(fake);
  const std::map<std::string, std::vector<std::string>> commands{
      {"gqueue", {"gqueue", "-t", "all"}},
      {"gqueue_long", {"gqueue", "-l"}},
      {"gqueue_start", {"gqueue", "--start"}},
      {"gqueue_each_task", {"gqueue", "-r", "-o", "%i %t"}},
      {"gqueue_all_fields",
       {"gqueue", "-t", "all", "-o",
        "%i|%A|%F|%K|%j|%t|%T|%M|%L|%l|%D|%C|%m|%R|%r|%N|%B|%P|%u|%U|%a|%S|%V|%e|%Q|%p|%w|%v|%b"}},
      {"gqueue_why", {"gqueue", "--why"}},
      {"gqueue_widths", {"gqueue", "-h", "-o", " %.6i:%4t:%.3j:%%T;"}},
      {"gqueue_joined_letters", {"gqueue", "-ho%A,%T"}},
      {"gqueue_json", {"gqueue", "--json", "-j", "12"}},
      {"gqueue_unknown", {"gqueue", "-j", "99"}},
      {"gqueue_unknown_of_two", {"gqueue", "-j", "99,98"}},
      {"gqueue_filters",
       {"gqueue", "-u", "alice,bob", "-n", "x", "-p", "batch", "-w", "n[01-02]", "-A", "vision"}},
      {"ginfo", {"ginfo"}},
      {"ginfo_nodes", {"ginfo", "-N"}},
      {"ginfo_nodes_long", {"ginfo", "-Nl"}},
      {"ginfo_reasons", {"ginfo", "-R"}},
      {"ginfo_summary", {"ginfo", "-s"}},
      {"ginfo_long", {"ginfo", "-l"}},
      {"ginfo_fields",
       {"ginfo", "-o",
        "%P|%R|%a|%l|%L|%s|%p|%D|%N|%n|%C|%F|%t|%T|%c|%m|%d|%e|%O|%f|%G|%z|%E|%u|%H|%v|%x"}},
      {"ginfo_state", {"ginfo", "-h", "-t", "IDLE,drain", "-o", "%N %T"}},
      {"ginfo_no_partition", {"ginfo", "-aho", "%D/%C"}},
      {"ginfo_stats", {"ginfo", "--stats"}},
      {"ginfo_json", {"ginfo", "--json"}},
      {"gacct", {"gacct"}},
      {"gacct_parsable",
       {"gacct", "-P", "-n", "-X", "-o", "jobid,STATE,exitcode,elapsed,TotalCPU,MaxRSS,nodelist"}},
      {"gacct_trailing", {"gacct", "-p", "-o", "JobIDRaw,JobName"}},
      {"gacct_widths", {"gacct", "-o", "JobID%4,JobName%-20,State%20,Cause%30"}},
      {"gacct_noconvert", {"gacct", "-nPo", "JobID,MaxRSS", "--noconvert"}},
      {"gacct_step", {"gacct", "-j", "12.batch", "-o", "JobID,State"}},
      {"gacct_all_fields",
       {"gacct", "-P", "-o",
        "JobID,JobIDRaw,JobName,State,ExitCode,Account,AllocCPUS,NCPUS,ReqCPUS,NNodes,NTasks,"
        "AllocGPUS,ReqGPUS,AllocTRES,ReqMem,MaxRSS,MaxDiskRead,MaxDiskWrite,TotalCPU,UserCPU,"
        "SystemCPU,CPUTime,"
        "CPUTimeRAW,Elapsed,ElapsedRaw,Timelimit,TimelimitRaw,Submit,Eligible,Start,End,NodeList,"
        "Partition,Priority,Restarts,Reason,Reservation,Waited,WaitedFor,Cause,User,UID,Group,"
        "Comment,SubmitLine,WorkDir"}},
      {"gacct_efficiency", {"gacct", "--efficiency"}},
      {"gacct_efficiency_long", {"gacct", "-l", "--efficiency"}},
      {"gacct_scrub", {"gacct", "-nPX", "-o", "JobID,GPUScrub"}},
      {"gacct_helpformat", {"gacct", "--helpformat"}},
      {"gacct_json", {"gacct", "--json"}},
      {"gctl_show_job", {"gctl", "show", "job", "12"}},
      {"gctl_show_job_oneline", {"gctl", "show", "job", "-o", "12"}},
      {"gctl_show_node", {"gctl", "show", "node"}},
      {"gctl_show_partition", {"gctl", "show", "partition"}},
      {"gctl_show_config", {"gctl", "show", "config"}},
      {"gctl_why", {"gctl", "why", "12"}},
      {"gctl_top", {"gctl", "top"}},
      {"gctl_top_cost", {"gctl", "top", "--cost"}},
      {"gctl_top_idle", {"gctl", "top", "-h", "--idle", "30", "-o", "%j|%N|%g|%i"}},
      {"gctl_hostnames", {"gctl", "show", "hostnames", "n[01-03],x"}},
      {"gctl_hostlist", {"gctl", "show", "hostlist", "n01,n02,n03,x"}},
      {"gtenant_list", {"gtenant", "list"}},
      {"gtenant_list_fields", {"gtenant", "list", "-ho", "%n|%c|%q|%r|%g|%p|%m|%d|%s"}},
      {"gtenant_quota", {"gtenant", "quota"}},
      {"gtenant_quota_fields", {"gtenant", "quota", "-o", "%n|%r|%f|%u|%o|%b|%l|%L|%a|%p"}},
      {"gtenant_quota_unknown", {"gtenant", "quota", "nobody"}},
      {"gtenant_quota_json", {"gtenant", "quota", "--json"}},
      {"gshare", {"gshare"}},
      {"gshare_tenants", {"gshare", "-t", "-o", "%n|%s|%S|%u|%U|%R|%f|%b|%k|%q|%r"}},
      {"gprio", {"gprio"}},
      {"gprio_long", {"gprio", "-l"}},
      {"gprio_fields", {"gprio", "-ho", "%o|%i|%u|%a|%P|%d|%c|%r|%b|%v|%f|%F|%p|%t"}},
      {"gprio_json", {"gprio", "--json", "-j", "12"}},
      {"help_gtenant", {"gtenant", "--help"}},
      {"help_gtenant_create", {"gtenant", "create", "--help"}},
      {"help_gbatch", {"gbatch", "--help"}},
      {"help_gctl", {"gctl", "--help"}},
      {"help_gctl_drain", {"gctl", "drain", "--help"}},
      {"help_gctl_reserve", {"gctl", "reserve", "--help"}},
      {"man_gqueue", {"gantry", "man", "gqueue"}},
  };
  for (const auto& [name, argv] : commands) check_output(name, shown(fake.run(argv)));
  const auto filter = [&] {
    (void)fake.run(
        {"gqueue", "-u", "alice,bob", "-n", "x", "-p", "batch", "-w", "n[01-02]", "-A", "vision"});
    return fake.last<proto::ListJobs>().filter;
  }();
  CHECK(filter.users == std::vector<std::string>{"alice", "bob"});
  CHECK(filter.nodes == std::vector<std::string>{"n01", "n02"});
  CHECK(filter.states.size() == 5);
}

TEST_CASE("tables fit a terminal of 80 columns unless more is asked for") {
  FakeController fake;
  fill(fake);
  for (const std::vector<std::string>& argv :
       std::vector<std::vector<std::string>>{{"gacct"},
                                             {"gacct", "--efficiency"},
                                             {"ginfo"},
                                             {"ginfo", "-l"},
                                             {"ginfo", "-N", "-l"},
                                             {"gprio"},
                                             {"gshare"},
                                             {"gtenant", "list"},
                                             {"gtenant", "quota"}}) {
    CAPTURE(argv.back());
    std::istringstream lines(fake.run(argv).out);
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(line);
      CHECK(line.size() <= 80);
    }
  }
}

TEST_CASE("every command has help with examples, a manual page, a version and completion") {
  for (const char* name : {"gbatch", "gqueue", "gcancel", "gacct", "ginfo", "gctl", "gtenant",
                           "gshare", "gprio", "gantry"}) {
    CAPTURE(name);
    const Run help = run_program({{name, "--help"}, {}, {}, {}});
    CHECK(help.status == 0);
    CHECK(help.out.find("Usage: ") == 0);
    CHECK(help.out.find("\nExamples:\n") != std::string::npos);
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
    const Run man = run_program({{"gantry", "man", name}, {}, {}, {}});
    CHECK(man.out.find(".SH NAME") != std::string::npos);
    const Run version = run_program({{name, "--version"}, {}, {}, {}});
    CHECK(version.out == "gantry 0.1.0\n");
  }
  const Run script = run_program({{"gantry", "completion"}, {}, {}, {}});
  CHECK(script.status == 0);
  CHECK(script.out.find("complete -F _gantry_complete gbatch") != std::string::npos);
}

namespace {

// The commands below this one that run and have no example in their help.
void without_example(const cli::Command& command, const std::string& name, std::string& out) {
  if (command.run != nullptr && cli::shown(command.examples).empty()) out += name + "\n";
  for (const cli::Command* sub : command.sub)
    without_example(*sub, fmt::format("{} {}", name, sub->name), out);
}

}  // namespace

TEST_CASE("the help of every command and sub-command has an example, and a page of its own") {
  std::string without;
  for (const cli::Command* command : cli::all_commands())
    without_example(*command, std::string(command->name), without);
  CHECK(without == "");
  const Run why = run_program({{"gantry", "man", "gctl", "why"}, {}, {}, {}});
  CHECK(why.out.starts_with(".TH GCTL-WHY 1 "));
  CHECK(why.out.find("\\fBgctl why\\fR") != std::string::npos);
  CHECK(run_program({{"gantry", "help", "gtenant", "price", "apply"}, {}, {}, {}})
            .out.starts_with("Usage: gtenant price apply"));
  const Run none = run_program({{"gantry", "man", "gctl", "sing"}, {}, {}, {}});
  CHECK(none.status == 2);
  CHECK(none.err.starts_with("gantry man: there is no command 'gctl sing'\n"));
}

TEST_CASE("gcancel sends its filter and signal, and prints what was refused") {
  FakeController fake;
  proto::JobsDone done;
  done.changed = 1;
  done.not_active.push_back({JobId{77}, {}});
  fake.answer<proto::QueryHistory>(proto::HistoryReply{{sample_history()[1]}, false, kNow, {}, {}});
  fake.answer<proto::CancelJobs>(done);
  CHECK(fake.run({"gcancel", "12", "13_[1-4,9]", "77"}).status == 0);
  const auto cancel = fake.last<proto::CancelJobs>();
  REQUIRE(cancel.filter.jobs.size() == 3);
  CHECK(cancel.filter.jobs[1].tasks.size() == 2);
  CHECK_FALSE(cancel.signal);
  CHECK(fake.run({"gcancel", "-s", "USR1", "-b", "12"}).out.empty());
  CHECK(fake.last<proto::CancelJobs>().signal == 10);
  CHECK(fake.last<proto::CancelJobs>().scope == proto::SignalScope::batch_shell);
  CHECK(fake.run({"gcancel", "--me", "-t", "PD"}).status == 0);
  CHECK(fake.last<proto::CancelJobs>().all_mine);
  CHECK(fake.last<proto::CancelJobs>().filter.states == std::vector<std::string>{"PD"});
  const Run verbose = fake.run({"gcancel", "-v", "12"});
  CHECK(verbose.err ==
        "gcancel: 1 job cancelled\ngcancel: job 11 ended at 2026-01-31T08:42:00, by signal 9 "
        "(OUT_OF_MEMORY): killed on n01: used 64M of its 64M\n");
  done.not_active.clear();
  done.refused.push_back({{JobId{12}, {}}, {3, "job 12 belongs to bob"}});
  fake.answer<proto::CancelJobs>(done);
  const Run refused = fake.run({"gcancel", "12"});
  CHECK(refused.status == 1);
  CHECK(refused.err == "gcancel: error: Kill job error on job id 12: job 12 belongs to bob\n");
}

TEST_CASE("each change by gctl sends the message and the values for it") {
  FakeController fake;
  fake.answer<proto::UpdateJob>(proto::JobsDone{});
  fake.answer<proto::UpdateNodes>(proto::Ok{});
  fake.answer<proto::UpdatePartition>(proto::Ok{});
  fake.answer<proto::RequeueJobs>(proto::JobsDone{});
  fake.answer<proto::RegisterKey>(proto::Ok{});
  CHECK(fake.run({"gctl", "update", "job", "12", "time=1:00:00", "nice=5"}).status == 0);
  CHECK(fake.last<proto::UpdateJob>().time_limit == hours(1));
  CHECK(fake.last<proto::UpdateJob>().nice == 5);
  CHECK_FALSE(fake.last<proto::UpdateJob>().priority);
  CHECK(fake.run({"gctl", "update", "JobId=13", "TimeLimit=30", "Comment=a b"}).status == 0);
  CHECK(fake.last<proto::UpdateJob>().job.job == JobId{13});
  CHECK(fake.last<proto::UpdateJob>().comment == "a b");
  CHECK(fake.run({"gctl", "drain", "n[01-02]", "--reason", "dust"}).status == 0);
  CHECK(fake.last<proto::UpdateNodes>().nodes.size() == 2);
  CHECK(fake.last<proto::UpdateNodes>().reason == "dust");
  CHECK(fake.run({"gctl", "resume", "n01"}).status == 0);
  CHECK(fake.last<proto::UpdateNodes>().action == proto::NodeAction::resume);
  CHECK(fake.run({"gctl", "close", "--rack", "r1,block:b", "-r", "water"}).status == 0);
  CHECK(fake.last<proto::UpdateNodes>().action == proto::NodeAction::close);
  CHECK(fake.last<proto::UpdateNodes>().nodes.empty());
  CHECK(fake.last<proto::UpdateNodes>().domains == std::vector<std::string>{"r1", "block:b"});
  CHECK(fake.run({"gctl", "update", "partition", "batch", "state=DOWN"}).status == 0);
  CHECK_FALSE(fake.last<proto::UpdatePartition>().up);
  CHECK(fake.run({"gctl", "requeue", "--hold", "5_[1-2]"}).status == 0);
  CHECK(fake.last<proto::RequeueJobs>().hold);
  CHECK(fake.run({"gctl", "key", "add", "alice", std::string(64, 'a')}).status == 0);
  CHECK(fake.last<proto::RegisterKey>().user == "alice");
}

TEST_CASE("gctl logs reads a file to its end") {
  FakeController fake;
  fake.on<proto::ReadLog>([](const proto::ReadLog& read) {
    const std::string whole = "one\ntwo\nthree\n";
    proto::LogChunk chunk;
    chunk.offset = read.offset;
    chunk.data = whole.substr(read.offset, 5);
    chunk.job_ended = true;
    return chunk;
  });
  CHECK(fake.run({"gctl", "logs", "12"}).out == "one\ntwo\nthree\n");
  CHECK(fake.run({"gctl", "logs", "-f", "--stderr", "12"}).out == "one\ntwo\nthree\n");
  CHECK(fake.last<proto::ReadLog>().std_err);
}
