// A job may name several partitions, and several reservations. It is in one of them at a time: its
// quota, its place in the order and its place on the timeline are that queue's, and it runs in that
// reservation. While it waits it moves to another that it named as soon as it could start there.
#pragma once

#include <optional>

#include "ctld/core/context.h"
#include "ctld/core/event/events_job.h"

namespace gantry::core {

struct Partition;

// When a waiting job with several queues or reservations is to be looked at again; unset for
// others.
std::optional<Instant> next_queue_look(const Context& ctx, const Job& job);

// Moves the job if another of its queues or reservations can start it now.
void look_at_queues(Context& ctx, JobId id);

// The event that moves the job to another queue of its tenant, by the rules of an update; its owner
// is not here to be asked for groups, which were checked when the job was submitted.
Result<event::JobUpdated> move_within(Context& ctx, const Job& job, const Partition& queue);
// Likewise to another of its reservations.
Result<event::JobUpdated> move_to_window(Context& ctx, const Job& job, const std::string& name);

}  // namespace gantry::core
