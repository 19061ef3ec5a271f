#include "cli/columns/node_values.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli {

std::string marked_name(const proto::PartitionRow& p) {
  return p.name + (p.is_default ? "*" : "");
}
std::string plain_name(const proto::PartitionRow& p) {
  return p.name;
}
std::string availability_of(const proto::PartitionRow& p) {
  if (p.accepts_jobs) return p.up ? "up" : "down";
  return p.up ? "drain" : "inact";
}
std::string_view partition_state(const proto::PartitionRow& p) {
  if (p.accepts_jobs) return p.up ? "UP" : "DOWN";
  return p.up ? "DRAIN" : "INACTIVE";
}
std::string longest_time(const proto::PartitionRow& p) {
  return p.max_time ? format_duration(*p.max_time) : "infinite";
}
std::string usual_time(const proto::PartitionRow& p) {
  return p.default_time ? format_duration(*p.default_time) : "n/a";
}
std::string job_sizes(const proto::PartitionRow& p) {
  return fmt::format("{}-{}", p.min_nodes, p.max_nodes ? std::to_string(*p.max_nodes) : "infinite");
}
std::string tier_of(const proto::PartitionRow& p) {
  return std::to_string(p.priority);
}

std::string host_of(const proto::NodeRow& n) {
  return n.name;
}
std::string cpu_number(const proto::NodeRow& n) {
  return std::to_string(n.total[Resource::cpu] / kCoreUnit);
}
std::string memory_of(const proto::NodeRow& n) {
  return megabytes(n.total[Resource::memory]);
}
std::string scratch_of(const proto::NodeRow& n) {
  return megabytes(n.total[Resource::scratch]);
}
std::string features_of(const proto::NodeRow& n) {
  return n.features.empty() ? "(null)" : fmt::format("{}", fmt::join(n.features, ","));
}
std::string sockets_of(const proto::NodeRow& n) {
  return std::to_string(n.sockets);
}
std::string cores_of_socket(const proto::NodeRow& n) {
  return std::to_string(n.cores_per_socket);
}
std::string threads_of_core(const proto::NodeRow& n) {
  return std::to_string(n.threads_per_core);
}
std::string sockets_cores_threads(const proto::NodeRow& n) {
  return fmt::format("{}:{}:{}", n.sockets, n.cores_per_socket, n.threads_per_core);
}
std::string reason_set_by(const proto::NodeRow& n) {
  return n.reason_by.empty() ? "Unknown" : n.reason_by;
}
std::string trouble_of(const proto::NodeRow& n, std::string_view silent) {
  if (!n.reason.empty()) return n.reason;
  if (n.health == NodeHealth::lost) return std::string(silent);
  if (n.health == NodeHealth::down) return n.last_seen ? "stopped" : "never seen";
  return n.gpu_trouble.empty() ? "none" : n.gpu_trouble;
}
std::string megabytes(std::int64_t bytes) {
  return std::to_string(bytes >> 20);
}
bool is_out_of_use(const proto::NodeRow& n) {
  const std::string state = node_state_compact(n);
  return state != "idle" && state != "mix" && state != "alloc";
}

void put_cpu_counts(std::string& out, const NodeGroup& g) {
  std::int64_t used = 0;
  std::int64_t other = 0;
  std::int64_t total = 0;
  for (const proto::NodeRow* node : g.nodes) {
    const std::int64_t all = node->total[Resource::cpu] / kCoreUnit;
    const std::int64_t busy = node->allocated[Resource::cpu] / kCoreUnit;
    total += all;
    used += busy;
    if (is_out_of_use(*node)) other += all - busy;
  }
  out += fmt::format("{}/{}/{}/{}", used, total - used - other, other, total);
}

namespace {

struct NodeCounts {
  std::size_t used = 0, other = 0, idle = 0;
};
NodeCounts counts_of(const NodeGroup& g) {
  NodeCounts counts;
  for (const proto::NodeRow* node : g.nodes)
    ++(is_out_of_use(*node) ? counts.other : node->jobs > 0 ? counts.used : counts.idle);
  return counts;
}

}  // namespace

void put_node_counts(std::string& out, const NodeGroup& g) {
  const NodeCounts counts = counts_of(g);
  out += fmt::format("{}/{}/{}/{}", counts.used, counts.idle, counts.other, g.nodes.size());
}
void put_nodes_in_use(std::string& out, const NodeGroup& g) {
  const NodeCounts counts = counts_of(g);
  out += fmt::format("{}/{}", counts.used, counts.idle);
}
void put_node_list(std::string& out, const NodeGroup& g) {
  std::vector<std::string> names;
  for (const proto::NodeRow* node : g.nodes) names.push_back(node->name);
  out += compress_hostlist(names);
}
void put_node_number(std::string& out, const NodeGroup& g) {
  out += std::to_string(g.nodes.size());
}

bool is_of_partition(char letter) {
  return std::string_view("PRalLspSVgBhMIr").find(letter) != std::string_view::npos;
}
bool is_sum(char letter) {
  return std::string_view("DNCFA").find(letter) != std::string_view::npos;
}

NodeMembers::NodeMembers(const std::vector<proto::NodeRow>& nodes) : nodes_(nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) places_.emplace(nodes[i].name, i);
}

const std::vector<const proto::NodeRow*>& NodeMembers::of(const proto::PartitionRow& partition) {
  same_again_ = asked_ && partition.nodes == names_;
  asked_ = true;
  if (same_again_) return members_;
  names_ = partition.nodes;
  std::vector<std::size_t> found;
  for (const std::string& name : names_)
    if (const auto it = places_.find(name); it != places_.end()) found.push_back(it->second);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  members_.clear();
  for (const std::size_t i : found) members_.push_back(&nodes_[i]);
  return members_;
}

std::vector<NodeGroup> group_nodes(const std::vector<proto::NodeRow>& nodes,
                                   const std::vector<proto::PartitionRow>* partitions,
                                   bool show_empty,
                                   const std::function<std::string(const NodeGroup& alone)>& key) {
  const auto alike = [&](const std::vector<const proto::NodeRow*>& some) {
    std::vector<NodeGroup> out;
    std::map<std::string, std::size_t> known;
    for (const proto::NodeRow* node : some) {
      const NodeGroup alone{nullptr, {node}};
      const auto [at, fresh] = known.try_emplace(key(alone), out.size());
      if (fresh)
        out.push_back(alone);
      else
        out[at->second].nodes.push_back(node);
    }
    return out;
  };
  if (partitions == nullptr) {
    std::vector<const proto::NodeRow*> all;
    for (const proto::NodeRow& node : nodes) all.push_back(&node);
    return alike(all);
  }
  std::vector<NodeGroup> out;
  NodeMembers members(nodes);
  std::vector<NodeGroup> in;  // groups of the partition
  for (const proto::PartitionRow& partition : *partitions) {
    const auto& some = members.of(partition);
    if (!members.same_again()) in = alike(some);
    for (NodeGroup& group : in) group.partition = &partition;
    out.insert(out.end(), in.begin(), in.end());
    if (in.empty() && show_empty) out.push_back({&partition, {}});
  }
  return out;
}

// The columns with sinfo's letters and headers.
namespace sinfo_cells {
namespace {

std::string address_of(const proto::NodeRow& n) {
  return n.address.empty() ? "n/a" : n.address;
}
std::string free_memory_of(const proto::NodeRow& n) {
  return megabytes(n.free_memory);
}
std::string load_of(const proto::NodeRow& n) {
  return fmt::format("{:.2f}", n.load);
}
std::string gpus_of(const proto::NodeRow& n) {
  const std::int64_t gpus = n.total[Resource::gpu] / kGpuUnit;
  return n.total[Resource::gpu] == 0 ? "(null)" : fmt::format("gpu:{}", gpus);
}
std::string reason_of_node(const proto::NodeRow& n) {
  return trouble_of(n, "not responding");
}
std::string time_of_reason(const proto::NodeRow& n) {
  return n.since ? format_time(*n.since) : "Unknown";
}
std::string version_of(const proto::NodeRow& n) {
  return n.version.empty() ? "n/a" : n.version;
}
std::string runtime_of(const proto::NodeRow& n) {
  return n.runtime.empty() ? "n/a" : n.runtime;
}

Colour group_colour(const NodeGroup& g) {
  if (g.nodes.empty()) return Colour::none;
  const proto::NodeRow& node = *g.nodes.front();
  const std::string state = node_state_compact(node);
  if (node.health != NodeHealth::up || state == "down") return Colour::red;
  if (state == "idle") return Colour::green;
  return is_out_of_use(node) ? Colour::yellow : Colour::cyan;
}

consteval Column<NodeGroup> same(std::string_view name) {
  return node_value(name);
}
consteval Column<NodeGroup> coloured(Column<NodeGroup> column) {
  column.colour = group_colour;
  return column;
}

constexpr Column<NodeGroup> kColumns[] = {same("Partition"),
                                          same("PartitionName"),
                                          same("Available"),
                                          same("Time"),
                                          same("DefaultTime"),
                                          same("Size"),
                                          same("PriorityTier"),
                                          same("Nodes"),
                                          same("NodeList"),
                                          same("NodeHost"),
                                          {'o', "NodeAddr", "NODE_ADDR", put_node<address_of>},
                                          same("CPUsState"),
                                          same("NodeAIOT"),
                                          coloured(same("StateCompact")),
                                          coloured(same("StateLong")),
                                          same("CPUs"),
                                          same("Memory"),
                                          same("Disk"),
                                          {'e', "FreeMem", "FREE_MEM", put_node<free_memory_of>},
                                          {'O', "CPUsLoad", "CPU_LOAD", put_node<load_of>},
                                          same("Features"),
                                          {'G', "Gres", "GRES", put_node<gpus_of>},
                                          same("Sockets"),
                                          same("Cores"),
                                          same("Threads"),
                                          same("SocketCoreThread"),
                                          {'E', "Reason", "REASON", put_node<reason_of_node>},
                                          same("User"),
                                          {'H', "Timestamp", "TIMESTAMP", put_node<time_of_reason>},
                                          {'v', "Version", "VERSION", put_node<version_of>},
                                          {'x', "Runtime", "RUNTIME", put_node<runtime_of>}};

}  // namespace
}  // namespace sinfo_cells

std::span<const Column<NodeGroup>> node_columns() {
  return sinfo_cells::kColumns;
}

}  // namespace gantry::cli
