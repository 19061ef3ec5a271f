// State: everything the controller knows that survives a restart, and the indexes over it. Tables
// are durable (record.h); members marked as derived are rebuilt by apply() and by load.
//
// apply() (apply.h) and loading are the only code that changes it, as a MutableState
// (mutable_state.h); everybody else has a const State&.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tsl/robin_map.h>

#include "common/fields.h"
#include "common/types.h"
#include "ctld/core/state/budget_state.h"
#include "ctld/core/state/display_id.h"
#include "ctld/core/state/job.h"
#include "ctld/core/state/job_table.h"
#include "ctld/core/state/ledger_state.h"
#include "ctld/core/state/names.h"
#include "ctld/core/state/node.h"
#include "ctld/core/state/node_sets.h"
#include "ctld/core/state/secret_state.h"
#include "ctld/core/state/service_state.h"
#include "ctld/core/state/tenancy_state.h"
#include "ctld/core/state/trigger_state.h"
#include "ctld/core/state/use_state.h"
#include "ctld/sched/change.h"
#include "ctld/sched/queue/geometry.h"
#include "ctld/store/store.h"

namespace gantry::core {

// Jobs with equal shape, partition and limit. The scheduler gives one verdict for a whole class.
struct JobClass {
  sched::ClassKey key;
  std::uint32_t users = 0;
  std::uint64_t number = 0;  // 1.., never used again, although the ClassId may be
};

class ClassTable {
 public:
  ClassId add(const sched::ClassKey& key);
  void drop(ClassId id);
  [[nodiscard]] const JobClass& at(ClassId id) const { return classes_[id.value()]; }

 private:
  struct Hash {
    std::size_t operator()(const sched::ClassKey& key) const { return sched::hash_of(key); }
  };
  std::deque<JobClass> classes_;
  std::vector<ClassId> free_;
  std::unordered_map<sched::ClassKey, ClassId, Hash> ids_;
  std::uint64_t last_number_ = 0;
};

// How many specs of each user use a stored script or environment. The next fold removes unused
// ones.
class BlobUses {
 public:
  // True if the user did not use it before: its bytes count for the user from now on.
  bool add(const store::Digest& digest, Uid user);
  [[nodiscard]] bool used_by(const store::Digest& digest, Uid user) const;
  // Returns true if it was the user's last use.
  bool drop(const store::Digest& digest, Uid user);
  [[nodiscard]] bool known(const store::Digest& digest) const { return uses_.contains(digest); }
  std::vector<store::Digest> take_unused();

 private:
  struct Hash {
    std::size_t operator()(const store::Digest& d) const {
      std::size_t h = 0;
      static_assert(sizeof(h) <= sizeof(d));
      std::memcpy(&h, d.data(), sizeof h);
      return h;
    }
  };
  using Uses = std::vector<std::pair<Uid, std::uint32_t>>;  // sorted; nearly always one
  std::unordered_map<store::Digest, Uses, Hash> uses_;
  std::vector<store::Digest> unused_;
};

// The target of a dependency: a job, or one task of an array (no task: all of them).
struct DependencyKey {
  JobId job{};
  std::optional<std::uint32_t> task;
  friend auto operator<=>(const DependencyKey&, const DependencyKey&) = default;
};

struct UserJobs {
  std::string name;           // login name
  IdList jobs;                // known jobs, including arrays and elements
  std::uint64_t unended = 0;  // jobs that wait or are placed; each array task counts
  std::uint64_t stored = 0;   // bytes of specs, and of scripts and environments, each counted once
};

struct QueueCounts {  // counts of a partition; derived; each array task counts
  std::uint64_t queued = 0;
  std::uint64_t active = 0;
};

struct License {            // a license of the whole cluster, by name; see licenses.h
  std::uint32_t total = 0;  // from the configuration
  std::uint32_t most = 0;   // most in use at one time since the controller's start
  std::uint32_t used = 0;   // derived, as is `waiting`
  std::set<std::pair<std::uint32_t, JobId>>
      waiting;  // waiting jobs, sorted by how many licences they ask for
};

struct Counters {             // derived
  std::uint64_t queued = 0;   // each array task counts
  std::uint64_t active = 0;   // starting, running, finishing
  std::uint64_t unended = 0;  // jobs and arrays that have not ended; elements not counted
  std::uint64_t several = 0;  // jobs that wait in several queues; arrays and elements each count
};

struct EnrollToken {  // an enrolment token that is valid once; see common/proto/control.h
  std::string node;
  Instant made{};
  Instant expires{};
  std::string by;
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, made), FIELD(3, expires), FIELD(4, by))
};

struct Tables {  // durable
  Epoch epoch{};
  JobId last_job{};     // greatest id given so far
  Instant last_time{};  // time of the newest event
  JobTable<Job> jobs;
  std::vector<Node> nodes;                       // by NodeId
  std::vector<Partition> partitions;             // by PartitionId
  std::map<std::string, std::string> user_keys;  // hex public key -> login name
  TenancyState tenancy;
  LedgerState ledger;
  BudgetState budgets;
  TriggerTable triggers;
  SecretTable secrets;
  ServiceTable services;
  std::map<std::string, EnrollToken> enroll_tokens;  // by their hash in hex
  std::map<std::string, UseRecord> used;  // by key_of_use(); see ctld/core/resources/uses.h
};

struct Lookups {  // derived: names and classes that many share, and ids by other keys
  Names names;
  ClassTable classes;
  BlobUses blobs;
  std::unordered_map<std::string, NodeId> node_ids;
  std::unordered_map<std::string, PartitionId> partition_ids;  // by Partition::key()
  // By tenant: its parts of configured partitions, sorted by id; its own queue is not among them.
  std::map<std::string, std::vector<PartitionId>> parts_of_tenants;
  std::unordered_map<std::string, NodeId> node_keys;  // enrolled Z85 key -> node
  tsl::robin_map<std::uint64_t, JobId> requests;      // by request_key()
};

struct JobIndexes {  // derived: groups of jobs that have something in common, and counts
  std::map<Uid, UserJobs> users;
  std::unordered_map<std::uint64_t, IdList> same_name;  // (uid, name): not ended
  // A job is listed once for each open dependency, by id: it may have several of one kind.
  std::unordered_map<std::uint64_t, std::multiset<JobId>> singletons;  // (uid, name)
  std::map<DependencyKey, std::multiset<JobId>> dependents;
  std::deque<std::pair<Instant, JobId>> ended;  // in order of their end
  Counters counters;
  std::vector<QueueCounts> queues;  // by PartitionId
  std::map<std::string, License> licenses;
  std::map<std::pair<PartitionId, Uid>, std::uint64_t> user_queued;  // no entry for 0
  UseTable uses;                                                     // no entry for no job
  // The licences that known jobs ask for, by the id of the job or of its array.
  std::unordered_map<JobId, std::vector<DatasetUse>> datasets_wanted;
};

struct Configured {                // from the configuration, by configure() at each start
  std::vector<NodeId> node_order;  // in the order of the configuration
  std::vector<PartitionId> partition_order;
  std::optional<PartitionId> default_partition;
  std::vector<std::string> gres_names;  // gres_names(config)
  NodeSets node_sets;                   // of nodes and partitions; set by make_queues()
};

struct State : Tables, Lookups, JobIndexes, Configured {
  [[nodiscard]] QueueCounts queue_counts(PartitionId id) const {
    return id.value() < queues.size() ? queues[id.value()] : QueueCounts{};
  }
  // Counts of the tenant's own queue and of its parts of configured partitions.
  [[nodiscard]] QueueCounts tenant_counts(const std::string& tenant) const;
  [[nodiscard]] std::uint64_t tenant_queued(const std::string& tenant, Uid uid) const;
  [[nodiscard]] std::vector<PartitionId> queues_of_tenant(const std::string& tenant) const;
  [[nodiscard]] const Node* node_named(std::string_view name) const;
  // Finds a queue by the name that users know; null for a name that only tenants' parts have.
  [[nodiscard]] const Partition* partition_named(std::string_view name) const;
  [[nodiscard]] const Node& node(NodeId id) const { return nodes.at(id.value()); }
  [[nodiscard]] Node& node(NodeId id) { return nodes.at(id.value()); }
  [[nodiscard]] const Partition& partition(PartitionId id) const {
    return partitions.at(id.value());
  }
  [[nodiscard]] Partition& partition(PartitionId id) { return partitions.at(id.value()); }
};

// The partition, shape and limit of the job's class.
inline const sched::ClassKey& class_of(const State& state, const Job& job) {
  return state.classes.at(job.cls).key;
}
inline std::optional<Duration> time_limit_of(const State& state, const Job& job) {
  return class_of(state, job).time_limit;
}
// The bytes of the job's StoredSpec; an element uses its array's.
inline const Bytes& spec_bytes(const State& state, const Job& job) {
  return job.is_element() ? state.jobs.at(job.array).spec : job.spec;
}
inline std::uint64_t name_key(Uid uid, NameId name) {
  return (static_cast<std::uint64_t>(uid.value()) << 32) | name.value();
}
// When the time limit will end the job, as it runs now. Unset without a limit, and while the job is
// suspended.
inline std::optional<Instant> limit_end(const State& state, const Job& job) {
  const auto limit = time_limit_of(state, job);
  if (!limit || job.active->suspended) return std::nullopt;
  return job.started.value_or(job.active->placed) + *limit + job.active->suspended_before;
}
std::uint64_t request_key(Uid uid, std::string_view request_id);

// The key under which a dependency on this job is listed: for an element, its array and index.
inline DependencyKey dependency_key(const Job& job) {
  return job.is_element() ? DependencyKey{job.array, job.task}
                          : DependencyKey{job.id, std::nullopt};
}

}  // namespace gantry::core
