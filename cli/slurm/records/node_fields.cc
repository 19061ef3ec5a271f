// The table of sinfo's fields.
#include "cli/slurm/records/node_fields.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/columns/job_words.h"
#include "cli/slurm/frame.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

enum class Of : std::uint8_t { node, partition, all };

std::int64_t cores_of(const Resources& r) {
  return r[Resource::cpu] / kCoreUnit;
}

bool counts_as_other(const proto::NodeRow& node) {
  const std::string state = node_state_compact(node);
  return state != "idle" && state != "mix" && state != "alloc";
}

template <class Get>
void of_node(std::string& o, const NodeLine& v, Get get) {
  if (!v.nodes.empty()) o += get(*v.nodes.front());
}

std::string joined_or_null(const std::vector<std::string>& words) {
  return words.empty() ? "(null)" : fmt::format("{}", fmt::join(words, ","));
}

// The reason that an operator gave, or else what the controller itself knows of the node's trouble.
std::string reason_text(const proto::NodeRow& node) {
  if (!node.reason.empty()) return node.reason;
  if (node.health == NodeHealth::lost) return "Not responding";
  if (node.health == NodeHealth::down) return node.last_seen ? "stopped" : "never seen";
  return node.gpu_trouble.empty() ? "none" : node.gpu_trouble;
}

void put_cpu_counts(std::string& o, const NodeLine& v) {
  std::int64_t used = 0;
  std::int64_t other = 0;
  std::int64_t total = 0;
  for (const proto::NodeRow* node : v.nodes) {
    const std::int64_t busy = cores_of(node->allocated);
    used += busy;
    total += cores_of(node->total);
    if (counts_as_other(*node)) other += cores_of(node->total) - busy;
  }
  o += fmt::format("{}/{}/{}/{}", used, total - used - other, other, total);
}

void put_node_counts(std::string& o, const NodeLine& v, bool all) {
  std::size_t used = 0;
  std::size_t other = 0;
  for (const proto::NodeRow* node : v.nodes) {
    if (counts_as_other(*node))
      ++other;
    else if (node->jobs > 0)
      ++used;
  }
  o += fmt::format("{}/{}", used, v.nodes.size() - used - other);
  if (all) o += fmt::format("/{}/{}", other, v.nodes.size());
}

void put_node_list(std::string& o, const NodeLine& v) {
  std::vector<std::string> names;
  for (const proto::NodeRow* node : v.nodes) names.push_back(node->name);
  o += compress_hostlist(names);
}

void put_state(std::string& o, const NodeLine& v, bool compact) {
  if (v.nodes.empty())
    o += "n/a";
  else
    o += compact ? node_state_compact(*v.nodes.front()) : node_state(*v.nodes.front());
}

using L = const NodeLine&;
using Text = std::string&;

constexpr Field<NodeLine> kNodeFields[] = {
    {.name = "AllocMem",
     .header = "ALLOCMEM",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) {
             return std::to_string(n.allocated[Resource::memory] >> 20);
           });
         }},
    {.letter = 'S',
     .name = "AllocNodes",
     .header = "ALLOCNODES",
     .put = [](Text o, L) { o += "all"; }},
    {.letter = 'a',
     .name = "Available",
     .header = "AVAIL",
     .put =
         [](Text o, L v) {
           if (v.partition != nullptr) o += (v.partition->up ? "up" : "down");
         }},
    {.letter = 'V',
     .name = "Cluster",
     .header = "CLUSTER",
     .put = [](Text o, L v) { o += v.cluster; }},
    {.name = "Comment", .header = "COMMENT", .put = [](Text o, L) { o += "(null)"; }},
    {.letter = 'Y',
     .name = "Cores",
     .header = "CORES",
     .put =
         [](Text o, L v) {
           of_node(o, v,
                   [](const proto::NodeRow& n) { return std::to_string(n.cores_per_socket); });
         }},
    {.letter = 'c',
     .name = "CPUs",
     .header = "CPUS",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) { return std::to_string(cores_of(n.total)); });
         }},
    {.letter = 'O',
     .name = "CPUsLoad",
     .header = "CPU_LOAD",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) {
             return n.health == NodeHealth::up ? fmt::format("{:.2f}", n.load) : std::string("N/A");
           });
         }},
    {.letter = 'C',
     .name = "CPUsState",
     .header = "CPUS(A/I/O/T)",
     .put = [](Text o, L v) { put_cpu_counts(o, v); }},
    {.letter = 'L',
     .name = "DefaultTime",
     .header = "DEFAULTTIME",
     .put =
         [](Text o, L v) {
           if (v.partition != nullptr)
             o += (v.partition->default_time ? format_duration(*v.partition->default_time)
                                             : std::string("n/a"));
         }},
    {.letter = 'd',
     .name = "Disk",
     .header = "TMP_DISK",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) {
             return std::to_string(n.total[Resource::scratch] >> 20);
           });
         }},
    {.name = "Extra", .header = "EXTRA", .put = [](Text o, L) { o += "(null)"; }},
    {.letter = 'f',
     .name = "Features",
     .header = "AVAIL_FEATURES",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) { return joined_or_null(n.features); });
         }},
    {.letter = 'b',
     .name = "features_act",
     .header = "ACTIVE_FEATURES",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) { return joined_or_null(n.features); });
         }},
    {.letter = 'e',
     .name = "FreeMem",
     .header = "FREE_MEM",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) {
             return n.health == NodeHealth::up ? std::to_string(n.free_memory >> 20)
                                               : std::string("N/A");
           });
         }},
    {.letter = 'G',
     .name = "Gres",
     .header = "GRES",
     .put = [](Text o,
               L v) { of_node(o, v, [](const proto::NodeRow& n) { return gres_text(n); }); }},
    {.name = "GresUsed",
     .header = "GRES_USED",
     .put = [](Text o,
               L v) { of_node(o, v, [](const proto::NodeRow& n) { return gres_used_text(n); }); }},
    {.letter = 'g', .name = "Groups", .header = "GROUPS", .put = [](Text o, L) { o += "all"; }},
    {.letter = 'B',
     .name = "MaxCPUsPerNode",
     .header = "MAX_CPUS_PER_NODE",
     .put = [](Text o, L) { o += "UNLIMITED"; }},
    {.letter = 'm',
     .name = "Memory",
     .header = "MEMORY",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) {
             return std::to_string(n.total[Resource::memory] >> 20);
           });
         }},
    {.letter = 'o',
     .name = "NodeAddr",
     .header = "NODE_ADDR",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) {
             return n.address.empty() ? n.name : n.address.substr(0, n.address.rfind(':'));
           });
         }},
    {.letter = 'A',
     .name = "NodeAI",
     .header = "NODES(A/I)",
     .put = [](Text o, L v) { put_node_counts(o, v, false); }},
    {.letter = 'F',
     .name = "NodeAIOT",
     .header = "NODES(A/I/O/T)",
     .put = [](Text o, L v) { put_node_counts(o, v, true); }},
    {.letter = 'n',
     .name = "NodeHost",
     .header = "HOSTNAMES",
     .put = [](Text o, L v) { of_node(o, v, [](const proto::NodeRow& n) { return n.name; }); }},
    {.letter = 'N',
     .name = "NodeList",
     .header = "NODELIST",
     .put = [](Text o, L v) { put_node_list(o, v); }},
    {.letter = 'D',
     .name = "Nodes",
     .header = "NODES",
     .put = [](Text o, L v) { o += std::to_string(v.nodes.size()); }},
    {.letter = 'h',
     .name = "OverSubscribe",
     .header = "OVERSUBSCRIBE",
     .put = [](Text o, L) { o += "NO"; }},
    {.letter = 'P',
     .name = "Partition",
     .header = "PARTITION",
     .put =
         [](Text o, L v) {
           if (v.partition != nullptr)
             o += v.partition->name + (v.partition->is_default ? "*" : "");
         }},
    {.letter = 'R',
     .name = "PartitionName",
     .header = "PARTITION",
     .put =
         [](Text o, L v) {
           if (v.partition != nullptr) o += v.partition->name;
         }},
    {.name = "Port",
     .header = "PORT",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) {
             return n.address.empty() ? std::string("n/a")
                                      : n.address.substr(n.address.rfind(':') + 1);
           });
         }},
    {.letter = 'M',
     .name = "PreemptMode",
     .header = "PREEMPT_MODE",
     .put = [](Text o, L) { o += "REQUEUE"; }},
    {.letter = 'I',
     .name = "PriorityJobFactor",
     .header = "PRIO_JOB_FACTOR",
     .put =
         [](Text o, L v) {
           if (v.partition != nullptr) o += std::to_string(v.partition->priority);
         }},
    {.letter = 'p',
     .name = "PriorityTier",
     .header = "PRIO_TIER",
     .put =
         [](Text o, L v) {
           if (v.partition != nullptr) o += std::to_string(v.partition->priority);
         }},
    {.name = "Priority",
     .header = "PRIORITY",
     .put =
         [](Text o, L v) {
           if (v.partition != nullptr) o += std::to_string(v.partition->priority);
         }},
    {.letter = 'E',
     .name = "Reason",
     .header = "REASON",
     .put = [](Text o,
               L v) { of_node(o, v, [](const proto::NodeRow& n) { return reason_text(n); }); }},
    {.letter = 'i',
     .name = "Reservation",
     .header = "RESERVATION",
     .put = [](Text o,
               L v) { of_node(o, v, [](const proto::NodeRow& n) { return n.reservation; }); }},
    {.letter = 'r', .name = "Root", .header = "ROOT", .put = [](Text o, L) { o += "no"; }},
    {.letter = 's',
     .name = "Size",
     .header = "JOB_SIZE",
     .put =
         [](Text o, L v) {
           if (v.partition != nullptr)
             o += (v.partition->max_nodes ? fmt::format("1-{}", *v.partition->max_nodes)
                                          : std::string("1-infinite"));
         }},
    {.letter = 'z',
     .name = "SocketCoreThread",
     .header = "S:C:T",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) {
             return fmt::format("{}:{}:{}", n.sockets, n.cores_per_socket, n.threads_per_core);
           });
         }},
    {.letter = 'X',
     .name = "Sockets",
     .header = "SOCKETS",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) { return std::to_string(n.sockets); });
         }},
    {.letter = 't',
     .name = "StateCompact",
     .header = "STATE",
     .put = [](Text o, L v) { put_state(o, v, true); }},
    {.letter = 'T',
     .name = "StateLong",
     .header = "STATE",
     .put = [](Text o, L v) { put_state(o, v, false); }},
    {.name = "StateComplete",
     .header = "STATECOMPLETE",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) {
             return lower_case(fmt::format("{}", fmt::join(state_words(n), "+")));
           });
         }},
    {.letter = 'Z',
     .name = "Threads",
     .header = "THREADS",
     .put =
         [](Text o, L v) {
           of_node(o, v,
                   [](const proto::NodeRow& n) { return std::to_string(n.threads_per_core); });
         }},
    {.letter = 'l',
     .name = "Time",
     .header = "TIMELIMIT",
     .put =
         [](Text o, L v) {
           if (v.partition != nullptr)
             o += (v.partition->max_time ? format_duration(*v.partition->max_time)
                                         : std::string("infinite"));
         }},
    {.letter = 'H',
     .name = "TimeStamp",
     .header = "TIMESTAMP",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) { return shown_time(n.since, "Unknown"); });
         }},
    {.letter = 'u',
     .name = "User",
     .header = "USER",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) {
             return n.reason_by.empty() ? std::string("Unknown") : n.reason_by;
           });
         }},
    {.letter = 'U',
     .name = "UserLong",
     .header = "USER",
     .put =
         [](Text o, L v) {
           of_node(o, v, [](const proto::NodeRow& n) {
             return n.reason_by.empty() ? std::string("Unknown") : n.reason_by;
           });
         }},
    {.letter = 'v',
     .name = "Version",
     .header = "VERSION",
     .put = [](Text o, L) { o += kSlurmVersion.substr(6); }},
    {.letter = 'w', .name = "Weight", .header = "WEIGHT", .put = [](Text o, L) { o += "1"; }},
};

// For each field, whether its value belongs to a node, the partition or the whole line; in the same
// order as the table above.
constexpr Of kWhose[] = {Of::node,      Of::partition, Of::partition, Of::partition, Of::node,
                         Of::node,      Of::node,      Of::node,      Of::all,       Of::partition,
                         Of::node,      Of::node,      Of::node,      Of::node,      Of::node,
                         Of::node,      Of::node,      Of::partition, Of::partition, Of::node,
                         Of::node,      Of::all,       Of::all,       Of::node,      Of::all,
                         Of::all,       Of::partition, Of::partition, Of::partition, Of::node,
                         Of::partition, Of::partition, Of::partition, Of::partition, Of::node,
                         Of::node,      Of::partition, Of::partition, Of::node,      Of::node,
                         Of::node,      Of::node,      Of::node,      Of::node,      Of::partition,
                         Of::node,      Of::node,      Of::node,      Of::node,      Of::node};
static_assert(std::size(kWhose) == std::size(kNodeFields));

}  // namespace

std::span<const Field<NodeLine>> node_fields() {
  return kNodeFields;
}
bool is_of_all(std::size_t field) {
  return kWhose[field] == Of::all;
}
bool is_of_partition_field(std::size_t field) {
  return kWhose[field] == Of::partition;
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
