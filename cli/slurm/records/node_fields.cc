// The table of sinfo's fields.
#include "cli/slurm/records/node_fields.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "cli/columns/job_words.h"
#include "cli/columns/node_values.h"
#include "cli/slurm/frame.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

// Slurm's lowest tier is 1.
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

Tree node_tree(const proto::NodeRow& node) {
  Tree tree = Tree::object();
  tree.add("name", node.name).add("hostname", node.name);
  tree.add("address", node.address.substr(0, node.address.rfind(':')));
  tree.add("architecture", "").add("state", Tree::words(state_words(node)));
  const std::int64_t cpus = node.total[Resource::cpu] / kCoreUnit;
  const std::int64_t used = node.allocated[Resource::cpu] / kCoreUnit;
  tree.add("cpus", cpus).add("effective_cpus", cpus).add("alloc_cpus", used);
  tree.add("alloc_idle_cpus", cpus - used)
      .add("cpu_load", static_cast<std::int64_t>(node.load * 100));
  tree.add("sockets", std::int64_t{node.sockets}).add("cores", std::int64_t{node.cores_per_socket});
  tree.add("threads", std::int64_t{node.threads_per_core});
  tree.add("real_memory", node.total[Resource::memory] >> 20);
  tree.add("alloc_memory", node.allocated[Resource::memory] >> 20);
  tree.add_set("free_mem", node.free_memory >> 20);
  tree.add("temporary_disk", node.total[Resource::scratch] >> 20).add("weight", std::int64_t{1});
  tree.add("features", Tree::words(node.features))
      .add("active_features", Tree::words(node.features));
  tree.add("gres", gres_text(node) == "(null)" ? "" : gres_text(node));
  tree.add("gres_used", gres_used_text(node) == "(null)" ? "" : gres_used_text(node));
  tree.add("partitions", Tree::words(node.partitions));
  tree.add("tres", tres_of(node.total, true)).add("tres_used", tres_of(node.allocated, false));
  tree.add("reason", node.reason).add("reason_set_by_user", node.reason_by);
  tree.add_set("reason_changed_at", node.since ? node.since->us / 1'000'000 : 0);
  tree.add_set("boot_time", node.booted ? node.booted->us / 1'000'000 : 0);
  tree.add("reservation", node.reservation).add("version", kSlurmVersion.substr(6));
  return tree;
}

Tree sinfo_tree(const std::vector<proto::PartitionRow>& partitions,
                const std::vector<proto::NodeRow>& nodes, const std::string& cluster) {
  Tree list = Tree::list();
  NodeMembers in(nodes);
  for (const proto::PartitionRow& partition : partitions) {
    std::map<std::vector<std::string>, std::vector<const proto::NodeRow*>> groups;
    for (const proto::NodeRow* node : in.of(partition)) groups[state_words(*node)].push_back(node);
    for (const auto& [state, members] : groups) {
      std::int64_t total = 0;
      std::int64_t used = 0;
      std::vector<std::string> names;
      for (const proto::NodeRow* node : members) {
        total += node->total[Resource::cpu] / kCoreUnit;
        used += node->allocated[Resource::cpu] / kCoreUnit;
        names.push_back(node->name);
      }
      Tree cpus = Tree::object();
      cpus.add("allocated", used).add("idle", total - used).add("other", std::int64_t{0});
      cpus.add("total", total);
      Tree group = Tree::object();
      const auto count = static_cast<std::int64_t>(members.size());
      Tree counts = Tree::object();
      counts.add("total", count).add("nodes", Tree::words(names));
      Tree node = Tree::object();
      group.add("node", node.add("state", Tree::words(state))).add("nodes", std::move(counts));
      group.add("cpus", std::move(cpus)).add("cluster", cluster);
      Tree about = Tree::object();
      group.add("partition", about.add("name", partition.name));
      list.add("", std::move(group));
    }
  }
  return list;
}

namespace {

constexpr std::string_view kNodeSortMarks = ",+-# ";

struct NodeSortKey {
  char letter;
  bool down;        // the key has a -
  bool configured;  // the key has a #
};

std::vector<NodeSortKey> node_sort_keys(std::string_view keys) {
  std::vector<NodeSortKey> out;
  NodeSortKey next{0, false, false};
  for (const char c : keys) {
    switch (c) {
      case '-': next.down = true; break;
      case '+': next.down = false; break;
      case '#': next.configured = true; break;
      case ',':
      case ' ': next = {0, false, false}; break;
      default:
        next.letter = c;
        out.push_back(next);
        next = {0, false, false};
    }
  }
  return out;
}

std::string padded_number(std::int64_t n) {
  return fmt::format("{:020}", n);
}

// Slurm's number of a node's state: the base state in the low bits, and a higher bit for each mark.
std::int64_t state_number(const proto::NodeRow& node) {
  static constexpr std::pair<std::string_view, std::int64_t> kNumbers[] = {
      {"DOWN", 1},
      {"IDLE", 2},
      {"ALLOCATED", 3},
      {"MIXED", 5},
      {"RESERVED", 1 << 5},
      {"DRAIN", 1 << 9},
      {"COMPLETING", 1 << 10},
      {"NOT_RESPONDING", 1 << 11},
      {"MAINTENANCE", 1 << 15}};
  std::int64_t number = 0;
  for (const std::string& word : state_words(node))
    for (const auto& [known, value] : kNumbers)
      if (word == known) number += value;
  return number;
}

// A text whose numbers sort by value: "gpu10" after "gpu9", "10/0" after "9/1".
std::string natural(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end > at) {
      out += std::string(end - at < 20 ? 20 - (end - at) : 0, '0');
      out += text.substr(at, end - at);
      at = end;
    } else {
      out += text[at++];
    }
  }
  return out;
}

// A text that sorts as the field's value does.
std::string node_sort_text(const NodeGroup& line, const NodeSortKey& key,
                           std::span<const proto::PartitionRow> partitions) {
  const proto::NodeRow* node = line.nodes.empty() ? nullptr : line.nodes.front();
  const proto::PartitionRow* partition = line.partition;
  const auto limit = [](const std::optional<Duration>& t) {
    return padded_number(t ? t->us : INT64_MAX);
  };
  switch (key.letter) {
    case 'P':
      if (key.configured && partition != nullptr)
        return padded_number(partition - partitions.data());
      return partition != nullptr ? natural(partition->name) : "";
    case 't':
    case 'T': return padded_number(node != nullptr ? state_number(*node) : 0);
    case 'l': return limit(partition != nullptr ? partition->max_time : std::nullopt);
    case 'L': return limit(partition != nullptr ? partition->default_time : std::nullopt);
    case 'O': return node != nullptr ? fmt::format("{:020.3f}", node->load) : "";
    case 'H': return node != nullptr && node->since ? padded_number(node->since->us) : "";
    default: break;
  }
  std::string text;
  for (const Column<NodeGroup>& field : node_fields())
    if (field.letter == key.letter) field.put(text, line);
  return natural(text);
}

}  // namespace

Result<void> check_node_sort(std::string_view keys) {
  const auto fields = node_fields();
  for (const char c : keys) {
    const bool known = kNodeSortMarks.find(c) != std::string_view::npos ||
                       std::any_of(fields.begin(), fields.end(),
                                   [&](const Column<NodeGroup>& f) { return f.letter == c; });
    if (!known)
      return fail(ErrorCode::invalid_argument, fmt::format("Invalid sort specification: {}", c));
  }
  return {};
}

void sort_node_lines(std::vector<NodeGroup>& lines, std::string_view text,
                     std::span<const proto::PartitionRow> partitions) {
  const std::vector<NodeSortKey> keys = node_sort_keys(text);
  // Sorts by the last key first. Each later sort is stable, so it keeps that order for equal lines.
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    std::vector<std::pair<std::string, NodeGroup>> sorted;
    sorted.reserve(lines.size());
    for (NodeGroup& line : lines) {
      std::string by = node_sort_text(line, *key, partitions);
      sorted.emplace_back(std::move(by), std::move(line));
    }
    std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
      return key->down ? a.first > b.first : a.first < b.first;
    });
    for (std::size_t i = 0; i < lines.size(); ++i) lines[i] = std::move(sorted[i].second);
  }
}

}  // namespace gantry::cli::slurm
