// Runs random demand for slices (mig_demand.h) through the controller's scheduler: jobs are queued
// in a replica, planned by schedule(), placed and released. Cores and memory are plenty here; only
// slices are short.
#include <map>
#include <queue>
#include <set>

#include "common/assert.h"
#include "ctld/sched/cycle/schedule.h"
#include "tests/sched/mig/mig_arrivals.h"
#include "tests/sched/mig/mig_world.h"

namespace gantry::sched {
namespace {

constexpr Instant kBegin{seconds(1'000'000).us};

class Cycles {
 public:
  Cycles(const MigTable& table, const DemandSetup& setup)
      : table_(table), setup_(setup), arrivals_(table, setup), count_(table, setup) {
    policy_.keep_reservations = true;
    PartitionChanged partition;
    partition.name = "main";
    for (std::uint32_t n = 0; n < setup.nodes; ++n) {
      NodeChanged node;
      node.node = NodeId{n};
      node.name = "n" + std::to_string(n);
      node.available = true;
      for (std::uint16_t c = 0; c < 128; ++c) node.cpus.push_back(c);
      node.memory = std::int64_t{1} << 40;
      for (std::uint16_t g = 0; g < setup.gpus_per_node; ++g)
        node.devices.push_back({g, -1, true, "h100", {}, false, {}});
      node.geometries = {h100_geometry()};
      replica_.apply(node);
      partition.nodes.push_back(node.node);
    }
    replica_.apply(partition);
  }

  DemandResult run() {
    Instant first{};
    for (std::uint32_t i = 0; i < setup_.jobs + setup_.jobs / 10; ++i) {
      const Arrivals::Job job = arrivals_.next();
      if (i == setup_.jobs / 10) first = job.at;
      events_until(job.at);
      now_ = job.at;
      count_.asked(job);
      arrive(job);
    }
    const Instant last = now_;
    events_until(last + setup_.patience + seconds(1));
    return count_.result(static_cast<double>((last - first).us) * 1e-6);
  }

 private:
  struct Event {
    Instant at;
    bool end = false;  // true for the end of a job, false for the end of its patience
    JobId job;
    bool operator>(const Event& o) const {
      return std::tie(at, end, job) > std::tie(o.at, o.end, o.job);
    }
  };
  [[nodiscard]] Instant clock() const { return kBegin + (now_ - Instant{}); }

  void arrive(const Arrivals::Job& job) {
    JobQueued queued;
    queued.job = job.id;
    queued.key.partition = PartitionId{0};
    queued.key.shape.memory_per_node = 1 << 20;
    queued.key.shape.gpus_per_node = 1;
    queued.key.shape.gpu_slice = table_.profiles()[job.profile].name;
    if (setup_.ends != KnownEnds::none) queued.key.time_limit = job.limit;
    queued.queued_since = clock();
    replica_.apply(queued);
    waiting_.emplace(job.id, job);
    if (setup_.patience > Duration{}) events_.push({job.at + setup_.patience, false, job.id});
    plan();
    if (setup_.patience == Duration{}) refuse(job.id);
  }

  void events_until(Instant t) {
    while (!events_.empty() && events_.top().at <= t) {
      const Event e = events_.top();
      events_.pop();
      now_ = e.at;
      if (!e.end) {
        refuse(e.job);
        continue;
      }
      replica_.apply(NodeReleased{e.job, runs_on_.at(e.job)});
      runs_on_.erase(e.job);
      if (!waiting_.empty()) plan();
    }
  }

  void refuse(JobId job) {
    const auto at = waiting_.find(job);
    if (at == waiting_.end()) return;
    count_.refused(at->second);
    waiting_.erase(at);
    replica_.apply(JobUnqueued{job});
  }

  void plan() {
    const Plan plan = schedule(replica_, clock(), policy_);
    for (const Start& s : plan.starts) {
      const Arrivals::Job job = waiting_.at(s.job);
      waiting_.erase(s.job);
      replica_.apply(JobUnqueued{s.job});
      JobPlaced placed;
      placed.job = s.job;
      placed.grants = s.grants;
      if (setup_.ends != KnownEnds::none) placed.ends_by = clock() + job.limit;
      replica_.apply(placed);
      runs_on_.emplace(s.job, s.grants[0].node);
      events_.push({now_ + job.run, true, s.job});
      count_.started(job, now_ - job.at);
    }
  }

  const MigTable& table_;
  const DemandSetup& setup_;
  Arrivals arrivals_;
  Count count_;
  Policy policy_;
  Replica replica_;
  Instant now_{};
  std::map<JobId, Arrivals::Job> waiting_;
  std::map<JobId, NodeId> runs_on_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace

DemandResult through_the_cycle(const DemandSetup& setup, const MigTable& table) {
  return Cycles(table, setup).run();
}

}  // namespace gantry::sched
