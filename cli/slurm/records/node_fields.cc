// The table of sinfo's fields.
#include "cli/slurm/records/node_fields.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/slurm/frame.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

// Slurm's least is 1.
std::string slurm_tier(const proto::PartitionRow& p) {
  return std::to_string(std::max(p.priority, 1u));
}

std::int64_t cores_of(const Resources& r) {
  return r[Resource::cpu] / kCoreUnit;
}

std::string held_memory_of(const proto::NodeRow& n) {
  return megabytes(n.allocated[Resource::memory]);
}
std::string load_of(const proto::NodeRow& n) {
  return n.health == NodeHealth::up ? fmt::format("{:.2f}", n.load) : "N/A";
}
std::string free_memory_of(const proto::NodeRow& n) {
  return n.health == NodeHealth::up ? megabytes(n.free_memory) : "N/A";
}
std::string address_of(const proto::NodeRow& n) {
  return n.address.empty() ? n.name : n.address.substr(0, n.address.rfind(':'));
}
std::string port_of(const proto::NodeRow& n) {
  return n.address.empty() ? "n/a" : n.address.substr(n.address.rfind(':') + 1);
}
std::string reason_of_node(const proto::NodeRow& n) {
  return trouble_of(n, "Not responding");
}
std::string reservation_of(const proto::NodeRow& n) {
  return n.reservation;
}
std::string whole_state(const proto::NodeRow& n) {
  return lower_case(fmt::format("{}", fmt::join(state_words(n), "+")));
}
std::string time_of_reason(const proto::NodeRow& n) {
  return shown_time(n.since, "Unknown");
}

consteval Field<NodeGroup> shared_node(std::string_view name) {
  return node_value<Field<NodeGroup>>(name);
}

using L = const NodeGroup&;
using Text = std::string&;

constexpr Field<NodeGroup> kNodeFields[] = {
    {.name = "AllocMem", .header = "ALLOCMEM", .put = put_node<held_memory_of>},
    {.letter = 'S',
     .name = "AllocNodes",
     .header = "ALLOCNODES",
     .put = [](Text o, L) { o += "all"; }},
    shared_node("Available"),
    {.letter = 'V',
     .name = "Cluster",
     .header = "CLUSTER",
     .put = [](Text o, L v) { o += v.cluster; }},
    {.name = "Comment", .header = "COMMENT", .put = [](Text o, L) { o += "(null)"; }},
    shared_node("Cores"),
    shared_node("CPUs"),
    {.letter = 'O', .name = "CPUsLoad", .header = "CPU_LOAD", .put = put_node<load_of>},
    shared_node("CPUsState"),
    shared_node("DefaultTime"),
    shared_node("Disk"),
    {.name = "Extra", .header = "EXTRA", .put = [](Text o, L) { o += "(null)"; }},
    shared_node("Features"),
    {.letter = 'b',
     .name = "features_act",
     .header = "ACTIVE_FEATURES",
     .put = put_node<features_of>},
    {.letter = 'e', .name = "FreeMem", .header = "FREE_MEM", .put = put_node<free_memory_of>},
    {.letter = 'G', .name = "Gres", .header = "GRES", .put = put_node<gres_text>},
    {.name = "GresUsed", .header = "GRES_USED", .put = put_node<gres_used_text>},
    {.letter = 'g', .name = "Groups", .header = "GROUPS", .put = [](Text o, L) { o += "all"; }},
    {.letter = 'B',
     .name = "MaxCPUsPerNode",
     .header = "MAX_CPUS_PER_NODE",
     .put = [](Text o, L) { o += "UNLIMITED"; }},
    shared_node("Memory"),
    {.letter = 'o', .name = "NodeAddr", .header = "NODE_ADDR", .put = put_node<address_of>},
    {.letter = 'A', .name = "NodeAI", .header = "NODES(A/I)", .put = put_nodes_in_use},
    shared_node("NodeAIOT"),
    shared_node("NodeHost"),
    shared_node("NodeList"),
    shared_node("Nodes"),
    {.letter = 'h',
     .name = "OverSubscribe",
     .header = "OVERSUBSCRIBE",
     .put = [](Text o, L) { o += "NO"; }},
    shared_node("Partition"),
    shared_node("PartitionName"),
    {.name = "Port", .header = "PORT", .put = put_node<port_of>},
    {.letter = 'M',
     .name = "PreemptMode",
     .header = "PREEMPT_MODE",
     .put = [](Text o, L) { o += "REQUEUE"; }},
    {.letter = 'I',
     .name = "PriorityJobFactor",
     .header = "PRIO_JOB_FACTOR",
     .put = put_partition<slurm_tier>},
    {.letter = 'p',
     .name = "PriorityTier",
     .header = "PRIO_TIER",
     .put = put_partition<slurm_tier>},
    {.name = "Priority", .header = "PRIORITY", .put = put_partition<slurm_tier>},
    {.letter = 'E', .name = "Reason", .header = "REASON", .put = put_node<reason_of_node>},
    {.letter = 'i',
     .name = "Reservation",
     .header = "RESERVATION",
     .put = put_node<reservation_of>},
    {.letter = 'r', .name = "Root", .header = "ROOT", .put = [](Text o, L) { o += "no"; }},
    shared_node("Size"),
    shared_node("SocketCoreThread"),
    shared_node("Sockets"),
    shared_node("StateCompact"),
    shared_node("StateLong"),
    {.name = "StateComplete", .header = "STATECOMPLETE", .put = put_node<whole_state>},
    shared_node("Threads"),
    shared_node("Time"),
    {.letter = 'H', .name = "TimeStamp", .header = "TIMESTAMP", .put = put_node<time_of_reason>},
    shared_node("User"),
    {.letter = 'U', .name = "UserLong", .header = "USER", .put = put_node<reason_set_by>},
    {.letter = 'v',
     .name = "Version",
     .header = "VERSION",
     .put = [](Text o, L) { o += kSlurmVersion.substr(6); }},
    {.letter = 'w', .name = "Weight", .header = "WEIGHT", .put = [](Text o, L) { o += "1"; }},
};

}  // namespace

std::span<const Field<NodeGroup>> node_fields() {
  return kNodeFields;
}

std::string gres_text(const proto::NodeRow& node) {
  const std::int64_t count = node.total[Resource::gpu] / kGpuUnit;
  if (count == 0) return "(null)";
  const std::string model = node.gpus.gpus.empty() ? "" : node.gpus.gpus.front().model;
  return model.empty() ? fmt::format("gpu:{}", count) : fmt::format("gpu:{}:{}", model, count);
}

std::string gres_used_text(const proto::NodeRow& node) {
  if (node.total[Resource::gpu] == 0) return "(null)";
  const std::string model = node.gpus.gpus.empty() ? "" : node.gpus.gpus.front().model + ":";
  std::vector<std::uint32_t> indexes;
  for (const proto::GpuHolder& holder : node.holders) indexes.push_back(holder.grant.gpu);
  std::sort(indexes.begin(), indexes.end());
  indexes.erase(std::unique(indexes.begin(), indexes.end()), indexes.end());
  const std::string list = format_index_ranges(compress_indexes(indexes));
  return fmt::format("gpu:{}{}(IDX:{})", model, node.allocated[Resource::gpu] / kGpuUnit,
                     list.empty() ? "N/A" : list);
}

std::string tres_of(const Resources& r, bool billing) {
  if (r.is_zero()) return {};
  std::string text = fmt::format("cpu={}", cores_of(r));
  if (r[Resource::memory] > 0) text += ",mem=" + format_memory(r[Resource::memory]);
  if (billing) text += fmt::format(",billing={}", cores_of(r));
  if (r[Resource::gpu] > 0) text += fmt::format(",gres/gpu={}", r[Resource::gpu] / kGpuUnit);
  return text;
}

std::vector<std::string> state_words(const proto::NodeRow& node) {
  std::vector<std::string> words;
  const bool up = node.health == NodeHealth::up && node.intent != NodeIntent::closed;
  const bool full = cores_of(node.allocated) >= cores_of(node.total);
  words.emplace_back(!up ? "DOWN" : node.jobs == 0 ? "IDLE" : full ? "ALLOCATED" : "MIXED");
  if (node.intent == NodeIntent::drain) words.emplace_back("DRAIN");
  if (node.maintenance) words.emplace_back("MAINTENANCE");
  if (!node.maintenance && !node.reservation.empty()) words.emplace_back("RESERVED");
  if (node.health == NodeHealth::lost) words.emplace_back("NOT_RESPONDING");
  return words;
}

}  // namespace gantry::cli::slurm
