// compile() turns the tenancy documents and the present nodes into what the scheduler and the rest
// of the core use: indexes instead of names, tenants with their tier's defaults, each node's flavor
// and place.
//
// compile() is pure and never fails. Documents were checked before they were stored
// (config/tenancy). If the cluster's nodes change later (a pool loses its hosts), the result is an
// empty list, not an error. The three built-in classes always exist; a document of the same name
// replaces one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/tenancy/tenancy_cluster.h"
#include "common/tenancy/use_limits.h"
#include "ctld/sched/tenancy.h"

namespace gantry::core {

using DocumentKey = std::pair<int, std::string>;  // index of the kind, name
using Documents = std::map<DocumentKey, tenancy::Document>;

DocumentKey key_of(const tenancy::Document& document);

// The properties of a node that documents can name.
struct NodeTraits {
  std::string name;
  std::string gpu_model;              // lower case; "" = none or not known
  std::vector<std::string> features;  // sorted
};

struct CompiledNode {
  std::uint32_t flavor = 0;
  std::vector<std::uint32_t> domains;  // by level
  std::vector<std::string> taints;     // sorted
  bool gpu_jobs_only = false;
  bool spread = false;
  std::string tenant;  // the tenant that owns the node; "" = shared
  std::string pool;    // the first of its pools, by name; "" = none
  friend bool operator==(const CompiledNode&, const CompiledNode&) = default;
};

struct CompiledTenant {
  tenancy::Tenant effective;  // the tenant's document with its tier's defaults
  std::uint32_t quota_node = 0;
  std::vector<std::uint32_t> nodes;  // indexes into the traits, in the same order
  std::uint32_t default_class = 0;
  std::vector<std::uint32_t> allowed_classes;  // sorted
  // Limits of the tenant's accounts and users, as in Tenant::associations.
  std::map<std::string, tenancy::UseLimits> associations;
};

struct CompiledTenancy {
  sched::TenancyPtr view;
  std::vector<CompiledNode> nodes;  // in the order of the traits
  std::map<std::string, CompiledTenant> tenants;
  std::vector<tenancy::PriorityClass> classes;   // in the order of view->classes
  std::vector<tenancy::UseLimits> class_limits;  // limits of each class, in the same order
  // Whether the class has limits of use; empty if neither a class nor an account has limits.
  std::vector<bool> use_limited;
  std::uint32_t default_class = 0;
  std::vector<tenancy::Grant> cluster_grants;  // auditors, operators and admins, from all tenants
  std::map<std::string, tenancy::CustomRole> roles;
  std::vector<tenancy::Policy> policies;  // by name
  std::optional<Instant> next_end;  // when the next grant ends; unset = no present grant has an end
};

// How tenants that name no cohort are treated: they share one cohort, or each is alone.
enum class LooseTenants : std::uint8_t { one_cohort, apart };
// The name of the cohort that these tenants share; no document can have this name.
inline constexpr std::string_view kClusterCohort = "(cluster)";

// `class_names`: the names by permanent index of priority class. A class that is no longer in the
// documents, nor built in, counts as the built-in default.
CompiledTenancy compile(const Documents& documents, const std::vector<std::string>& class_names,
                        const std::vector<NodeTraits>& nodes, std::uint64_t revision,
                        Duration half_life, LooseTenants loose);

// Removes the grants that have ended, and finds when the next one ends.
void drop_ended_grants(CompiledTenancy& compiled, Instant now);

// Names of priority classes that are in the documents but not in `class_names`, in the order in
// which they get their indexes: the built-in ones first.
std::vector<std::string> new_class_names(const Documents& documents,
                                         const std::vector<std::string>& class_names);

// Returns `tenant`; values that it leaves open are taken from `tier`.
tenancy::Tenant with_defaults(tenancy::Tenant tenant, const tenancy::Tenant& tier);

}  // namespace gantry::core
