// Tenancy documents of the cluster as a whole: cohorts, tiers, priority classes, flavors, node
// pools, topology, prices, budgets. See tenancy.h, price_book.h and budget.h.
#pragma once

#include "common/money/budget.h"
#include "common/money/price_book.h"
#include "common/tenancy/tenancy.h"

namespace gantry::tenancy {

struct Cohort {  // tenants and cohorts that lend to each other
  static constexpr std::string_view kName = "Cohort";
  static constexpr int kKind = 2;
  std::string name;
  std::string parent;  // "" = a root
  std::optional<std::uint32_t> weight;
  std::vector<QuotaLine> quota;  // of its own, besides its members'
  friend bool operator==(const Cohort&, const Cohort&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "parent", s.parent);
    v(3, "weight", s.weight);
    v(4, "quota", s.quota);
  }
};

struct Tier {  // production, research, dev: what its tenants have unless they say otherwise
  static constexpr std::string_view kName = "Tier";
  static constexpr int kKind = 3;
  std::string name;
  Tenant defaults;  // its name, cohort and tier are empty
  friend bool operator==(const Tier&, const Tier&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "defaults", s.defaults);
  }
};

struct PriorityClass {
  static constexpr std::string_view kName = "PriorityClass";
  static constexpr int kKind = 4;
  std::string name;
  std::int32_t value = 500;  // higher first
  std::string description;
  bool is_default = false;  // exactly one
  bool preempts = false;    // may take from lower classes
  bool preemptible = true;  // may be taken from, by a higher class or an owner's reclaim
  VictimMode victim_mode = VictimMode::requeue;
  Duration grace = seconds(30);                  // signal to kill
  Duration min_run_time{};                       // no victim before
  std::optional<std::uint32_t> max_preemptions;  // of one job; then it is no victim any more
  std::optional<Duration> age_step;  // waits this long: counts one higher, never above a preempting
  friend bool operator==(const PriorityClass&, const PriorityClass&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "value", s.value);
    v(3, "description", s.description);
    v(4, "is_default", s.is_default);
    v(5, "preempts", s.preempts);
    v(6, "preemptible", s.preemptible);
    v(7, "victim_mode", s.victim_mode);
    v(8, "grace", s.grace);
    v(9, "min_run_time", s.min_run_time);
    v(10, "max_preemptions", s.max_preemptions);
    v(11, "age_step", s.age_step);
  }
};

// They exist without a document, the default first; a document of the same name takes the place of
// one.
std::vector<PriorityClass> built_in_classes();

struct Flavor {  // a kind of node that quota speaks of; the first that matches a node is its flavor
  static constexpr std::string_view kName = "Flavor";
  static constexpr int kKind = 5;
  std::string name;
  std::string node_pool;              // "" = any
  std::string gpu_model;              // "" = any
  std::vector<std::string> features;  // all of them
  Resources charge;  // fair-share charge per second: thousandths per unit (core, GiB, GPU)
  friend bool operator==(const Flavor&, const Flavor&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "node_pool", s.node_pool);
    v(3, "gpu_model", s.gpu_model);
    v(4, "features", s.features);
    v(5, "charge", s.charge);
  }
};

struct NodePool {
  static constexpr std::string_view kName = "NodePool";
  static constexpr int kKind = 6;
  std::string name;
  std::string nodes;  // a host list; with features: those of it that have them
  std::vector<std::string> features;
  std::string tenant;               // its own nodes: nobody else sees or uses them; "" = shared
  std::vector<std::string> taints;  // only jobs that tolerate all of them
  bool gpu_jobs_only = false;       // work without GPUs is kept off
  bool spread = false;              // place on the emptiest node first, not the fullest
  friend bool operator==(const NodePool&, const NodePool&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "nodes", s.nodes);
    v(3, "features", s.features);
    v(4, "tenant", s.tenant);
    v(5, "taints", s.taints);
    v(6, "gpu_jobs_only", s.gpu_jobs_only);
    v(7, "spread", s.spread);
  }
};

struct TopologyDomain {
  std::string level;  // one of the topology's
  std::string name;   // unique in its level
  std::string nodes;  // a host list
  friend bool operator==(const TopologyDomain&, const TopologyDomain&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "level", s.level);
    v(2, "name", s.name);
    v(3, "nodes", s.nodes);
  }
};

struct Topology {  // one for the cluster
  static constexpr std::string_view kName = "Topology";
  static constexpr int kKind = 7;
  std::string name;
  std::vector<std::string> levels;  // from the widest to the narrowest, nodes left out
  std::vector<TopologyDomain>
      domains;  // of a level: disjoint; within one domain of the wider level
  friend bool operator==(const Topology&, const Topology&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "levels", s.levels);
    v(3, "domains", s.domains);
  }
};

// An object of Kubernetes or Kueue that was applied, as it was: what it gave to tenants is known by
// it when it is applied again (config/tenancy/manifests.h).
struct Manifest {
  static constexpr std::string_view kName = "Manifest";
  static constexpr int kKind = 10;
  std::string name;         // "RoleBinding/fraud/admins"; of what is in no namespace, two slashes
  std::string text;         // YAML in one line
  std::string user_domain;  // what --user-domain was
  friend bool operator==(const Manifest&, const Manifest&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "text", s.text);
    v(3, "user_domain", s.user_domain);
  }
};

using Document = std::variant<Tenant, Cohort, Tier, PriorityClass, Flavor, NodePool, Topology,
                              PriceBook, Budget, Manifest>;

std::string_view kind_of(const Document& document);  // "Tenant", ...
const std::string& name_of(const Document& document);

}  // namespace gantry::tenancy
