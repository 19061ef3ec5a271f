// Nodes: requests from clients to ctld. Partitions are in partitions.h, which is included.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/job_access.h"
#include "common/job/job_state.h"
#include "common/proto/gpu_rows.h"
#include "common/proto/partitions.h"
#include "common/proto/session.h"
#include "common/resources/gpu.h"
#include "common/resources/resources.h"
#include "common/special_members.h"

namespace gantry::proto {

struct NodeRow {
  GANTRY_SPECIAL_MEMBERS(NodeRow)
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
  std::int64_t free_memory = 0;  // bytes, as reported by the node's kernel
  std::uint32_t sockets = 1;
  std::uint32_t cores_per_socket = 1;
  std::uint32_t threads_per_core = 1;
  std::string gpu_trouble;               // "GPU 3: gpu-xid-79: ..."; "" = nothing is wrong
  GpuInventory gpus;                     // with ListNodes::gpus
  std::vector<GpuHolder> holders;        // with ListNodes::gpus
  std::string reservation;               // reservation that has the node now; "" = none
  bool maintenance = false;              // this reservation is a maintenance window
  std::vector<GpuTopRow> top;            // with ListNodes::gpus
  std::vector<DrainedGpu> drained_gpus;  // with ListNodes::gpus
  std::string comment{};                 // an operator's
  std::vector<SandboxFact> sandboxes{};  // in addition to the standard one
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, address), FIELD(3, health), FIELD(4, intent),
                FIELD(5, reason), FIELD(6, reason_by), FIELD(7, since), FIELD(8, partitions),
                FIELD(9, features), FIELD(10, total), FIELD(11, allocated), FIELD(12, jobs),
                FIELD(13, version), FIELD(14, runtime), FIELD(15, layers_off), FIELD(16, last_seen),
                FIELD(17, booted), FIELD(18, load), FIELD(19, free_memory), FIELD(20, sockets),
                FIELD(21, cores_per_socket), FIELD(22, threads_per_core), FIELD(23, gpu_trouble),
                FIELD(24, gpus), FIELD(25, holders), FIELD(26, reservation), FIELD(27, maintenance),
                FIELD(28, top), FIELD(29, drained_gpus), FIELD(30, comment), FIELD(35, sandboxes))
};

// Listings of the cluster come in pages if the request sets `from`. Rows are ordered by the
// controller's number of the node or partition. These numbers do not change when others come and
// go, so no row appears twice or is left out. Lists of names that many rows have in common are sent
// once, beside the rows. Without `from` everything comes in one reply, with names in each row, if
// it fits into a message.
struct ListNodes {
  std::vector<std::string> nodes;  // empty = all
  std::vector<std::string> partitions;
  bool gpus = false;                    // include the GPUs and their holders
  std::optional<std::uint32_t> from{};  // first number of the page; 0 = the first page
  GANTRY_FIELDS(FIELD(1, nodes), FIELD(2, partitions), FIELD(3, gpus), FIELD(4, from))
};

struct NodePage {
  static constexpr bool kLeftOutUnset = true;
  std::optional<std::uint32_t> next;                 // `from` of the next page; unset = the last
  std::vector<std::uint32_t> places;                 // place of each row in configuration order
  std::vector<std::vector<std::string>> partitions;  // lists of names, each once
  std::vector<std::uint32_t> list_of;  // number of each row's list; its `partitions` are empty
  GANTRY_FIELDS(FIELD(1, next), FIELD(2, places), FIELD(3, partitions), FIELD(4, list_of))
};

struct ListNodesReply {
  std::vector<NodeRow> nodes;  // in configuration order; in a page by number
  Instant now{};
  std::optional<NodePage> page{};
  GANTRY_FIELDS(FIELD(1, nodes), FIELD(2, now), FIELD(3, page))
};

// The operator's intent for a node. `dead` declares that a lost node runs nothing any more: its
// jobs end as node_fail (or are requeued). Never declare it for a node that may still be alive.
// `keep` leaves the state unchanged, for requests that change something else.
enum class NodeAction : std::uint8_t { drain = 1, resume = 2, close = 3, dead = 4, keep = 5 };
GANTRY_NAMES(NodeAction, {drain, "drain"}, {resume, "resume"}, {close, "close"}, {dead, "dead"},
             {keep, "keep"})

struct UpdateNodes {  // admin; answered by Ok; all or nothing
  std::vector<std::string> nodes;
  NodeAction action = NodeAction::drain;
  std::string reason;  // required for drain, close and dead; with keep "" = as it is
  // For drain and resume: only these GPUs of each node, by number or UUID (the UUID of a slice
  // stands for its whole GPU).
  std::vector<std::string> gpus{};
  // Instead of nodes: all nodes in these domains of the topology, by NAME or LEVEL:NAME. The
  // domain's name is put before the reason.
  std::vector<std::string> domains{};
  // Features for --constraint that replace those of gantry.yaml, also after restarts. With
  // file_features those of gantry.yaml apply again.
  std::optional<std::vector<std::string>> features{};
  bool file_features = false;
  std::optional<std::string> comment{};  // "" removes it
  GANTRY_FIELDS(FIELD(1, nodes), FIELD(2, action), FIELD(3, reason), FIELD(4, gpus),
                FIELD(5, domains), FIELD(6, features), FIELD(7, file_features), FIELD(8, comment))
};

}  // namespace gantry::proto
