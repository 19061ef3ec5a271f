// The columns with sinfo's letters and headers.
#include "cli/columns/node_columns.h"

#include <fmt/core.h>

#include "common/text/text.h"

namespace gantry::cli {

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
