// Each option that a command under a Slurm name honours has a line here. It shows what the option
// changes in the request to the controller or in the output; if only real daemons can show it, it
// names an end-to-end test. docs/slurm-options.md points to this
// file.
#include "cli/step/step_option_table.h"
#include "cli/submit/batch_option_table.h"
#include "cli/submit/job_option_table.h"
#include "cli/submit/place_option_table.h"
#include "cli/submit/refused_option_table.h"
#include "tests/slurm/options_bench.h"

using namespace gantry;
using namespace gantry::test;

namespace {

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
      {"labels", {"--labels=a=1,b=2"}, "\"labels\":{\"a\":\"1\",\"b\":\"2\"}"},
      {"type", {"--type=training"}, "\"work_type\":\"training\""},
      {"sandbox", {"--sandbox=hardened"}, "\"sandbox\":\"hardened\""},
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
      {"ntasks-per-socket", {"--ntasks-per-socket=2", "-n2"}, "\"tasks\":2"},
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
