// Partitions: requests from clients to ctld that list and change them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/time/time.h"

namespace gantry::proto {

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
  bool accepts_jobs = true;
  bool exclusive_nodes = false;
  std::uint32_t min_nodes = 1;
  bool admins_only = false;
  bool reservation_only = false;
  // Settings made by commands: the names of the options, who last changed them, and when.
  std::vector<std::string> set_options{};
  std::string changed_by{};
  std::optional<Instant> changed{};
  std::string qos{}, billing_weights{};
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, is_default), FIELD(3, up), FIELD(4, nodes),
                FIELD(5, priority), FIELD(6, default_time), FIELD(7, max_time), FIELD(8, max_nodes),
                FIELD(9, default_memory_per_cpu), FIELD(10, allow_host_network),
                FIELD(11, allow_accounts), FIELD(12, deny_accounts), FIELD(13, allow_groups),
                FIELD(14, allow_qos), FIELD(15, deny_qos), FIELD(16, accepts_jobs),
                FIELD(17, exclusive_nodes), FIELD(18, min_nodes), FIELD(19, admins_only),
                FIELD(20, reservation_only), FIELD(21, set_options), FIELD(22, changed_by),
                FIELD(23, changed), FIELD(24, qos), FIELD(25, billing_weights))
};

struct ListPartitions {
  std::optional<std::uint32_t> from{};  // as in ListNodes
  GANTRY_FIELDS(FIELD(1, from))
};

struct PartitionPage {
  static constexpr bool kLeftOutUnset = true;
  std::optional<std::uint32_t> next;   // `from` of the next page; unset = the last
  std::vector<std::uint32_t> places;   // of each row in configuration order
  std::vector<std::string> hosts;      // host lists, each once
  std::vector<std::uint32_t> list_of;  // of each row; its `nodes` are empty
  GANTRY_FIELDS(FIELD(1, next), FIELD(2, places), FIELD(3, hosts), FIELD(4, list_of))
};

struct LicenseRow {
  std::string name;
  std::uint32_t total = 0;
  std::uint32_t used = 0;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, total), FIELD(3, used))
};

struct ListPartitionsReply {
  std::vector<PartitionRow> partitions;
  std::vector<LicenseRow> licenses{};  // licences of the cluster, by name; in the first page
  std::optional<PartitionPage> page{};
  GANTRY_FIELDS(FIELD(1, partitions), FIELD(2, licenses), FIELD(3, page))
};

struct UpdatePartition {  // for operators; ChangePartition changes everything else
  std::string name;
  bool up = true;                      // down: jobs may be submitted, none starts
  std::optional<bool> accepts_jobs{};  // whether jobs may be submitted; unset = as it is
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, up), FIELD(3, accepts_jobs))
};

// reset: settings made by commands are dropped, and only gantry.yaml applies.
enum class PartitionAction : std::uint8_t { create = 1, update = 2, remove = 3, reset = 4 };
GANTRY_NAMES(PartitionAction, {create, "create"}, {update, "update"}, {remove, "delete"},
             {reset, "reset"})

// Admin; answered by Ok. `values` are for create and update: options of a partition by their names
// in gantry.yaml, in the form that they have there; the items of a list are separated by commas.
// Each change lasts, over restarts too, and goes before gantry.yaml.
struct ChangePartition {
  std::string name;
  PartitionAction action = PartitionAction::update;
  std::map<std::string, std::string> values;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, action), FIELD(3, values))
};

}  // namespace gantry::proto
