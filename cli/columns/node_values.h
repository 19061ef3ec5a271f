// Values of partitions and nodes that ginfo and sinfo show in the same way. The letter, the name,
// the header and the code that writes the value are defined once, here. Each family of commands
// places these columns in its own table, and adds columns that it alone has or shows differently.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/columns/job_words.h"
#include "cli/table.h"
#include "common/proto/cluster.h"

namespace gantry::cli {

// A line shows the nodes that have the same value in every column but those that are sums.
struct NodeGroup {
  const proto::PartitionRow* partition = nullptr;  // not set: no column of partitions is shown
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
// The reason that an operator gave, or else what the controller itself knows of the node's trouble.
// `silent` is what is said of a node that does not respond.
std::string trouble_of(const proto::NodeRow& n, std::string_view silent);
std::string megabytes(std::int64_t bytes);
// The node is in a state other than idle, mixed and allocated.
bool is_out_of_use(const proto::NodeRow& n);

// Values of all nodes of the line.
void put_cpu_counts(std::string& out, const NodeGroup& g);    // allocated/idle/other/total
void put_node_counts(std::string& out, const NodeGroup& g);   // the same of nodes
void put_nodes_in_use(std::string& out, const NodeGroup& g);  // allocated/idle
void put_node_list(std::string& out, const NodeGroup& g);
void put_node_number(std::string& out, const NodeGroup& g);

template <auto Get>
void put_partition(std::string& out, const NodeGroup& g) {
  if (g.partition != nullptr) out += Get(*g.partition);
}
// The value of the first node stands for all, because they are alike.
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
// other columns decide which nodes are alike. The letters are those of both families.
bool is_of_partition(char letter);
bool is_sum(char letter);

}  // namespace gantry::cli
