// The charges of running jobs to the quota of their tenants. They follow placements, the tenant of
// each partition, the flavor of each node, and the tenancy itself. The charge of a job is stored as
// it was made, so removing it is the exact inverse.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ctld/sched/change.h"
#include "ctld/sched/tenant/amount.h"
#include "ctld/sched/tenant/quota.h"

namespace gantry::sched {

class Charges {
 public:
  Charges();

  void tenancy_changed(TenancyPtr tenancy);
  void partition_changed(const PartitionChanged& partition);
  void node_changed(const NodeChanged& node);
  void place(const JobPlaced& job);  // replaces the charge of a job that is known
  void release(JobId job, NodeId node);
  void set_end(JobId job, std::optional<Instant> ends_by);
  void settle();  // call it before the tree is used; counts again if needed

  // True if there are no tenants; then the functions below return nothing.
  [[nodiscard]] bool none() const { return tree_->size() == 0; }
  [[nodiscard]] QuotaTree& tree() { return *tree_; }
  [[nodiscard]] const QuotaTree& tree() const { return *tree_; }
  // kNoIndex: the partition belongs to no tenant.
  [[nodiscard]] std::uint32_t quota_node(PartitionId partition) const {
    return partition.value() < tenants_.size() ? tenants_[partition.value()] : kNoIndex;
  }
  [[nodiscard]] std::uint32_t flavor(std::uint32_t node) const {
    return node < flavors_.size() ? flavors_[node] : 0;
  }
  // The jobs that run, by node of the quota tree.
  [[nodiscard]] std::uint32_t running(std::uint32_t tenant) const {
    return static_cast<std::uint32_t>(jobs_of_[tenant].size());
  }
  struct RunningJob {
    JobId job{};
    std::optional<Instant> ends_by;  // end by its limit
  };
  [[nodiscard]] const std::vector<RunningJob>& jobs_of(std::uint32_t tenant) const {
    return jobs_of_[tenant];
  }
  // The tenants with running jobs at the node or below it, by number. Idle tenants cost no time.
  [[nodiscard]] std::vector<std::uint32_t> busy_below(std::uint32_t node) const;
  // needs_of: the amounts that the job takes, one for each flavor; none if the job is not known.
  // tenant_of and ends_by (the end by its limit) need a job that is known.
  [[nodiscard]] std::vector<QuotaNeed> needs_of(JobId job) const;
  [[nodiscard]] std::uint32_t tenant_of(JobId job) const { return held_.at(job).tenant; }
  [[nodiscard]] std::optional<Instant> ends_by(JobId job) const { return held_.at(job).ends_by; }

  [[nodiscard]] std::string audit() const;  // "" or the first thing that is wrong

 private:
  struct Part {
    NodeId node;
    std::uint32_t flavor = 0;
    Resources amount;
  };
  struct Held {
    PartitionId partition{};
    std::uint32_t tenant = kNoIndex;  // as charged
    std::size_t at = 0;               // its index in jobs_of_[tenant]
    std::optional<Instant> ends_by;
    std::vector<Part> parts;
  };
  void charge(JobId job, Held& held);
  void leave_list(Held& held);
  void count_anew();

  TenancyPtr tenancy_;
  std::unique_ptr<QuotaTree> tree_;
  std::vector<std::uint32_t> tenants_;  // quota node by partition
  std::vector<std::uint32_t> flavors_;  // by node
  std::unordered_map<JobId, Held> held_;
  std::vector<std::vector<RunningJob>> jobs_of_;  // by quota node
  std::set<std::uint32_t> busy_;                  // tenants with running jobs
  bool stale_ = false;
};

}  // namespace gantry::sched
