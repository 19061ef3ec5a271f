// Tenancy documents over the wire: apply, read, history. What tenants use and how jobs rank is in
// tenancy_view.h.
//
// A change is a transaction: all of it or nothing. The controller plans it (dry_run), the person
// reads the plan, and applies it on the revision it was planned on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/tenancy/tenancy_cluster.h"

namespace gantry::proto {

struct DocumentRef {
  std::string kind;  // "Tenant", ...
  std::string name;
  friend bool operator==(const DocumentRef&, const DocumentRef&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "kind", s.kind);
    v(2, "name", s.name);
  }
};

// Answered by TenancyPlanned. Admins change anything; a tenant's admins change of its document
// what is theirs (projects, classes, grants up to tenant-admin), and nothing else.
struct ApplyTenancy {
  std::vector<tenancy::Document> documents;    // each replaces the one of its kind and name
  std::vector<DocumentRef> removals;           // a tenant with jobs is refused
  std::string comment;                         // for the history
  bool dry_run = false;                        // only say what would change
  std::optional<std::uint64_t> base_revision;  // wrong_state when it is not the present one
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "documents", s.documents);
    v(2, "removals", s.removals);
    v(3, "comment", s.comment);
    v(4, "dry_run", s.dry_run);
    v(5, "base_revision", s.base_revision);
  }
};

enum class ChangeAction : std::uint8_t { unchanged = 0, created = 1, changed = 2, removed = 3 };
constexpr auto enum_names(ChangeAction) {
  using enum ChangeAction;
  return std::array<std::pair<ChangeAction, std::string_view>, 4>{
      {{unchanged, "unchanged"}, {created, "created"}, {changed, "changed"}, {removed, "removed"}}};
}

struct FieldChange {
  std::string path;    // as in the file: "quota.gpu.nominal", "projects[retraining].shares"
  std::string before;  // as in the file; "" = was not there
  std::string after;   // "" = is not there any more
  friend bool operator==(const FieldChange&, const FieldChange&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "path", s.path);
    v(2, "before", s.before);
    v(3, "after", s.after);
  }
};

struct DocumentChange {
  ChangeAction action = ChangeAction::unchanged;
  std::string kind;
  std::string name;
  std::vector<FieldChange> changes;  // in the file's order
  friend bool operator==(const DocumentChange&, const DocumentChange&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "action", s.action);
    v(2, "kind", s.kind);
    v(3, "name", s.name);
    v(4, "changes", s.changes);
  }
};

// A tenant (or cohort) that holds more than it could have under the new documents. Nothing is
// killed: it starts nothing that needs more, and owners may reclaim.
struct OverQuota {
  std::string name;
  std::string flavor;  // "" = all together
  Resource resource = Resource::gpu;
  std::int64_t usage = 0;
  std::int64_t limit = 0;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "flavor", s.flavor);
    v(3, "resource", s.resource);
    v(4, "usage", s.usage);
    v(5, "limit", s.limit);
  }
};

struct TenancyPlanned {
  bool applied = false;
  std::uint64_t revision = 0;  // that it was planned on; once applied, the new one
  std::vector<DocumentChange> changes;
  std::vector<OverQuota> over;
  std::vector<std::string> warnings;  // one sentence each
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "applied", s.applied);
    v(2, "revision", s.revision);
    v(3, "changes", s.changes);
    v(4, "over", s.over);
    v(5, "warnings", s.warnings);
  }
};

struct GetTenancy {                       // of what the asker may see
  std::optional<std::uint64_t> revision;  // an earlier one that is still kept; unset = the present
  std::vector<std::string> kinds;         // none = all
  std::vector<std::string> names;         // none = all
  bool with_nodes = false;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "revision", s.revision);
    v(2, "kinds", s.kinds);
    v(3, "names", s.names);
    v(4, "with_nodes", s.with_nodes);
  }
};

struct NodesAlike {   // for amounts given as a part of the cluster, and for checks
  std::string nodes;  // host list
  std::vector<std::string> features;
  std::string gpu_model;  // "" = none or not known
  Resources each;         // of one node, for jobs
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "nodes", s.nodes);
    v(2, "features", s.features);
    v(3, "gpu_model", s.gpu_model);
    v(4, "each", s.each);
  }
};

struct TenancyDocuments {
  std::uint64_t revision = 0;                // 0 = nothing was ever applied
  std::vector<tenancy::Document> documents;  // by kind, then name
  std::vector<NodesAlike> nodes;             // all nodes of the cluster, if asked for
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "revision", s.revision);
    v(2, "documents", s.documents);
    v(3, "nodes", s.nodes);
  }
};

// A place in the history: before the change with this number of the revision. What was once
// recorded stays as it is, and new revisions come in front, so that a place means the same for
// good.
struct HistoryPlace {
  std::uint64_t revision = 0;  // 0 = the newest
  std::uint32_t change = 0;    // from 0
  friend bool operator==(const HistoryPlace&, const HistoryPlace&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "revision", s.revision);
    v(2, "change", s.change);
  }
};

struct TenancyHistory {
  std::uint32_t limit = 0;             // newest first; 0 = all that are kept
  std::string kind;                    // only those that changed this kind; "" = any
  std::string name;                    // and this name
  std::optional<HistoryPlace> from{};  // a page, from here on; unset = everything in one reply
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "limit", s.limit);
    v(2, "kind", s.kind);
    v(3, "name", s.name);
    v(4, "from", s.from);
  }
};

struct TenancyRevision {
  std::uint64_t revision = 0;
  Instant at{};
  std::string author;
  std::string comment;
  std::vector<DocumentChange> changes;
  bool kept = false;  // its documents are still there: GetTenancy, rollback
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "revision", s.revision);
    v(2, "at", s.at);
    v(3, "author", s.author);
    v(4, "comment", s.comment);
    v(5, "changes", s.changes);
    v(6, "kept", s.kept);
  }
};

struct HistoryPage {
  static constexpr bool kLeftOutUnset = true;
  std::optional<HistoryPlace> next;  // `from` of the next page; unset = the last
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "next", s.next);
  }
};

struct TenancyHistoryReply {
  // Newest first. The first of a page may go on with the changes of the last one before.
  std::vector<TenancyRevision> revisions;
  std::optional<HistoryPage> page{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "revisions", s.revisions);
    v(2, "page", s.page);
  }
};

}  // namespace gantry::proto
