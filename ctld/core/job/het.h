// Heterogeneous jobs: several jobs (components), with ids that follow each other, that start
// together. Whose component a job is stands in its spec and its class (ClassKey::het); what the
// others are doing is looked up, so nothing has to be kept in step.
//
//   queued    none may start before all may; one that ends takes the others along
//   starting  no node is told to go before every node of every component is ready
//   running   the leader's end is everybody's, and so is a requeue, a lost node or a preemption of
//             any component. A component that is cancelled, or over its own time limit, ends alone
//   requeued  each waits again when its own nodes have let go; see queued
#pragma once

#include <cstdint>

#include "ctld/core/context.h"

namespace gantry::core {

// Calls f(const Job&) for every other component that is still known, in order.
template <class F>
void each_sibling(const State& state, const Job& job, F&& f) {
  const auto& het = class_of(state, job).het;
  for (std::uint32_t i = 0; het && i < het->size; ++i)
    if (const Job* other = i == het->offset ? nullptr : state.jobs.find(het->member(i))) f(*other);
}

// False while a node of another component has not said that it is ready.
bool siblings_ready(const State& state, const Job& job);

// What has become of another component decides about this one. True if that was an event.
bool follow_siblings(Context& ctx, JobId job);

// The job has changed: the others draw their consequences, and are told or started where that
// depended on it.
void settle_siblings(Context& ctx, JobId job);

}  // namespace gantry::core
