// Tests gctl reserve and the commands near it, maintenance, mig, why with its proposals,
// checkpointed, quota events, and gbatch's message about a deadline, against a controller that
// gives fixed replies.
#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "tests/cli/fake_controller.h"
#include "tests/cli/samples.h"
#include "tests/cli/tenancy_store.h"

using namespace gantry;
using namespace gantry::test;

namespace {

proto::ReservationRow sample_reservation() {
  proto::ReservationRow row;
  row.name = "course";
  row.node_list = "n[01-04]";
  row.nodes = 4;
  row.start = kNow + hours(1);
  row.end = kNow + hours(9);
  row.users = {"ben", "eva"};
  row.by = "root";
  row.comment = "for the course";
  row.queued = 3;
  return row;
}

proto::JobDetail waiting(JobId id) {
  proto::JobDetail job;
  job.row.job = id;
  job.row.phase = Phase::queued;
  job.row.time_limit = hours(2);
  job.why = {"its tenant would use 4 cores, and may use 3 cores", "its priority is 10000"};
  return job;
}

proto::SubmitReply submitted() {
  proto::SubmitReply reply;
  reply.job = JobId{12};
  reply.partition = "batch";
  return reply;
}

proto::WhatIfReply sooner() {
  proto::WhatIfReply reply;
  reply.now = kNow;
  reply.start = kNow + hours(5);
  reply.rows = {{"2 GPUs on each node instead of 4", "--gpus-per-node=2", kNow},
                {"a time limit of 1:00:00 instead of 2:00:00", "--time=1:00:00", kNow + hours(1)}};
  return reply;
}

}  // namespace

TEST_CASE("gctl reserve prints the new reservation, and refuses too few options") {
  FakeController fake;
  proto::ListReservationsReply made;
  made.reservations = {sample_reservation()};
  made.warnings = {"1 job may still run there when it begins: 12"};
  fake.answer<proto::MakeReservation>(made);
  const Run run = fake.run({"gctl", "reserve", "course", "--count", "4", "-C", "gpu", "-p", "batch",
                            "--duration", "8:00:00", "--users", "eva,ben", "--ignore-jobs",
                            "--comment", "for the course"});
  CHECK(run.status == 0);
  CHECK(run.out.starts_with("reservation course has n[01-04] from "));
  CHECK(run.err == "gctl reserve: warning: 1 job may still run there when it begins: 12\n");
  auto sent = fake.last<proto::MakeReservation>();
  CHECK(sent.name == "course");
  CHECK(sent.count == 4);
  CHECK(sent.constraint == "gpu");
  CHECK(sent.partition == "batch");
  CHECK(sent.length == hours(8));
  CHECK_FALSE(sent.start);
  CHECK(sent.users == std::vector<std::string>{"eva", "ben"});
  CHECK(sent.ignore_jobs);
  CHECK_FALSE(sent.maintenance);
  CHECK(fake.run({"gctl", "reserve", "--maintenance", "-w", "n[01-02]", "--start", "now+2hours",
                  "--end", "now+4hours"})
            .status == 0);
  sent = fake.last<proto::MakeReservation>();
  CHECK(sent.maintenance);
  CHECK(sent.nodes == std::vector<std::string>{"n01", "n02"});
  CHECK((sent.start && sent.end && *sent.end - *sent.start == hours(2)));
  CHECK(fake.run({"gctl", "reserve", "--duration", "60", "-u", "eva"}).status == 2);
  CHECK(fake.run({"gctl", "reserve", "--count", "2", "-u", "eva"}).status == 2);
}

TEST_CASE("gctl reserve says when a reservation comes again, and which nodes are replaced") {
  FakeController fake;
  proto::ListReservationsReply made;
  made.reservations = {sample_reservation()};
  made.reservations[0].every = Recurrence::weekdays;
  made.reservations[0].replacement = proto::NodeReplacement::used;
  made.reservations[0].purge_after = minutes(10);
  fake.answer<proto::MakeReservation>(made);
  fake.answer<proto::ListReservations>(made);
  const std::vector<std::string> usual = {"gctl",       "reserve", "course",  "--count", "4",
                                          "--duration", "8:00:00", "--users", "eva"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> argv = usual;
    argv.insert(argv.end(), more.begin(), more.end());
    return fake.run(argv, {}, {{"TZ", "UTC0"}});
  };
  const Run run = with({"--repeat", "weekdays", "--replace", "used", "--purge-after", "10"});
  CAPTURE(run.err);
  CHECK(run.status == 0);
  CHECK(run.out.ends_with(", weekdays\n"));
  const auto sent = fake.last<proto::MakeReservation>();
  CHECK(sent.every == Recurrence::weekdays);
  CHECK(sent.zone == "UTC0");
  CHECK(sent.replacement == proto::NodeReplacement::used);
  CHECK(sent.purge_after == minutes(10));
  CHECK(with({"--repeat", "yearly"}).status == 1);
  CHECK(with({"--replace", "all"}).status == 1);
  CHECK(with({"--purge-after", "UNLIMITED"}).status == 1);
  CHECK(fake.run({"gctl", "reservations", "-ho", "%n|%R|%x|%P"}).out ==
        "course|weekdays|used|10:00\n");
  CHECK(fake.run({"gctl", "reservations"}).out.find("REPEAT") != std::string::npos);
}

TEST_CASE("gctl reservations lists reservations, and gctl unreserve removes one") {
  FakeController fake;
  proto::ListReservationsReply list;
  list.reservations = {sample_reservation(), sample_reservation()};
  list.reservations[1].name = "firmware";
  list.reservations[1].maintenance = list.reservations[1].active = true;
  list.reservations[1].users.clear();
  fake.answer<proto::ListReservations>(list);
  fake.answer<proto::RemoveReservation>(proto::Ok{});
  const Run run = fake.run({"gctl", "reservations", "-ho", "%n|%s|%d|%D|%N|%T|%u|%q|%r|%b|%c"});
  CHECK(run.out ==
        "course|planned|8:00:00|4|n[01-04]|-|ben,eva|3|0|root|for the course\n"
        "firmware|maint|8:00:00|4|n[01-04]|-|-|3|0|root|for the course\n");
  CHECK(fake.run({"gctl", "reservations"}).out.find("NAME") == 0);
  CHECK(fake.run({"gctl", "reservations", "--json", "course"}).out.find("\"node_list\"") !=
        std::string::npos);
  CHECK(fake.last<proto::ListReservations>().names == std::vector<std::string>{"course"});
  CHECK(fake.run({"gctl", "unreserve", "course"}).status == 0);
  CHECK(fake.last<proto::RemoveReservation>().name == "course");
}

TEST_CASE("gctl maintenance start drains a pool in batches, and stops when a check fails") {
  FakeController fake;
  TenancyStore store(fake);
  store.revision = 1;
  tenancy::NodePool pool, none;
  pool.name = "a";
  pool.nodes = "n[1-4]";
  pool.features = {"ib"};
  none.name = "none";
  none.features = {"tape"};
  store.earlier.push_back({pool, none});
  std::vector<std::string> changed;
  bool busy = true;  // n4 is busy when it is looked at for the first time
  fake.on<proto::ListNodes>([&busy](const proto::ListNodes& list) {
    proto::ListNodesReply reply;
    for (const char* name : {"n1", "n2", "n3", "n4", "n5"}) {
      if (!list.nodes.empty() &&
          std::find(list.nodes.begin(), list.nodes.end(), name) == list.nodes.end())
        continue;
      proto::NodeRow& row = reply.nodes.emplace_back();
      row.name = name;
      row.health = NodeHealth::up;
      if (row.name != "n2") row.features = {"ib"};
      if (row.name == "n3") row.intent = NodeIntent::drain;
      if (list.nodes == std::vector<std::string>{"n4"}) row.jobs = std::exchange(busy, false);
    }
    return reply;
  });
  fake.on<proto::UpdateNodes>([&](const proto::UpdateNodes& m) {
    for (const std::string& name : m.nodes)
      changed.push_back(fmt::format("{} {} {}", name, static_cast<int>(m.action), m.reason));
    return proto::Ok{};
  });
  const Run run = fake.run({"gctl", "maintenance", "start", "--pool", "a", "--batch", "10%",
                            "--reason", "firmware", "--check", "test $GANTRY_NODE = n1"});
  CHECK(run.err.empty());
  CHECK(run.out ==
        "n3: left out: it is out of service already\n"
        "n1: drained\nn1: back in service\n"
        "n4: drained\nn4: waits for the jobs there\nn4: failed: stopped; these stay out of "
        "service\n");
  CHECK(run.status == 1);
  CHECK(changed == std::vector<std::string>{"n1 1 firmware", "n1 2 ", "n4 1 firmware",
                                            "n4 1 firmware: failed"});
  const auto refused = [&](std::vector<std::string> more) {
    std::vector<std::string> argv{"gctl", "maintenance", "start", "--check", "true"};
    argv.insert(argv.end(), more.begin(), more.end());
    return fake.run(argv).err;
  };
  CHECK(refused({"--pool", "b"}).find("there is no node pool \"b\"") != std::string::npos);
  CHECK(refused({"--pool", "a,none"}).find("node pool none has no nodes") != std::string::npos);
  CHECK(refused({"--pool", "a", "n1"}).find("one of the three") != std::string::npos);
  CHECK(refused({}).find("one of the three") != std::string::npos);
  CHECK(changed.size() == 4);
}

TEST_CASE("gctl why says which changes would let a job start sooner") {
  FakeController fake;
  fake.answer<proto::ShowJob>(proto::ShowJobReply{{waiting(JobId{12})}, kNow});
  fake.answer<proto::WhatIf>(sooner());
  const Run run = fake.run({"gctl", "why", "12"});
  CHECK(
      run.out.starts_with("job 12 is PENDING\n"
                          "  Its tenant would use 4 cores, and may use 3 cores.\n"
                          "  Its priority is 10000.\n"
                          "  it would start sooner with\n"
                          "    --gpus-per-node=2: at once (2 GPUs on each node instead of 4)\n"
                          "    --time=1:00:00: at "));
  CHECK(fake.last<proto::WhatIf>().job.job == JobId{12});
  CHECK(fake.run({"gctl", "why", "-b", "12"}).out.find("sooner") == std::string::npos);
  CHECK(fake.count(proto::MessageType::WhatIf) == 1);
  proto::WhatIfReply modes;
  modes.modes = {{"n1", 3, "h100", true, "3g.40gb", JobId{12}, 2, true},
                 {"n2", 0, "h100", true, "3g.40gb", JobId{12}, 2, true}};
  fake.answer<proto::WhatIf>(modes);
  CHECK(fake.run({"gctl", "why", "12"})
            .out.ends_with("  it can start only with MIG mode on: an operator can switch GPU 3 of "
                           "n1 and 1 more (gctl mig)\n"));
  fake.answer<proto::WhatIf>(sooner());
  CHECK(fake.run({"gctl", "why", "--json", "12"}).out.find("\"options\": \"--gpus-per-node=2\"") !=
        std::string::npos);
}

TEST_CASE("gctl mig lists the GPUs whose mode an operator could switch") {
  FakeController fake;
  proto::MigModePlan plan;
  fake.answer<proto::PlanMigModes>(plan);
  CHECK(fake.run({"gctl", "mig"}).err ==
        "no job waits for a GPU whose MIG mode could be switched\n");
  plan.rows = {{"n1", 3, "h100", true, "3g.40gb", JobId{12}, 2, true},
               {"n2", 0, "h100", false, "", JobId{14}, 1, false}};
  fake.answer<proto::PlanMigModes>(plan);
  fake.on<proto::ListNodes>([](const proto::ListNodes& list) {
    CHECK(list.nodes == std::vector<std::string>{"n1", "n2"});
    proto::ListNodesReply reply;
    reply.nodes.resize(1);
    reply.nodes[0].name = "n1";
    reply.nodes[0].gpus.gpus.resize(1);
    reply.nodes[0].gpus.gpus[0].index = 3;
    reply.nodes[0].gpus.gpus[0].pci = "0000:3b:00.0";
    return reply;
  });
  CHECK(
      fake.run({"gctl", "mig"}).out ==
      "NODE GPU MODEL MIG FOR        JOBS FIRST WHY               COMMAND\n"
      "n1     3 h100  on  3g.40gb       2    12 the only way      nvidia-smi -i 0000:3b:00.0 -mig "
      "1\n"
      "n2     0 h100  off whole GPUs    1    14 others are in use nvidia-smi -i 0 -mig 0\n");
  CHECK(fake.run({"gctl", "mig", "-ho", "%N:%g %w"}).out == "n1:3 on\nn2:0 off\n");
  CHECK(fake.run({"gctl", "mig", "--json"}).out.find("\"only_way\": true") != std::string::npos);
}

TEST_CASE("gctl checkpointed takes a job id, or the id of the job in which it runs") {
  FakeController fake;
  fake.answer<proto::CheckpointJobs>(proto::JobsDone{1, {}, {}});
  CHECK(fake.run({"gctl", "checkpointed", "12_3"}).status == 0);
  CHECK(fake.last<proto::CheckpointJobs>().jobs.at(0).tasks.size() == 1);
  CHECK(fake.run({"gctl", "checkpointed"}).status == 2);
  CHECK(fake.run({"gctl", "checkpointed"}, {}, {{"GANTRY_JOB_ID", "77"}}).status == 0);
  CHECK(fake.last<proto::CheckpointJobs>().jobs.at(0).job == JobId{77});
}

TEST_CASE("gctl update can change account and reservation of a job") {
  FakeController fake;
  fake.answer<proto::UpdateJob>(proto::JobsDone{});
  CHECK(fake.run({"gctl", "update", "job", "12", "account=vision", "reservation="}).status == 0);
  CHECK(fake.last<proto::UpdateJob>().account == "vision");
  CHECK(fake.last<proto::UpdateJob>().reservation == "");
}

TEST_CASE("gtenant events prints each quota threshold that was reached") {
  FakeController fake;
  proto::TenantEventsReply reply;
  reply.events = {{7, kNow, "fraud", "a100", Resource::gpu, 85, 55'000, 64'000, {}, {}, {}, {}, 0},
                  {8, kNow, "fraud", "", Resource::cpu, 100, 768'000, 768'000, {}, {}, {}, {}, 0}};
  fake.answer<proto::TenantEvents>(reply);
  const Run run = fake.run({"gtenant", "events", "-n", "5", "fraud"});
  CHECK(run.out.find(" fraud uses 55 GPUs of its 64 GPUs of a100: 85 % reached\n") !=
        std::string::npos);
  CHECK(run.out.find(" fraud uses 768 cores of its 768 cores: 100 % reached\n") !=
        std::string::npos);
  CHECK(fake.last<proto::TenantEvents>().limit == 5);
  CHECK(fake.run({"gtenant", "events", "--json"}).out.find("\"percent\":85") != std::string::npos);
}

TEST_CASE("gbatch says whether a deadline can be met") {
  FakeController fake;
  fake.answer<proto::SubmitJob>(submitted());
  fake.answer<proto::ShowJob>(proto::ShowJobReply{{waiting(JobId{12})}, kNow});
  proto::WhatIfReply plan = sooner();
  fake.answer<proto::WhatIf>(plan);
  const std::string script = "#!/bin/sh\n";
  const std::string at = "2036-01-31T12:00";
  Run run = fake.run({"gbatch", "--deadline", at}, script);
  CHECK(run.out == "Submitted batch job 12\n");
  CHECK(run.err.find("gbatch: job 12 is expected to end by ") == 0);
  plan.start = *fake.last<proto::SubmitJob>().spec.deadline - hours(1);
  fake.answer<proto::WhatIf>(plan);
  run = fake.run({"gbatch", "--deadline", at}, script);
  CHECK(run.err.find("gbatch: warning: as things are, job 12 would start at ") == 0);
  CHECK(run.err.find("it would start sooner with --gpus-per-node=2\n") != std::string::npos);
  plan.start.reset();
  fake.answer<proto::WhatIf>(plan);
  run = fake.run({"gbatch", "--deadline", at}, script);
  CHECK(run.err.find("gbatch: when job 12 starts is not known yet") == 0);
  CHECK(fake.run({"gbatch"}, script).err.empty());
}

TEST_CASE("gbatch sends the options that keep jobs apart, and refuses contradictions") {
  FakeController fake;
  fake.answer<proto::SubmitJob>(submitted());
  const std::string script = "#!/bin/sh\n";
  CHECK(fake.run({"gbatch", "--anti-affinity", "web"}, script).status == 0);
  JobShape shape = fake.last<proto::SubmitJob>().spec.shape;
  CHECK(shape.anti_affinity == "web");
  CHECK(shape.anti_affinity_level == "node");
  CHECK(shape.anti_affinity_most == 1);
  CHECK(fake.run({"gbatch", "--anti-affinity", "web:rack:2"}, script).status == 0);
  shape = fake.last<proto::SubmitJob>().spec.shape;
  CHECK(shape.anti_affinity_level == "rack");
  CHECK(shape.anti_affinity_most == 2);
  CHECK(fake.run({"gbatch", "--spread", "rack:3"}, script).status == 0);
  shape = fake.last<proto::SubmitJob>().spec.shape;
  CHECK(shape.anti_affinity.starts_with("spread-"));
  CHECK(shape.anti_affinity_level == "rack");
  CHECK(shape.anti_affinity_most == 3);
  CHECK(fake.run({"gbatch", "--spread", "rack", "--anti-affinity", "web"}, script).status != 0);
  CHECK(fake.run({"gbatch", "--spread", "rack:0"}, script).status != 0);
  CHECK(fake.run({"gbatch", "--anti-affinity", ":rack"}, script).status != 0);
  CHECK(
      fake.run({"gbatch", "--reservation", "course", "--checkpoint-file", "ckpt"}, script).status ==
      0);
  CHECK(fake.last<proto::SubmitJob>().spec.reservation == "course");
  CHECK(fake.last<proto::SubmitJob>().spec.checkpoint_file == "ckpt");
}
