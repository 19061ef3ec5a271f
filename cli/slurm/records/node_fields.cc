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

consteval Column<NodeGroup> shared_node(std::string_view name) {
  return node_value(name);
}

using L = const NodeGroup&;
using Text = std::string&;

constexpr Column<NodeGroup> kNodeFields[] = {
    {0, "AllocMem", "ALLOCMEM", put_node<held_memory_of>},
    {'S', "AllocNodes", "ALLOCNODES", [](Text o, L) { o += "all"; }},
    shared_node("Available"),
    {'V', "Cluster", "CLUSTER", [](Text o, L v) { o += v.cluster; }},
    {0, "Comment", "COMMENT", [](Text o, L) { o += "(null)"; }},
    shared_node("Cores"),
    shared_node("CPUs"),
    {'O', "CPUsLoad", "CPU_LOAD", put_node<load_of>},
    shared_node("CPUsState"),
    shared_node("DefaultTime"),
    shared_node("Disk"),
    {0, "Extra", "EXTRA", [](Text o, L) { o += "(null)"; }},
    shared_node("Features"),
    {'b', "features_act", "ACTIVE_FEATURES", put_node<features_of>},
    {'e', "FreeMem", "FREE_MEM", put_node<free_memory_of>},
    {'G', "Gres", "GRES", put_node<gres_text>},
    {0, "GresUsed", "GRES_USED", put_node<gres_used_text>},
    {'g', "Groups", "GROUPS", [](Text o, L) { o += "all"; }},
    {'B', "MaxCPUsPerNode", "MAX_CPUS_PER_NODE", [](Text o, L) { o += "UNLIMITED"; }},
    shared_node("Memory"),
    {'o', "NodeAddr", "NODE_ADDR", put_node<address_of>},
    {'A', "NodeAI", "NODES(A/I)", put_nodes_in_use},
    shared_node("NodeAIOT"),
    shared_node("NodeHost"),
    shared_node("NodeList"),
    shared_node("Nodes"),
    {'h', "OverSubscribe", "OVERSUBSCRIBE", [](Text o, L) { o += "NO"; }},
    shared_node("Partition"),
    shared_node("PartitionName"),
    {0, "Port", "PORT", put_node<port_of>},
    {'M', "PreemptMode", "PREEMPT_MODE", [](Text o, L) { o += "REQUEUE"; }},
    {'I', "PriorityJobFactor", "PRIO_JOB_FACTOR", put_partition<slurm_tier>},
    {'p', "PriorityTier", "PRIO_TIER", put_partition<slurm_tier>},
    {0, "Priority", "PRIORITY", put_partition<slurm_tier>},
    {'E', "Reason", "REASON", put_node<reason_of_node>},
    {'i', "Reservation", "RESERVATION", put_node<reservation_of>},
    {'r', "Root", "ROOT", [](Text o, L) { o += "no"; }},
    shared_node("Size"),
    shared_node("SocketCoreThread"),
    shared_node("Sockets"),
    shared_node("StateCompact"),
    shared_node("StateLong"),
    {0, "StateComplete", "STATECOMPLETE", put_node<whole_state>},
    shared_node("Threads"),
    shared_node("Time"),
    {'H', "TimeStamp", "TIMESTAMP", put_node<time_of_reason>},
    shared_node("User"),
    {'U', "UserLong", "USER", put_node<reason_set_by>},
    {'v', "Version", "VERSION", [](Text o, L) { o += kSlurmVersion.substr(6); }},
    {'w', "Weight", "WEIGHT", [](Text o, L) { o += "1"; }},
};

}  // namespace

std::span<const Column<NodeGroup>> node_fields() {
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
