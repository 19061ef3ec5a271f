// Tests the completion script in a real bash.
#include <doctest/doctest.h>

#include <sstream>

#include "tests/cli/fake_controller.h"
#include "tests/cli/samples.h"
#include "tests/places.h"

using namespace gantry;
using namespace gantry::test;

namespace {

// Returns what bash offers to complete the last of the words.
std::vector<std::string> offered(const std::map<std::string, std::string>& environment,
                                 const std::string& words, int at,
                                 const std::string& of = "completion") {
  const std::string script = "PATH=" + program_dir() + ":$PATH; source <(gantry " + of +
                             "); COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(at) +
                             "; _gantry_complete; printf '%s\\n' \"${COMPREPLY[@]}\"";
  const Run run = run_program({{"/bin/bash", "-c", script}, environment, {}, "/tmp"});
  CHECK(run.err.empty());
  std::vector<std::string> out;
  std::istringstream in(run.out);
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) out.push_back(line);
  return out;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("bash completes options, sub-commands and names") {
  FakeController fake;
  fake.answer<proto::ListNodes>(proto::ListNodesReply{sample_nodes(), kNow});
  fake.answer<proto::ListPartitions>(proto::ListPartitionsReply{sample_partitions()});
  fake.answer<proto::TenantUsage>(sample_tenants());
  fake.on<proto::ListJobs>([](const proto::ListJobs& list) {
    proto::ListJobsReply reply;
    reply.rows = sample_jobs();
    if (list.filter.states.size() != 1)  // without those that have ended
      std::erase_if(reply.rows, [](const auto& row) { return row.phase == Phase::ended; });
    return reply;
  });
  const auto environment = fake.environment();
  CHECK(offered({}, "gbatch --part", 1) == Words{"--partition"});
  CHECK(offered({}, "gbatch --ntasks", 1) == Words{"--ntasks", "--ntasks-per-node"});
  CHECK(offered({}, "gctl dr", 1) == Words{"drain"});
  CHECK(offered({}, "gctl drain --re", 2) == Words{"--reason"});
  CHECK(offered({}, "gantry do", 1) == Words{"down"});
  CHECK(offered({}, "gbatch --qo", 1).empty());  // options that Gantry refuses are not offered
  CHECK(offered(environment, "gbatch -p de", 2) == Words{"debug"});
  CHECK(offered(environment, "gbatch --partition = b", 3) == Words{"batch"});
  CHECK(offered({}, "gqueue -t OUT", 2) == Words{"OUT_OF_MEMORY"});
  CHECK(offered({}, "gtenant off", 1) == Words{"offboard"});
  CHECK(offered({}, "gtenant get prio", 2) == Words{"priorityclass"});
  CHECK(offered({}, "gtenant create fraud --cost", 3) == Words{"--cost-center"});
  CHECK(offered(environment, "gtenant quota fr", 2) == Words{"fraud"});
  CHECK(offered({}, "gtenant price ap", 2) == Words{"apply"});
  CHECK(offered({}, "gtenant price diff --file", 3) == Words{"--filename"});
  CHECK(offered({}, "gcancel -s US", 2) == Words{"USR1", "USR2"});
  CHECK(offered(environment, "gcancel 1", 1) == Words{"12", "13_3", "13_[4-9%2]", "15"});
  CHECK(offered(environment, "gctl hold 15", 2) == Words{"15"});
  CHECK(offered(environment, "gctl logs 11", 2) == Words{"11"});  // job 11 has ended
  CHECK(offered(environment, "gctl show job 11", 3) == Words{"11"});
  CHECK(offered(environment, "gctl why 13_3", 2) == Words{"13_3"});
  CHECK(offered(environment, "gqueue -j 12", 2) == Words{"12"});
  CHECK(offered({}, "gctl update jo", 2) == Words{"job"});
  CHECK(offered(environment, "gctl update job 12", 3) == Words{"12"});
  const auto of_slurm = [&](const std::string& words, int at) {
    return offered(environment, words, at, "slurm completion");
  };
  CHECK(of_slurm("scancel 1", 1) == Words{"12", "13_3", "13_[4-9%2]", "15"});
  CHECK(of_slurm("squeue -j 12", 2) == Words{"12"});
  CHECK(of_slurm("sacct -j 12", 2) == Words{"12"});
  CHECK(of_slurm("scontrol requeueh", 1) == Words{"requeuehold"});
  CHECK(of_slurm("scontrol hold 15", 2) == Words{"15"});
  CHECK(of_slurm("scontrol show part", 2) == Words{"partition"});
  CHECK(of_slurm("scontrol show job 11", 3) == Words{"11"});  // job 11 has ended
  CHECK(of_slurm("scontrol update JobId = 12", 4) == Words{"12"});
  CHECK(of_slurm("scontrol update PartitionName = de", 4) == Words{"debug"});
}
