#include "tests/slurm/queue_of_slurm.h"

#include "tests/cli/samples.h"

namespace gantry::test {
namespace {

proto::JobDetail detail_of(const proto::JobRow& row) {
  proto::JobDetail detail = sample_detail();
  detail.row = row;
  detail.spec.name = row.name;
  detail.spec.given.tasks = detail.spec.given.gres = true;
  detail.spec.wckey = "submitit";
  detail.spec.script_path = "/home/alice/train.sh";
  detail.spec.comment = "two words";
  detail.spec.priority_class = "normal";
  detail.spec.shape.gpus_per_node = 4;
  detail.spec.shape.gpu_models = {"a100"};
  detail.spec.shape.constraint = "ib&ssd";
  detail.spec.std_out = row.array_job.value() != 0 ? "slurm-%A_%a.out" : "slurm-%j.out";
  if (row.node_list.empty()) detail.placement.clear();
  if (row.phase == Phase::queued) detail.waits_for = {{detail.spec.dependencies[0], false}};
  return detail;
}

proto::JobRow waits_in_two() {
  proto::JobRow row;
  row.job = JobId{31};
  row.partition = "day,night";
  row.queue_priorities = {300, 200};
  return row;
}

proto::ShowStatsReply sample_stats() {
  proto::ShowStatsReply stats;
  stats.values = {{"submits_total", 12},       {"starts_total", 9},     {"plans_total", 7},
                  {"plan_classes_total", 21},  {"plan_us_last", 180},   {"plan_us_most", 950},
                  {"plan_us_total", 3700},     {"backfilled_total", 2}, {"jobs_completed_total", 5},
                  {"jobs_cancelled_total", 2}, {"jobs_failed_total", 1}};
  stats.since = kNow;
  stats.calls = {{"ListJobs", 40, Duration{8000}}, {"SubmitJob", 12, Duration{9000}}};
  stats.callers = {{"root", 50, Duration{16000}}, {"no-such-user", 2, Duration{1000}}};
  return stats;
}

}  // namespace

void fill_queue(FakeController& fake) {
  fake.on<proto::ListJobs>([](const proto::ListJobs& list) {
    proto::ListJobsReply reply;
    reply.now = kNow;
    const bool day = list.filter.partitions == std::vector<std::string>{"day"};
    if (day) reply.rows = {waits_in_two()};
    for (const proto::JobRow& row : sample_jobs())
      if (!day && (list.filter.jobs.empty() || list.filter.jobs[0].job == row.job))
        reply.rows.push_back(row);
    for (const proto::JobRef& ref : list.filter.jobs)
      if (ref.job == JobId{99}) reply.unknown.push_back(ref);
    return reply;
  });
  fake.answer<proto::ListNodes>(proto::ListNodesReply{sample_nodes(), kNow});
  fake.answer<proto::ListPartitions>(proto::ListPartitionsReply{sample_partitions()});
  fake.answer<proto::ShowConfig>(
      proto::ShowConfigReply{{{"controller.min_job_age", "5m"}, {"controller.kill_wait", "30s"}}});
  proto::PingReply ping;
  ping.cluster = "fake";
  ping.now = ping.started = kNow;
  fake.answer<proto::Ping>(ping);
  proto::ReservationRow reservation;
  reservation.name = "course";
  reservation.node_list = "n[01-02]";
  reservation.nodes = 2;
  reservation.start = kNow;
  reservation.end = kNow + hours(2);
  reservation.users = {"alice"};
  fake.answer<proto::ListReservations>(proto::ListReservationsReply{{reservation}, {}, kNow});
  proto::StepPermission seen;
  seen.key = {JobId{12}, Attempt{1}};
  seen.tasks = 3;
  seen.nodes = {{"n01", "", "", {}, 0, 2, {0, 2}}, {"n02", "", "", {}, 1, 1, {1}}};
  fake.answer<proto::StepAttach>(proto::StepGranted{codec::encode(seen), {}, false, true});
  proto::TriggerList triggers;
  triggers.triggers = {{TriggerId{3},
                        Uid{1001},
                        "alice",
                        {proto::TriggerOn::time},
                        JobId{12},
                        {},
                        Duration{} - seconds(600),
                        "/home/alice/warn",
                        false},
                       {TriggerId{4},
                        Uid{0},
                        "root",
                        {proto::TriggerOn::down, proto::TriggerOn::drained},
                        {},
                        {"n01", "n02"},
                        {},
                        "/usr/sbin/down",
                        true},
                       {TriggerId{5},
                        Uid{0},
                        "root",
                        {proto::TriggerOn::idle},
                        {},
                        {},
                        seconds(300),
                        "/usr/sbin/idle",
                        false}};
  fake.answer<proto::ListTriggers>(triggers);
  fake.answer<proto::ClearTriggers>(proto::TriggerList{{triggers.triggers.front()}});
  fake.answer<proto::ShareTree>(sample_shares());
  fake.answer<proto::PriorityTuples>(sample_priorities());
  fake.answer<proto::ShowStats>(sample_stats());
  fake.answer<proto::ResetStats>(proto::Ok{});
  tenancy::Tenant fraud;
  fraud.name = "fraud";
  fraud.projects = {{"retraining", 3, {{"alice", 2}}}, {"research", 1, {}}};
  fraud.grants = {{tenancy::Role::user, "alice", ""},
                  {tenancy::Role::viewer, "carol", ""},
                  {tenancy::Role::tenant_admin, "bob", ""}};
  fraud.default_class = "normal";
  fraud.allowed_classes = {"best-effort", "normal"};
  tenancy::PriorityClass normal;
  normal.name = "normal";
  fake.answer<proto::GetTenancy>(proto::TenancyDocuments{3, {fraud, normal}, {}});
  fake.answer<proto::ApplyTenancy>(proto::TenancyPlanned{});
  fake.on<proto::QueryHistory>([](const proto::QueryHistory& query) {
    proto::HistoryReply reply;
    reply.now = kNow;
    reply.rows = sample_history();
    if (!query.filter.jobs.empty())
      std::erase_if(reply.rows, [&](const proto::HistoryRow& job) {
        return job.row.job != query.filter.jobs[0].job;
      });
    return reply;
  });
  fake.on<proto::ShowJob>([](const proto::ShowJob& show) {
    proto::ShowJobReply reply;
    reply.now = kNow;
    for (const proto::JobRow& row : sample_jobs())
      if (row.job == show.job.job) reply.jobs.push_back(detail_of(row));
    return reply;
  });
}

}  // namespace gantry::test
