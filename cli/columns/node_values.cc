#include "cli/columns/node_values.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

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

}  // namespace gantry::cli
