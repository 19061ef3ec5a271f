// Keeps the derived parts of State up to date. Only apply() and loading use it.
#pragma once

#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/record.h"

namespace gantry::core {

// Every change to a job happens while a JobEdit for it lives. The JobEdit updates the counters of
// the job and of its array, and marks the job for settle and for the fold.
class JobEdit {
 public:
  JobEdit(MutableState& state, JobId id);
  JobEdit(const JobEdit&) = delete;
  JobEdit& operator=(const JobEdit&) = delete;
  ~JobEdit();
  Job* operator->() { return &job_; }
  Job& operator*() { return job_; }

 private:
  MutableState& state_;
  Job& job_;
};

void touch(MutableState& state, Job& job);
void touch(MutableState& state, Node& node);

// Sets the members of a job (not of an element) that come from the head of its spec.
void fill_job(MutableState& state, Job& job, const SpecHead& head, PartitionId partition,
              std::optional<Duration> time_limit);
// Sets the members of an element that come from its array. The queues are those between which the
// job may move while it waits; empty = it stays in its own.
void set_queues(Job& job, std::vector<PartitionId> queues);
void set_windows(Job& job, std::vector<std::string> windows);  // likewise for reservations
void fill_element(MutableState& state, Job& element, const Job& array, std::uint32_t ordinal);

// index_job() adds a complete job to every index and counter; unindex_job() undoes that before the
// job is removed.
void index_job(MutableState& state, Job& job, const SpecHead* head);
void unindex_job(MutableState& state, Job& job);

// Removes the job from lists that have only jobs that have not ended.
void unindex_ended(MutableState& state, const Job& job);
void add_dependent(MutableState& state, const Job& job, const Dependency& dependency);
void remove_dependent(MutableState& state, const Job& job, const Dependency& dependency);
void set_class(MutableState& state, Job& job, const sched::ClassKey& key);

// Allocates the grant on its node, or releases it.
void take_grant(MutableState& state, const Job& job, const sched::NodeGrant& grant, bool exclusive);
void give_grant(MutableState& state, const Job& job, const sched::NodeGrant& grant, bool exclusive);

}  // namespace gantry::core
