// Keeping State's derived parts in step: used by apply() and by loading, by nobody else.
#pragma once

#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/record.h"

namespace gantry::core {

// Every change to a job happens within the life of one of these: it keeps the counters (the job's
// and its array's) right, and marks the job for Settle and for the fold.
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

// The hot part of a job that is not an element, from its spec's head.
void fill_job(MutableState& state, Job& job, const SpecHead& head, PartitionId partition,
              std::optional<Duration> time_limit);
// The hot part of an element, from its array.
void fill_element(MutableState& state, Job& element, const Job& array, std::uint32_t ordinal);

// Adds a complete job to every index and counter; the reverse, before it is removed.
void index_job(MutableState& state, Job& job, const SpecHead* head);
void unindex_job(MutableState& state, Job& job);

// Out of the lists that only jobs that have not ended are in.
void unindex_ended(MutableState& state, const Job& job);
void add_dependent(MutableState& state, const Job& job, const Dependency& dependency);
void remove_dependent(MutableState& state, const Job& job, const Dependency& dependency);
void set_class(MutableState& state, Job& job, const sched::ClassKey& key);

// What a placement takes from its nodes, and gives back.
void take_grant(MutableState& state, const Job& job, const sched::NodeGrant& grant, bool exclusive);
void give_grant(MutableState& state, const Job& job, const sched::NodeGrant& grant, bool exclusive);

}  // namespace gantry::core
