#include "config/tenancy/files/kubernetes.h"

#include <fmt/core.h>

#include <algorithm>

#include "config/tenancy/files/k8s_assembly.h"
#include "config/tenancy/files/k8s_objects.h"
#include "config/tenancy/files/manifests.h"
#include "config/tenancy/read_parts.h"
#include "config/values.h"

namespace gantry::tenancy {
namespace {

struct Kind {
  std::string_view group;  // of apiVersion, without the version; "" = core
  std::string_view kind;
  bool namespaced;
  ReadObject read;
};
constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
constexpr std::string_view kKueue = "kueue.x-k8s.io";
constexpr std::array<Kind, 15> kKinds{{
    {"", "Namespace", false, read_namespace},
    {"", "ResourceQuota", true, read_resource_quota},
    {"", "LimitRange", true, read_limit_range},
    {"scheduling.k8s.io", "PriorityClass", false, read_priority_class},
    {kKueue, "WorkloadPriorityClass", false, read_workload_class},
    {kKueue, "ClusterQueue", false, read_cluster_queue},
    {kKueue, "LocalQueue", true, read_local_queue},
    {kKueue, "Cohort", false, read_cohort},
    {kKueue, "ResourceFlavor", false, read_flavor},
    {kKueue, "Topology", false, read_topology},
    {kRbac, "Role", true, read_role},
    {kRbac, "ClusterRole", false, read_role},
    {kRbac, "RoleBinding", true, read_binding},
    {kRbac, "ClusterRoleBinding", false, read_binding},
    {"networking.k8s.io", "NetworkPolicy", true, read_network_policy},
}};

struct Head {  // the fields that every object begins with
  std::string api_version, kind;
  std::optional<Value> kind_value, metadata, items;
};

Result<Head> read_head(const Value& root) {
  Head head;
  ASSIGN(entries, root.entries());
  for (const Value::Entry& entry : *entries) {
    if (entry.key == "apiVersion" || entry.key == "kind") {
      ASSIGN(text, entry.value.text());
      (entry.key == "kind" ? head.kind : head.api_version) = std::move(*text);
      if (entry.key == "kind") head.kind_value = entry.value;
    }
    if (entry.key == "metadata") head.metadata = entry.value;
    if (entry.key == "items") head.items = entry.value;
  }
  if (head.api_version.empty()) return root.wrong("`apiVersion` is missing");
  if (head.kind.empty()) return root.wrong("`kind` is missing");
  return head;
}

}  // namespace

Kubernetes::Kubernetes(std::string user_domain) : parts_(std::make_unique<Translation>()) {
  parts_->user_domain = std::move(user_domain);
}
Kubernetes::~Kubernetes() = default;

const std::vector<Note>& Kubernetes::notes() const {
  return parts_->notes;
}

void Kubernetes::set_user_domain(std::string user_domain) {
  parts_->user_domain = std::move(user_domain);
}

std::string manifest_name(const config::Yaml& tree) {
  const auto text = [](const config::Yaml* from, std::string_view key) {
    const config::Yaml* value = from == nullptr ? nullptr : config::find(*from, key);
    return value == nullptr ? std::string() : value->scalar;
  };
  const std::string version = text(&tree, "apiVersion"), name = text(&tree, "kind");
  const std::size_t slash = version.find('/');
  const std::string group = slash == std::string::npos ? "" : version.substr(0, slash);
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                                 [&](const Kind& k) { return k.kind == name && k.group == group; });
  if (kind == kKinds.end()) return {};
  const config::Yaml* meta = config::find(tree, "metadata");
  std::string space = kind->namespaced ? text(meta, "namespace") : std::string();
  if (kind->namespaced && space.empty()) space = "default";
  return fmt::format("{}/{}/{}", name, space, text(meta, "name"));
}

namespace {
// The content of a Secret must not get into what is stored, shown and exported.
std::string unknown_object(const Head& head) {
  if (head.kind == "Secret")
    return "a document has no content of a secret, as documents are shown and exported: give each "
           "key of it with `gtenant secret set TENANT/NAME --file FILE`";
  if (head.kind == "ServiceAccount")
    return "jobs run as their users, and have no ServiceAccount: a job gets a token of its own "
           "with `--identity=AUDIENCE`, whose subject is its tenant, project and user";
  if (head.kind == "PersistentVolumeClaim" || head.kind == "PersistentVolume" ||
      head.kind == "StorageClass")
    return "volumes are not made here: `storage.path` of a Tenant and Dataset documents show "
           "directories of the site's storage to jobs";
  if (head.api_version.starts_with("kyverno.io/") || head.kind == "ConstraintTemplate")
    return "rules about jobs are documents of kind Policy, whose patterns are Kyverno's: see "
           "`gtenant policy fields`";
  return fmt::format("objects of kind {} ({}) mean nothing to Gantry", head.kind, head.api_version);
}
}  // namespace

Result<void> Kubernetes::add(const Value& root) {
  ASSIGN(head, read_head(root));
  if (head->kind.ends_with("List") && head->items) {
    ASSIGN(items, head->items->items());
    for (const Value& item : *items)
      if (auto done = add(item); !done) return done;
    return {};
  }
  Meta meta;
  meta.kind = head->kind;
  meta.place = root.place();
  const std::size_t slash = head->api_version.find('/');
  const std::string group = slash == std::string::npos ? "" : head->api_version.substr(0, slash);
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& k) {
    return k.kind == head->kind && k.group == group;
  });
  if (kind == kKinds.end()) {
    for (const Kind& k : kKinds)
      if (k.kind == head->kind)
        return root.wrong(fmt::format("{} is of apiVersion {}, not of {}", k.kind,
                                      k.group.empty() ? "v1" : std::string(k.group) + "/...",
                                      head->api_version));
    if (head->metadata)
      if (auto done = read_metadata(*head->metadata, meta, *parts_); !done) return done;
    parts_->notes.push_back({meta.place, meta.shown(), "", unknown_object(*head)});
    return {};
  }
  if (!head->metadata) return root.wrong("`metadata` is missing");
  if (auto done = read_metadata(*head->metadata, meta, *parts_); !done) return done;
  if (meta.name.empty()) return head->metadata->wrong("`name` is missing");
  if (!config::is_word(meta.name) && (!kind->namespaced || kind->kind == "LocalQueue") &&
      group != kRbac)
    return head->metadata->wrong(not_a_name(meta.name));
  if (kind->namespaced && meta.name_space.empty()) meta.name_space = "default";
  if (!kind->namespaced && !meta.name_space.empty()) {  // the API server drops it too
    meta.name_space.clear();
    parts_->notes.push_back({meta.place, meta.shown(), "metadata.namespace",
                             fmt::format("a {} is in no namespace", kind->kind)});
  }
  if (kind->namespaced && !config::is_word(meta.name_space))
    return head->metadata->wrong(not_a_name(meta.name_space));
  return kind->read(root, meta, *parts_);
}

std::vector<ReadDocument> Kubernetes::finish(std::span<const Document> known) {
  return assemble(*parts_, known);
}

}  // namespace gantry::tenancy
