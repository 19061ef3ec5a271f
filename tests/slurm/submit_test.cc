// sbatch, scancel and scontrol: how they read options, directives and variables, and how they
// report refusals.
#include <doctest/doctest.h>
#include <csignal>

#include "tests/cli/fake_controller.h"
#include "tests/cli/samples.h"
#include "tests/slurm/queue_of_slurm.h"

using namespace gantry;
using namespace gantry::test;

namespace {

const std::string kBatch = "#!/bin/sh\ntrue\n";

JobSpec submitted(FakeController& fake, const std::string& script,
                  std::vector<std::string> options = {},
                  const std::map<std::string, std::string>& variables = {}) {
  options.insert(options.begin(), "slurm/sbatch");
  const Run run = fake.run(options, script, variables);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CHECK((run.err.empty() || run.err.starts_with("sbatch: warning: ")));
  return fake.last<proto::SubmitJob>().spec;
}

void refuse_with(FakeController& fake, ErrorCode code, const std::string& message) {
  fake.answer<proto::SubmitJob>(proto::ErrorReply{static_cast<std::uint16_t>(code), message});
}

}  // namespace

TEST_CASE("sbatch prints exactly one line, and none with -Q") {
  FakeController fake;
  accept_job(fake);
  const auto out = [&](std::vector<std::string> options) {
    options.insert(options.begin(), "slurm/sbatch");
    const Run run = fake.run(options, kBatch);
    CHECK(run.err.empty());
    CHECK(run.status == 0);
    return run.out;
  };
  CHECK(out({}) == "Submitted batch job 42\n");
  CHECK(out({"--parsable"}) == "42\n");
  CHECK(out({"-M", "fake"}) == "Submitted batch job 42 on cluster fake\n");
  CHECK(out({"-M", "fake", "--parsable"}) == "42;fake\n");
  CHECK(out({"-Q"}).empty());
  CHECK(out({"/dev/stdin"}) == "Submitted batch job 42\n");
}

TEST_CASE("srun inside a job asks for a step with what its options say, or gives up") {
  FakeController fake;
  fake.answer<proto::StepCreate>(
      proto::ErrorReply{static_cast<std::uint16_t>(ErrorCode::never_fits),
                        "the step asks for 2G of memory on node n1, where job 12 has 1G"});
  const auto asked = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"slurm/srun", "--jobid=12"});
    options.emplace_back("true");
    const Run run = fake.run(options, "");
    CHECK(run.status == 1);
    CHECK(run.err.ends_with(
        "srun: error: Unable to create step for job 12: Memory required by task is not "
        "available\n"));
    return fake.last<proto::StepCreate>().shape;
  };
  const proto::StepShape own =
      asked({"--mem=2G", "-t", "90", "-x", "n[1-2]", "--gres=gpu:a100:2", "--gpus-per-task=1"});
  CHECK(own.memory_per_node == std::int64_t{2} << 30);
  CHECK(own.time_limit == minutes(90));
  CHECK(own.excluded == std::vector<std::string>{"n1", "n2"});
  CHECK(own.gpus_per_node == 2u);
  CHECK(own.gpus_per_task == 1u);
  CHECK(own.gpu_model == "a100");
  CHECK_FALSE(own.gpus.has_value());
  const proto::StepShape other = asked({"--mem-per-cpu=1G", "--gpus=4", "--ntasks-per-node=1"});
  CHECK(other.memory_per_cpu == std::int64_t{1} << 30);
  CHECK(other.gpus == 4u);
  CHECK(other.all_cores);
  const proto::StepShape plain =
      asked({"-p", "x", "-A", "y", "--qos=z", "-C", "f", "--comment=c", "--signal=USR1",
             "--mem-bind=local", "--propagate=ALL", "--mem=0", "--reservation=r"});
  CHECK(plain.memory_per_node == 0);
  CHECK(plain.time_limit == Duration{});
  CHECK_FALSE(plain.gpus_per_node.has_value());
  fake.answer<proto::StepCreate>(proto::StepGranted{{}, {}, true});
  const Run busy = fake.run({"slurm/srun", "--jobid=12", "--immediate", "true"}, "");
  CHECK(busy.status == 1);
  CHECK(busy.err == "srun: error: Unable to create step for job 12: Requested nodes are busy\n");
}

TEST_CASE("with more nodes than tasks, sbatch warns and asks for one node for each task") {
  FakeController fake;
  accept_job(fake);
  const Run run = fake.run({"slurm/sbatch", "-N2", "-n1"}, kBatch);
  CHECK(run.status == 0);
  CHECK(run.err == "sbatch: Warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n");
  const JobShape shape = fake.last<proto::SubmitJob>().spec.shape;
  CHECK(std::tuple(shape.min_nodes, shape.max_nodes, shape.tasks) == std::tuple(1u, 1u, 1u));
  CHECK(fake.run({"slurm/sbatch", "-N2-6", "-n4"}, kBatch).err.empty());
  CHECK(fake.last<proto::SubmitJob>().spec.shape.max_nodes == 4);
}

TEST_CASE("the script and the command line can both give components of a heterogeneous job") {
  FakeController fake;
  proto::SubmitReply reply;
  reply.job = JobId{42};
  fake.answer<proto::SubmitTogether>(reply);
  const auto parts = [&](const std::string& script, std::vector<std::string> options) {
    options.insert(options.begin(), "slurm/sbatch");
    const Run run = fake.run(options, script, {{"SBATCH_OUTPUT", "log"}});
    CHECK(run.err.empty());
    CHECK(run.out == "Submitted batch job 42\n");
    return fake.last<proto::SubmitTogether>().parts;
  };
  const auto scripted = parts(
      "#!/bin/sh\n#SBATCH -n2 -c3 -J front\n#SBATCH hetjob\n#SBATCH -N2\n"
      "#SBATCH packjob\ntrue\n",
      {});
  REQUIRE(scripted.size() == 3);
  CHECK(scripted[0].spec.kind == JobKind::batch);
  CHECK(scripted[0].spec.std_out == "log");
  CHECK_FALSE(scripted[0].script.empty());
  CHECK(scripted[1].spec.kind == JobKind::allocation);
  CHECK(scripted[1].spec.shape.min_nodes == 2);
  CHECK(scripted[1].spec.shape.cpus_per_task == 1);  // A component inherits only the name.
  CHECK(scripted[1].spec.name == "front");
  CHECK(scripted[1].spec.std_out.empty());
  CHECK(scripted[1].script.empty());

  const auto typed = parts("", {"-c2", "--wrap=true", ":", "-N2", ":", "-n4"});
  REQUIRE(typed.size() == 3);
  CHECK(typed[0].script.find("true") != std::string::npos);
  CHECK(typed[0].spec.shape.cpus_per_task == 2);
  CHECK(typed[2].spec.shape.tasks == 4);
  const auto both = parts("#!/bin/sh\n#SBATCH -c2\n#SBATCH hetjob\n#SBATCH -c3\ntrue\n",
                          {"-n2", ":", "-n4", "-"});
  REQUIRE(both.size() == 2);
  CHECK(both[0].spec.shape.tasks == 2);
  CHECK(both[1].spec.shape.tasks == 4);
  CHECK(both[1].spec.shape.cpus_per_task == 3);

  const Run wrong = fake.run({"slurm/sbatch", "-n1", ":", "-t", "soon"}, kBatch);
  CHECK(wrong.status == 255);
  CHECK(wrong.err.ends_with("sbatch: error: in component 1 of the heterogeneous job\n"));
}

TEST_CASE("sbatch reads directives in every spelling") {
  FakeController fake;
  accept_job(fake);
  const JobSpec spec = submitted(fake,
                                 "#!/bin/bash -l\n"
                                 "# a comment\n\n"
                                 "#SBATCH --job-name=\"x y\"   # why\n"
                                 "#SBATCH --time      0-00:05:00\n"
                                 "#SBATCH -n4 -N 2 --mem=2g\n"
                                 "##SBATCH --partition=no\n"
                                 "#SBATCH --array 2-8:3\n"
                                 "#SBATCH --signal=USR2@90 --wckey=submitit --open-mode=append\n"
                                 "#SBATCH --get-user-env=L --hint=nomultithread\n"
                                 "#SBATCH --dependency afterok:1,afterany:2\n"
                                 "echo\n"
                                 "#SBATCH --partition=late\n");
  CHECK(spec.name == "x y");
  CHECK(spec.time_limit == minutes(5));
  CHECK(spec.shape.tasks == 4);
  CHECK(spec.shape.min_nodes == 2);
  CHECK(spec.shape.memory_per_node == std::int64_t{2} << 30);
  CHECK(spec.partition.empty());
  REQUIRE(spec.array);
  CHECK(spec.array->ranges[0].step == 3);
  CHECK(spec.warn_signal->before == seconds(90));
  CHECK(spec.open_mode == OpenMode::append);
  CHECK(spec.dependencies.size() == 2);
  CHECK(spec.std_out == "slurm-%A_%a.out");
  CHECK(spec.wckey == "submitit");
}

TEST_CASE("the command line goes before SBATCH_ variables, and these before the script") {
  FakeController fake;
  accept_job(fake);
  const JobSpec spec =
      submitted(fake, "#!/bin/sh\n#SBATCH -p script -A script -J script\ntrue\n", {"-A", "line"},
                {{"SBATCH_PARTITION", "variable"}, {"SBATCH_ACCOUNT", "variable"}});
  CHECK(spec.partition == "variable");
  CHECK(spec.account == "line");
  CHECK(spec.name == "script");
  CHECK(spec.std_out == "slurm-%j.out");
}

TEST_CASE("sbatch understands options and rules that only Slurm has") {
  FakeController fake;
  accept_job(fake);
  CHECK(submitted(fake, kBatch, {"-t", "0"}).unlimited_time);
  CHECK(submitted(fake, kBatch, {"--parti=debug"}).partition == "debug");
  CHECK(submitted(fake, kBatch, {"--qos=normal"}).priority_class.empty());
  CHECK(submitted(fake, kBatch, {"--qos=high"}).priority_class == "high");
  const JobShape odd =
      submitted(fake, kBatch, {"--gpus-per-node=4", "--cpus-per-gpu=2", "-N1", "-n3"}).shape;
  CHECK(odd.cpus_per_task == 2);
  CHECK(odd.min_cpus_per_node == 8);
  CHECK(submitted(fake, kBatch, {"--gpus-per-node=2", "--cpus-per-gpu=6"}).shape.cpus_per_task ==
        12);
  const JobSpec per_task =
      submitted(fake, kBatch, {"-n2", "-N1", "--tres-per-task=cpu=3,gres/gpu=2"});
  CHECK(per_task.shape.cpus_per_task == 3);
  CHECK(per_task.shape.gpus_per_node == 4);
  CHECK(submitted(fake, kBatch).name == "sbatch");
  const ScratchDir files;
  const std::string nodes = files.file("nodes", "n01\nn02\n");
  CHECK(submitted(fake, kBatch, {"-F", nodes}).shape.required_nodes.size() == 2);
  const std::string script = files.file("train.sh", kBatch);
  const JobSpec of_file = submitted(fake, "", {script, "a b", "-c"});
  CHECK(of_file.name == "train.sh");
  CHECK(of_file.script_args == std::vector<std::string>{"a b", "-c"});
  CHECK(of_file.script_path == script);
  CHECK(submitted(fake, "", {"--wrap", "true"}).name == "wrap");
  CHECK(fake.last<proto::SubmitJob>().script.starts_with("#!/bin/sh\n"));
}

TEST_CASE("--export, --export-file and --get-user-env choose the environment of the job") {
  FakeController fake;
  accept_job(fake);
  const auto sent = [&](std::vector<std::string> options) {
    (void)submitted(fake, kBatch, std::move(options), {{"FOO", "a b"}});
    return fake.last<proto::SubmitJob>().environment;
  };
  CHECK(sent({}).at("FOO") == "a b");
  CHECK(sent({"--export=NONE"}) ==
        std::map<std::string, std::string>{{"SLURM_EXPORT_ENV", "NONE"}});
  CHECK(sent({"--export=ALL,X='q'"}).at("X") == "'q'");
  const ScratchDir files;
  const std::string file = files.file("env", std::string("A=1\0B=x=y\0", 10));
  const auto of_file = sent({"--export-file", file});
  CHECK(of_file.size() == 2);
  CHECK(of_file.at("B") == "x=y");
  const auto login = sent({"--export=NONE", "--get-user-env"});
  CHECK(login.contains("PATH"));
  CHECK(login.contains("HOME"));
}

TEST_CASE("refusals of the controller are reported in Slurm's words") {
  FakeController fake;
  const auto said = [&](ErrorCode code, const std::string& message,
                        const std::vector<std::string>& options = {}) {
    refuse_with(fake, code, message);
    std::vector<std::string> argv{"slurm/sbatch"};
    argv.insert(argv.end(), options.begin(), options.end());
    const Run run = fake.run(argv, kBatch);
    CHECK(run.status == 1);
    CHECK(run.out.empty());
    return run.err;
  };
  CHECK(said(ErrorCode::not_found, "there is no partition \"nope\"") ==
        "sbatch: error: invalid partition specified: nope\n"
        "sbatch: error: Batch job submission failed: Invalid partition name specified\n");
  CHECK(said(ErrorCode::not_found, "tenant fraud has no project \"x\"; it has a, b") ==
        "sbatch: error: tenant fraud has no project \"x\"; it has a, b\n"
        "sbatch: error: Batch job submission failed: Invalid account or account/partition "
        "combination specified\n");
  CHECK(said(ErrorCode::not_found, "there is no tenant or project \"x\" that ann may charge")
            .ends_with("Invalid account or account/partition combination specified\n"));
  CHECK(said(ErrorCode::never_fits,
             "900G of memory on one node asked, but the largest node of partition batch has 64G") ==
        "sbatch: error: Memory specification can not be satisfied\n"
        "sbatch: error: 900G of memory on one node asked, but the largest node of partition batch "
        "has 64G\n"
        "sbatch: error: Batch job submission failed: Requested node configuration is not "
        "available\n");
  CHECK(
      said(ErrorCode::limit_exceeded, "tenant a would have 9 queued jobs; its limit is 8")
          .find(
              "Batch job submission failed: Job violates accounting/QOS policy (job submit limit, "
              "user's size and/or time limits)\n") != std::string::npos);
  CHECK(said(ErrorCode::not_found, "node \"n9\" is not in this cluster")
            .ends_with("submission failed: Invalid node name specified\n"));
  CHECK(said(ErrorCode::timed_out, "no answer")
            .ends_with("submission failed: Socket timed out on send/recv operation\n"));
  CHECK(said(ErrorCode::not_found, "there is no partition \"p\"", {"--test-only"}) ==
        "sbatch: error: invalid partition specified: p\n"
        "allocation failure: Invalid partition name specified\n");
}

TEST_CASE("scancel sends what its options and operands mean") {
  FakeController fake;
  proto::JobsDone done;
  done.not_active.push_back({JobId{77}, {}});
  fake.answer<proto::CancelJobs>(done);
  const auto cancel = [&](std::vector<std::string> options) {
    options.insert(options.begin(), "slurm/scancel");
    const Run run = fake.run(options);
    CHECK(run.status == 0);
    CHECK(run.out.empty());
    CHECK(run.err.empty());
    return fake.last<proto::CancelJobs>();
  };
  CHECK(cancel({"12", "13_[1-4,9]", "77"}).filter.jobs.size() == 3);
  // Beside a signal or a condition a job that is over is an error.
  const Run over = fake.run({"slurm/scancel", "-s", "USR1", "77"});
  CHECK(over.status == 1);
  CHECK(over.err == "scancel: error: Kill job error on job id 77: Invalid job id specified\n");
  CHECK(fake.run({"slurm/scancel", "-Q", "-s", "USR1", "77"}).err.empty());
  done.not_active.clear();
  fake.answer<proto::CancelJobs>(done);
  CHECK(cancel({"12", "--signal", "SIGUSR2"}).signal == 12);
  CHECK(cancel({"12", "-s", "15", "--full"}).scope == proto::SignalScope::full);
  CHECK(cancel({"-b", "-s", "USR1", "12"}).scope == proto::SignalScope::batch_shell);
  CHECK_FALSE(cancel({"-s", "KILL", "12"}).signal);
  CHECK(cancel({"-Q", "--me"}).all_mine);
  CHECK(cancel({"--name", "x", "-t", "PENDING"}).filter.states ==
        std::vector<std::string>{"PENDING"});
  done.refused.push_back({{JobId{12}, {}}, {3, "job 12 belongs to bob"}});
  fake.answer<proto::CancelJobs>(done);
  const Run refused = fake.run({"slurm/scancel", "12"});
  CHECK(refused.status == 1);
  CHECK(refused.err == "scancel: error: Kill job error on job id 12: Access/permission denied\n");
}

TEST_CASE("scancel -i asks before it kills a step") {
  FakeController fake;
  fill_queue(fake);
  fake.answer<proto::SignalStep>(proto::Ok{});
  const Run no = fake.run({"slurm/scancel", "-i", "12.3"}, "n\n");
  CHECK(no.out.starts_with("Cancel step_id=12.3 name=train partition="));
  CHECK(no.out.ends_with(" [y/n]? "));
  CHECK(no.status == 0);
  CHECK(fake.count(proto::MessageType::SignalStep) == 0);
  CHECK(fake.run({"slurm/scancel", "-i", "12.3"}, "").status == 0);
  CHECK(fake.run({"slurm/scancel", "-i", "99999"}, "y\n").err ==
        "scancel: error: Kill job error on job id 99999: Invalid job id specified\n");
  CHECK(fake.count(proto::MessageType::SignalStep) == 0);
  CHECK(fake.run({"slurm/scancel", "-i", "12.3"}, "y\n").status == 0);
  CHECK(fake.count(proto::MessageType::SignalStep) == 1);
  CHECK(fake.last<proto::SignalStep>().signal == SIGKILL);
}

TEST_CASE("scancel -v says what is done to which job, and that no job is left") {
  FakeController fake;
  fill_queue(fake);
  fake.answer<proto::CancelJobs>(proto::JobsDone{});
  const auto said = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"slurm/scancel", "-v"});
    return fake.run(options).err;
  };
  CHECK(said({"12"}) == "scancel: Terminating job 12\n");
  CHECK(said({"-s", "USR1", "12"}) == "scancel: Signal 10 to job 12\n");
  CHECK(said({"-b", "-s", "STOP", "12"}) == "scancel: Signal 19 to batch job 12\n");
  CHECK(said({"-Q", "12"}).empty());
  CHECK(said({"-n", "nosuch", "-q", "nosuch"}) ==
        "scancel: error: No active jobs match ALL job filters, including: job_name=nosuch "
        "qos=nosuch\n");
}

TEST_CASE("sbatch -v lists the options that are in force, and where each comes from") {
  FakeController fake;
  proto::SubmitReply reply;
  reply.job = JobId{7};
  fake.answer<proto::SubmitJob>(reply);
  const std::string script = "#!/bin/sh\n#SBATCH -N 2\ntrue\n";
  const Run run = fake.run({"slurm/sbatch", "-J", "x"}, script,
                           {{"SBATCH_DEBUG", "4"}, {"SBATCH_TIMELIMIT", "3"}});
  CHECK(run.out == "Submitted batch job 7\n");
  for (const char* line :
       {"sbatch: defined options\n", "sbatch: -------------------- --------------------\n",
        "sbatch: nodes               : 2\n", "sbatch: job-name            : x\n",
        "sbatch: time                : 00:03:00\n", "sbatch: verbose             : 4\n",
        "sbatch: end of defined options\n", "sbatch: debug:  --time comes from SBATCH_TIMELIMIT\n",
        "sbatch: debug:  --nodes comes from the script\n"}) {
    CAPTURE(line);
    CHECK(run.err.find(line) != std::string::npos);
  }
  CHECK(run.err.find('{') == std::string::npos);
  CHECK(fake.run({"slurm/sbatch", "-v"}, script).err.find("debug:") == std::string::npos);
}

TEST_CASE("scontrol update, requeue, requeuehold and hold send their changes") {
  FakeController fake;
  fake.answer<proto::UpdateJob>(proto::JobsDone{});
  fake.answer<proto::UpdateNodes>(proto::Ok{});
  fake.answer<proto::UpdatePartition>(proto::Ok{});
  fake.answer<proto::RequeueJobs>(proto::JobsDone{});
  fake.answer<proto::HoldJobs>(proto::JobsDone{});
  const auto status = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "slurm/scontrol");
    return fake.run(words).status;
  };
  CHECK(status({"update", "TimeLimit=30", "JobId=13", "Comment=a b"}) == 0);
  CHECK(fake.last<proto::UpdateJob>().job.job == JobId{13});
  CHECK(fake.last<proto::UpdateJob>().time_limit == minutes(30));
  CHECK(fake.last<proto::UpdateJob>().comment == "a b");
  CHECK(status({"update", "NodeName=n[01-02]", "State=DRAIN", "Reason=dust"}) == 0);
  CHECK(fake.last<proto::UpdateNodes>().nodes.size() == 2);
  CHECK(status({"update", "nodename=n01", "state=resume"}) == 0);
  CHECK(fake.last<proto::UpdateNodes>().action == proto::NodeAction::resume);
  CHECK(status({"upd", "PartitionName=batch", "State=DOWN"}) == 0);
  CHECK_FALSE(fake.last<proto::UpdatePartition>().up);
  CHECK(status({"requeue", "5"}) == 0);
  CHECK_FALSE(fake.last<proto::RequeueJobs>().hold);
  CHECK(status({"requeuehold", "5,6"}) == 0);
  CHECK(fake.last<proto::RequeueJobs>().jobs.size() == 2);
  CHECK(status({"hold", "5", "6_[1-2]"}) == 0);
  proto::JobsDone unknown;
  unknown.not_active.push_back({JobId{77}, {}});
  fake.answer<proto::HoldJobs>(unknown);
  const Run run = fake.run({"slurm/scontrol", "hold", "77"});
  CHECK(run.status == 1);
  CHECK(run.err ==
        "Invalid job id specified for job 77\nslurm_suspend error: Invalid job id specified\n");
  const std::string script = fake.run({"slurm/scontrol"}, "version\nquit\n").out;
  CHECK(script == "scontrol: slurm 25.05.0\nscontrol: \n");
}
