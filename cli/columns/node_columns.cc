// The columns with sinfo's letters and headers.
#include "cli/columns/node_columns.h"

#include <fmt/core.h>

#include <string>

#include "cli/columns/job_words.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli {
namespace {

using O = std::string&;
using G = const NodeGroup&;

const proto::NodeRow* first(G g) {
  return g.nodes.empty() ? nullptr : g.nodes.front();
}

bool is_other(const proto::NodeRow& node) {
  const std::string state = node_state_compact(node);
  return state != "idle" && state != "mix" && state != "alloc";
}

std::string node_list(G g) {
  std::vector<std::string> names;
  for (const proto::NodeRow* node : g.nodes) names.push_back(node->name);
  return compress_hostlist(names);
}

// Cores: allocated/idle/other/total.
void cores(O o, G g) {
  std::int64_t used = 0;
  std::int64_t other = 0;
  std::int64_t total = 0;
  for (const proto::NodeRow* node : g.nodes) {
    const std::int64_t all = node->total[Resource::cpu] / 1000;
    const std::int64_t busy = node->allocated[Resource::cpu] / 1000;
    total += all;
    used += busy;
    if (is_other(*node)) other += all - busy;
  }
  o += fmt::format("{}/{}/{}/{}", used, total - used - other, other, total);
}

void node_counts(O o, G g) {
  std::size_t used = 0;
  std::size_t other = 0;
  for (const proto::NodeRow* node : g.nodes) {
    if (is_other(*node))
      ++other;
    else if (node->jobs > 0)
      ++used;
  }
  o += fmt::format("{}/{}/{}/{}", used, g.nodes.size() - used - other, other, g.nodes.size());
}

template <class Get>
void of_first(O o, G g, Get get) {
  if (const proto::NodeRow* node = first(g)) o += get(*node);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text.empty() ? "(null)" : text;
}

std::string megabytes(std::int64_t bytes) {
  return std::to_string(bytes >> 20);
}

// The reason that an operator gave, or else what the controller itself knows of the node's trouble.
std::string reason(const proto::NodeRow& node) {
  if (!node.reason.empty()) return node.reason;
  if (node.health == NodeHealth::down) return node.last_seen ? "stopped" : "never seen";
  if (node.health == NodeHealth::lost) return "not responding";
  if (!node.gpu_trouble.empty()) return node.gpu_trouble;
  return "none";
}

Colour group_colour(G g) {
  const proto::NodeRow* node = first(g);
  if (node == nullptr) return Colour::none;
  const std::string state = node_state_compact(*node);
  if (node->health != NodeHealth::up || state == "down") return Colour::red;
  if (state == "idle") return Colour::green;
  return is_other(*node) ? Colour::yellow : Colour::cyan;
}

constexpr Column<NodeGroup> kColumns[] = {
    {.letter = 'P',
     .name = "Partition",
     .header = "PARTITION",
     .put =
         [](O o, G g) {
           if (g.partition != nullptr)
             o += g.partition->name + (g.partition->is_default ? "*" : "");
         }},
    {.letter = 'R',
     .name = "PartitionName",
     .header = "PARTITION",
     .put =
         [](O o, G g) {
           if (g.partition != nullptr) o += g.partition->name;
         }},
    {.letter = 'a',
     .name = "Available",
     .header = "AVAIL",
     .put =
         [](O o, G g) {
           if (g.partition != nullptr) o += g.partition->up ? "up" : "down";
         }},
    {.letter = 'l',
     .name = "Time",
     .header = "TIMELIMIT",
     .put =
         [](O o, G g) {
           if (g.partition != nullptr)
             o += g.partition->max_time ? format_duration(*g.partition->max_time) : "infinite";
         }},
    {.letter = 'L',
     .name = "DefaultTime",
     .header = "DEFAULTTIME",
     .put =
         [](O o, G g) {
           if (g.partition != nullptr)
             o += g.partition->default_time ? format_duration(*g.partition->default_time) : "n/a";
         }},
    {.letter = 's',
     .name = "Size",
     .header = "JOB_SIZE",
     .put =
         [](O o, G g) {
           if (g.partition != nullptr)
             o += g.partition->max_nodes ? fmt::format("1-{}", *g.partition->max_nodes)
                                         : "1-infinite";
         }},
    {.letter = 'p',
     .name = "PriorityTier",
     .header = "PRIO_TIER",
     .put =
         [](O o, G g) {
           if (g.partition != nullptr) o += std::to_string(g.partition->priority);
         }},
    {.letter = 'D',
     .name = "Nodes",
     .header = "NODES",
     .put = [](O o, G g) { o += std::to_string(g.nodes.size()); }},
    {.letter = 'N',
     .name = "NodeList",
     .header = "NODELIST",
     .put = [](O o, G g) { o += node_list(g); }},
    {.letter = 'n',
     .name = "NodeHost",
     .header = "HOSTNAMES",
     .put = [](O o, G g) { of_first(o, g, [](const auto& n) { return n.name; }); }},
    {.letter = 'o',
     .name = "NodeAddr",
     .header = "NODE_ADDR",
     .put =
         [](O o, G g) {
           of_first(o, g, [](const auto& n) {
             return n.address.empty() ? std::string("n/a") : n.address;
           });
         }},
    {.letter = 'C', .name = "CPUsState", .header = "CPUS(A/I/O/T)", .put = cores},
    {.letter = 'F', .name = "NodeAIOT", .header = "NODES(A/I/O/T)", .put = node_counts},
    {.letter = 't',
     .name = "StateCompact",
     .header = "STATE",
     .put =
         [](O o, G g) {
           first(g) == nullptr ? void(o += "n/a") : of_first(o, g, node_state_compact);
         },
     .colour = group_colour},
    {.letter = 'T',
     .name = "StateLong",
     .header = "STATE",
     .put = [](O o, G g) { first(g) == nullptr ? void(o += "n/a") : of_first(o, g, node_state); },
     .colour = group_colour},
    {.letter = 'c',
     .name = "CPUs",
     .header = "CPUS",
     .put =
         [](O o, G g) {
           of_first(o, g,
                    [](const auto& n) { return std::to_string(n.total[Resource::cpu] / 1000); });
         }},
    {.letter = 'm',
     .name = "Memory",
     .header = "MEMORY",
     .put =
         [](O o, G g) {
           of_first(o, g, [](const auto& n) { return megabytes(n.total[Resource::memory]); });
         }},
    {.letter = 'd',
     .name = "Disk",
     .header = "TMP_DISK",
     .put =
         [](O o, G g) {
           of_first(o, g, [](const auto& n) { return megabytes(n.total[Resource::scratch]); });
         }},
    {.letter = 'e',
     .name = "FreeMem",
     .header = "FREE_MEM",
     .put = [](O o,
               G g) { of_first(o, g, [](const auto& n) { return megabytes(n.free_memory); }); }},
    {.letter = 'O',
     .name = "CPUsLoad",
     .header = "CPU_LOAD",
     .put =
         [](O o, G g) {
           of_first(o, g, [](const auto& n) { return fmt::format("{:.2f}", n.load); });
         }},
    {.letter = 'f',
     .name = "Features",
     .header = "AVAIL_FEATURES",
     .put = [](O o, G g) { of_first(o, g, [](const auto& n) { return joined(n.features); }); }},
    {.letter = 'G',
     .name = "Gres",
     .header = "GRES",
     .put =
         [](O o, G g) {
           of_first(o, g, [](const auto& n) {
             return n.total[Resource::gpu] == 0
                        ? std::string("(null)")
                        : fmt::format("gpu:{}", n.total[Resource::gpu] / kGpuUnit);
           });
         }},
    {.letter = 'X',
     .name = "Sockets",
     .header = "SOCKETS",
     .put = [](O o,
               G g) { of_first(o, g, [](const auto& n) { return std::to_string(n.sockets); }); }},
    {.letter = 'Y',
     .name = "Cores",
     .header = "CORES",
     .put =
         [](O o, G g) {
           of_first(o, g, [](const auto& n) { return std::to_string(n.cores_per_socket); });
         }},
    {.letter = 'Z',
     .name = "Threads",
     .header = "THREADS",
     .put =
         [](O o, G g) {
           of_first(o, g, [](const auto& n) { return std::to_string(n.threads_per_core); });
         }},
    {.letter = 'z',
     .name = "SocketCoreThread",
     .header = "S:C:T",
     .put =
         [](O o, G g) {
           of_first(o, g, [](const auto& n) {
             return fmt::format("{}:{}:{}", n.sockets, n.cores_per_socket, n.threads_per_core);
           });
         }},
    {.letter = 'E',
     .name = "Reason",
     .header = "REASON",
     .put = [](O o, G g) { of_first(o, g, reason); }},
    {.letter = 'u',
     .name = "User",
     .header = "USER",
     .put =
         [](O o, G g) {
           of_first(o, g, [](const auto& n) {
             return n.reason_by.empty() ? std::string("Unknown") : n.reason_by;
           });
         }},
    {.letter = 'H',
     .name = "Timestamp",
     .header = "TIMESTAMP",
     .put =
         [](O o, G g) {
           of_first(o, g, [](const auto& n) {
             return n.since ? format_time(*n.since) : std::string("Unknown");
           });
         }},
    {.letter = 'v',
     .name = "Version",
     .header = "VERSION",
     .put =
         [](O o, G g) {
           of_first(o, g, [](const auto& n) {
             return n.version.empty() ? std::string("n/a") : n.version;
           });
         }},
    {.letter = 'x',
     .name = "Runtime",
     .header = "RUNTIME",
     .put =
         [](O o, G g) {
           of_first(o, g, [](const auto& n) {
             return n.runtime.empty() ? std::string("n/a") : n.runtime;
           });
         }},
};

}  // namespace

std::span<const Column<NodeGroup>> node_columns() {
  return kColumns;
}

bool is_of_partition(char letter) {
  return std::string_view("PRalLsp").find(letter) != std::string_view::npos;
}
bool is_sum(char letter) {
  return std::string_view("DNCF").find(letter) != std::string_view::npos;
}

}  // namespace gantry::cli
