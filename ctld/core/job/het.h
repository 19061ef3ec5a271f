// Heterogeneous jobs: several jobs (components) that start together and whose ids follow each
// other. A job's spec and its class (ClassKey::het) say which component it is. The state of the
// other components is looked up each time, so no copy of it has to be kept in step.
//
//   queued    no component may start before all may; one that ends takes the others along
//   starting  no node starts the job before every node of every component is ready
//   running   when the leader ends, all end; the same holds for a requeue, a lost node or a
//             preemption of any component. A component that is cancelled, or over its own time
//             limit, ends alone
//   requeued  each component waits again when its own nodes are released; see queued
#pragma once

#include <cstdint>

#include "ctld/core/context.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

// Calls f(const Job&) for every other component that is still known, in order.
template <class F>
void each_sibling(const State& state, const Job& job, F&& f) {
  const auto& het = class_of(state, job).het;
  for (std::uint32_t i = 0; het && i < het->size; ++i)
    if (const Job* other = i == het->offset ? nullptr : state.jobs.find(het->member(i))) f(*other);
}

// False while a node of another component has not reported that it is ready.
bool siblings_ready(const State& state, const Job& job);

// Ends this component if the state of another one demands it. True if an event was recorded.
bool follow_siblings(Context& ctx, JobId job);

// Call it when the job has changed: the other components are ended, shown to the scheduler again or
// told to start, as far as that depends on this job.
void settle_siblings(Context& ctx, JobId job);

}  // namespace gantry::core
