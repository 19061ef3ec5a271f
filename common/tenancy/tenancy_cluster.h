// Tenancy documents about the cluster as a whole: cohorts, tiers, priority classes, flavors, node
// pools, topology, prices, budgets. See tenancy.h, price_book.h and budget.h.
#pragma once

#include "common/fields.h"
#include "common/money/budget.h"
#include "common/money/price_book.h"
#include "common/special_members.h"
#include "common/tenancy/tenancy.h"
#include "common/tenancy/tenancy_service.h"

namespace gantry::tenancy {

struct Cohort {  // tenants and cohorts that lend to each other
  static constexpr std::string_view kName = "Cohort";
  static constexpr int kKind = 2;
  std::string name;
  std::string parent;  // "" = a root
  std::optional<std::uint32_t> weight;
  std::vector<QuotaLine> quota;  // quota of its own, besides its members' quota
  friend bool operator==(const Cohort&, const Cohort&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, parent), FIELD(3, weight), FIELD(4, quota))
};

struct Tier {  // production, research, dev: values for its tenants that do not set them themselves
  static constexpr std::string_view kName = "Tier";
  static constexpr int kKind = 3;
  std::string name;
  Tenant defaults;  // without name, cohort and tier
  friend bool operator==(const Tier&, const Tier&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, defaults))
};

struct PriorityClass {
  static constexpr std::string_view kName = "PriorityClass";
  static constexpr int kKind = 4;
  std::string name;
  std::int32_t value = 500;  // a higher value is served first
  std::string description;
  bool is_default = false;  // exactly one class is the default
  bool preempts = false;    // its jobs may preempt jobs of lower classes
  // Its jobs may be preempted, by a higher class or by the owner of reclaimed quota.
  bool preemptible = true;
  VictimMode victim_mode = VictimMode::requeue;
  Duration grace = seconds(30);  // time from the signal to the kill
  Duration min_run_time{};       // no job is a victim before it has run this long
  // How often one job may be preempted; after that it is no victim.
  std::optional<std::uint32_t> max_preemptions;
  // Each such time of waiting raises the class by one, but never above a preempting class.
  std::optional<Duration> age_step;
  std::map<std::string, std::string> limits{};  // limits of use, by Slurm's names; see use_limits.h
  // The only classes that its jobs may take from, whatever their values are; none = all lower ones.
  std::vector<std::string> victims{};
  friend bool operator==(const PriorityClass&, const PriorityClass&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, value), FIELD(3, description), FIELD(4, is_default),
                FIELD(5, preempts), FIELD(6, preemptible), FIELD(7, victim_mode), FIELD(8, grace),
                FIELD(9, min_run_time), FIELD(10, max_preemptions), FIELD(11, age_step),
                FIELD(12, limits), FIELD(13, victims))
};

// The classes that exist without a document, the default first. A document of the same name
// replaces one of them.
std::vector<PriorityClass> built_in_classes();

struct Flavor {  // a kind of node that quota refers to; a node has the first flavor that matches it
  static constexpr std::string_view kName = "Flavor";
  static constexpr int kKind = 5;
  std::string name;
  std::string node_pool;              // "" = any
  std::string gpu_model;              // "" = any
  std::vector<std::string> features;  // a node must have all of them
  Resources charge;  // fair-share charge per second: thousandths per unit (core, GiB, GPU)
  friend bool operator==(const Flavor&, const Flavor&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, node_pool), FIELD(3, gpu_model), FIELD(4, features),
                FIELD(5, charge))
};

struct NodePool {
  GANTRY_SPECIAL_MEMBERS(NodePool)
  static constexpr std::string_view kName = "NodePool";
  static constexpr int kKind = 6;
  std::string name;
  std::string nodes;  // a host list; if `features` is set, only the nodes of it that have them
  std::vector<std::string> features;
  std::string tenant;               // owner: only this tenant sees and uses the nodes; "" = shared
  std::vector<std::string> taints;  // only jobs that tolerate all of them may run here
  bool gpu_jobs_only = false;       // jobs without GPUs are not placed here
  bool spread = false;              // prefer the emptiest node, not the fullest
  friend bool operator==(const NodePool&, const NodePool&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, nodes), FIELD(3, features), FIELD(4, tenant),
                FIELD(5, taints), FIELD(6, gpu_jobs_only), FIELD(7, spread))
};

struct TopologyDomain {
  std::string level;  // a level of the topology
  std::string name;   // unique in its level
  std::string nodes;  // a host list
  friend bool operator==(const TopologyDomain&, const TopologyDomain&) = default;
  GANTRY_FIELDS(FIELD(1, level), FIELD(2, name), FIELD(3, nodes))
};

struct Topology {  // the cluster has one
  static constexpr std::string_view kName = "Topology";
  static constexpr int kKind = 7;
  std::string name;
  std::vector<std::string> levels;  // from the widest to the narrowest, without the node itself
  std::vector<TopologyDomain>
      // Domains of a level are disjoint, and each is within one domain of the wider level.
      domains;
  friend bool operator==(const Topology&, const Topology&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, levels), FIELD(3, domains))
};

// An object of Kubernetes or Kueue as it was applied. When it is applied again, this text shows
// what it had given to tenants (config/tenancy/files/manifests.h).
struct Manifest {
  static constexpr std::string_view kName = "Manifest";
  static constexpr int kKind = 10;
  std::string name;         // "RoleBinding/fraud/admins"; two slashes if it is in no namespace
  std::string text;         // YAML in one line
  std::string user_domain;  // value of --user-domain
  friend bool operator==(const Manifest&, const Manifest&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, text), FIELD(3, user_domain))
};

// Another cluster that operators want to see beside this one in `sacctmgr list cluster`. It keeps
// its own jobs; this document has no effect here.
struct OtherCluster {
  static constexpr std::string_view kName = "Cluster";
  static constexpr int kKind = 11;
  std::string name;
  std::string description;
  // Its accounts and users with their limits, as sacctmgr was told of them: one row each, a row is
  // KEY=VALUE|KEY=VALUE with the keys of Slurm's associations.
  std::vector<std::string> accounting{};
  friend bool operator==(const OtherCluster&, const OtherCluster&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, description), FIELD(3, accounting))
};

// Licences that several clusters share, as `sacctmgr add resource` has them. Jobs name them as
// NAME@SERVER; this cluster may give out its part.
struct LicenseResource {
  static constexpr std::string_view kName = "License";
  static constexpr int kKind = 12;
  std::string name;  // "NAME@SERVER"
  std::optional<std::uint32_t> count;
  std::string server_type;                     // for people: "flexlm"
  std::string description;                     // for people
  std::map<std::string, std::string> percent;  // percentage of each cluster: "50"
  friend bool operator==(const LicenseResource&, const LicenseResource&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, count), FIELD(3, server_type), FIELD(4, description),
                FIELD(5, percent))
};

struct Document
    : std::variant<Tenant, Cohort, Tier, PriorityClass, Flavor, NodePool, Topology, PriceBook,
                   Budget, Manifest, OtherCluster, LicenseResource, NetworkProfile, NetworkService,
                   CustomRole, Policy, Dataset, Service> {
  using variant::variant;
  GANTRY_SPECIAL_MEMBERS(Document)
};

std::string_view kind_of(const Document& document);  // "Tenant", ...
const std::string& name_of(const Document& document);

}  // namespace gantry::tenancy
