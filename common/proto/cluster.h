// Nodes and partitions: requests from clients to ctld.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/job/job_state.h"
#include "common/proto/gpu_rows.h"
#include "common/proto/session.h"
#include "common/resources/gpu.h"
#include "common/resources/resources.h"

namespace gantry::proto {

struct NodeRow {
  std::string name;
  std::string address;  // host:port where the node's steps are reached; "" = never seen
  NodeHealth health = NodeHealth::down;
  NodeIntent intent = NodeIntent::open;
  std::string reason;  // reason of drain, closed, down or lost
  std::string reason_by;
  std::optional<Instant> since;  // when the reason began
  std::vector<std::string> partitions;
  std::vector<std::string> features;
  Resources total;
  Resources allocated;
  std::uint32_t jobs = 0;
  std::string version;
  std::string runtime;                  // "crun 1.8.1", "process", ...
  std::vector<std::string> layers_off;  // isolation layers that are not on
  std::optional<Instant> last_seen;
  std::optional<Instant> booted;
  double load = 0;               // 1-minute load average
  std::int64_t free_memory = 0;  // bytes, as the node's kernel says
  std::uint32_t sockets = 1;
  std::uint32_t cores_per_socket = 1;
  std::uint32_t threads_per_core = 1;
  std::string gpu_trouble;               // "GPU 3: gpu-xid-79: ..."; "" = nothing is wrong
  GpuInventory gpus;                     // with ListNodes::gpus
  std::vector<GpuHolder> holders;        // the same
  std::string reservation;               // reservation that has the node now; "" = none
  bool maintenance = false;              // this reservation is a maintenance window
  std::vector<GpuTopRow> top;            // with ListNodes::gpus
  std::vector<DrainedGpu> drained_gpus;  // with ListNodes::gpus
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "address", s.address);
    v(3, "health", s.health);
    v(4, "intent", s.intent);
    v(5, "reason", s.reason);
    v(6, "reason_by", s.reason_by);
    v(7, "since", s.since);
    v(8, "partitions", s.partitions);
    v(9, "features", s.features);
    v(10, "total", s.total);
    v(11, "allocated", s.allocated);
    v(12, "jobs", s.jobs);
    v(13, "version", s.version);
    v(14, "runtime", s.runtime);
    v(15, "layers_off", s.layers_off);
    v(16, "last_seen", s.last_seen);
    v(17, "booted", s.booted);
    v(18, "load", s.load);
    v(19, "free_memory", s.free_memory);
    v(20, "sockets", s.sockets);
    v(21, "cores_per_socket", s.cores_per_socket);
    v(22, "threads_per_core", s.threads_per_core);
    v(23, "gpu_trouble", s.gpu_trouble);
    v(24, "gpus", s.gpus);
    v(25, "holders", s.holders);
    v(26, "reservation", s.reservation);
    v(27, "maintenance", s.maintenance);
    v(28, "top", s.top);
    v(29, "drained_gpus", s.drained_gpus);
  }
};

// Listings of the cluster come in pages if the request sets `from`. Rows are ordered by the
// controller's number of the node or partition. These numbers do not change when others come and
// go, so no row appears twice or is left out. Lists of names that many rows have in common are sent
// once, beside the rows. Without `from` everything comes in one reply, with names in each row, if
// it fits into a message.
struct ListNodes {
  std::vector<std::string> nodes;  // empty = all
  std::vector<std::string> partitions;
  bool gpus = false;                    // say what GPUs there are and who has them
  std::optional<std::uint32_t> from{};  // first number of the page; 0 = the first page
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "nodes", s.nodes);
    v(2, "partitions", s.partitions);
    v(3, "gpus", s.gpus);
    v(4, "from", s.from);
  }
};

struct NodePage {
  static constexpr bool kLeftOutUnset = true;
  std::optional<std::uint32_t> next;                 // `from` of the next page; unset = the last
  std::vector<std::uint32_t> places;                 // of each row in configuration order
  std::vector<std::vector<std::string>> partitions;  // lists of names, each once
  std::vector<std::uint32_t> list_of;                // of each row; its `partitions` are empty
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "next", s.next);
    v(2, "places", s.places);
    v(3, "partitions", s.partitions);
    v(4, "list_of", s.list_of);
  }
};

struct ListNodesReply {
  std::vector<NodeRow> nodes;  // in configuration order; in a page by number
  Instant now{};
  std::optional<NodePage> page{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "nodes", s.nodes);
    v(2, "now", s.now);
    v(3, "page", s.page);
  }
};

// What an operator can want of a node. `dead` declares that a lost node runs nothing any more: its
// jobs end as node_fail (or are requeued). Never declare it for a node that may still be alive.
enum class NodeAction : std::uint8_t { drain = 1, resume = 2, close = 3, dead = 4 };
constexpr auto enum_names(NodeAction) {
  using enum NodeAction;
  return std::array<std::pair<NodeAction, std::string_view>, 4>{
      {{drain, "drain"}, {resume, "resume"}, {close, "close"}, {dead, "dead"}}};
}

struct UpdateNodes {  // admin; answered by Ok; all or nothing
  std::vector<std::string> nodes;
  NodeAction action = NodeAction::drain;
  std::string reason;  // required for drain, close and dead
  // For drain and resume: only these GPUs of each node, by number or UUID (the UUID of a slice
  // stands for its whole GPU).
  std::vector<std::string> gpus{};
  // Instead of nodes: all nodes in these domains of the topology, by NAME or LEVEL:NAME. The
  // domain's name is put before the reason.
  std::vector<std::string> domains{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "nodes", s.nodes);
    v(2, "action", s.action);
    v(3, "reason", s.reason);
    v(4, "gpus", s.gpus);
    v(5, "domains", s.domains);
  }
};

struct PartitionRow {
  std::string name;
  bool is_default = false;
  bool up = true;
  std::vector<std::string> nodes;
  std::uint32_t priority = 0;
  std::optional<Duration> default_time;  // unset = max_time
  std::optional<Duration> max_time;      // unset = unlimited
  std::optional<std::uint32_t> max_nodes;
  std::int64_t default_memory_per_cpu = 0;  // bytes; 0 = an equal part of the node's memory
  bool allow_host_network = false;
  std::vector<std::string> allow_accounts, deny_accounts, allow_groups, allow_qos, deny_qos;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "is_default", s.is_default);
    v(3, "up", s.up);
    v(4, "nodes", s.nodes);
    v(5, "priority", s.priority);
    v(6, "default_time", s.default_time);
    v(7, "max_time", s.max_time);
    v(8, "max_nodes", s.max_nodes);
    v(9, "default_memory_per_cpu", s.default_memory_per_cpu);
    v(10, "allow_host_network", s.allow_host_network);
    v(11, "allow_accounts", s.allow_accounts);
    v(12, "deny_accounts", s.deny_accounts);
    v(13, "allow_groups", s.allow_groups);
    v(14, "allow_qos", s.allow_qos);
    v(15, "deny_qos", s.deny_qos);
  }
};

struct ListPartitions {
  std::optional<std::uint32_t> from{};  // as in ListNodes
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "from", s.from);
  }
};

struct PartitionPage {
  static constexpr bool kLeftOutUnset = true;
  std::optional<std::uint32_t> next;   // `from` of the next page; unset = the last
  std::vector<std::uint32_t> places;   // of each row in configuration order
  std::vector<std::string> hosts;      // host lists, each once
  std::vector<std::uint32_t> list_of;  // of each row; its `nodes` are empty
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "next", s.next);
    v(2, "places", s.places);
    v(3, "hosts", s.hosts);
    v(4, "list_of", s.list_of);
  }
};

struct LicenseRow {
  std::string name;
  std::uint32_t total = 0;
  std::uint32_t used = 0;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "total", s.total);
    v(3, "used", s.used);
  }
};

struct ListPartitionsReply {
  std::vector<PartitionRow> partitions;
  std::vector<LicenseRow> licenses{};  // licences of the cluster, by name; in the first page
  std::optional<PartitionPage> page{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "partitions", s.partitions);
    v(2, "licenses", s.licenses);
    v(3, "page", s.page);
  }
};

struct UpdatePartition {  // admin
  std::string name;
  bool up = true;  // down: jobs may be submitted, none starts
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "up", s.up);
  }
};

}  // namespace gantry::proto
