// scontrol as administrators use it: what it asks of the controller about partitions, nodes and
// reservations, and what it writes.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/proto/partitions.h"
#include "common/proto/reservation.h"
#include "tests/cli/fake_controller.h"
#include "tests/cli/samples.h"

using namespace gantry;
using namespace gantry::test;

namespace {

using Values = std::map<std::string, std::string>;

Run scontrol(FakeController& fake, std::vector<std::string> words) {
  words.insert(words.begin(), "slurm/scontrol");
  return fake.run(words);
}

}  // namespace

TEST_CASE("scontrol create and update of partitions say Slurm's keys as options of ours") {
  FakeController fake;
  fake.answer<proto::ChangePartition>(proto::Ok{});
  fake.answer<proto::UpdatePartition>(proto::Ok{});
  const auto change = [&](std::vector<std::string> words) {
    const Run run = scontrol(fake, std::move(words));
    CAPTURE(run.err);
    CHECK(run.status == 0);
    CHECK(run.out.empty());
    CHECK(run.err.empty());
    return fake.last<proto::ChangePartition>();
  };
  proto::ChangePartition m =
      change({"create", "PartitionName=night", "Nodes=n[1-3]", "MaxTime=30"});
  CHECK(m.action == proto::PartitionAction::create);
  CHECK(m.name == "night");
  CHECK(m.values == Values{{"nodes", "n[1-3]"}, {"max_time", "1800s"}});
  CHECK(change({"create", "partition=bare"}).values.empty());
  m = change({"update",
              "MaxTime=-1",
              "PartitionName=night",
              "DefaultTime=1-00:00:00",
              "MaxNodes=UNLIMITED",
              "MinNodes=2",
              "Default=Y",
              "RootOnly=no",
              "ReqResv=YES",
              "OverSubscribe=EXCLUSIVE",
              "PriorityTier=7",
              "PriorityJobFactor=7",
              "AllowGroups=ALL",
              "AllowAccounts=a,b",
              "DenyQos=low",
              "DefMemPerCPU=2048",
              "State=DRAIN",
              "Hidden=NO",
              "AllocNodes=ALL",
              "MaxMemPerNode=UNLIMITED"});
  CHECK(m.action == proto::PartitionAction::update);
  CHECK(m.values == Values{{"max_time", "unlimited"},
                           {"default_time", "86400s"},
                           {"max_nodes", "none"},
                           {"min_nodes", "2"},
                           {"default", "yes"},
                           {"admins_only", "no"},
                           {"reservation_only", "yes"},
                           {"exclusive_nodes", "yes"},
                           {"priority", "7"},
                           {"allow_groups", ""},
                           {"allow_accounts", "a,b"},
                           {"deny_qos", "low"},
                           {"default_memory_per_cpu", "2048M"},
                           {"up", "yes"},
                           {"accepts_jobs", "no"}});
  CHECK(scontrol(fake, {"update", "partition=p", "PriorityTier=7", "PriorityJobFactor=8"}).status ==
        1);
  CHECK(change({"delete", "PartitionName=night"}).action == proto::PartitionAction::remove);
  CHECK(change({"delete", "partition", "night"}).name == "night");
  // The state alone is what operators may change.
  CHECK(scontrol(fake, {"update", "PartitionName=night", "State=INACTIVE"}).status == 0);
  CHECK_FALSE(fake.last<proto::UpdatePartition>().up);
  CHECK(fake.last<proto::UpdatePartition>().accepts_jobs == false);
}

TEST_CASE("scontrol says in Slurm's words why a partition is not created or deleted") {
  FakeController fake;
  const auto error = [&](ErrorCode code, const std::string& message,
                         std::vector<std::string> words) {
    fake.answer<proto::ChangePartition>(
        proto::ErrorReply{static_cast<std::uint16_t>(code), message});
    const Run run = scontrol(fake, std::move(words));
    CHECK(run.status == 1);
    return run.err.substr(0, run.err.find('\n'));
  };
  CHECK(error(ErrorCode::wrong_state, "partition p is in use: 1 queued and 0 active jobs",
              {"delete", "PartitionName=p"}) ==
        "delete_partition PartitionName=p: Partition is in use");
  CHECK(error(ErrorCode::not_found, "there is no partition \"p\"", {"delete", "partition=p"}) ==
        "delete_partition partition=p: Invalid partition name specified");
  CHECK(error(ErrorCode::already_exists, "partition p exists already", {"create", "partition=p"}) ==
        "Error creating the partition: Invalid partition name specified");
  CHECK(error(ErrorCode::invalid_argument, "nodes: there is no node `n9`",
              {"update", "partition=p", "nodes=n9"}) ==
        "slurm_update error: Invalid node name specified");
  CHECK(error(ErrorCode::permission_denied, "alice is no administrator of this cluster",
              {"update", "partition=p", "nodes=n9"}) ==
        "slurm_update error: Access/permission denied");
}

TEST_CASE("scontrol update of nodes") {
  FakeController fake;
  fake.answer<proto::UpdateNodes>(proto::Ok{});
  const auto update = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "update");
    const Run run = scontrol(fake, std::move(words));
    CAPTURE(run.err);
    CHECK(run.status == 0);
    return fake.last<proto::UpdateNodes>();
  };
  CHECK(update({"nodename=n1", "state=down", "reason=fan"}).action == proto::NodeAction::close);
  CHECK(update({"nodename=n1", "state=undrain"}).action == proto::NodeAction::resume);
  CHECK(update({"nodename=n1", "state=idle"}).action == proto::NodeAction::resume);
  proto::UpdateNodes m = update({"NodeName=n[1-2]", "Reason=a new fan"});
  CHECK(m.action == proto::NodeAction::keep);
  CHECK(m.reason == "a new fan");
  CHECK_FALSE(m.features);
  m = update({"NodeName=n1", "AvailableFeatures=b,a", "ActiveFeatures=a,b", "Comment=x y"});
  CHECK(m.features == std::vector<std::string>{"a", "b"});
  CHECK(m.comment == "x y");
  CHECK(update({"NodeName=n1", "AvailableFeatures="}).features == std::vector<std::string>{});
  CHECK(scontrol(fake, {"update", "NodeName=n1", "Features=a", "ActiveFeatures=b"}).status == 1);
}

TEST_CASE("scontrol update of jobs takes keys and values as two words") {
  FakeController fake;
  fake.answer<proto::UpdateJob>(proto::JobsDone{});
  CHECK(scontrol(fake, {"update", "jobid", "12", "arraytaskthrottle", "2"}).status == 0);
  CHECK(fake.last<proto::UpdateJob>().job.job == JobId{12});
  CHECK(fake.last<proto::UpdateJob>().array_max_running == 2u);
  CHECK(scontrol(fake, {"update", "ArrayTaskThrottle=0", "JobId=12"}).status == 0);
  CHECK(fake.last<proto::UpdateJob>().array_max_running == 0u);
  CHECK(scontrol(fake, {"update", "jobid=12", "nice"}).status == 0);
  CHECK(fake.last<proto::UpdateJob>().nice == 100);
}

TEST_CASE("scontrol update of reservations says the whole reservation anew") {
  FakeController fake;
  proto::ReservationRow row;
  row.name = "course";
  row.node_list = "n[1-3]";
  row.start = Instant{1'000'000};
  row.end = Instant{9'000'000'000'000'000};
  row.users = {"alice", "bob"};
  proto::ListReservationsReply reply;
  reply.reservations = {row};
  fake.answer<proto::ListReservations>(reply);
  fake.answer<proto::MakeReservation>(reply);
  const auto update = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"update", "ReservationName=course"});
    const Run run = scontrol(fake, std::move(words));
    CAPTURE(run.err);
    CHECK(run.status == 0);
    CHECK(run.out == "Reservation updated.\n");
    const auto m = fake.last<proto::MakeReservation>();
    CHECK(m.replaces);
    CHECK(m.name == "course");
    return m;
  };
  CHECK(update({"Users=carol"}).users == std::vector<std::string>{"carol"});
  CHECK(update({"Users=+carol,-bob"}).users == std::vector<std::string>{"alice", "carol"});
  CHECK(update({"Users-=bob"}).users == std::vector<std::string>{"alice"});
  proto::MakeReservation m = update({"Nodes+=n5", "Duration=60"});
  CHECK(m.nodes == std::vector<std::string>{"n1", "n2", "n3", "n5"});
  CHECK(m.length == minutes(60));
  CHECK_FALSE(m.end);
  CHECK(m.users.size() == 2);
  m = update({"NodeCnt=4", "Flags=IGNORE_JOBS,SPEC_NODES"});
  CHECK(m.count == 4);
  CHECK(m.nodes.empty());
  CHECK(m.ignore_jobs);
  CHECK(update({"Duration=+30"}).end == Instant{9'000'000'000'000'000} + minutes(30));
  CHECK(scontrol(fake, {"update", "Reservation=course", "Flags=FLEX"}).status == 1);
  CHECK(scontrol(fake, {"update", "Reservation=course"}).status == 1);
}

TEST_CASE("scontrol write config writes gantry.yaml as it is in force") {
  FakeController fake;
  fake.answer<proto::Ping>(proto::PingReply{});
  proto::ShowConfigReply reply;
  reply.values = {{"cluster", "lab"},
                  {"controller.kill_wait", "30s"},
                  {"nodes.n1.name", "n1"},
                  {"nodes.n1.cpus", "4"},
                  {"nodes.n1.features", "[a, b]"},
                  {"partitions.p.name", "p"},
                  {"partitions.p.nodes", "n[1-2]"},
                  {"partitions.p.max_nodes", ""}};
  fake.answer<proto::ShowConfig>(reply);
  const ScratchDir files;
  const Run run = scontrol(fake, {"write", "config", files.path() + "/out"});
  CHECK(run.status == 0);
  const std::string said = "Slurm config saved to ";
  REQUIRE(run.out.starts_with(said));
  const std::string path = run.out.substr(said.size(), run.out.size() - said.size() - 1);
  CHECK(path.starts_with(files.path() + "/out."));
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  CHECK(text.str() ==
        "cluster: \"lab\"\ncontroller:\n  kill_wait: \"30s\"\nnodes:\n  - name: \"n1\"\n"
        "    cpus: \"4\"\n    features: [\"a\", \"b\"]\npartitions:\n  - name: \"p\"\n"
        "    nodes: \"n[1-2]\"\n");
  reply.values.erase("nodes.n1.name");
  reply.values.erase("nodes.n1.cpus");
  reply.values.erase("nodes.n1.features");
  fake.answer<proto::ShowConfig>(reply);
  CHECK(scontrol(fake, {"write", "config", files.path() + "/out"}).status == 1);
}

TEST_CASE("!! says the line before again") {
  FakeController fake;
  CHECK(fake.run({"slurm/scontrol"}, "version\n!!\nquit\n").out ==
        "scontrol: slurm 25.05.0\nscontrol: slurm 25.05.0\nscontrol: \n");
}

TEST_CASE("scontrol create reservation asks for what Slurm's asks, and knows all nodes") {
  FakeController fake;
  fake.answer<proto::ListNodes>(proto::ListNodesReply{sample_nodes(), kNow});
  fake.answer<proto::MakeReservation>(proto::ListReservationsReply{});
  const auto refusal = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"create", "reservation"});
    const Run run = scontrol(fake, std::move(words));
    CHECK(run.status == 1);
    return run.err;
  };
  CHECK(refusal({"Duration=5", "Nodes=n01", "Users=root"}) ==
        "scontrol: error: A start time must be given.  No reservation created.\n");
  CHECK(refusal({"StartTime=now", "Nodes=n01", "Users=root"}) ==
        "scontrol: error: An end time or duration must be given.  No reservation created.\n");
  CHECK(refusal({"StartTime=now", "Duration=5", "Users=root"}) ==
        "scontrol: error: CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be "
        "specified.  No reservation created.\n");
  CHECK(refusal({"StartTime=now", "Duration=5", "Nodes=ALL"}) ==
        "scontrol: error: Either Users/Groups and/or Accounts must be specified.  No reservation "
        "created.\n");
  CHECK(scontrol(fake, {"create", "reservation", "StartTime=now", "Duration=5", "Nodes=ALL",
                        "Users=root", "Flags=MAINT"})
            .status == 0);
  CHECK(fake.last<proto::MakeReservation>().nodes.size() == sample_nodes().size());
  CHECK(scontrol(fake, {"create", "reservation", "StartTime=now", "Duration=5",
                        "PartitionName=debug", "Users=root"})
            .status == 0);
  CHECK(fake.last<proto::ListNodes>().partitions == std::vector<std::string>{"debug"});
  CHECK(fake.last<proto::MakeReservation>().partition.empty());
}

TEST_CASE("scontrol update JobName= means the jobs of that name, and of one user with UserID=") {
  FakeController fake;
  fake.answer<proto::UpdateJob>(proto::JobsDone{});
  proto::ListJobsReply reply;
  reply.rows = sample_jobs();
  reply.rows.resize(1);
  reply.rows[0].user = "alice";
  reply.rows[0].uid = Uid{1001};
  fake.answer<proto::ListJobs>(reply);
  const auto update = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"update", "JobName=train"});
    return scontrol(fake, std::move(words));
  };
  CHECK(update({"UserID=1001", "Nice=3"}).status == 0);
  CHECK(fake.last<proto::ListJobs>().filter.names == std::vector<std::string>{"train"});
  CHECK(fake.last<proto::UpdateJob>().job.job == reply.rows[0].job);
  CHECK(fake.last<proto::UpdateJob>().nice == 3);
  CHECK(update({"UserID=alice", "Nice=4"}).status == 0);
  const Run other = update({"UserID=1", "Nice=4"});
  CHECK(other.status == 1);
  CHECK(other.err == "scontrol: error: No jobs with user ID 1 and name 'train'\n");
  fake.answer<proto::ListJobs>(proto::ListJobsReply{});
  CHECK(update({"Nice=4"}).err == "scontrol: error: No jobs with name 'train'\n");
}

TEST_CASE("scontrol requeue of a job that has ended lets it begin two minutes later") {
  FakeController fake;
  proto::ShowJobReply shown;
  shown.now = kNow;
  shown.jobs.emplace_back().row.phase = Phase::ended;
  fake.answer<proto::ShowJob>(shown);
  fake.answer<proto::RequeueJobs>(proto::JobsDone{});
  fake.answer<proto::UpdateJob>(proto::JobsDone{});
  fake.answer<proto::ReleaseJobs>(proto::JobsDone{});
  CHECK(scontrol(fake, {"requeue", "12"}).status == 0);
  CHECK(fake.last<proto::RequeueJobs>().hold);
  CHECK(fake.last<proto::UpdateJob>().begin == kNow + seconds(121));
  CHECK(fake.last<proto::ReleaseJobs>().jobs.size() == 1);
  shown.jobs[0].row.phase = Phase::running;
  fake.answer<proto::ShowJob>(shown);
  CHECK(scontrol(fake, {"requeue", "12"}).status == 0);
  CHECK_FALSE(fake.last<proto::RequeueJobs>().hold);
  // No further requests are sent for a job that is refused.
  shown.jobs[0].row.phase = Phase::ended;
  fake.answer<proto::ShowJob>(shown);
  proto::JobsDone refused;
  refused.refused.push_back({{JobId(12), {}},
                             {static_cast<std::uint16_t>(ErrorCode::wrong_state),
                              "job 12 was submitted with --no-requeue"}});
  fake.answer<proto::RequeueJobs>(refused);
  const std::size_t before = fake.count(proto::number_of<proto::ReleaseJobs>);
  const Run run = scontrol(fake, {"requeue", "12"});
  CHECK(run.status == 1);
  CHECK(run.err.starts_with("Requested operation is presently disabled for job 12\n"));
  CHECK(fake.count(proto::number_of<proto::ReleaseJobs>) == before);
}

TEST_CASE("scontrol show -v says from when a listing is; show daemons what belongs here") {
  FakeController fake;
  fake.answer<proto::ListNodes>(proto::ListNodesReply{sample_nodes(), kNow});
  fake.answer<proto::ListPartitions>(proto::ListPartitionsReply{sample_partitions()});
  const Run run = scontrol(fake, {"-v", "show", "partition"});
  CHECK(run.status == 0);
  CHECK(run.out.starts_with("last_update_time="));
  CHECK(run.out.find(", records=2\n") != std::string::npos);
  CHECK_FALSE(scontrol(fake, {"-Q", "show", "partition"}).out.starts_with("last_update_time="));
  // The controller of this test listens on this machine, and none of the nodes is here.
  CHECK(scontrol(fake, {"show", "daemons"}).out == "slurmctld \n");
}
