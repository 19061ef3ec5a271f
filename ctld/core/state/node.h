// Node and Partition as the controller knows them. Ids are given once, by an event, and stay with
// the name, so placements in the journal mean the same after the configuration was reordered.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/job/job_access.h"
#include "common/job/job_state.h"
#include "common/proto/gpu_rows.h"
#include "common/resources/gpu.h"
#include "common/time/time.h"
#include "common/types.h"
#include "config/config.h"
#include "ctld/sched/change.h"

namespace gantry::core {

// The facts that the node reported when it registered.
struct NodeFacts {
  std::string boot_id;
  std::string address;
  std::string version;
  std::string runtime;
  std::vector<std::string> layers_off;
  std::uint32_t cpus = 0;
  std::int64_t memory = 0;
  std::int64_t scratch = 0;
  std::uint32_t sockets = 1;
  std::uint32_t cores_per_socket = 1;
  std::uint32_t threads_per_core = 1;
  std::optional<Instant> booted;  // first registration with this boot id
  GpuInventory gpus;
  std::vector<SandboxFact> sandboxes{};  // in addition to the standard one
  std::string transport;                 // as in proto::NodeRegister
  std::uint32_t abilities = 0;           // as in proto::NodeRegister
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
  GANTRY_FIELDS(FIELD(1, boot_id), FIELD(2, address), FIELD(3, version), FIELD(4, runtime),
                FIELD(5, layers_off), FIELD(6, cpus), FIELD(7, memory), FIELD(8, scratch),
                FIELD(9, sockets), FIELD(10, cores_per_socket), FIELD(11, threads_per_core),
                FIELD(12, booted), FIELD(13, gpus), FIELD(18, sandboxes), FIELD(14, transport),
                FIELD(15, abilities))
};

// A node as it is stored, by its name.
struct NodeRecord {
  NodeId id{};
  NodeHealth health = NodeHealth::down;
  NodeIntent intent = NodeIntent::open;
  std::string reason;  // reason of the intent, or of the health if that is not up
  std::string reason_by;
  std::optional<Instant> since;
  NodeFacts facts;
  std::vector<proto::DrainedGpu> drained_gpus;  // by UUID, ascending
  std::optional<std::vector<std::string>>
      features_set;     // set by an operator; unset = as configured
  std::string comment;  // set by an operator
  GANTRY_FIELDS(FIELD(1, id), FIELD(2, health), FIELD(3, intent), FIELD(4, reason),
                FIELD(5, reason_by), FIELD(6, since), FIELD(7, facts), FIELD(8, drained_gpus),
                FIELD(9, features_set), FIELD(10, comment))
};

struct Node : NodeRecord {
  std::string name;
  std::string public_key;  // Z85; "" = not enrolled

  // apply() derives the next members from the placements.
  std::vector<JobId> jobs;      // jobs that hold something here, ascending
  std::vector<bool> cpu_taken;  // by CPU number, grows as needed
  std::uint32_t cpus_taken = 0;
  std::int64_t memory_taken = 0;
  std::int64_t scratch_taken = 0;
  struct HeldGpu {
    GpuGrant grant;
    PartitionId tenant;
  };
  std::uint32_t gpus_taken = 0;                         // whole GPUs
  std::vector<HeldGpu> gpu_grants;                      // held here, by GPU and start
  std::map<std::string, std::vector<bool>> gres_taken;  // by name, then place; grows as needed
  std::uint32_t exclusive_jobs = 0;

  // From the configuration, set by Core::start(); null if the node is no longer configured.
  const NodeConfig* declared = nullptr;
  std::vector<std::uint16_t> cpus;
  std::vector<GresCount> gres;  // sorted
  bool fold_due = false;        // set if Unfolded lists the node
};

// Where a partition comes from. file: gantry.yaml; command: an administrator made it with a
// command; removed: it is in gantry.yaml, and a command removed it.
enum class PartitionOrigin : std::uint8_t { file = 0, command = 1, removed = 2 };
constexpr auto enum_names(PartitionOrigin) {
  using enum PartitionOrigin;
  return std::array<std::pair<PartitionOrigin, std::string_view>, 3>{
      {{file, "file"}, {command, "command"}, {removed, "removed"}}};
}

// A partition as it is stored, by its key. Settings of commands override gantry.yaml.
struct PartitionRecord {
  PartitionId id{};
  std::optional<bool> up_set;            // set by an operator; unset = as configured
  std::optional<bool> accepts_jobs_set;  // set by an operator; unset = as configured
  PartitionOrigin origin = PartitionOrigin::file;
  // Other options that commands set, by name, as config/partitions.h reads them.
  std::map<std::string, std::string> values;
  std::string changed_by;          // who last set one of the two values above; "" = nobody
  std::optional<Instant> changed;  // when that was
  GANTRY_FIELDS(FIELD(1, id), FIELD(2, up_set), FIELD(3, accepts_jobs_set), FIELD(4, origin),
                FIELD(5, values), FIELD(6, changed_by), FIELD(7, changed))
};

// A queue. It is a partition of the configuration, or a tenant's own queue (which has the tenant's
// name), or one tenant's part of a configured partition. A tenant's jobs in such a part form a
// queue of their own, so that quota, pools, price and limits of the tenant hold for them too.
struct Partition : PartitionRecord {
  std::string name;    // as users name it
  std::string tenant;  // if it is a tenant's part of partition `name`: that tenant; "" = the whole
                       // partition
  const PartitionConfig* declared = nullptr;  // null if it is no longer configured
  std::vector<NodeId> nodes;                  // in configuration order
  [[nodiscard]] bool up() const { return declared != nullptr && up_set.value_or(declared->up); }
  [[nodiscard]] bool accepts_jobs() const {
    return declared != nullptr && accepts_jobs_set.value_or(declared->accepts_jobs);
  }
  // The payer for jobs of this queue: the tenant, or the partition in a cluster without tenants.
  [[nodiscard]] const std::string& payer() const { return tenant.empty() ? name : tenant; }
  // The unique key, in the store and in State::partition_ids, for example "batch" or "batch/fraud".
  // No name of a partition or tenant has a '/'.
  [[nodiscard]] std::string key() const { return tenant.empty() ? name : name + '/' + tenant; }
  void set_key(const std::string& key) {
    const std::size_t slash = key.find('/');
    name = key.substr(0, slash);
    tenant = slash == std::string::npos ? std::string() : key.substr(slash + 1);
  }
};

}  // namespace gantry::core
