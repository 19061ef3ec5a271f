#include "cli/slurm/records/job_values.h"

#include <fmt/core.h>
#include <grp.h>

#include "cli/columns/job_words.h"
#include "cli/columns/show_records.h"
#include "common/resources/resources.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {

const proto::JobDetail& detail(const QueueRow& v) {
  static const proto::JobDetail none;
  return v.detail ? *v.detail : none;
}

std::string tres_per_node(const JobSpec& spec) {
  const JobShape& shape = spec.shape;
  const bool by_node = spec.given.gres || spec.given.gpus_per_node;
  const bool other = spec.given.gpus || spec.given.gpus_per_task;
  if (other && !by_node) return {};
  if (!shape.gpu_slice.empty() && shape.gpu_share > 0)
    return fmt::format("gres:mig:{}:{}", shape.gpu_slice, format_thousandths(shape.gpu_share));
  if (shape.gpus_per_node == 0) return {};
  if (!shape.gpu_slice.empty())
    return fmt::format("gres:mig:{}:{}", shape.gpu_slice, shape.gpus_per_node);
  const std::string model = shape.gpu_models.size() == 1 ? shape.gpu_models[0] + ":" : "";
  return fmt::format("gres:gpu:{}{}", model, shape.gpus_per_node);
}

std::optional<Instant> expected_end(const proto::JobRow& row) {
  if (row.ended) return row.ended;
  const auto start = row.started ? row.started : row.expected_start;
  if (!start || !row.time_limit) return std::nullopt;
  return *start + *row.time_limit + row.suspended;
}

std::string group_name(Gid gid) {
  const group* found = ::getgrgid(gid.value());
  return found != nullptr ? found->gr_name : std::to_string(gid.value());
}

bool is_held(const proto::JobRow& row) {
  return row.verdict.reason == Reason::held_user || row.verdict.reason == Reason::held_admin;
}

std::int64_t shown_priority(const proto::JobRow& row) {
  return is_held(row) ? 0 : row.priority;
}

std::string command_of(const JobSpec& spec) {
  std::string text = spec.script_path;
  for (const std::string& arg : spec.script_args)
    if (!text.empty()) text += " " + arg;
  return text;
}

// Waiting jobs and jobs that failed show their reason; other jobs that have ended show their nodes.
void put_reason_or_nodes(std::string& out, const proto::JobRow& row) {
  const bool ended = row.phase == Phase::ended && row.outcome;
  const bool failed =
      ended && (*row.outcome == Outcome::failed || *row.outcome == Outcome::timeout ||
                *row.outcome == Outcome::out_of_memory || *row.outcome == Outcome::deadline ||
                *row.outcome == Outcome::launch_failed);
  out += !ended || failed ? where_or_why(row) : row.node_list;
}

void put_command(std::string& out, const QueueRow& v) {
  text_or(out, command_of(spec(v)), "(null)");
}

void put_memory(std::string& out, const QueueRow& v) {
  const auto& each = spec(v).shape.memory_per_cpu;
  const std::int64_t bytes = each ? *each : v.row.memory_per_node;
  out += bytes == 0 ? "0" : format_memory(bytes);
}

void put_file(std::string& out, const QueueRow& v, const std::string& pattern) {
  if (!pattern.empty()) out += output_path(pattern, spec(v), v.row);
}

void put_time_left(std::string& out, const QueueRow& v) {
  if (!v.row.time_limit)
    out += "UNLIMITED";
  else
    out += format_duration(
        std::max(*v.row.time_limit - seconds(run_time(v.row, v.now).us / 1'000'000), Duration{}));
}

std::string tres_text(const proto::JobRow& row, std::int64_t memory) {
  std::string text = fmt::format("cpu={}", row.cpus);
  if (memory > 0) text += ",mem=" + format_memory(memory);
  text += fmt::format(",node={},billing={}", row.nodes, row.billing.value_or(row.cpus));
  if (row.gpus > 0) text += fmt::format(",gres/gpu={}", row.gpus);
  if (row.io_per_node > 0) text += ",io=" + format_rate(row.io_per_node * row.nodes);
  if (row.net_per_node > 0) text += ",net=" + format_rate(row.net_per_node * row.nodes);
  return text;
}

std::int64_t memory_in_all(const proto::JobDetail& job) {
  if (job.placement.empty()) return job.row.memory_per_node * job.row.nodes;
  std::int64_t memory = 0;
  for (const NodePlacement& place : job.placement) memory += place.memory;
  return memory;
}

void put_tres(std::string& out, const QueueRow& v) {
  out += v.row.node_list.empty() ? "N/A" : tres_text(v.row, memory_in_all(detail(v)));
}

void put_gpus_per_task(std::string& out, const QueueRow& v) {
  const JobShape& shape = spec(v).shape;
  if (!spec(v).given.gpus_per_task || shape.tasks == 0) {
    out += "N/A";
    return;
  }
  out += fmt::format("gres:gpu:{}", shape.gpus_per_task > 0
                                        ? shape.gpus_per_task
                                        : shape.gpus_per_node * shape.min_nodes / shape.tasks);
}

}  // namespace gantry::cli::slurm
