// Random clusters with tenants for the tests of preemption: a tree of quota, nodes with GPUs, and
// running jobs within the quota.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ctld/sched/preempt/preempt.h"

namespace gantry::sched {

struct TenantsOptions {
  std::uint32_t tenants = 4;
  bool quota = true;        // otherwise the tenants have no quota
  bool flavors = true;      // otherwise there is only flavor 0
  bool lending = true;      // there are limits on lending and borrowing
  bool single = false;      // nodes have one GPU, jobs have many nodes
  bool guaranteed = false;  // all resources are nominal quota of some tenant
  bool any_victim = false;  // every class can be preempted at any time, any number of times
  bool one_class = false;
  bool large = false;  // one cohort, ten nodes of eight GPUs, jobs of 1 to 32 GPUs anywhere
};

class Tenants {
 public:
  Tenants(std::uint64_t seed, TenantsOptions options);

  // Makes a job that does not run yet.
  JobPlaced random_job();
  // Starts a job on nodes of one flavor, if there is room and quota.
  bool start(JobPlaced job);
  void stop(JobId job);
  void fill();  // starts random jobs, some of which are leaving

  struct Asking {
    JobClass cls;
    NodeChoice choice;
    QuotaNeed need;
  };
  // Makes the request of a class that searches for victims.
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
  // Returns true if the job would fit on its nodes without the jobs in `gone` and without those
  // that are leaving.
  [[nodiscard]] bool has_room(const Asking& asking, const std::vector<JobId>& gone) const;
  [[nodiscard]] bool has_quota(const Asking& asking, const std::vector<JobId>& gone);

  std::uint64_t pick(std::uint64_t n) {
    return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random_);
  }
  bool chance(int percent) { return pick(100) < static_cast<std::uint64_t>(percent); }

  Instant now{hours(100).us};
  std::vector<NodeChanged> nodes;
  std::vector<PartitionChanged> partitions;
  std::map<JobId, JobPlaced> jobs;  // the running jobs
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
