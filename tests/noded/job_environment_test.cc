// Tests the environment of a batch script: the variables of Slurm that programs read.
#include "noded/core/job_environment.h"

#include <doctest/doctest.h>

namespace gantry::node {
namespace {

proto::Launch two_nodes() {
  proto::Launch l;
  l.key = {JobId{42}, Attempt{1}};
  l.owner = {Uid{1000}, Gid{1001}, "ann", {}, "/home/ann", "/bin/zsh"};
  l.spec.name = "train";
  l.spec.work_dir = "/work/x";
  l.spec.submit_host = "login1";
  l.partition = "gpu";
  l.placement = {{"n1", {0, 1, 2, 3}, 2048ll << 20, 0, 2, {}, {}},
                 {"n2", {0, 1, 2, 3}, 2048ll << 20, 0, 2, {}, {}}};
  l.placed_at = Instant{1'700'000'000'500'000};
  return l;
}

const EnvironmentFacts kFacts{"lab", "n1", "/run/gantry/job.sock"};

TEST_CASE("variables describe the nodes, tasks and cores of a job on two nodes") {
  auto l = two_nodes();
  auto e = job_environment(l, kFacts);
  CHECK(e["SLURM_JOB_ID"] == "42");
  CHECK(e["SLURM_JOBID"] == "42");
  CHECK(e["SLURM_JOB_NODELIST"] == "n[1-2]");
  CHECK(e["SLURM_NODELIST"] == "n[1-2]");
  CHECK(e["SLURM_JOB_NUM_NODES"] == "2");
  CHECK(e["SLURM_NNODES"] == "2");
  CHECK(e["SLURM_TASKS_PER_NODE"] == "2(x2)");
  CHECK(e["SLURM_JOB_CPUS_PER_NODE"] == "4(x2)");
  CHECK(e["SLURM_CPUS_ON_NODE"] == "4");
  CHECK(e["SLURM_MEM_PER_NODE"] == "2048");
  CHECK(e["SLURM_PROCID"] == "0");
  CHECK(e["SLURM_LOCALID"] == "0");
  CHECK(e["SLURM_NODEID"] == "0");
  CHECK(e["SLURM_GTIDS"] == "0");
  CHECK(e["SLURMD_NODENAME"] == "n1");
  CHECK(e["SLURM_CLUSTER_NAME"] == "lab");
  CHECK(e["SLURM_JOB_START_TIME"] == "1700000000");
  CHECK(e["SLURM_SUBMIT_DIR"] == "/work/x");
  CHECK(e["SLURM_JOB_QOS"] == "normal");
  CHECK(e["SLURM_SUBMIT_HOST"] == "login1");
  CHECK(e["SLURM_JOB_PARTITION"] == "gpu");
  CHECK(e["SLURM_JOB_UID"] == "1000");
  CHECK(e["GANTRY_JOB_ID"] == "42");
  CHECK(e["GANTRY_JOB_SOCKET"] == "/run/gantry/job.sock");
}

TEST_CASE("variables for root's programs describe the job without values from the user") {
  auto l = two_nodes();
  for (const auto* name : {"SLURM_JOB_ID", "SLURM_JOB_USER", "GANTRY_JOB_UID", "SLURM_CONF",
                           "GANTRY_ANYTHING", "GANTRY_GPU_NUMA", "SLURM_MPI_TYPE", "PATH",
                           "LD_PRELOAD", "BASH_ENV", "IFS", "HOME", "SLURMD_DEBUG"})
    l.environment.insert_or_assign(name, "spoofed");
  const auto stated = job_variables(l, kFacts);
  for (const auto& [name, value] : stated) CHECK_MESSAGE(value != "spoofed", name);
  for (const auto* name : {"SLURM_CONF", "GANTRY_ANYTHING", "PATH", "LD_PRELOAD", "HOME"})
    CHECK_MESSAGE(!stated.contains(name), name);
  CHECK(stated.at("SLURM_JOB_USER") == "ann");
  CHECK(stated.at("GANTRY_JOB_UID") == "1000");
  auto all = job_environment(l, kFacts);  // the job's own environment has both kinds
  for (const auto& [name, value] : stated) CHECK_MESSAGE(all[name] == value, name);
  CHECK(all["SLURM_CONF"] == "spoofed");
}

TEST_CASE("a network profile's proxy takes the place of the submitter's") {
  auto l = two_nodes();
  l.environment = {{"http_proxy", "http://10.0.0.1:1"}, {"ftp_proxy", "kept"}};
  CHECK(job_environment(l, kFacts)["http_proxy"] == "http://10.0.0.1:1");
  proto::JobNetwork& network = l.network.emplace();
  network.own.node = "n1";
  network.peers = {{"n2", 2, JobId(7), std::nullopt, "", 0, ""},
                   {"n9", 9, JobId{}, std::nullopt, "", 0, ""}};
  CHECK(job_environment(l, kFacts)["http_proxy"] == "http://10.0.0.1:1");
  network.reach.proxy = "http://10.1.0.9:3128";
  auto e = job_environment(l, kFacts);
  for (const char* name : {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"})
    CHECK(e[name] == "http://10.1.0.9:3128");
  // A node without a part of the job is not in the file, and cannot be reached by the job.
  CHECK(e["no_proxy"] == "localhost,127.0.0.1,::1,n1,n2");
  CHECK(e["ftp_proxy"] == "kept");
}

TEST_CASE("some variables exist only if their option was given") {
  auto l = two_nodes();
  auto e = job_environment(l, kFacts);
  for (const auto* name :
       {"SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK", "SLURM_NTASKS", "SLURM_NPROCS",
        "SLURM_NTASKS_PER_NODE", "SLURM_CPUS_PER_TASK", "SLURM_MEM_PER_CPU", "SLURM_RESTART_COUNT",
        "SLURM_JOB_END_TIME", "SLURM_JOB_ACCOUNT", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_JOB_ID"}) {
    CAPTURE(name);
    CHECK(!e.contains(name));
  }

  l.spec.given.tasks_per_node = l.spec.given.cpus_per_task = true;
  l.spec.shape.tasks_per_node = 2;
  l.spec.shape.cpus_per_task = 2;
  l.spec.shape.memory_per_cpu = 512ll << 20;
  l.spec.account = "physics";
  l.restarts = 2;
  l.time_limit = minutes(10);
  e = job_environment(l, kFacts);
  CHECK(e["SLURM_NTASKS"] == "4");
  CHECK(e["SLURM_NPROCS"] == "4");
  CHECK(e["SLURM_NTASKS_PER_NODE"] == "2");
  CHECK(e["SLURM_CPUS_PER_TASK"] == "2");
  CHECK(e["SLURM_MEM_PER_CPU"] == "512");
  CHECK(!e.contains("SLURM_MEM_PER_NODE"));
  CHECK(e["SLURM_RESTART_COUNT"] == "2");
  CHECK(e["SLURM_JOB_END_TIME"] == "1700000600");
  CHECK(e["SLURM_JOB_ACCOUNT"] == "physics");

  l.spec.given = {};
  l.spec.given.gpus_per_task = true;
  l.spec.submit_dir = "/home/ann/jobs";
  l.spec.shape.gpus_per_node = 4;
  l.spec.priority_class = "urgent";
  e = job_environment(l, kFacts);
  CHECK(e["SLURM_GPUS_PER_TASK"] == "2");
  CHECK(e["SLURM_TRES_PER_TASK"] == "gres/gpu=2");
  CHECK(e["SLURM_SUBMIT_DIR"] == "/home/ann/jobs");
  CHECK(e["SLURM_JOB_QOS"] == "urgent");
}

TEST_CASE("a task of an array has the array's variables") {
  auto l = two_nodes();
  l.array_job = JobId{40};
  l.array_task = 0;
  l.array_count = 3;
  l.array_min = 0;
  l.array_max = 4;
  l.array_step = 2;
  auto e = job_environment(l, kFacts);
  CHECK(e["SLURM_ARRAY_JOB_ID"] == "40");
  CHECK(e["SLURM_ARRAY_TASK_ID"] == "0");
  CHECK(e["SLURM_ARRAY_TASK_COUNT"] == "3");
  CHECK(e["SLURM_ARRAY_TASK_MIN"] == "0");
  CHECK(e["SLURM_ARRAY_TASK_MAX"] == "4");
  CHECK(e["SLURM_ARRAY_TASK_STEP"] == "2");
}

TEST_CASE("the user's environment is kept, except variables of an outer job") {
  auto l = two_nodes();
  l.environment = {{"PATH", "/opt/bin"},          {"LANG", "C"},
                   {"TMPDIR", "/tmp/elsewhere"},  {"PWD", "/home/ann"},
                   {"SLURM_ARRAY_TASK_ID", "7"},  {"GANTRY_ARRAY_TASK_ID", "7"},
                   {"SLURM_NTASKS", "64"},        {"SLURM_STEP_ID", "1"},
                   {"SLURM_CONF", "/etc/s.conf"}, {"SLURMD_NODENAME", "old"},
                   {"GANTRY_JOB_SOCKET", "/old"}, {"GANTRY_CONF", "/etc/gantry.yaml"}};
  auto e = job_environment(l, kFacts);
  CHECK(e["PATH"] == "/opt/bin");
  CHECK(e["LANG"] == "C");
  CHECK(e["TMPDIR"] == "/tmp");
  CHECK(e["PWD"] == "/work/x");
  CHECK(!e.contains("SLURM_ARRAY_TASK_ID"));
  CHECK(!e.contains("GANTRY_ARRAY_TASK_ID"));
  CHECK(!e.contains("SLURM_NTASKS"));
  CHECK(!e.contains("SLURM_STEP_ID"));
  CHECK(e["SLURM_CONF"] == "/etc/s.conf");
  CHECK(e["GANTRY_CONF"] == "/etc/gantry.yaml");
  CHECK(e["SLURMD_NODENAME"] == "n1");
  CHECK(e["GANTRY_JOB_SOCKET"] == "/run/gantry/job.sock");

  l.environment.clear();  // this is the case with --export=NONE
  e = job_environment(l, kFacts);
  CHECK(e["HOME"] == "/home/ann");
  CHECK(e["USER"] == "ann");
  CHECK(e["LOGNAME"] == "ann");
  CHECK(e["SHELL"] == "/bin/zsh");
  CHECK(e["PATH"] == "/usr/local/bin:/usr/bin:/bin");
  CHECK(e["HOSTNAME"] == "n1");
  CHECK(e["ENVIRONMENT"] == "BATCH");
}

}  // namespace
}  // namespace gantry::node
