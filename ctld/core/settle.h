// Settle looks, after every input, at every job and node that an event touched. First it draws the
// consequences, which are events; then it acts: it tells the scheduler, the nodes and waiting
// clients. It only reads state, so it may run any number of times; after a restart it runs on
// everything.
#pragma once

#include "common/proto/node_report.h"
#include "ctld/core/context.h"
#include "ctld/sched/change.h"

namespace gantry::core {

struct Node;
struct Partition;

void settle(Context& ctx);

// settle_job.cc: records events that follow from the present state of the job. Returns true if
// there was one.
bool draw_consequences(Context& ctx, JobId job);
// Ends a job because of a request, a limit or a dependency. A queued job ends at once; for a placed
// one, its nodes are told.
void end_job(Context& ctx, JobId job, Outcome outcome, std::string cause);

// queue.cc: keeps the scheduler's replica up to date.
void sync_queue(Context& ctx, const Job& job);
void sync_node(Context& ctx, NodeId node);
sched::NodeChanged node_view(const Context& ctx, const Node& node);
sched::PartitionChanged partition_view(const State& state, const Partition& partition);
void add_partition_view(Context& ctx,
                        const Partition& partition);  // a partition that has just been made
// The change that tells the scheduler of a waiting job, with its class or for a list of jobs of its
// class.
sched::JobQueued queued_view(const Context& ctx, const Job& job);
sched::JobsQueued::Job queued_facts(const Context& ctx, const Job& job);
void make_views(Context& ctx);  // for all nodes and partitions
sched::JobPlaced placed_view(const State& state, const Job& job);
bool available(const Context& ctx, const Node& node);

// act.cc: sends missing orders, and repeats orders that were not confirmed for a while. Idempotent.
void act(Context& ctx, const Job& job);
std::optional<Instant> next_act(const Context& ctx, const Job& job);

// handle_suspend.cc: tells the scheduler that the end of a suspended job is not known.
void sync_suspension(Context& ctx, const Job& job);

// timers.cc: does what is due, and sets when to look again.
void set_timer(Context& ctx, const Job& job);
void set_timer(Context& ctx, NodeId node);
void run_timers(Context& ctx);
std::optional<Instant> next_wake(const Context& ctx);
// Sends the job's own warning signal (--signal) to its nodes.
void send_warning(Context& ctx, const Job& job);
// Ends an attempt whose node did not start it.
void give_up_start(Context& ctx, const Job& job);

// handle_log.cc: ends requests for output that this node will not answer.
void drop_logs(Context& ctx, NodeId node);
void drop_probes(Context& ctx, NodeId node);  // likewise for questions about networks

// handle_wait.cc
void answer_waits(Context& ctx, JobId job);
// Answers waiting allocations that asked for notices with a line that was sent to the job.
void tell_waits(Context& ctx, JobId job, const std::string& text);

// handle_node_report.cc: handles the end of a node's part of an attempt, whoever noticed it.
void release_node(Context& ctx, const Job& job, NodeId node, proto::ExitReport report);
// Ends everything that is placed on a node, which will not report it any more.
void release_all(Context& ctx, NodeId node, proto::ExitCause cause, const std::string& why);

}  // namespace gantry::core
