#include "tests/cli/samples.h"

namespace gantry::test {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

proto::JobRow job(std::uint64_t id, std::string name, std::string user) {
  proto::JobRow row;
  row.job = JobId{id};
  row.name = std::move(name);
  row.user = std::move(user);
  row.uid = Uid{1000};
  row.partition = "batch";
  row.submitted = kNow - minutes(90);
  row.eligible = row.submitted;
  row.nodes = 1;
  row.cpus = 1;
  row.tasks = 1;
  row.time_limit = hours(1);
  row.priority = 1000;
  return row;
}

proto::NodeRow node(std::string name, NodeHealth health, NodeIntent intent) {
  proto::NodeRow row;
  row.name = std::move(name);
  row.address = "10.0.0.1:6871";
  row.health = health;
  row.intent = intent;
  row.partitions = {"batch"};
  row.total.row(Resource::cpu) = 64'000;
  row.total.row(Resource::memory) = 250 * kGiB;
  row.runtime = "crun 1.8.1";
  row.version = "0.1.0";
  row.last_seen = kNow;
  row.sockets = 2;
  row.cores_per_socket = 32;
  row.free_memory = 100 * kGiB;
  row.load = 3.5;
  return row;
}

}  // namespace

std::vector<proto::JobRow> sample_jobs() {
  std::vector<proto::JobRow> rows;
  proto::JobRow running = job(12, "train", "alice");
  running.phase = Phase::running;
  running.started = kNow - minutes(62);
  running.time_limit = hours(26);
  running.nodes = 4;
  running.cpus = 256;
  running.node_list = "n[01-04]";
  running.memory_per_node = 8 * kGiB;
  running.account = "vision";
  running.gpus = 16;
  running.reservation = "course";
  rows.push_back(running);

  proto::JobRow element = job(14, "sweep", "bob");
  element.array_job = JobId{13};
  element.array_task = 3;
  element.phase = Phase::starting;
  element.started = kNow;
  element.node_list = "n05";
  rows.push_back(element);

  proto::JobRow rest = job(13, "sweep", "bob");
  rest.array_job = JobId{13};
  rest.array_tasks = "4-9%2";
  rest.verdict = {Reason::array_task_limit, 2, 2, ""};
  rows.push_back(rest);

  proto::JobRow blocked = job(15, "a name with \x1b[31mcolour\x07", "carol");
  blocked.verdict = {Reason::resources, 2, 4, ""};
  blocked.nodes = 4;
  blocked.time_limit = std::nullopt;
  blocked.expected_start = kNow + hours(2);
  rows.push_back(blocked);

  proto::JobRow oom = job(11, "grows", "alice");
  oom.phase = Phase::ended;
  oom.outcome = Outcome::out_of_memory;
  oom.started = kNow - minutes(20);
  oom.ended = kNow - minutes(18);
  oom.exit = {0, 9};
  oom.node_list = "n01";
  rows.push_back(oom);
  return rows;
}

std::vector<proto::NodeRow> sample_nodes() {
  std::vector<proto::NodeRow> rows;
  rows.push_back(node("n01", NodeHealth::up, NodeIntent::open));
  rows.push_back(node("n02", NodeHealth::up, NodeIntent::open));
  rows.push_back(node("n03", NodeHealth::up, NodeIntent::open));
  rows.push_back(node("n04", NodeHealth::up, NodeIntent::drain));
  rows.push_back(node("n05", NodeHealth::lost, NodeIntent::open));
  rows.push_back(node("dev1", NodeHealth::down, NodeIntent::open));
  rows[0].jobs = 2;
  rows[0].allocated.row(Resource::cpu) = 64'000;
  rows[1].jobs = 1;
  rows[1].allocated.row(Resource::cpu) = 16'000;
  rows[0].top = {
      {JobId{12}, "12", "alice", "batch", 0, "h100", 93u, 61'000, 81'559, 410u, seconds(0), true},
      {JobId{9}, "9_3", "bob", "debug", 1, "h100 1g.10gb", {}, 3, 9'728, {}, minutes(41), false}};
  rows[3].reason = "new memory";
  rows[3].reason_by = "root";
  rows[3].since = kNow - hours(3);
  rows[4].features = {"ib"};
  rows[5].partitions = {"debug"};
  rows[5].last_seen.reset();
  rows[5].runtime.clear();
  return rows;
}

std::vector<proto::PartitionRow> sample_partitions() {
  std::vector<proto::PartitionRow> rows(2);
  rows[0].name = "batch";
  rows[0].is_default = true;
  rows[0].nodes = {"n01", "n02", "n03", "n04", "n05"};
  rows[0].max_time = hours(24 * 7);
  rows[1].name = "debug";
  rows[1].nodes = {"dev1"};
  rows[1].default_time = minutes(10);
  rows[1].max_time = minutes(30);
  rows[1].max_nodes = 1;
  return rows;
}

std::vector<proto::HistoryRow> sample_history() {
  std::vector<proto::HistoryRow> rows(3);
  rows[0].row = sample_jobs()[0];
  rows[0].usage = {3'600'000'000, 61'500'000, 5 * kGiB, 0, 4096, {}};
  rows[0].alloc_memory = 32 * kGiB;
  rows[0].work_dir = "/home/alice";
  rows[0].waits = {{Reason::tenant_quota, minutes(42)}, {Reason::priority, seconds(95)}};
  proto::StepRow step;
  step.step = "batch";
  step.name = "batch";
  step.running = true;
  step.started = *rows[0].row.started;
  step.tasks = 1;
  step.cpus = 64;
  step.node_list = "n01";
  step.usage = {3'600'000'000, 61'500'000, 5 * kGiB, 0, 4096, {}};
  rows[0].steps.push_back(step);
  rows[1].row = sample_jobs()[4];
  rows[1].usage = {1'250'000, 250'000, 64 << 20, 1 << 20, 0, {}};
  GpuUsage gpu;
  gpu.uuid = "GPU-1";
  gpu.name = "h100";
  gpu.node = "n01";
  gpu.start = *rows[0].row.started;
  gpu.samples = gpu.busy_samples = 20;
  gpu.busy_permille = 734;
  gpu.memory_mib = 81'559;
  gpu.memory_peak_mib = 61'000;
  gpu.energy_j = 48'000;
  gpu.last_busy = gpu.last_process = kNow - seconds(90);
  gpu.scrub = GpuScrub::done;
  rows[1].usage.gpus = {gpu};
  rows[1].cause = "killed on n01: used 64M of its 64M";
  rows[2].row = sample_jobs()[3];
  rows[2].row.phase = Phase::ended;
  rows[2].row.outcome = Outcome::cancelled;
  rows[2].row.ended = kNow;
  rows[2].cause = "cancelled by carol (uid 1002)";
  return rows;
}

proto::JobDetail sample_detail() {
  proto::JobDetail detail;
  detail.row = sample_jobs()[0];
  detail.spec.name = "train";
  detail.spec.work_dir = "/home/alice";
  detail.spec.submit_line = "gbatch train.sh";
  detail.spec.dependencies = {{DependencyKind::after_ok, JobId{10}, std::nullopt, {}}};
  detail.spec.shape.min_nodes = 4;
  detail.spec.shape.tasks = 4;
  detail.owner.user = "alice";
  detail.owner.uid = Uid{1000};
  detail.owner.gid = Gid{100};
  detail.placement = {{"n01", {0, 1, 2, 3}, 8 * kGiB, 0, 1, {}, {}},
                      {"n02", {0, 1, 8}, 8 * kGiB, 0, 1, {}, {}}};
  detail.usage = {3'600'000'000, 61'500'000, 5 * kGiB, 0, 4096, {}};
  detail.attempt = 1;
  return detail;
}

}  // namespace gantry::test
