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
  // What commands said of it: the names of the options that they set, who said it last, and when.
  std::vector<std::string> set_options{};
  std::string changed_by{};
  std::optional<Instant> changed{};
  std::string qos{}, billing_weights{};
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
    v(16, "accepts_jobs", s.accepts_jobs);
    v(17, "exclusive_nodes", s.exclusive_nodes);
    v(18, "min_nodes", s.min_nodes);
    v(19, "admins_only", s.admins_only);
    v(20, "reservation_only", s.reservation_only);
    v(21, "set_options", s.set_options);
    v(22, "changed_by", s.changed_by);
    v(23, "changed", s.changed);
    v(24, "qos", s.qos);
    v(25, "billing_weights", s.billing_weights);
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

struct UpdatePartition {  // for operators; all else of a partition is ChangePartition's
  std::string name;
  bool up = true;                      // down: jobs may be submitted, none starts
  std::optional<bool> accepts_jobs{};  // whether jobs may be submitted; unset = as it is
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "up", s.up);
    v(3, "accepts_jobs", s.accepts_jobs);
  }
};

// reset: what commands said of the partition is forgotten, and gantry.yaml alone counts again.
enum class PartitionAction : std::uint8_t { create = 1, update = 2, remove = 3, reset = 4 };
constexpr auto enum_names(PartitionAction) {
  using enum PartitionAction;
  return std::array<std::pair<PartitionAction, std::string_view>, 4>{
      {{create, "create"}, {update, "update"}, {remove, "delete"}, {reset, "reset"}}};
}

// Admin; answered by Ok. `values` are for create and update: options of a partition by their names
// in gantry.yaml, in the form that they have there; the items of a list are separated by commas.
// Each change lasts, over restarts too, and goes before gantry.yaml.
struct ChangePartition {
  std::string name;
  PartitionAction action = PartitionAction::update;
  std::map<std::string, std::string> values;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "action", s.action);
    v(3, "values", s.values);
  }
};

}  // namespace gantry::proto
