// Rules that connect options of sbatch and srun, what follows from them, and --multi-prog.
#include <doctest/doctest.h>

#include "cli/slurm/step/task_script.h"
#include "tests/cli/fake_controller.h"
#include "tests/cli/samples.h"

using namespace gantry;
using namespace gantry::test;

namespace {

const std::string kNothing = "#!/bin/sh\ntrue\n";

// The first line of sbatch's message about these options, or the job's shape.
std::string refusal(std::vector<std::string> options) {
  const ScratchDir files;
  options.insert(options.begin(), "slurm/sbatch");
  const Run run = run_program({options, {{"GANTRY_CONF", files.path()}}, kNothing, files.path()});
  CHECK(run.status != 0);
  const std::string sbatch = "sbatch: error: ";
  REQUIRE(run.err.starts_with(sbatch));
  return run.err.substr(sbatch.size(), run.err.find('\n') - sbatch.size());
}

JobShape shape(FakeController& fake, std::vector<std::string> options) {
  options.insert(options.begin(), "slurm/sbatch");
  const Run run = fake.run(options, kNothing);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  return fake.last<proto::SubmitJob>().spec.shape;
}

}  // namespace

TEST_CASE("a limit that goes beyond the deadline ends there") {
  FakeController fake;
  const auto limit = [&](std::vector<std::string> options) {
    options.insert(options.begin(), "slurm/sbatch");
    fake.run(options, kNothing);
    return fake.last<proto::SubmitJob>().spec.time_limit;
  };
  const auto cut = limit({"--deadline=now+1hour", "-t120"});
  REQUIRE(cut.has_value());
  CHECK(*cut == minutes(59));
  CHECK(limit({"--deadline=now+3hours", "-t120"}) == minutes(120));
  // With --begin less time is left.
  const auto later = limit({"--deadline=now+1hour", "--begin=now+30minutes", "-t120"});
  REQUIRE(later.has_value());
  CHECK(*later == minutes(29));
  // --time-min is the limit below which the time limit is not lowered.
  CHECK(limit({"--deadline=now+1hour", "-t120", "--time-min=10"}) == minutes(120));
}

TEST_CASE("numbers of GPUs that contradict each other are told in Slurm's sentences") {
  const std::string failed = "Failed to validate job spec";
  CHECK(refusal({"--gres=gpu:2", "--gpus=1"}) ==
        "Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket");
  CHECK(refusal({"--gpus-per-socket=1"}) ==
        "--gpus-per-socket option requires --sockets-per-node specification");
  CHECK(refusal({"--gpus-per-task=1", "--cpus-per-gpu=1", "-c2"}) ==
        "--cpus-per-gpu is mutually exclusive with --cpus-per-task");
  CHECK(refusal({"--gres=gpu:2", "--gpus=3"}) ==
        failed + ", --gpus is not multiple of --gres=gpu/--gpus-per-node");
  CHECK(refusal({"--gres=gpu:2", "--gpus=4", "-N1"}) ==
        failed +
            ". Based on --gpu and --gres=gpu/--gpus-per-node required nodes (2) doesn't fall "
            "between min_nodes (1) and max_nodes (1) boundaries.");
  CHECK(refusal({"--gpus=3", "--gpus-per-task=2"}) ==
        failed + ", --gpus not multiple of --gpus-per-task");
  CHECK(refusal({"--gpus=4", "--gpus-per-task=2", "-n1"}) ==
        failed +
            ". Based on --gpus and --gpus-per-task number of requested tasks differ from "
            "-n/--ntasks.");
  CHECK(refusal({"--gpus-per-task=1", "--gpus-per-node=2", "--ntasks-per-node=1"}) ==
        failed +
            ". Based on --gres=gpu/--gpus-per-node and --gpus-per-task requested number of tasks "
            "per node differ from --ntasks-per-node.");
  CHECK(refusal({"--gres=gpu:2", "--gpus-per-socket=1", "--sockets-per-node=1"}) ==
        failed +
            ". Based on --gres=gpu/--gpus-per-node and --gpus-per-socket required number of "
            "sockets differ from --sockets-per-node.");
  CHECK(refusal({"--gpus=1", "-N2"}) == failed + ", --gpus < -N");
  CHECK(refusal({"--gpus-per-task=1", "--gpus-per-node=1", "-n2", "-N1"}) ==
        "Batch job submission failed: Requested node configuration is not available");
  CHECK(refusal({"--sockets-per-node=2"}) == "Invalid --sockets-per-node specification");
}

TEST_CASE("of two numbers of GPUs the third one follows") {
  FakeController fake;
  accept_job(fake);
  const JobShape nodes = shape(fake, {"--gpus=8", "--gpus-per-node=4"});
  CHECK(std::tuple(nodes.min_nodes, nodes.max_nodes, nodes.gpus_per_node) ==
        std::tuple(2u, 2u, 4u));
  const JobShape tasks = shape(fake, {"--gpus=4", "--gpus-per-task=2", "-N1"});
  CHECK(std::tuple(tasks.tasks, tasks.gpus_per_node) == std::tuple(2u, 4u));
}

TEST_CASE("GPUs that do not come out even go by the task, and memory by the GPU") {
  FakeController fake;
  accept_job(fake);
  const JobShape task =
      shape(fake, {"-n3", "-N2", "--gpus-per-task=1", "--cpus-per-gpu=1", "--overcommit"});
  CHECK(std::tuple(task.gpus_per_task, task.gpus_in_all, task.gpus_per_node, task.cpus_per_task) ==
        std::tuple(1u, 3u, 2u, 1u));
  CHECK(task.overcommit);
  const JobShape range = shape(fake, {"-n5", "-N1-5", "--gpus-per-task=2", "--mem-per-gpu=1G"});
  CHECK(std::tuple(range.gpus_per_task, range.gpus_in_all, range.gpus_per_node) ==
        std::tuple(2u, 10u, 2u));
  CHECK(range.memory_per_gpu == std::int64_t{1} << 30);
  CHECK(range.memory_per_node == std::int64_t{2} << 30);
  const JobShape nodes = shape(fake, {"--gpus=3", "-N2", "--mem-per-gpu=13"});
  CHECK(std::tuple(nodes.gpus_in_all, nodes.gpus_per_node) == std::tuple(3u, 2u));
  CHECK(nodes.memory_per_gpu == std::int64_t{13} << 20);
  CHECK(shape(fake, {"--gpus=2", "--mem-per-gpu=5G"}).gpus_in_all == 2);
}

TEST_CASE("a component has the times and the account of the one before it, not its size") {
  FakeController fake;
  fake.answer<proto::SubmitTogether>(proto::ErrorReply{
      static_cast<std::uint16_t>(ErrorCode::limit_exceeded), "enough for a test"});
  fake.run({"slurm/sbatch", "-t5", "-A", "vision", "--mem=2G", "-N2", ":", "-n1", ":", "-t7",
            "--mem-per-cpu=1G"},
           kNothing);
  const auto& parts = fake.last<proto::SubmitTogether>().parts;
  REQUIRE(parts.size() == 3);
  CHECK(parts[1].spec.time_limit == minutes(5));
  CHECK(parts[1].spec.account == "vision");
  CHECK(parts[1].spec.shape.memory_per_node == std::int64_t{2} << 30);
  CHECK(parts[1].spec.shape.min_nodes == 1);
  CHECK(parts[2].spec.time_limit == minutes(7));
  CHECK_FALSE(parts[2].spec.shape.memory_per_node.has_value());
}

TEST_CASE("options that ask for what all nodes have are taken, and refused beyond that") {
  CHECK(refusal({"-B", "2:4"}) == "Invalid --extra-node-info specification");
  CHECK(refusal({"--acctg-freq=60"}) == "Invalid --acctg-freq specification");
  CHECK(refusal({"--acctg-freq=disk=5"}) == "Invalid --acctg-freq specification");
}

TEST_CASE("output none is no file, and more nodes than a job may have are told in Slurm's words") {
  FakeController fake;
  accept_job(fake);
  fake.run({"slurm/sbatch", "--output=none", "-e", "none"}, kNothing);
  CHECK(fake.last<proto::SubmitJob>().spec.std_out == "/dev/null");
  CHECK(fake.last<proto::SubmitJob>().spec.std_err == "/dev/null");
  fake.answer<proto::SubmitJob>(
      proto::ErrorReply{static_cast<std::uint16_t>(ErrorCode::invalid_argument),
                        "the number of nodes must be 1 to 65536, not 1024000000"});
  const Run run = fake.run({"slurm/sbatch", "-N1000000k"}, kNothing);
  CHECK(fake.last<proto::SubmitJob>().spec.shape.min_nodes == 1'024'000'000u);
  CHECK(
      run.err.ends_with("Batch job submission failed: More processors requested than permitted\n"));
}

TEST_CASE("-v says that --hint gives way to another option") {
  FakeController fake;
  accept_job(fake);
  const std::string line = "Following options are mutually exclusive with --hint: ";
  const auto said = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"slurm/sbatch", "--hint=nomultithread"});
    return fake.run(options, kNothing).err.find(line) != std::string::npos;
  };
  CHECK(said({"-v", "--threads-per-core=1"}));
  CHECK(said({"-v", "-B1"}));
  CHECK_FALSE(said({"-v"}));
  CHECK_FALSE(said({"--threads-per-core=1"}));
}

TEST_CASE("a file of --multi-prog has a program for each task, over lines that it joins") {
  const auto script = cli::slurm::multi_prog_script("0,2 echo a\\\n b %o\n1 true\n", 3, "f");
  REQUIRE(script);
  CHECK(script->find("2) set -- 'echo' 'a' 'b' '1';;\n") != std::string::npos);
  CHECK(cli::slurm::multi_prog_script("0,2 true\n", 3, "f").error().message ==
        "Configuration file f invalid, no record for task id 1");
  CHECK(cli::slurm::multi_prog_script("0 true\n* false\n", 3, "f"));
}
