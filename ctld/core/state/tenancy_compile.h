// compile(): the tenancy documents and the nodes there are, to what the scheduler and the rest of
// the core use: indexes instead of names, tiers worked in, each node's flavor and place.
//
// Pure and total: documents were checked before they were stored (config/tenancy), and what a later
// change of the cluster's nodes makes of them (a pool whose hosts are gone) is an empty list, no
// error. The three built-in classes exist always; a document of the same name replaces one.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/tenancy/tenancy_cluster.h"
#include "ctld/sched/tenancy.h"

namespace gantry::core {

using DocumentKey = std::pair<int, std::string>;  // kKind, name
using Documents = std::map<DocumentKey, tenancy::Document>;

DocumentKey key_of(const tenancy::Document& document);

// What the documents can speak of.
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
  std::string tenant;  // whose own it is; "" = shared
  std::string pool;    // the first by name of those that it is in; "" = none
  friend bool operator==(const CompiledNode&, const CompiledNode&) = default;
};

struct CompiledTenant {
  tenancy::Tenant effective;  // with its tier's defaults
  std::uint32_t quota_node = 0;
  std::vector<std::uint32_t> nodes;  // indexes into the traits, in their order
  std::uint32_t default_class = 0;
  std::vector<std::uint32_t> allowed_classes;  // sorted
};

struct CompiledTenancy {
  sched::TenancyPtr view;
  std::vector<CompiledNode> nodes;  // as the traits
  std::map<std::string, CompiledTenant> tenants;
  std::vector<tenancy::PriorityClass> classes;  // as view->classes
  std::uint32_t default_class = 0;
  std::vector<tenancy::Grant> cluster_grants;  // operators and admins, whichever tenant names them
};

// Tenants that name no cohort: together in one, or each by itself.
enum class LooseTenants : std::uint8_t { one_cohort, apart };
// That cohort's name; no document can have it.
inline constexpr std::string_view kClusterCohort = "(cluster)";

// `class_names`: the index that each priority class has for good; those that are in neither the
// documents nor built in any more count as the built-in default.
CompiledTenancy compile(const Documents& documents, const std::vector<std::string>& class_names,
                        const std::vector<NodeTraits>& nodes, std::uint64_t revision,
                        Duration half_life, LooseTenants loose);

// Names of priority classes that the documents have and `class_names` has not, in the order in
// which they get their indexes; the built-in ones first.
std::vector<std::string> new_class_names(const Documents& documents,
                                         const std::vector<std::string>& class_names);

// `tenant` with what it leaves open taken from `tier`.
tenancy::Tenant with_defaults(tenancy::Tenant tenant, const tenancy::Tenant& tier);

}  // namespace gantry::core
