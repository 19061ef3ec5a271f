// Rows of listings and of the history; see rows.h and history_row.h.
#include "ctld/core/job/rows.h"

#include <fmt/ranges.h>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "common/proto/attempt.h"
#include "common/proto/history.h"
#include "common/proto/job_query.h"
#include "common/proto/job_text.h"
#include "common/proto/node_report.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"
#include "ctld/core/context.h"
#include "ctld/core/job/explain.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/node_links.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/history_row.h"
#include "ctld/core/state/record.h"
#include "ctld/core/state/state.h"
#include "ctld/core/task_list.h"
#include "ctld/core/tenancy/multifactor.h"
#include "ctld/core/tenancy/queues.h"

namespace gantry::core {
namespace {

void requested(const State& state, const Job& job, proto::JobRow& row) {
  const JobShape& shape = class_of(state, job).shape;
  row.nodes = shape.min_nodes;
  row.tasks = std::max(shape.tasks, shape.min_nodes);
  row.cpus = static_cast<std::uint32_t>(shape.least_cores());
  row.gpus = shape.gpus_of(row.nodes);
  row.gpu_parts = row.nodes * shape.gpu_share;
  if (shape.memory_per_node)
    row.memory_per_node = *shape.memory_per_node;
  else if (shape.memory_per_cpu)
    row.memory_per_node = *shape.memory_per_cpu * (row.cpus / std::max(1u, row.nodes));
}

std::string step_nodes(const State& state, const std::vector<NodeId>& nodes) {
  std::vector<std::string> names;
  for (const NodeId id : nodes) names.push_back(state.node(id).name);
  return compress_hostlist(names);
}

proto::StepRow batch_row(const Job& job, const proto::JobRow& row, const Usage& usage) {
  proto::StepRow step;
  step.step = job.kind == JobKind::batch ? "batch" : "extern";
  step.name = step.step;
  step.running = !job.ended;
  step.outcome = job.outcome.value_or(Outcome::completed);
  step.exit = job.exit;
  step.started = *job.started;
  step.ended = job.ended;
  step.tasks = 1;
  step.cpus = static_cast<std::uint32_t>(job.active->nodes.front().grant.cpus.size());
  const auto& first = job.active->nodes.front().grant;
  step.gpus = static_cast<std::uint32_t>(first.devices.size());
  step.node_list = row.node_list;
  step.usage = usage;
  return step;
}

}  // namespace

namespace {

void put_cost(const State& state, const Job& job, Instant now, proto::JobRow& row) {
  const auto cost = cost_of(state, job, now);
  if (!cost) return;
  row.cost = cost->cost;
  row.credit = cost->credit;
  row.cost_rate = cost->rate;
}

}  // namespace

std::string names_of_queues(const State& state, const Job& job) {
  if (!job.queues) return state.partition(class_of(state, job).partition).name;
  std::string out;
  for (const PartitionId id : *job.queues)
    out += (out.empty() ? "" : ",") + state.partition(id).name;
  return out;
}

std::string node_list_of(const State& state, const Job& job) {
  if (!job.active) return {};
  const auto& nodes = job.active->nodes;
  if (nodes.size() == 1) return state.node(nodes.front().grant.node).name;
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const NodeRun& run : nodes)
    if (!run.given_back) names.push_back(state.node(run.grant.node).name);
  return compress_hostlist(names);
}

proto::JobRow plain_row(const State& state, const Job& job) {
  proto::JobRow row;
  row.job = job.id;
  if (job.is_element()) {
    row.array_job = job.array;
    row.array_task = job.task;
    row.has_array_id = state.jobs.at(job.array).tasks->last_split == job.id;
  } else if (job.is_array()) {
    row.array_job = job.id;
    ArraySpec rest{job.tasks->indexes.ranges_of(job.tasks->pending), job.tasks->max_running};
    row.array_tasks = format_array_spec(rest);
  }
  row.name = state.names.text(job.name);
  row.user = state.names.text(job.user);
  row.uid = job.uid;
  row.account = state.names.text(job.account);
  const Partition& queue = state.partition(class_of(state, job).partition);
  row.partition = queue.name;
  row.tenant = tenant_name_of(state, queue);
  row.phase = shown_phase(job);
  row.outcome = job.outcome;
  if (!row.outcome && job.active && job.active->finish) row.outcome = job.active->finish->outcome;
  row.submitted = job.submitted;
  if (job.started || (job.hold == Hold::none && dependency_gate(job) == Gate::open))
    row.eligible = job.eligible;
  row.started = job.started;
  row.ended = job.ended;
  row.time_limit = time_limit_of(state, job);
  requested(state, job, row);
  if (job.active && !job.active->nodes.empty()) {
    row.nodes = kept_nodes(*job.active);
    row.cpus = 0;
    row.tasks = 0;
    row.gpus = 0;
    for (const NodeRun& run : job.active->nodes) {
      if (run.given_back) continue;
      row.cpus += static_cast<std::uint32_t>(run.grant.cpus.size());
      row.tasks += run.grant.tasks;
      row.gpus += run.grant.gpus;
    }
    row.memory_per_node = job.active->nodes.front().grant.memory;
    row.node_list = node_list_of(state, job);
    if (const auto it = job.active->use.tres.find("billing"); it != job.active->use.tres.end())
      row.billing = static_cast<std::uint64_t>(it->second);
  }
  row.exit = job.exit;
  row.restarts = job.restarts;
  row.reservation = class_of(state, job).reservation;
  row.io_per_node = class_of(state, job).shape.io_per_node;
  row.net_per_node = class_of(state, job).shape.net_per_node;
  row.het = class_of(state, job).het;
  return row;
}

proto::JobRow live_row(const Context& ctx, const Job& job) {
  proto::JobRow row = plain_row(ctx.state, job);
  row.priority = priority_now(ctx, job);
  put_cost(ctx.state, job, ctx.now, row);
  if (job.active) row.suspended = job.active->suspended_until(ctx.now);
  if (job.phase != Phase::queued) return row;
  if (job.queues) {
    row.partition = names_of_queues(ctx.state, job);
    for (const PartitionId id : *job.queues)
      row.queue_priorities.push_back(priority_in(ctx, job, ctx.state.partition(id)));
  }
  if (job.windows) row.reservation = fmt::format("{}", fmt::join(*job.windows, ","));
  row.verdict = verdict_of(ctx, job);
  if (const auto it = ctx.rt.plan->expected.find(job.id); it != ctx.rt.plan->expected.end())
    row.expected_start = it->second.start;
  return row;
}

proto::HistoryRow history_row(const State& state, const Job& job, Instant now) {
  const auto tail = codec::decode<SpecTail>(spec_bytes(state, job));
  GANTRY_ASSERT(tail.has_value(), "a spec that was read once");
  proto::HistoryRow out;
  out.row = plain_row(state, job);
  out.row.priority = priority_of(state, job);
  put_cost(state, job, now, out.row);
  if (job.active) out.row.suspended = job.active->suspended_until(now);
  out.licenses = to_string(class_of(state, job).shape.licenses);
  out.cause = job.cause;
  out.work_dir = tail->spec.work_dir;
  out.comment = job.comment ? *job.comment : tail->spec.comment;
  if (job.notes) {
    out.derived_exit = job.notes->derived_exit;
    out.admin_comment = job.notes->admin_comment;
    out.system_comment = job.notes->system_comment;
  }
  out.submit_line = tail->spec.submit_line;
  out.group = std::to_string(tail->owner.gid.value());
  out.priority_class = tail->spec.priority_class;
  out.wckey = tail->spec.wckey;
  out.labels = tail->spec.labels;
  out.work_type = tail->spec.work_type;
  out.sandbox = tail->spec.sandbox;
  if (job.kind == JobKind::batch) {
    out.std_out = tail->spec.std_out;
    out.std_err = tail->spec.std_err;
  }
  if (!job.active) return out;
  out.usage = job.active->usage;
  out.waits = job.active->waits;
  for (const NodeRun& run : job.active->nodes)
    if (!run.given_back) out.alloc_memory += run.grant.memory;
  if (!job.started) return out;
  out.steps.push_back(batch_row(job, out.row, out.usage));
  for (const StepState& step : job.active->steps) {
    proto::StepRow row;
    row.step = std::to_string(step.id.value());
    row.name = step.name;
    row.running = !step.ended && !job.ended;
    const bool clean = step.ended && step.exit == ExitStatus{};
    row.outcome = clean ? Outcome::completed : step.ended ? Outcome::failed : Outcome::cancelled;
    if (step.timed_out) row.outcome = Outcome::timeout;
    if (step.time_limit > Duration{}) row.time_limit = step.time_limit;
    row.exit = step.exit;
    row.started = step.started;
    row.ended = step.ended ? step.ended : job.ended;
    row.tasks = step.tasks;
    row.cpus = step.cpus;
    row.gpus = step.gpus_seen;
    row.tres = step.tres;
    row.node_list = step_nodes(state, step.nodes);
    row.usage = step.usage;
    out.steps.push_back(std::move(row));
  }
  return out;
}

namespace {

void add(Usage& sum, const Usage& more) {
  sum.cpu_user_us += more.cpu_user_us;
  sum.cpu_system_us += more.cpu_system_us;
  sum.memory_peak_bytes = std::max(sum.memory_peak_bytes, more.memory_peak_bytes);
  sum.io_read_bytes += more.io_read_bytes;
  sum.io_write_bytes += more.io_write_bytes;
}

}  // namespace

void put_live_usage(const Runtime& rt, const Job& job, proto::HistoryRow& row) {
  if (!job.started || !job.placed() || row.steps.empty()) return;
  const proto::AttemptKey key{job.id, job.attempt};
  for (const NodeRun& run : job.active->nodes) {
    const auto& said = rt.links->all.at(run.grant.node.value()).usage;
    const auto one = std::lower_bound(
        said.begin(), said.end(), key,
        [](const proto::AttemptUsage& a, const proto::AttemptKey& k) { return a.key < k; });
    if (run.state == RunState::released || one == said.end() || one->key != key) continue;
    add(row.usage, one->usage);
    add(row.steps.front().usage, one->usage);
    for (proto::StepRow& step : row.steps)
      for (const proto::StepUsage& now : one->steps)
        if (step.running && step.step == std::to_string(now.step.value()))
          add(step.usage, now.usage);
  }
}

store::HistoryEntry history_of(const State& state, const Job& job) {
  store::HistoryEntry entry;
  entry.end = job.ended.value_or(Instant{});
  entry.job = job.id;
  if (job.is_element()) entry.array = job.array;
  entry.data = codec::encode(history_row(state, job, state.last_time));
  return entry;
}

namespace {

constexpr std::size_t kMostTaskList = 16 << 10;  // bytes of a row that is kept for good

// An array can be cancelled in half a million pieces, and a list of them is 3.4 MB. So a long list
// is written with steps (every other task then takes a few bytes), and cut if it is still too long.
std::string task_list(const ArrayIndexes& indexes, const OrdinalSet& tasks) {
  const std::vector<IndexRange> ranges = indexes.ranges_of(tasks);
  std::string text = format_index_ranges(ranges);
  if (text.size() <= kMostTaskList) return text;
  std::vector<std::uint32_t> each;
  each.reserve(tasks.count());
  for (const IndexRange& range : ranges)
    for (std::uint64_t i = range.first; i <= range.last; i += range.step)
      each.push_back(static_cast<std::uint32_t>(i));
  text = format_index_ranges(compress_indexes(each));
  if (text.size() <= kMostTaskList) return text;
  text.resize(text.rfind(',', kMostTaskList - kMoreTasks.size()));
  return text.append(kMoreTasks);
}

}  // namespace

store::HistoryEntry history_of_run(const State& state, const Job& job, Instant end,
                                   Outcome outcome) {
  proto::HistoryRow out = history_row(state, job, end);
  out.requeued = true;
  out.row.phase = Phase::ended;
  out.row.outcome = outcome;
  out.row.ended = end;
  for (proto::StepRow& step : out.steps) {
    if (!step.ended || step.running) step.outcome = Outcome::cancelled;
    step.ended = step.ended.value_or(end);
    step.running = false;
  }
  store::HistoryEntry entry{end, job.id, std::nullopt, codec::encode(out)};
  if (job.is_element()) entry.array = job.array;
  return entry;
}

store::HistoryEntry history_of_tasks(const State& state, const Job& array, const OrdinalSet& tasks,
                                     Instant end, Outcome outcome, const std::string& cause) {
  proto::HistoryRow out = history_row(state, array, end);
  out.row.array_tasks = task_list(array.tasks->indexes, tasks);
  out.row.phase = Phase::ended;
  out.row.outcome = outcome;
  out.row.ended = end;
  out.cause = cause;
  return {end, array.id, array.id, codec::encode(out)};
}

}  // namespace gantry::core
