// The parts that kubernetes.cc collects from objects before it can make documents of them, and
// helpers to read their fields. Used inside config/tenancy only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "config/tenancy/files/kubernetes.h"

namespace gantry::tenancy {

struct Meta {  // what identifies an object
  std::string kind, name, name_space;
  Place place;
  std::map<std::string, std::string> labels;
  [[nodiscard]] std::string shown() const {  // "ResourceQuota fraud/gpus"
    return kind + " " + (name_space.empty() ? "" : name_space + "/") + name;
  }
};

struct HardLimit {  // a limit of a ResourceQuota; of several the smallest counts
  std::optional<std::int64_t> requests, limits;
  Place place;
};

struct QueueRef {  // a LocalQueue
  std::string name, cluster_queue;
  Place place;
  std::string object;
};

struct NamespaceParts {
  Place place;  // of the first object
  bool declared = false;
  std::map<std::string, std::string> labels;
  TenantSecurity security;  // from its labels of Pod Security
  std::map<Resource, HardLimit> hard;
  CountLimits counts;
  bool has_counts = false;
  std::optional<JobLimits> jobs;
  std::vector<QueueRef> queues;
};

struct Pool {  // quota as Kueue writes it, of a ClusterQueue or Cohort
  std::vector<QuotaLine> quota;
  std::map<std::string, Place> places;
  std::optional<std::uint32_t> weight;
  std::optional<std::uint32_t> pods;
  std::optional<Value> first_limit;  // borrowingLimit or lendingLimit; used only during reading
};

struct ClusterQueueParts : Pool {
  Place place;
  std::string cohort;
  Reclaim reclaim = Reclaim::never;
  std::optional<std::map<std::string, std::string>> selector;  // not set: no namespaces
};

struct RoleMeaning {
  std::optional<Role> role;  // not set: the role gives no right that Gantry has
};

struct Binding {
  Meta meta;
  std::string role_kind, role_name;
  Place role_place;
  std::vector<std::pair<Place, Grant>> subjects;  // users and groups whose role is not known yet
};

// All NetworkPolicies of a namespace together.
struct NetworkParts {
  Place place;  // place of the first one
  std::string object;
  bool ingress = false, egress = false;  // whether any of them speaks of it
  bool resolvers = false;
  std::vector<std::string> to, to_tenants, from_tenants;  // as NetworkProfile's
};

struct Translation {
  std::string user_domain;
  std::map<std::string, NamespaceParts> namespaces;
  std::map<std::string, ClusterQueueParts> queues;
  std::map<std::string, NetworkParts> networks;                      // by namespace
  std::map<std::pair<std::string, std::string>, RoleMeaning> roles;  // by namespace ("" = cluster)
  std::vector<Binding> bindings;
  std::vector<ReadDocument> documents;  // documents that need nothing else
  std::vector<Note> notes;

  NamespaceParts& in_namespace(const Meta& meta) {
    NamespaceParts& parts = namespaces[meta.name_space];
    if (parts.place.file.empty()) parts.place = meta.place;
    return parts;
  }
  void note(const Meta& meta, const Value& value, std::string why) {
    notes.push_back({value.place(), meta.shown(), value.path(), std::move(why)});
  }
};

// Reads the keys of a map. Each key has a handler, or gets a note with a reason; any other key is
// an error.
class Keys {
 public:
  using Handler = std::function<Result<void>(const Value&)>;
  Keys(const Value& map, Translation& into, const Meta& meta)
      : map_(map), into_(into), meta_(meta) {}

  Keys& on(std::string_view key, Handler handler);
  Keys& required(std::string_view key, Handler handler);
  Keys& note(std::string_view key, std::string_view why);  // "" = known, but without a meaning here
  Keys& text(std::string_view key, std::string& out);
  Result<void> run();

 private:
  struct Known {
    Handler handler;
    std::string_view why;
    bool required = false;
  };
  const Value& map_;
  Translation& into_;
  const Meta& meta_;
  std::map<std::string_view, Known> known_;
};

// Reads an object. apiVersion, kind, metadata and status are read already; `keys` gets the rest.
using ReadObject = Result<void> (*)(const Value& root, const Meta& meta, Translation& into);

Result<void> read_namespace(const Value& root, const Meta& meta, Translation& into);
Result<void> read_resource_quota(const Value& root, const Meta& meta, Translation& into);
Result<void> read_limit_range(const Value& root, const Meta& meta, Translation& into);
Result<void> read_priority_class(const Value& root, const Meta& meta, Translation& into);
Result<void> read_workload_class(const Value& root, const Meta& meta, Translation& into);
Result<void> read_cluster_queue(const Value& root, const Meta& meta, Translation& into);
Result<void> read_local_queue(const Value& root, const Meta& meta, Translation& into);
Result<void> read_cohort(const Value& root, const Meta& meta, Translation& into);
Result<void> read_flavor(const Value& root, const Meta& meta, Translation& into);
Result<void> read_topology(const Value& root, const Meta& meta, Translation& into);
Result<void> read_role(const Value& root, const Meta& meta, Translation& into);
Result<void> read_binding(const Value& root, const Meta& meta, Translation& into);
Result<void> read_network_policy(const Value& root, const Meta& meta, Translation& into);

// The profile that the policies of a namespace are together, and its name.
NetworkProfile profile_of(const std::string& name_space, const NetworkParts& parts);
std::string profile_name(const std::string& name_space);

// Reads metadata: names and labels.
Result<void> read_metadata(const Value& value, Meta& meta, Translation& into);

// Reads an object's own keys, and those that every object has.
Keys object_keys(const Value& root, Translation& into, const Meta& meta);

std::optional<Resource> resource_of_kubernetes(std::string_view name);  // "cpu", "nvidia.com/gpu"
Result<std::int64_t> read_quantity(const Value& value, Resource resource);
Result<void> expect_choice(const Value& value, std::span<const std::string_view> choices,
                           std::string& out);

}  // namespace gantry::tenancy
