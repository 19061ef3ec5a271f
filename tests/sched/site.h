// A small random site and its facts, independent of the scheduler: nodes of two flavors, a tree of
// quota with tenants, users in projects, classes that preempt, reservations, jobs of one node and
// of several. It makes events, and turns plans into facts as the core would.
#pragma once

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "ctld/sched/cycle/schedule.h"

namespace gantry::sched {

struct SiteOptions {
  bool groups = false;  // some jobs are heterogeneous
  bool slices = false;  // some nodes have GPUs in MIG mode, and some jobs ask for slices
};

class Site {
 public:
  explicit Site(std::uint64_t seed, SiteOptions options = {});

  std::vector<Change> facts() const;

  std::vector<Change> turn();

  std::vector<Change> accept(const Plan& plan);

  Instant now{seconds(1'000'000).us};
  std::map<JobId, JobQueued> waiting;
  std::map<JobId, JobPlaced> running;

 private:
  std::uint64_t pick(std::uint64_t n) { return random_() % n; }
  bool chance(std::uint64_t percent) { return pick(100) < percent; }

  void make_nodes();

  void make_tenancy();

  void submit(std::vector<Change>& changes);

  void cut_gpus(NodeChanged& node);
  void ask_for_slices(JobShape& shape);
  void submit_group(JobQueued job, std::vector<Change>& changes);
  void change_waiting(std::vector<Change>& changes);

  void change_running(std::vector<Change>& changes);

  void change_window(std::vector<Change>& changes);

  // Charges the usage to the user, the project and the tenant, as the core does.
  void charge(const JobPlaced& job, double sign, std::vector<Change>& changes);

  std::mt19937_64 random_;
  SiteOptions options_;
  std::uint32_t tenants_ = 0, first_tenant_ = 0;
  std::uint64_t next_job_ = 1;
  TenancyPtr tenancy_;
  std::vector<NodeChanged> nodes_;
  std::vector<PartitionChanged> partitions_;
  std::map<std::uint32_t, ShareChanged> shares_;
  std::map<std::string, ReservationChanged> windows_;
};

}  // namespace gantry::sched
