// Each option that a command under a Slurm name honours has a line here. It shows what the option
// changes in the request to the controller or in the output; if only real daemons can show it, it
// names an end-to-end test. docs/slurm-options.md points to this file.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "cli/command.h"
#include "cli/slurm/frame.h"
#include "cli/step/step_option_table.h"
#include "cli/submit/batch_option_table.h"
#include "cli/submit/job_option_table.h"
#include "cli/submit/place_option_table.h"
#include "cli/submit/refused_option_table.h"
#include "tests/cli/fake_controller.h"
#include "tests/slurm/queue_of_slurm.h"

using namespace gantry;
using namespace gantry::test;

namespace {

struct Shown {
  std::string_view option;
  std::vector<std::string> argv;  // after the name of the command
  // A text that the outcome has with the option and lacks without it. If the text begins with '!',
  // it is the other way round. "=" means that the option changes nothing, because the command does
  // what the option asks for anyway. "@FILE CASE" names the end-to-end test that shows the effect.
  std::string shows;
  std::map<std::string, std::string> more = {};  // environment variables
};

struct Bench {
  FakeController fake;
  std::string command;
  std::vector<std::string> usual;  // operands without which the command does nothing
  std::string input;

  template <class Request>
  std::string asked() {
    if (fake.count(static_cast<proto::MessageType>(proto::number_of<Request>)) == 0) return "";
    return codec::to_json(fake.last<Request>(), codec::JsonStyle::compact);
  }
  std::string outcome(const std::vector<std::string>& argv,
                      const std::map<std::string, std::string>& more) {
    std::vector<std::string> all{"slurm/" + command};
    all.insert(all.end(), argv.begin(), argv.end());
    all.insert(all.end(), usual.begin(), usual.end());
    const Run run = fake.run(all, input, more);
    std::string text = run.out + run.err;
    // The request ids and the submit lines of two runs always differ, so they are left out.
    if (command == "sbatch" || command == "srun") {
      proto::SubmitJob submit;
      if (fake.count(proto::MessageType::SubmitJob) > 0) submit = fake.last<proto::SubmitJob>();
      submit.request_id.clear();
      submit.spec.submit_line.clear();
      text += codec::to_json(submit, codec::JsonStyle::compact);
    }
    text += asked<proto::StepCreate>() + asked<proto::CancelJobs>() + asked<proto::ListJobs>() +
            asked<proto::QueryHistory>() + asked<proto::ListNodes>();
    return text;
  }
};

// Checks that the end-to-end test exists, that it has the case, and that the case uses the option.
void check_elsewhere(const Shown& one, const cli::Option& option) {
  const std::size_t blank = one.shows.find(' ');
  std::ifstream in(std::string(GANTRY_SOURCE_DIR) + "/tests/e2e/" + one.shows.substr(1, blank - 1));
  std::ostringstream text;
  text << in.rdbuf();
  const std::string all = text.str();
  const std::size_t from = all.find("def " + one.shows.substr(blank + 1) + "(");
  REQUIRE(from != std::string::npos);
  const std::size_t end = all.find("\ndef ", from);
  const std::string body = all.substr(from, end == std::string::npos ? end : end - from);
  const bool spelled =
      body.find("--" + std::string(option.name)) != std::string::npos ||
      (option.letter != 0 && body.find(std::string("-") + option.letter) != std::string::npos);
  CHECK(spelled);
}

void check_options(Bench& bench, const std::vector<Shown>& all) {
  const cli::Command* command = cli::find_command(cli::slurm::slurm_commands(), bench.command);
  REQUIRE(command != nullptr);
  for (const cli::Option& option : command->options) {
    CAPTURE(bench.command);
    const std::string name(option.name);
    CAPTURE(name);
    const auto rows = std::count_if(all.begin(), all.end(),
                                    [&](const Shown& one) { return one.option == option.name; });
    CHECK((rows > 0) == option.refused.empty());
  }
  for (const Shown& one : all) {
    const std::string name(one.option);
    CAPTURE(name);
    const auto option = std::find_if(command->options.begin(), command->options.end(),
                                     [&](const cli::Option& o) { return o.name == one.option; });
    REQUIRE(option != command->options.end());
    if (one.shows.starts_with('@')) {
      check_elsewhere(one, *option);
      continue;
    }
    const std::string with = bench.outcome(one.argv, one.more);
    const std::string without = bench.outcome({}, one.more);
    CAPTURE(with);
    if (one.shows == "=") {
      CHECK(with == without);
    } else if (one.shows.starts_with('!')) {
      CHECK(without.find(one.shows.substr(1)) != std::string::npos);
      CHECK(with.find(one.shows.substr(1)) == std::string::npos);
    } else {
      CHECK(without.find(one.shows) == std::string::npos);
      CHECK(with.find(one.shows) != std::string::npos);
    }
  }
}

// The options of sbatch, which srun has too when it runs outside of a job.
std::vector<Shown> job_options(const std::string& nodes) {
  return {
      {"account", {"-A", "vision"}, "\"account\":\"vision\""},
      {"begin", {"-b", "2030-01-31T08:00"}, "\"begin\":18"},
      {"chdir", {"-D", "/tmp"}, "\"work_dir\":\"/tmp\""},
      {"clusters", {"-M", "nope"}, "can't be reached now"},
      {"comment", {"--comment", "two words"}, "\"comment\":\"two words\""},
      {"cpus-per-task", {"-c", "3"}, "\"cpus_per_task\":3"},
      {"deadline", {"--deadline=2030-01-31T08:00"}, "\"deadline\":18"},
      {"dependency", {"-d", "afterok:7"}, "\"kind\":\"afterok\""},
      {"export", {"--export=X=yes"}, "\"X\":\"yes\""},
      {"hold", {"-H"}, "\"hold\":true"},
      {"job-name", {"-J", "named"}, "\"name\":\"named\""},
      {"kill-on-invalid-dep",
       {"--kill-on-invalid-dep=yes"},
       "\"cancel_on_invalid_dependency\":true"},
      {"mail-type", {"--mail-type=begin,END"}, "\"events\":{\"begin\":true,\"end\":true"},
      {"mail-user", {"--mail-user=a@b.org"}, "\"to\":[\"a@b.org\"]"},
      {"network", {"--network=host"}, "\"network\":\"host\""},
      {"nice", {"--nice=7"}, "\"nice\":7"},
      {"no-kill", {"--no-kill"}, "\"no_kill\":true"},
      {"acctg-freq", {"--acctg-freq=task=15,energy=60"}, "="},
      {"extra-node-info", {"-B", "1:*"}, "="},
      {"gpu-freq", {"--gpu-freq=low,memory=high"}, "\"freq\":\"gpu:low,memory=high\""},
      {"gpus-per-socket", {"--gpus-per-socket=2", "--sockets-per-node=1"}, "\"gpus_per_node\":2"},
      {"sockets-per-node", {"--sockets-per-node=1"}, "="},
      {"mem-bind", {}, "@slurm_step_words_test.py case_places_of_tasks"},
      {"ntasks", {"-n", "5"}, "\"tasks\":5"},
      {"ntasks-per-node", {"--ntasks-per-node=6"}, "\"tasks_per_node\":6"},
      {"partition", {"-p", "debug"}, "\"partition\":\"debug\""},
      {"priority", {"--priority=9"}, "\"priority\":9"},
      {"profile", {"--profile=none"}, "="},
      {"propagate", {"--propagate=STACK"}, "\"soft\":[{\"name\":\"STACK\""},
      {"qos", {"-q", "urgent"}, "\"priority_class\":\"urgent\""},
      {"signal", {"--signal=B:USR2@30"}, "\"batch_shell_only\":true"},
      {"time", {"-t", "5"}, "\"time_limit\":300000000"},
      {"time-min", {"-t5", "--time-min=2"}, "\"time_min\":120000000"},
      {"wckey", {"--wckey=k"}, "\"wckey\":\"k\""},
      {"constraint", {"-C", "ib&ssd"}, "\"constraint\":\"ib&ssd\""},
      {"container-image", {"--container-image=docker://h/i:1"}, "\"image\":\"docker://h/i:1\""},
      {"container-mounts", {"--container-mounts=/a:/b"}, "\"mounts\":[\"/a:/b"},
      {"container-workdir", {"--container-workdir=/w"}, "\"work_dir\":\"/w\""},
      {"container-writable", {"--container-writable"}, "\"writable\":true"},
      {"contiguous", {"--contiguous"}, "\"node_layout\":\"contiguous\""},
      {"cpus-per-gpu", {"--gpus-per-node=1", "--cpus-per-gpu=4"}, "\"cpus_per_task\":4"},
      {"distribution", {"-m", "*:fcyclic"}, R"("nodes":"block","cores":"fcyclic",)"},
      {"exclude", {"-x", "n9"}, "\"excluded_nodes\":[\"n9\"]"},
      {"exclusive", {"--exclusive"}, "\"exclusive\":true"},
      {"gpu-names", {"--gpu-names=uuid"}, "!\"gpu_names\":\"index\""},
      {"gpus", {"-G", "2"}, "\"gpus_per_node\":2"},
      {"gpus-per-node", {"--gpus-per-node=a100:3"}, "\"gpu_models\":[\"a100\"]"},
      {"gpus-per-task", {"-n2", "-N1", "--gpus-per-task=2"}, "\"gpus_per_node\":4"},
      {"gres", {"--gres=gpu:5"}, "\"gpus_per_node\":5"},
      {"hint", {"--hint=nomultithread"}, "="},
      {"licenses",
       {"-L", "b:2,a"},
       R"("licenses":[{"name":"a","count":1},{"name":"b","count":2}])"},
      {"mem", {"--mem=2G"}, "\"memory_per_node\":2147483648"},
      {"mem-per-cpu", {"--mem-per-cpu=1G"}, "\"memory_per_cpu\":1073741824"},
      {"mem-per-gpu", {"-G2", "--mem-per-gpu=1G"}, "\"memory_per_node\":2147483648"},
      {"mincpus", {"--mincpus=6"}, "\"min_cpus_per_node\":6"},
      {"nodefile", {"-F", nodes}, "\"required_nodes\":[\"n7\"]"},
      {"nodelist", {"-w", "n3,"}, "\"required_nodes\":[\"n3\"]"},
      {"nodes", {"-N", "2-4"}, "\"max_nodes\":4"},
      {"ntasks-per-core", {"--ntasks-per-core=2"}, "\"tasks_per_core\":2"},
      {"ntasks-per-gpu", {"--ntasks-per-gpu=2", "-n", "8", "-N", "2"}, "\"gpus_per_node\":2"},
      {"overcommit", {"-O"}, "\"overcommit\":true"},
      {"oversubscribe", {"-s"}, "\"oversubscribe\":true"},
      {"reservation", {"--reservation=course"}, "\"reservation\":\"course\""},
      {"spread-job", {"--spread-job"}, "\"node_layout\":\"spread\""},
      {"switches", {"--switches=1"}, "\"topology_level\":\"switch\""},
      {"threads-per-core", {"--threads-per-core=1"}, "\"threads_per_core\":1"},
      {"tmp", {"--tmp=1G"}, "\"scratch_per_node\":1073741824"},
      {"tres-per-task", {"--tres-per-task=cpu=3"}, "\"cpus_per_task\":3"},
      {"use-min-nodes", {"--use-min-nodes"}, "="},
  };
}

template <class List>
std::vector<Shown> joined(List first, const List& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Checks that the command has each option of the table exactly once, in the form of its family.
void check_said_once(const cli::Command* command, cli::Family family,
                     std::span<const cli::SubmitOption> table) {
  REQUIRE(command != nullptr);
  for (const cli::SubmitOption& row : table) {
    if (!cli::is_in(row, family)) continue;
    CAPTURE(command->name);
    CAPTURE(row.option.name);
    const cli::Option wanted = cli::option_in(row, family);
    const auto is_same = [&](const cli::Option& o) {
      return o.name == wanted.name && o.letter == wanted.letter && o.arg == wanted.arg &&
             o.value == wanted.value && o.help == wanted.help && o.set == wanted.set &&
             o.env == wanted.env && o.refused == wanted.refused;
    };
    CHECK(std::count_if(command->options.begin(), command->options.end(), is_same) == 1);
  }
}

}  // namespace

TEST_CASE("gbatch and sbatch, grun and srun take their shared options from one table") {
  const auto ours = [](std::string_view name) {
    return cli::find_command(cli::all_commands(), name);
  };
  const auto slurms = [](std::string_view name) {
    return cli::find_command(cli::slurm::slurm_commands(), name);
  };
  using cli::Family;
  for (const std::span<const cli::SubmitOption> table :
       {std::span<const cli::SubmitOption>(cli::kJobOptionTable),
        std::span<const cli::SubmitOption>(cli::kPlaceOptionTable),
        std::span<const cli::SubmitOption>(cli::kBatchOptionTable),
        std::span<const cli::SubmitOption>(cli::kRefusedOptionTable)}) {
    check_said_once(ours("gbatch"), Family::gantry, table);
    check_said_once(slurms("sbatch"), Family::slurm, table);
  }
  check_said_once(ours("grun"), Family::gantry, cli::kStepOptionTable);
  check_said_once(slurms("srun"), Family::slurm, cli::kStepOptionTable);
}

TEST_CASE("options of sbatch") {
  Bench bench;
  bench.command = "sbatch";
  bench.input = "#!/bin/sh\ntrue\n";
  proto::SubmitReply reply;
  reply.job = JobId{42};
  reply.partition = "batch";
  bench.fake.answer<proto::SubmitJob>(reply);
  const ScratchDir files;
  const std::string file = files.file("env", std::string("FROM=file\0", 10));
  check_options(bench,
                joined<std::vector<Shown>>(
                    job_options(files.file("nodes", "n7\n")),
                    {
                        {"array", {"-a", "2-8:3"}, "\"step\":3"},
                        {"error", {"-e", "err.txt"}, "\"std_err\":\"err.txt\""},
                        {"export-file", {"--export-file", file}, "\"FROM\":\"file\""},
                        {"get-user-env",
                         {"--export=NONE", "--get-user-env"},
                         "\"PWD\":",
                         {{"SHELL", "/bin/sh"}}},
                        {"gpu-bind", {"--gpu-bind=single:2"}, "\"SLURM_GPU_BIND\":\"single:2\""},
                        {"help", {"-h"}, "\nExamples:\n"},
                        {"ignore-pbs", {"--ignore-pbs"}, "="},
                        {"input", {"-i", "in.txt"}, "\"std_in\":\"in.txt\""},
                        {"no-requeue", {"--no-requeue"}, "\"requeue\":false"},
                        {"open-mode", {"--open-mode=append"}, "\"open_mode\":\"append\""},
                        {"output", {"-o", "out.txt"}, "\"std_out\":\"out.txt\""},
                        {"parsable", {"--parsable"}, "!Submitted batch job"},
                        {"quiet", {"-Q"}, "!Submitted batch job"},
                        {"requeue", {"--requeue"}, "="},
                        {"test-only", {"--test-only"}, "\"test_only\":true"},
                        {"verbose", {"-v"}, "sbatch: verbose             : 1\n"},
                        {"wait", {}, "@slurm_test.py case_wait_and_exit_codes"},
                        {"wait-all-nodes", {"--wait-all-nodes=1"}, "="},
                        {"wrap", {"--wrap=echo wrapped"}, "echo wrapped"},
                    }));
}

TEST_CASE("options of srun") {
  Bench bench;
  bench.command = "srun";
  const ScratchDir files;
  bench.usual = {"true"};
  bench.fake.answer<proto::SubmitJob>(proto::ErrorReply{
      static_cast<std::uint16_t>(ErrorCode::limit_exceeded), "enough for a test"});
  const std::string launchers = "@slurm_steps_test.py case_srun_of_launchers";
  const std::string beside = "@slurm_clients_test.py case_srun_beside";
  const std::string words = "@slurm_tasks_test.py case_words_of_srun";
  check_options(bench,
                joined<std::vector<Shown>>(
                    job_options(files.file("nodes", "n7\n")),
                    {
                        {"cpu-bind", {}, "@slurm_step_words_test.py case_places_of_tasks"},
                        {"bcast", {}, "@slurm_step_words_test.py case_copied_program"},
                        {"debugger-test", {}, words},
                        {"disable-status", {}, "@slurm_step_words_test.py case_interrupts"},
                        {"epilog", {}, beside},
                        {"error", {}, launchers},
                        {"exact", {}, "@slurm_steps_test.py case_exclusive_steps"},
                        {"gpu-bind", {}, "@gpu_test.py case_tasks_of_a_step_see_gpus_of_their_own"},
                        {"help", {"-h"}, "\nExamples:\n"},
                        {"het-group", {}, "@het_steps_test.py case_groups"},
                        {"immediate", {}, beside},
                        {"input", {}, launchers},
                        {"jobid", {}, "@slurm_steps_test.py case_salloc_without_shell"},
                        {"kill-on-bad-exit", {}, launchers},
                        {"label", {}, "@slurm_steps_test.py case_srun_outside"},
                        {"meeting-point", {}, words},
                        {"mpi", {"--mpi=list"}, "\tnone\n\tpmi2\n\tpmix\n"},
                        {"multi-prog", {}, "@slurm_steps_test.py case_multi_prog"},
                        {"open-mode", {}, "@slurm_step_words_test.py case_files_of_a_step"},
                        {"output", {}, launchers},
                        {"overlap", {}, launchers},
                        {"preserve-env", {}, words},
                        {"prolog", {}, beside},
                        {"pty", {}, "@terminal_test.py case_without_terminal"},
                        {"quiet", {}, "@slurm_clients_test.py case_srun_words"},
                        {"quit-on-interrupt", {}, beside},
                        {"relative", {}, "@slurm_clients_test.py case_srun_words"},
                        {"slurmd-debug", {"--slurmd-debug=debug"}, "="},
                        {"task-epilog", {}, "@slurm_tasks_test.py case_around_tasks"},
                        {"task-prolog", {}, "@slurm_tasks_test.py case_around_tasks"},
                        {"test-only", {"--test-only"}, "\"test_only\":true"},
                        {"threads", {}, words},
                        {"unbuffered", {}, launchers},
                        {"verbose", {}, "@slurm_steps_test.py case_environment_outside"},
                        {"wait", {}, launchers},
                    }));
}

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
