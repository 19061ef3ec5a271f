// Values of partitions and nodes that ginfo and sinfo show in the same way. The letter, the name,
// the header and the code that writes the value are defined once, here. Each family of commands
// places these columns in its own table, and adds columns that only it has or that it shows
// differently.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cli/columns/job_words.h"
#include "cli/table.h"
#include "common/proto/cluster.h"

namespace gantry::cli {

// A line shows the nodes that have the same value in every column except sums.
struct NodeGroup {
  const proto::PartitionRow* partition = nullptr;  // not set if no column of partitions is shown
  std::vector<const proto::NodeRow*> nodes;        // may be empty: a partition without such nodes
  std::string_view cluster = {};                   // only sinfo shows it
};

// Values of a partition, and of one node.
std::string marked_name(const proto::PartitionRow& p);  // the default partition has a *
std::string plain_name(const proto::PartitionRow& p);
std::string availability_of(const proto::PartitionRow& p);       // up, down, drain, inact
std::string_view partition_state(const proto::PartitionRow& p);  // UP, DOWN, DRAIN, INACTIVE
std::string longest_time(const proto::PartitionRow& p);
std::string usual_time(const proto::PartitionRow& p);
std::string job_sizes(const proto::PartitionRow& p);  // "1-4", "1-infinite"
std::string tier_of(const proto::PartitionRow& p);
std::string host_of(const proto::NodeRow& n);
std::string cpu_number(const proto::NodeRow& n);
std::string memory_of(const proto::NodeRow& n);    // MB
std::string scratch_of(const proto::NodeRow& n);   // MB
std::string features_of(const proto::NodeRow& n);  // "ib,ssd", "(null)"
std::string sockets_of(const proto::NodeRow& n);
std::string cores_of_socket(const proto::NodeRow& n);
std::string threads_of_core(const proto::NodeRow& n);
std::string sockets_cores_threads(const proto::NodeRow& n);  // "2:16:2"
std::string reason_set_by(const proto::NodeRow& n);          // "Unknown" if nobody gave one
// The reason that an operator gave, or else the controller's own reason for the node's trouble.
// `silent` is the text for a node that does not respond.
std::string trouble_of(const proto::NodeRow& n, std::string_view silent);
std::string megabytes(std::int64_t bytes);
// The node is in a state other than idle, mixed and allocated.
bool is_out_of_use(const proto::NodeRow& n);

// Values of all nodes of the line.
void put_cpu_counts(std::string& out, const NodeGroup& g);    // allocated/idle/other/total
void put_node_counts(std::string& out, const NodeGroup& g);   // likewise for numbers of nodes
void put_nodes_in_use(std::string& out, const NodeGroup& g);  // allocated/idle
void put_node_list(std::string& out, const NodeGroup& g);
void put_node_number(std::string& out, const NodeGroup& g);

template <auto Get>
void put_partition(std::string& out, const NodeGroup& g) {
  if (g.partition != nullptr) out += Get(*g.partition);
}
// The value of the first node stands for all, because they are equal.
template <auto Get>
void put_node(std::string& out, const NodeGroup& g) {
  if (!g.nodes.empty()) out += Get(*g.nodes.front());
}
template <auto Get>
void put_node_or_none(std::string& out, const NodeGroup& g) {
  out += g.nodes.empty() ? "n/a" : Get(*g.nodes.front());
}

inline constexpr Column<NodeGroup> kNodeValues[] = {
    {'a', "Available", "AVAIL", put_partition<availability_of>},
    {'Y', "Cores", "CORES", put_node<cores_of_socket>},
    {'c', "CPUs", "CPUS", put_node<cpu_number>},
    {'C', "CPUsState", "CPUS(A/I/O/T)", put_cpu_counts},
    {'L', "DefaultTime", "DEFAULTTIME", put_partition<usual_time>},
    {'d', "Disk", "TMP_DISK", put_node<scratch_of>},
    {'f', "Features", "AVAIL_FEATURES", put_node<features_of>},
    {'m', "Memory", "MEMORY", put_node<memory_of>},
    {'F', "NodeAIOT", "NODES(A/I/O/T)", put_node_counts},
    {'n', "NodeHost", "HOSTNAMES", put_node<host_of>},
    {'N', "NodeList", "NODELIST", put_node_list},
    {'D', "Nodes", "NODES", put_node_number},
    {'P', "Partition", "PARTITION", put_partition<marked_name>},
    {'R', "PartitionName", "PARTITION", put_partition<plain_name>},
    {'p', "PriorityTier", "PRIO_TIER", put_partition<tier_of>},
    {'s', "Size", "JOB_SIZE", put_partition<job_sizes>},
    {'z', "SocketCoreThread", "S:C:T", put_node<sockets_cores_threads>},
    {'X', "Sockets", "SOCKETS", put_node<sockets_of>},
    {'t', "StateCompact", "STATE", put_node_or_none<node_state_compact>},
    {'T', "StateLong", "STATE", put_node_or_none<node_state>},
    {'Z', "Threads", "THREADS", put_node<threads_of_core>},
    {'l', "Time", "TIMELIMIT", put_partition<longest_time>},
    {'u', "User", "USER", put_node<reason_set_by>},
};

// The column with this name. A name that is not in the list does not compile.
consteval Column<NodeGroup> node_value(std::string_view name) {
  for (const Column<NodeGroup>& v : kNodeValues)
    if (v.name == name) return v;
  throw "no value of a node has this name";
}

// True if the column's value belongs to a partition, or to all nodes of the line together. All
// other columns decide which nodes share a line. The letters are those of both families of
// commands.
bool is_of_partition(char letter);
bool is_sum(char letter);

// Which of the listed nodes belong to a partition, and which of them share a line.

// Finds which of the listed nodes belong to a partition. Partitions that follow each other and have
// the same nodes, as tenants' queues often do, cost only one search.
class NodeMembers {
 public:
  // `nodes` must outlive this object.
  explicit NodeMembers(const std::vector<proto::NodeRow>& nodes);

  // The nodes of the partition, in the order of the listing. The result is valid until the next
  // call.
  const std::vector<const proto::NodeRow*>& of(const proto::PartitionRow& partition);
  // True if the last call returned the same nodes as the one before.
  [[nodiscard]] bool same_again() const { return same_again_; }

 private:
  const std::vector<proto::NodeRow>& nodes_;
  std::unordered_map<std::string_view, std::size_t> places_;
  std::vector<std::string> names_;  // names of the last call
  std::vector<const proto::NodeRow*> members_;
  bool same_again_ = false;
  bool asked_ = false;
};

// Groups of nodes with the same key, in the order of the listing. With `partitions` there are
// groups within each partition, and with `show_empty` a partition without nodes has one empty
// group. Without `partitions` each node is in one group. `nodes` and `partitions` must outlive the
// result.
std::vector<NodeGroup> group_nodes(const std::vector<proto::NodeRow>& nodes,
                                   const std::vector<proto::PartitionRow>* partitions,
                                   bool show_empty,
                                   const std::function<std::string(const NodeGroup& alone)>& key);

// True if a column of the layout shows a value of partitions. `columns` are of either family.
template <class Columns>
bool shows_partitions(const Layout& layout, const Columns& columns) {
  for (const Cell& cell : layout.cells)
    if (is_of_partition(columns[cell.column].letter)) return true;
  return false;
}
// The values of the layout's columns that nodes of one line must share.
template <class Columns>
std::string node_key(const Layout& layout, const Columns& columns, const NodeGroup& alone) {
  std::string key;
  for (const Cell& cell : layout.cells) {
    const auto& column = columns[cell.column];
    if (!is_sum(column.letter) && !is_of_partition(column.letter)) column.put(key, alone);
    key += '\n';
  }
  return key;
}

// Columns of ginfo: groups of equal nodes, within one partition or over all nodes.

std::span<const Column<NodeGroup>> node_columns();

inline constexpr std::string_view kInfoFormat = "%9P %5a %.10l %.6D %6t %N";
inline constexpr std::string_view kInfoNodeFormat = "%10N %.6D %9P %6t";
inline constexpr std::string_view kInfoNodeLongFormat = "%8N %9P %10T %.4c %.7z %.6m %8f %E";
inline constexpr std::string_view kInfoLongFormat = "%9P %5a %.10l %.10s %.6D %11T %N";
inline constexpr std::string_view kInfoReasonFormat = "%20E %9u %19H %N";
inline constexpr std::string_view kInfoSummaryFormat = "%9P %5a %.10l %.16F %N";

}  // namespace gantry::cli
