// A site, on which a trace is replayed: the cluster, and a policy on it.
//
// A cluster is a gantry.yaml, or in short NODESxCOUNTgpu ("90x8gpu") or NODESxCOUNTcpu.
//
// A policy is a comma-separated list of files and folders of tenants' documents, and of switches:
//   reservations=N|all   how many jobs of each tenant's queue get a reservation: 1 is EASY, all is
//                        conservative backfill
//   ahead=N              how many of the first blocked jobs of all queues together get one too
//   fair_share=on|off    fair share inside tenants
//   quota=on|off  preemption=on|off  promises=on|off
//   balance=30m|on|off   a job may have to leave for a job of the same class, of a tenant that
//                        borrows less, if it has run for no longer than this (since its last
//                        checkpoint); on: however long it has run
//   oldest_first_after=72h|off  the option of gantry.yaml, with the same default
//   deadlines=on|off     on: a job with a due time has it as its --deadline, and is
//                        given up when it cannot end by then; off (default): late jobs are only
//                        counted
//   half_life=7d         half-life of usage in the fair share
//   tenants=mean         instead of documents: each tenant of the trace gets its mean use over the
//                        trace as nominal quota, and all are in one cohort
//   draw=N               for tenants=mean: each nominal quota is multiplied by a number of 0.25 to
//                        2, which is drawn with this seed
// Without documents all jobs share one queue.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/config.h"
#include "ctld/core/state/tenancy_compile.h"
#include "ctld/replay/trace.h"
#include "ctld/sched/change.h"
#include "ctld/sched/cycle/schedule.h"
#include "ctld/sched/policy.h"

namespace gantry::replay {

struct Cluster {
  std::string name;
  std::vector<NodeConfig> nodes;
  std::vector<PartitionConfig> partitions;  // from a gantry.yaml
  Resource unit = Resource::gpu;            // the unit of processors in the trace, and of shares
  std::int64_t total = 0;                   // GPUs, or whole cores
};
Result<Cluster> read_cluster(const std::string& text);

struct PolicyChoice {
  std::string label;
  std::vector<std::string> paths;  // files and folders of documents
  bool mean_tenants = false;
  std::optional<std::uint32_t> draw;  // seed for drawing the quota
  sched::Policy switches;
  Duration half_life = hours(7 * 24);
  Duration oldest_first_after = ControllerConfig{}.oldest_first_after;
  bool deadlines = false;
};
Result<PolicyChoice> parse_policy(const std::string& text);

// A cluster with a policy: what the replica is told before the first job.
struct Site {
  std::string label;
  sched::Policy switches;
  core::CompiledTenancy compiled;  // without tenants it has one queue
  bool has_tenants = false;
  Duration oldest_first_after{};
  bool deadlines = false;
  std::vector<sched::NodeChanged> nodes;
  std::vector<sched::PartitionChanged> queues;  // by PartitionId
  // Queues of tenants, and partitions of gantry.yaml.
  std::map<std::string, std::uint32_t> queue_of;
  std::vector<std::string> notes;
};
Result<Site> make_site(const Cluster& cluster, const PolicyChoice& policy, const Trace& trace);

// Makes the documents for tenants=mean.
std::vector<tenancy::Document> mean_tenants(const Cluster& cluster, const Trace& trace,
                                            std::optional<std::uint32_t> draw = std::nullopt);

// The shape of the job on this cluster. The error says why the job can never run there.
Result<JobShape> shape_of(const TraceJob& job, const Cluster& cluster);

}  // namespace gantry::replay
