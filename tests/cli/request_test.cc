// Tests how the options of a command line become the job that is requested.
#include <doctest/doctest.h>

#include "cli/cluster/local_cluster.h"
#include "cli/columns/job_words.h"
#include "cli/submit/job_options.h"
#include "cli/submit/job_refs.h"
#include "common/job/verdict_text.h"
#include "common/text/text.h"

using namespace gantry;
using namespace gantry::cli;

namespace {

constexpr auto kOptions = join(kJobOptions, kRefusedJobOptions);

Result<JobRequest> request(std::vector<std::string> args) {
  ASSIGN(parsed, parse_options(kOptions, args, false));
  JobRequest r;
  r.now = {1'769'850'000'000'000};
  TRY(apply_options(parsed->given, &r));
  TRY(finish_request(r, parsed->given));
  return r;
}

JobSpec spec(std::vector<std::string> args) {
  const auto r = request(std::move(args));
  REQUIRE_MESSAGE(r, r.error().message);
  return r->spec;
}

}  // namespace

TEST_CASE("node and task counts follow from the options that are given") {
  struct Case {
    std::vector<std::string> args;
    std::uint32_t min_nodes, max_nodes, tasks;
  };
  const Case cases[] = {
      {{}, 1, 1, 1},
      {{"-n8"}, 1, 8, 8},
      {{"-n8", "-N1"}, 1, 1, 8},
      {{"-n8", "--gpus=2"}, 1, 1, 8},
      {{"-n2", "--gpus-per-task=1"}, 1, 1, 2},
      {{"-N4"}, 4, 4, 4},
      {{"-N", "2-6"}, 2, 6, 2},
      {{"-N2", "-n8"}, 2, 2, 8},
      {{"-N2", "--ntasks-per-node=3"}, 2, 2, 6},
      {{"-n7", "--ntasks-per-node=3"}, 3, 3, 7},
      {{"-w", "n[1-3]"}, 3, 3, 3},
      {{"-w", "n[1-3]", "-N4"}, 4, 4, 4},
  };
  for (const Case& c : cases) {
    const JobSpec s = spec(c.args);
    CHECK(s.shape.min_nodes == c.min_nodes);
    CHECK(s.shape.max_nodes == c.max_nodes);
    CHECK(s.shape.tasks == c.tasks);
  }
}

TEST_CASE("parts of GPUs and slices are read from --gres and --gpus") {
  const auto part = [](std::vector<std::string> args) {
    const JobShape shape = spec(std::move(args)).shape;
    CHECK(shape.gpus_per_node == 0);
    return shape.gpu_share;
  };
  CHECK(part({"--gpus=0.5"}) == 500);
  CHECK(part({"-G", "h100:0.125"}) == 125);
  CHECK(part({"--gpus-per-node=0.05", "-N4"}) == 50);
  CHECK(part({"--gpus=0.5", "-N2"}) == 250);
  CHECK(part({"--gpus-per-task=0.25", "-n3"}) == 750);
  CHECK(part({"--gres=gpu:0.3"}) == 300);
  CHECK(spec({"--gpus=1.0"}).shape.gpus_per_node == 1);
  CHECK(spec({"--gpus-per-task=0.5", "-n4", "-N1"}).shape.gpus_per_node == 2);
  CHECK(spec({"--gres=shard:3"}).shape.gpu_shards == 3);
  CHECK(spec({"--gres=mig:3g.40gb:0.5"}).shape.gpu_slice == "3g.40gb");
  CHECK(spec({"--gres=mig:3g.40gb:0.5"}).shape.gpu_share == 500);
  CHECK(spec({"--gres=mig:3g.40gb:0.5"}).shape.gpus_per_node == 0);
  CHECK(spec({"--gres=shard"}).shape.gpu_shards == 1);
  const auto wrong = [](std::vector<std::string> args) {
    const auto r = request(std::move(args));
    return r ? std::string("accepted") : r.error().message;
  };
  CHECK(wrong({"--gpus=1.5"}).find("1.5 GPUs on a node: a job gets whole ones, or a part of one") !=
        std::string::npos);
  CHECK(wrong({"--gpus=0.1234"}).find("one to three decimals") != std::string::npos);
  CHECK(wrong({"--gpus=0."}).find("one to three decimals") != std::string::npos);
  CHECK(wrong({"--gpus=0.-5"}).find("accepted") != 0);
  CHECK(wrong({"--gpus=0.001", "-N3"}).find("cannot be dealt to 3 nodes") != std::string::npos);
  CHECK(wrong({"--gres=shard:2,gpu:1"}).find("shards are parts of one GPU") != std::string::npos);
  CHECK(wrong({"--gres=shard:0"}).find("the number of shards") != std::string::npos);
  CHECK(wrong({"--gres=mig:3g.40gb:1.5"}).find("1.5 slices on a node") != std::string::npos);
  CHECK(wrong({"--gres=mig:3g.40gb:1,shard:2"}).find("shards are parts") != std::string::npos);
  CHECK(wrong({"--gpus=0.5", "--mem-per-gpu=1G"}).find("for whole GPUs") != std::string::npos);
}

TEST_CASE("GPU options in Slurm's spelling give the number and model of GPUs") {
  struct Case {
    std::vector<std::string> args;
    std::uint32_t gpus;
    std::string model;
  };
  const Case cases[] = {
      {{"-G2"}, 2, ""},
      {{"--gpus=A100:8", "-N2"}, 4, "a100"},
      {{"--gpus-per-node=h100:3"}, 3, "h100"},
      {{"--gpus-per-task=2", "-N2", "--ntasks-per-node=2"}, 4, ""},
      {{"--gres=gpu"}, 1, ""},
      {{"--gres=gpu:4"}, 4, ""},
      {{"--gres=gpu:h100"}, 1, "h100"},
      {{"--gres=gpu:h100:2"}, 2, "h100"},
      {{"--gres=none"}, 0, ""},
      {{"--gres=gpu:H100|a100:4"}, 4, "h100"},
      {{"--gres=gpu:2", "-G4", "-N2"}, 2, ""},
      {{"--gpus-per-node=8", "--gpu-model=a100,h100"}, 8, "a100"},
  };
  for (const Case& c : cases) {
    const JobSpec s = spec(c.args);
    CHECK(s.shape.gpus_per_node == c.gpus);
    CHECK((s.shape.gpu_models.empty() ? "" : s.shape.gpu_models.front()) == c.model);
  }
  CHECK(spec({"--gres=gpu:2", "--mem-per-gpu=10G"}).shape.memory_per_node == std::int64_t{20}
                                                                                 << 30);
  const auto wrong = [](std::vector<std::string> args) {
    const auto r = request(std::move(args));
    return r ? std::string("accepted") : r.error().message;
  };
  const JobShape uneven = spec({"-G7", "-N2"}).shape;
  CHECK(uneven.gpus_per_node == 4);
  CHECK(uneven.gpus_in_all == 7);
  CHECK(uneven.gpus_on(0, 2) == 4);
  CHECK(uneven.gpus_on(1, 2) == 3);
  CHECK(spec({"-G5"}).shape.gpus_in_all == 5);  // on how many nodes, the controller decides
  CHECK(spec({"-G6", "-N2"}).shape.gpus_in_all == 0);
  CHECK(spec({"-G5", "-N1"}).shape.gpus_in_all == 0);
  CHECK(wrong({"-G1", "-N2"}).find("1 GPUs cannot be dealt to 2 nodes") != std::string::npos);
  // With memory per GPU, a node with fewer GPUs has less memory.
  const JobShape memory = spec({"-G7", "-N2", "--mem-per-gpu=1G"}).shape;
  CHECK(memory.gpus_in_all == 7);
  CHECK(memory.memory_per_gpu == std::int64_t{1} << 30);
  CHECK(memory.memory_per_node == std::int64_t{4} << 30);
  CHECK(spec({"-G6", "-N2", "--mem-per-gpu=1G"}).shape.memory_per_gpu == 0);
  CHECK(spec({"-G2", "--mem-per-gpu=1G"}).shape.memory_per_gpu == std::int64_t{1} << 30);
  // GPUs for each task, where the tasks do not come out even, are counted by the task.
  const JobShape by_task = spec({"-n3", "-N2", "--gpus-per-task=2", "--mem-per-gpu=1G"}).shape;
  CHECK(by_task.gpus_per_task == 2);
  CHECK(by_task.gpus_in_all == 6);
  CHECK(by_task.gpus_per_node == 4);
  CHECK(by_task.memory_per_gpu == std::int64_t{1} << 30);
  CHECK(spec({"-n4", "-N2", "--gpus-per-task=2"}).shape.gpus_per_task == 0);
  CHECK(wrong({"-n3", "-N2", "--gpus-per-task=0.5"}).find("needs as many tasks on each node") !=
        std::string::npos);
  CHECK(wrong({"-G8", "-N2-4"}).find("range of nodes") != std::string::npos);
  CHECK(wrong({"-G8", "--gres=gpu:2"}).find("another option says 2") != std::string::npos);
  CHECK(wrong({"--gres=fpga:many"}).find("the number of fpga") != std::string::npos);
  CHECK(wrong({"--gres=fpga:1,fpga:2"}).find("fpga is asked twice") != std::string::npos);
  CHECK(spec({"--gres=gpu:h100|a100:4"}).shape.gpu_models ==
        std::vector<std::string>{"h100", "a100"});
  CHECK(wrong({"--gres=gpu:h100||a100:4"}).find("is not a model of GPU") != std::string::npos);
  CHECK(spec({"--gres=gpu:2,license:3,fpga"}).shape.gres ==
        std::vector<GresCount>{{"fpga", 1}, {"license", 3}});
  CHECK(wrong({"--gres=gpu:a100:1,gpu:h100:1"}).find("a job gets one model") != std::string::npos);
  CHECK(wrong({"--gres=gpu:many:2:3"}).find("accepted") != 0);
  CHECK(wrong({"--mem-per-gpu=1G"}).find("needs GPUs") != std::string::npos);
  CHECK(wrong({"-G1", "--mem=1G", "--mem-per-gpu=1G"}).find("excludes --mem") != std::string::npos);
}

TEST_CASE("every option of a submit is in the job's specification") {
  const JobSpec s = spec({"-J",
                          "name",
                          "-p",
                          "part",
                          "-A",
                          "acct",
                          "-c",
                          "4",
                          "--mem-per-cpu=2G",
                          "--tmp=10G",
                          "-t",
                          "1-02:03",
                          "-b",
                          "now+1hour",
                          "--deadline=now+2days",
                          "-C",
                          "a&b",
                          "-x",
                          "n9,n8",
                          "--exclusive",
                          "--nice=7",
                          "--priority=9",
                          "-H",
                          "--no-requeue",
                          "--signal=B:USR1@90",
                          "-D",
                          "/work",
                          "--comment=hello",
                          "--kill-on-invalid-dep=no",
                          "-d",
                          "afterok:1:2_3,singleton",
                          "--container-image=/img",
                          "--container-mounts=/a:/b,/c:/d:rw",
                          "--container-workdir=/w",
                          "--container-writable",
                          "--network=host",
                          "--gpus-per-node=2",
                          "--gpu-model=A100,v100",
                          "--priority-class=best-effort",
                          "--tenant-class=nightly",
                          "--tolerate=spot,hipaa",
                          "--topology=preferred:rack"});
  CHECK(s.name == "name");
  CHECK(s.partition == "part");
  CHECK(s.account == "acct");
  CHECK(s.shape.cpus_per_task == 4);
  CHECK(s.shape.memory_per_cpu == std::int64_t{2} << 30);
  CHECK(s.shape.scratch_per_node == std::int64_t{10} << 30);
  CHECK(s.time_limit == hours(26) + minutes(3));
  CHECK(s.begin == Instant{1'769'850'000'000'000} + hours(1));
  CHECK(s.deadline == Instant{1'769'850'000'000'000} + hours(48));
  CHECK(s.shape.constraint == "a&b");
  CHECK(s.shape.excluded_nodes == std::vector<std::string>{"n8", "n9"});
  CHECK(s.shape.exclusive);
  CHECK(s.shape.gpu_models == std::vector<std::string>{"a100", "v100"});
  CHECK(s.priority_class == "best-effort");
  CHECK(s.tenant_class == "nightly");
  CHECK(s.shape.tolerations == std::vector<std::string>{"hipaa", "spot"});
  CHECK(s.shape.topology == TopologyWish::preferred);
  CHECK(s.shape.topology_level == "rack");
  CHECK(s.nice == 7);
  CHECK(s.priority == 9);
  CHECK(s.hold);
  CHECK_FALSE(s.requeue);
  CHECK(s.warn_signal == WarnSignal{10, seconds(90), true});
  CHECK(s.work_dir == "/work");
  CHECK(s.comment == "hello");
  CHECK_FALSE(s.cancel_on_invalid_dependency);
  CHECK(s.dependencies.size() == 3);
  CHECK(s.dependencies[1].array_task == 3);
  CHECK(s.container.image == "/img");
  CHECK(s.container.mounts.size() == 2);
  CHECK(s.container.work_dir == "/w");
  CHECK(s.container.writable);
  CHECK(s.network == NetworkMode::host);
  CHECK(s.shape.gpus_per_node == 2);
  GivenOptions given;
  given.cpus_per_task = true;
  CHECK(s.given == given);
  CHECK(s.submit_dir.starts_with("/"));  // without -D the job starts in the current directory
  CHECK(s.submit_dir != s.work_dir);
  CHECK(s.older_given.empty());
  CHECK_FALSE(spec({}).network);  // without --network the partition decides
  CHECK(spec({"--network=none"}).network == NetworkMode::loopback);
  CHECK(spec({"-t", "UNLIMITED"}).unlimited_time);
  CHECK_FALSE(spec({"-t", "UNLIMITED", "-t", "5"}).unlimited_time);
  CHECK(spec({"--mem=1G", "-t", "5"}).shape.memory_per_node == std::int64_t{1} << 30);
  CHECK(spec({}).work_dir.starts_with("/"));
}

TEST_CASE("no two options share a name or letter, and each refused option has a reason") {
  std::set<std::string_view> names;
  std::set<char> letters;
  for (const Option& option : kOptions) {
    CHECK(names.insert(option.name).second);
    if (option.letter != 0) CHECK(letters.insert(option.letter).second);
    CHECK((option.set == nullptr) == !option.refused.empty());
    if (option.refused.empty()) CHECK_FALSE(option.help.empty());
  }
}

TEST_CASE("dependencies are parsed, and malformed ones are refused") {
  const auto any = parse_dependency("afterok:1?afterany:2");
  REQUIRE(any);
  CHECK(any->any);
  CHECK(any->list.size() == 2);
  const auto bare = parse_dependency("17");
  REQUIRE(bare);
  CHECK(bare->list[0].kind == DependencyKind::after_any);
  const auto delay = parse_dependency("after:5+10");
  REQUIRE(delay);
  CHECK(delay->list[0].delay == minutes(10));
  for (const char* bad :
       {"", ",", "afterok:", "afterok:1,", "singleton:1", "afterok:1_[1-3]", "after:1+x", "::"})
    CHECK_FALSE(parse_dependency(bad));
}

TEST_CASE("lists of jobs and tasks are parsed, and malformed ones are refused") {
  std::vector<proto::JobRef> refs;
  REQUIRE(add_job_refs(refs, "1,2_3,4_[1-3,9],,5"));
  REQUIRE(refs.size() == 4);
  CHECK(refs[2].tasks.size() == 2);
  CHECK_FALSE(add_job_refs(refs, "1,x"));
  CHECK_FALSE(add_job_refs(refs, "1_[2"));
}

TEST_CASE("each state has its Slurm word, and each reason a name without blanks and a sentence") {
  CHECK(words_of(Phase::queued, {}).compact == "PD");
  CHECK(words_of(Phase::ended, Outcome::launch_failed).state == "BOOT_FAIL");
  CHECK(check_states({"pd", "Running", "all", "S"}));
  CHECK_FALSE(check_states({"sleeping"}));
  for (const auto& [reason, name] : enum_names(Reason{})) {
    Verdict verdict{reason, 1, 2, "x"};
    CHECK_FALSE(describe_verdict(verdict, {}).empty());
    // programs that read a listing split its lines at blanks
    CHECK(name.find(' ') == std::string_view::npos);
  }
}

TEST_CASE("the sizes of a local cluster's nodes fit the machine, or are refused") {
  const Machine machine{{0, 1}, std::int64_t{8} << 30};
  ClusterRequest r;
  auto settled = settle_sizes(r, machine);
  REQUIRE(settled);
  CHECK(settled->nodes == 2);
  CHECK(settled->cpus == 1);
  CHECK(settled->memory == (std::int64_t{8} << 30) / 5 * 4 / 2 / (1 << 20) * (1 << 20));
  r.nodes = 4;
  CHECK(settle_sizes(r, machine).error().message ==
        "4 nodes with 1 cores each need 4, and this machine has 2; ask for less, or share cores "
        "with --oversubscribe");
  r.oversubscribe = true;
  REQUIRE(settle_sizes(r, machine));
  r.cpus = 24;
  // With --oversubscribe nodes may share CPUs, so that larger clusters can be tried out.
  CHECK(settle_sizes(r, machine));
  r.cpus = 257;
  CHECK(settle_sizes(r, machine).error().message == "a node cannot have 257 cores; at most 256");
  r.oversubscribe = false;
  CHECK(settle_sizes(r, machine).error().message ==
        "a node cannot have 257 cores; this machine has 2");
  r.oversubscribe = true;
  r.cpus = 2;
  r.memory = std::int64_t{4} << 30;
  CHECK(settle_sizes(r, machine));
  r.oversubscribe = false;
  CHECK_FALSE(settle_sizes(r, machine));
}
