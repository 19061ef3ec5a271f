// The tenants in State: the documents with their history, the fair-share tree with its
// usage, and reservations. It is durable apart from members marked as derived. Only apply() changes
// it; compile_tenancy() makes the derived members.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "common/fields.h"
#include "common/proto/reservation.h"
#include "common/proto/tenant_events.h"
#include "common/time/recurrence.h"
#include "config/config.h"
#include "ctld/core/state/tenancy_compile.h"
#include "ctld/sched/change.h"
#include "ctld/sched/tenancy.h"

namespace gantry::core {

// Revisions kept for history and rollback; the newest is kept in any case.
inline constexpr std::size_t kMaxRevisions = 1000;
inline constexpr std::size_t kMaxRevisionBytes = 64u << 20;  // sum over all revisions, as stored
inline constexpr std::size_t kMaxAlerts = 1000;              // alerts kept for gtenant events

// One changed document, before and after an apply.
struct DocumentChange {
  int kind = 0;  // kKind of the document
  std::string name;
  std::optional<tenancy::Document> before, after;  // unset: it did not exist then
  GANTRY_FIELDS(FIELD(1, kind), FIELD(2, name), FIELD(3, before), FIELD(4, after))
};

struct TenancyRevision {
  std::uint64_t revision = 0;  // no document existed before
  Instant at{};
  std::string author;  // login name
  std::string comment;
  std::vector<DocumentChange> changes;
  std::size_t bytes = 0;  // size as stored; derived
  GANTRY_FIELDS(FIELD(1, revision), FIELD(2, at), FIELD(3, author), FIELD(4, comment),
                FIELD(5, changes))
};

// A node of the fair-share tree: a tenant, a project of it, a user in it.
struct ShareNode {
  sched::ShareId id{};
  std::optional<sched::ShareId> parent;  // unset: a tenant
  std::string name;
  sched::DecayedUsage usage;  // sum over this node and all below it
  std::uint32_t running = 0;  // attempts that charge it now
  GANTRY_FIELDS(FIELD(1, id), FIELD(2, parent), FIELD(3, name), FIELD(4, usage), FIELD(5, running))
};

// Nodes set aside for some users or tenants; see sched::ReservationChanged.
struct AdvanceReservation {
  std::string name;
  std::vector<NodeId> nodes;
  Instant from{}, until{};
  bool maintenance = false;
  std::vector<std::string> users;    // login names that may use it
  std::string by;                    // who made it
  std::vector<std::string> tenants;  // whose jobs may use it
  std::string comment;
  Instant made{};  // jobs that named it earlier are checked again
  std::optional<Repetition>
      repeats;  // it recurs; `from` and `until` are those of the present occurrence
  proto::NodeReplacement replacement = proto::NodeReplacement::none;
  std::optional<Duration> purge_after;  // it ends when no job has named it for this long
  bool by_count = false;                // its nodes were chosen by their number, from the next two
  std::string partition, constraint;    // the partition and the features to choose from
  friend bool operator==(const AdvanceReservation&, const AdvanceReservation&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "nodes", s.nodes);
    v(3, "from", s.from);
    v(4, "until", s.until);
    v(5, "maintenance", s.maintenance);
    v(7, "users", s.users);  // field 6 was the only tenant
    v(8, "by", s.by);
    v(9, "tenants", s.tenants);
    v(10, "comment", s.comment);
    v(11, "made", s.made);
    v(12, "repeats", s.repeats);
    v(13, "replacement", s.replacement);
    v(14, "purge_after", s.purge_after);
    v(15, "by_count", s.by_count);
    v(16, "partition", s.partition);
    v(17, "constraint", s.constraint);
  }
};

struct TenancyState {
  std::uint64_t revision = 0;  // 0 = no documents yet
  Documents documents;
  // Index of a priority class in ClassKey and in sched::Tenancy. It is given once and never reused.
  std::vector<std::string> class_names = new_class_names({}, {});
  std::deque<TenancyRevision> history;  // oldest first
  std::vector<ShareNode> shares;        // by ShareId
  std::map<std::string, AdvanceReservation> reservations;
  std::uint64_t last_alert = 0;
  std::deque<proto::QuotaAlert> alerts;  // oldest first
  Duration half_life = hours(7 * 24);    // half-life of usage; from the configuration, by an event

  // Derived.
  std::size_t history_bytes = 0;  // size of `history`, as stored
  std::map<std::tuple<std::optional<sched::ShareId>, std::string>, sched::ShareId> share_ids;

  // Derived from the documents and the configured nodes, by compile_tenancy().
  CompiledTenancy compiled;
  std::map<std::string, PartitionConfig>
      queues;  // of tenants' own queues, as partitions; addresses stay valid
  std::map<std::string, PartitionConfig> parts;  // of tenants' parts of partitions, by key

  [[nodiscard]] const CompiledTenant* tenant(const std::string& name) const {
    const auto it = compiled.tenants.find(name);
    return it == compiled.tenants.end() ? nullptr : &it->second;
  }
  [[nodiscard]] bool has_tenant(const std::string& name) const {
    return documents.contains({tenancy::Tenant::kKind, name});
  }
};

}  // namespace gantry::core
