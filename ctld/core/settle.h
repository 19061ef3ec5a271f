// Settle: after every input, for every job and node that an event touched: draw the consequences
// (which are events), then act: tell the scheduler, the nodes and those who wait. Looking at
// state, it may run any number of times; after a restart it runs on everything.
#pragma once

#include "ctld/core/context.h"

namespace gantry::core {

void settle(Context& ctx);

// settle_job.cc: events that follow from what a job is now. True if there was one.
bool draw_consequences(Context& ctx, JobId job);
// A person, a limit or a dependency ends it. Queued: at once. Placed: its nodes are told.
void end_job(Context& ctx, JobId job, Outcome outcome, std::string cause);

// queue.cc: the scheduler's replica.
void sync_queue(Context& ctx, const Job& job);
void sync_node(Context& ctx, NodeId node);
sched::NodeChanged node_view(const Context& ctx, const Node& node);
sched::PartitionChanged partition_view(const State& state, const Partition& partition);
void add_partition_view(Context& ctx, const Partition& partition);  // one that has just been made
sched::JobQueued queued_view(const Context& ctx, const Job& job);   // as it was told
void make_views(Context& ctx);                                      // of all nodes and partitions
sched::JobPlaced placed_view(const State& state, const Job& job);
bool available(const Context& ctx, const Node& node);

// act.cc: orders that are missing. Idempotent; repeats what was not confirmed for a while.
void act(Context& ctx, const Job& job);
std::optional<Instant> next_act(const Context& ctx, const Job& job);

// handle_suspend.cc: nobody can tell when a suspended job ends; the scheduler hears it here.
void sync_suspension(Context& ctx, const Job& job);

// timers.cc: what is due, and when to look again.
void set_timer(Context& ctx, const Job& job);
void set_timer(Context& ctx, NodeId node);
void run_timers(Context& ctx);
std::optional<Instant> next_wake(const Context& ctx);
// Sends the job's own warning signal (--signal) to its nodes.
void send_warning(Context& ctx, const Job& job);
// Ends an attempt whose node did not start it.
void give_up_start(Context& ctx, const Job& job);

// handle_log.cc: requests for output that this node will not answer.
void drop_logs(Context& ctx, NodeId node);

// handle_wait.cc
void answer_waits(Context& ctx, JobId job);

// handle_node_report.cc: a node's part of an attempt is over, whoever says so.
void release_node(Context& ctx, const Job& job, NodeId node, proto::ExitReport report);
// Gives up on everything that is placed on a node.
void release_all(Context& ctx, NodeId node, proto::ExitCause cause, const std::string& why);

}  // namespace gantry::core
