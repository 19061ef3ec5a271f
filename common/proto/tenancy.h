// Tenancy documents over the wire: apply, read, history. What tenants use and how jobs rank is in
// tenancy_view.h.
//
// A change is a transaction: all of it is applied, or nothing. The controller plans it (dry_run), a
// person reads the plan, and the change is applied to the revision for which it was planned.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/tenancy/tenancy_cluster.h"

namespace gantry::proto {

struct DocumentRef {
  std::string kind;  // "Tenant", ...
  std::string name;
  friend bool operator==(const DocumentRef&, const DocumentRef&) = default;
  GANTRY_FIELDS(FIELD(1, kind), FIELD(2, name))
};

// Applies a change; answered by TenancyPlanned. Admins may change anything. A tenant's admins may
// change only their part of its document (projects, classes, grants up to tenant-admin).
struct ApplyTenancy {
  std::vector<tenancy::Document> documents;  // each replaces the document of its kind and name
  std::vector<DocumentRef> removals;         // refused for a tenant with jobs
  std::string comment;                       // for the history
  bool dry_run = false;                      // only plan the change
  // The error is wrong_state if this is not the present revision.
  std::optional<std::uint64_t> base_revision;
  GANTRY_FIELDS(FIELD(1, documents), FIELD(2, removals), FIELD(3, comment), FIELD(4, dry_run),
                FIELD(5, base_revision))
};

enum class ChangeAction : std::uint8_t { unchanged = 0, created = 1, changed = 2, removed = 3 };
GANTRY_NAMES(ChangeAction, {unchanged, "unchanged"}, {created, "created"}, {changed, "changed"},
             {removed, "removed"})

struct FieldChange {
  std::string path;    // as in the file: "quota.gpu.nominal", "projects[retraining].shares"
  std::string before;  // as in the file; "" = the field did not exist
  std::string after;   // as in the file; "" = the field is removed
  friend bool operator==(const FieldChange&, const FieldChange&) = default;
  GANTRY_FIELDS(FIELD(1, path), FIELD(2, before), FIELD(3, after))
};

struct DocumentChange {
  ChangeAction action = ChangeAction::unchanged;
  std::string kind;
  std::string name;
  std::vector<FieldChange> changes;  // in the file's order
  friend bool operator==(const DocumentChange&, const DocumentChange&) = default;
  GANTRY_FIELDS(FIELD(1, action), FIELD(2, kind), FIELD(3, name), FIELD(4, changes))
};

// A tenant (or cohort) that holds more than the new documents would allow. Nothing is killed, but
// it starts nothing that needs more, and owners may reclaim.
struct OverQuota {
  std::string name;
  std::string flavor;  // "" = all together
  Resource resource = Resource::gpu;
  std::int64_t usage = 0;
  std::int64_t limit = 0;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, flavor), FIELD(3, resource), FIELD(4, usage),
                FIELD(5, limit))
};

struct TenancyPlanned {
  bool applied = false;
  std::uint64_t revision = 0;  // the revision for which it was planned; once applied, the new one
  std::vector<DocumentChange> changes;
  std::vector<OverQuota> over;
  std::vector<std::string> warnings;  // one sentence each
  GANTRY_FIELDS(FIELD(1, applied), FIELD(2, revision), FIELD(3, changes), FIELD(4, over),
                FIELD(5, warnings))
};

struct GetTenancy {  // shows what the asker may see
  std::optional<std::uint64_t>
      revision;  // an earlier revision that is still kept; unset = the present one
  std::vector<std::string> kinds;  // none = all
  std::vector<std::string> names;  // none = all
  bool with_nodes = false;
  GANTRY_FIELDS(FIELD(1, revision), FIELD(2, kinds), FIELD(3, names), FIELD(4, with_nodes))
};

// Nodes that are alike; for amounts given as a part of the cluster, and for checks.
struct NodesAlike {
  std::string nodes;  // host list
  std::vector<std::string> features;
  std::string gpu_model;  // "" = none or not known
  Resources each;         // resources of one node, for jobs
  GANTRY_FIELDS(FIELD(1, nodes), FIELD(2, features), FIELD(3, gpu_model), FIELD(4, each))
};

struct TenancyDocuments {
  std::uint64_t revision = 0;                // 0 = nothing was ever applied
  std::vector<tenancy::Document> documents;  // by kind, then name
  std::vector<NodesAlike> nodes;             // all nodes of the cluster, if requested
  GANTRY_FIELDS(FIELD(1, revision), FIELD(2, documents), FIELD(3, nodes))
};

// A place in the history: before this change of this revision. Recorded changes never change, and
// new revisions are put in front, so a place always means the same.
struct HistoryPlace {
  std::uint64_t revision = 0;  // 0 = the newest
  std::uint32_t change = 0;    // from 0
  friend bool operator==(const HistoryPlace&, const HistoryPlace&) = default;
  GANTRY_FIELDS(FIELD(1, revision), FIELD(2, change))
};

struct TenancyHistory {
  std::uint32_t limit = 0;             // newest first; 0 = all that are kept
  std::string kind;                    // only revisions that changed this kind; "" = any
  std::string name;                    // and this name
  std::optional<HistoryPlace> from{};  // a page, from here on; unset = everything in one reply
  GANTRY_FIELDS(FIELD(1, limit), FIELD(2, kind), FIELD(3, name), FIELD(4, from))
};

struct TenancyRevision {
  std::uint64_t revision = 0;
  Instant at{};
  std::string author;
  std::string comment;
  std::vector<DocumentChange> changes;
  bool kept = false;  // its documents are still kept: for GetTenancy and rollback
  GANTRY_FIELDS(FIELD(1, revision), FIELD(2, at), FIELD(3, author), FIELD(4, comment),
                FIELD(5, changes), FIELD(6, kept))
};

struct HistoryPage {
  static constexpr bool kLeftOutUnset = true;
  std::optional<HistoryPlace> next;  // `from` of the next page; unset = the last
  GANTRY_FIELDS(FIELD(1, next))
};

struct TenancyHistoryReply {
  // Revisions, the newest first. The first one of a page may continue the changes of the last one
  // of the page before.
  std::vector<TenancyRevision> revisions;
  std::optional<HistoryPage> page{};
  GANTRY_FIELDS(FIELD(1, revisions), FIELD(2, page))
};

}  // namespace gantry::proto
