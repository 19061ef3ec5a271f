// Random clusters with tenants for the tests of preemption: a tree of quota, nodes with GPUs, and
// jobs that hold them within the quota.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ctld/sched/preempt/preempt.h"

namespace gantry::sched {

struct TenantsOptions {
  std::uint32_t tenants = 4;
  bool quota = true;        // otherwise: tenants without any
  bool flavors = true;      // otherwise: flavor 0 only
  bool lending = true;      // limits on lending and borrowing
  bool single = false;      // nodes of one GPU, jobs of many nodes
  bool guaranteed = false;  // all that is there is somebody's nominal quota
  bool any_victim = false;  // every class is preemptible, at any time, as often as one likes
  bool one_class = false;
  bool large = false;  // one cohort, ten nodes of eight GPUs, jobs of one to 32 GPUs anywhere
};

class Tenants {
 public:
  Tenants(std::uint64_t seed, TenantsOptions options);

  // One that does not run yet.
  JobPlaced random_job();
  // Puts a job on nodes of one flavor, if there is room and quota.
  bool start(JobPlaced job);
  void stop(JobId job);
  void fill();  // with random jobs, some of them on their way out

  struct Asking {
    JobClass cls;
    NodeChoice choice;
    QuotaNeed need;
  };
  // A job as a class that asks for victims.
  Asking ask(const JobPlaced& job);
  PreemptRequest request(const Asking& asking) {
    return {.grid = grid,
            .running = running,
            .eligible = eligible,
            .quota = *quota,
            .cls = asking.cls,
            .choice = asking.choice,
            .need = asking.need,
            .now = now};
  }

  [[nodiscard]] std::uint32_t tenant_of(const JobPlaced& job) const {
    return partitions[job.partition.value()].quota_node;
  }
  [[nodiscard]] QuotaNeed use_of(const JobPlaced& job) const;
  // Would it have room, were these gone, and all that are leaving? On nodes of the choice.
  [[nodiscard]] bool has_room(const Asking& asking, const std::vector<JobId>& gone) const;
  [[nodiscard]] bool has_quota(const Asking& asking, const std::vector<JobId>& gone);

  std::uint64_t pick(std::uint64_t n) {
    return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random_);
  }
  bool chance(int percent) { return pick(100) < static_cast<std::uint64_t>(percent); }

  Instant now{hours(100).us};
  std::vector<NodeChanged> nodes;
  std::vector<PartitionChanged> partitions;
  std::map<JobId, JobPlaced> jobs;  // running
  Grid grid;
  Running running;
  Eligible eligible;
  std::unique_ptr<QuotaTree> quota;

 private:
  void make_tree(Tenancy& tree, std::int64_t capacity);
  FlavorLimits random_limits(bool tenant);

  std::mt19937_64 random_;
  TenantsOptions options_;
  std::uint64_t next_job_ = 1;
};

}  // namespace gantry::sched
