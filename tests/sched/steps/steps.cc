#include "tests/sched/steps/steps.h"

#include <string>

namespace gantry::sched::steps {
namespace {

constexpr std::uint32_t kNodes = 3;

QuotaNode& add_tenant(Tenancy& tenancy, const std::string& name, std::int64_t cores) {
  QuotaNode& tenant = tenancy.nodes.emplace_back();
  tenant.name = name;
  tenant.tenant = true;
  FlavorLimits& limits = tenant.limits.emplace_back();
  limits.nominal.fill(kUnlimited);
  limits.nominal[static_cast<std::size_t>(Resource::cpu)] = cores * 1000;
  return tenant;
}

std::shared_ptr<Tenancy> with_classes() {
  auto tenancy = std::make_shared<Tenancy>();
  tenancy->flavors.resize(1);
  tenancy->classes.resize(2);
  for (ClassView& c : tenancy->classes) c.grace = kGrace;
  tenancy->classes[kUrgent].value = 900;
  tenancy->classes[kUrgent].preempts = true;
  return tenancy;
}

}  // namespace

TenancyPtr red_alone(std::int64_t cores) {
  auto tenancy = with_classes();
  QuotaNode& red = add_tenant(*tenancy, "red", cores);
  red.max_running = 2;
  red.limits[0].borrow.fill(0);
  return tenancy;
}

TenancyPtr red_and_blue(std::int64_t red, std::int64_t blue) {
  auto tenancy = with_classes();
  QuotaNode& cohort = tenancy->nodes.emplace_back();
  cohort.name = "all";
  cohort.limits.resize(1);
  for (const auto& [name, cores] : {std::pair{"red", red}, {"blue", blue}}) {
    QuotaNode& tenant = add_tenant(*tenancy, name, cores);
    tenant.parent = 0;
    tenant.limits[0].borrow.fill(kUnlimited);
    tenant.limits[0].lend.fill(kUnlimited);
  }
  return tenancy;
}

Steps::Steps(const TenancyPtr& tenancy) {
  replica.apply(TenancyChanged{tenancy});
  std::vector<PartitionChanged> partitions;
  for (std::uint32_t n = 0; n < tenancy->nodes.size(); ++n) {
    if (!tenancy->nodes[n].tenant) continue;
    PartitionChanged& partition = partitions.emplace_back();
    partition.partition = PartitionId{static_cast<std::uint32_t>(partitions.size() - 1)};
    partition.name = tenancy->nodes[n].name;
    partition.quota_node = n;
  }
  for (std::uint32_t n = 0; n < kNodes; ++n) {
    NodeChanged& node = nodes_.emplace_back();
    node.node = NodeId{n};
    node.name = "n" + std::to_string(n);
    node.available = true;
    node.cpus = {0, 1, 2, 3};
    node.memory = 1 << 20;
    replica.apply(node);
    for (PartitionChanged& partition : partitions) partition.nodes.push_back(node.node);
  }
  for (const PartitionChanged& partition : partitions) replica.apply(partition);
  policy.keep_reservations = true;
  policy.everything = seconds(1);
}

JobQueued Steps::job(std::uint32_t cpus, Duration limit, std::uint32_t partition,
                     std::uint32_t priority_class) {
  JobQueued job;
  job.job = JobId{++last};
  job.key.partition = PartitionId{partition};
  job.key.priority_class = priority_class;
  job.key.shape.cpus_per_task = cpus;
  job.key.time_limit = limit;
  job.queued_since = kNow;
  job.rank = replica.tenancy().classes[priority_class].value;
  return job;
}

JobId Steps::submit(const JobQueued& job) {
  replica.apply(job);
  return job.job;
}

JobId Steps::run(std::uint32_t node, std::vector<std::uint16_t> cpus, Instant until,
                 std::uint32_t partition) {
  JobPlaced job;
  job.job = JobId{++last};
  job.partition = PartitionId{partition};
  NodeGrant grant;
  grant.node = NodeId{node};
  grant.cpus = std::move(cpus);
  grant.tasks = 1;
  job.grants = {grant};
  job.ends_by = until;
  job.started = kNow;
  job.rank = replica.tenancy().classes[0].value;
  replica.apply(job);
  return job.job;
}

void Steps::fill(Instant until, std::uint32_t partition) {
  for (std::uint32_t n = 0; n < kNodes; ++n) run(n, {0, 1, 2, 3}, until, partition);
}

void Steps::set_available(std::uint32_t node, bool available) {
  nodes_[node].available = available;
  replica.apply(nodes_[node]);
}

Draft Steps::draft() {
  View& v = replica.view();
  v.eligible.begin_plan();
  v.charges.settle();
  v.timeline.begin(now);
  replica.left().requests.begin(v.eligible.generation());
  return Draft(v, replica.left(), now, policy);
}

JobClass& Steps::class_of(JobId job) {
  View& v = replica.view();
  JobClass& c = v.queue.job_class(v.queue.line(v.queue[*v.queue.find(job)].line).class_index);
  v.eligible.refresh(c, v.grid);
  return c;
}

const Waiting& Steps::waiting(JobId job) {
  return replica.view().queue[*replica.view().queue.find(job)];
}

std::int64_t Steps::used(std::uint32_t tenant) {
  return replica.view().charges.tree().usage(tenant, 0, Resource::cpu);
}

LineTurn Steps::turn_of(JobId job) {
  const JobClass& c = class_of(job);
  LineTurn turn;
  turn.first = waiting(job);
  turn.line = turn.first.line;
  turn.class_index = c.index;
  turn.partition = c.key.partition.value();
  turn.at = replica.queue().line(turn.line).jobs.begin();
  return turn;
}

LineTurn Steps::blocked(Draft& draft, JobId job, Blocked::By by) {
  LineTurn turn = turn_of(job);
  turn.head = turn.at;
  turn.head_job = turn.first;
  draft.block(turn, Blocked{by, {}});
  draft.partition(turn.partition).begun = true;
  return turn;
}

std::vector<JobId> Steps::running_on(std::uint32_t node) {
  std::vector<JobId> jobs;
  for (const std::uint32_t slot : replica.running().on_node(node))
    jobs.push_back(replica.running()[slot].job);
  return jobs;
}

Making::Making(Steps& steps)
    : d(steps.draft()),
      trial(d),
      quota(d, trial),
      slices(d, trial),
      nodes(d),
      book(d),
      starter(d, trial, quota),
      ahead(d, quota, nodes, book, slices),
      victims(d, quota, nodes, book) {
  d.left.memory.forget_changes();
}

void Making::begin_order() {
  const View& v = d.view;
  d.order.emplace(
      v.queue, nullptr, &v.charges.tree(), d.now,
      [this](std::uint32_t partition, std::uint32_t class_index) {
        return quota.standing(partition, class_index);
      },
      d.left.memory.keys, v.queue.busy(), std::nullopt);
}

Reservation reservation(JobId job, Instant start, std::uint32_t node) {
  Reservation r;
  r.job = job;
  r.start = start;
  r.shares = {{node, 1}};
  return r;
}

}  // namespace gantry::sched::steps
