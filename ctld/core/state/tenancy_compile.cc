#include "ctld/core/state/tenancy_compile.h"

#include <algorithm>
#include <set>

#include "common/assert.h"
#include "common/text/hostlist.h"
#include "ctld/sched/tenancy.h"

namespace gantry::core {
namespace {

using tenancy::built_in_classes;
using tenancy::Cohort;
using tenancy::Flavor;
using tenancy::NodePool;
using tenancy::PriorityClass;
using tenancy::Tenant;
using tenancy::Tier;
using tenancy::Topology;

// How much a second of a core, a GiB of memory and a GPU counts in the fair share if no Flavor says
// otherwise. The proportions fit a usual 8-GPU node (64 cores, 512 GiB), whose price is mostly that
// of its GPUs.
constexpr double kGpuCharge = 1.0;
constexpr double kCoreCharge = 1.0 / 64;
constexpr double kGibCharge = 1.0 / 512;
constexpr double kGib = 1024.0 * 1024 * 1024, kGiga = 1e9;

template <class T>
std::vector<const T*> all_of(const Documents& documents) {
  std::vector<const T*> out;
  for (auto it = documents.lower_bound({T::kKind, ""});
       it != documents.end() && it->first.first == T::kKind; ++it)
    out.push_back(&std::get<T>(it->second));
  return out;
}

template <class T>
const T* find(const Documents& documents, const std::string& name) {
  const auto it = documents.find({T::kKind, name});
  return it == documents.end() ? nullptr : &std::get<T>(it->second);
}

bool has_all(const std::vector<std::string>& features, const std::vector<std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& w) {
    return std::binary_search(features.begin(), features.end(), w);
  });
}

std::set<std::string> hosts_of(const std::string& list) {
  const auto names = expand_hostlist(list);
  if (!names) return {};
  return {names->begin(), names->end()};
}

class Compiler {
 public:
  Compiler(const Documents& documents, const std::vector<std::string>& class_names,
           const std::vector<NodeTraits>& nodes, std::uint64_t revision, Duration half_life,
           LooseTenants loose)
      : documents_(documents), class_names_(class_names), traits_(nodes), loose_(loose) {
    view_.revision = revision;
    view_.half_life = half_life;
    out_.nodes.resize(nodes.size());
  }

  CompiledTenancy run() {
    add_classes();
    add_pools();
    add_flavors();
    add_topology();
    add_cohorts();
    for (const tenancy::CustomRole* role : all_of<tenancy::CustomRole>(documents_))
      out_.roles.emplace(role->name, *role);
    for (const tenancy::Policy* policy : all_of<tenancy::Policy>(documents_))
      out_.policies.push_back(*policy);
    add_tenants();
    add_limits();
    out_.view = std::make_shared<const sched::Tenancy>(std::move(view_));
    return std::move(out_);
  }

 private:
  void add_classes() {
    const auto given = all_of<PriorityClass>(documents_);
    const bool own_default =
        std::any_of(given.begin(), given.end(), [](const auto* c) { return c->is_default; });
    std::map<std::string, PriorityClass> by_name;
    for (PriorityClass& c : built_in_classes()) {
      c.is_default = c.is_default && !own_default;
      by_name[c.name] = c;
    }
    for (const PriorityClass* c : given) by_name[c->name] = *c;
    for (const std::string& name : class_names_) {
      const auto it = by_name.find(name);
      PriorityClass c =
          it == by_name.end() ? by_name.at(built_in_classes().front().name) : it->second;
      if (it == by_name.end()) c.is_default = false;
      if (c.is_default) out_.default_class = static_cast<std::uint32_t>(out_.classes.size());
      view_.classes.push_back({name, c.value, c.preempts, c.preemptible, c.victim_mode, c.grace,
                               c.min_run_time, c.max_preemptions});
      out_.classes.push_back(std::move(c));
    }
    for (std::size_t i = 0; i < class_names_.size(); ++i)
      for (const std::string& victim : out_.classes[i].victims)
        for (std::uint32_t v = 0; v < class_names_.size(); ++v)
          if (class_names_[v] == victim) view_.classes[i].victims.push_back(v);
  }

  // Documents were checked before, so an unreadable text counts as not set.
  void add_limits() {
    bool some = false;
    for (const PriorityClass& c : out_.classes) {
      out_.class_limits.push_back(
          tenancy::read_use_limits(c.limits).value_or(tenancy::UseLimits{}));
      out_.use_limited.push_back(!c.limits.empty());
      some = some || !c.limits.empty();
    }
    for (auto& [name, tenant] : out_.tenants)
      for (const auto& [of, row] : tenant.effective.associations) {
        const auto limits = tenancy::read_use_limits(tenancy::read_limit_row(row));
        if (limits) tenant.associations.emplace(of, *limits);
        some = true;
      }
    if (!some) out_.use_limited.clear();
  }

  void add_pools() {
    for (const NodePool* pool : all_of<NodePool>(documents_)) {
      const std::set<std::string> hosts = hosts_of(pool->nodes);
      for (std::size_t n = 0; n < traits_.size(); ++n) {
        if (!pool->nodes.empty() && !hosts.contains(traits_[n].name)) continue;
        if (!has_all(traits_[n].features, pool->features)) continue;
        pools_[pool->name].insert(n);
        CompiledNode& node = out_.nodes[n];
        if (node.pool.empty()) node.pool = pool->name;
        node.gpu_jobs_only |= pool->gpu_jobs_only;
        node.spread |= pool->spread;
        if (!pool->tenant.empty()) node.tenant = pool->tenant;
        node.taints.insert(node.taints.end(), pool->taints.begin(), pool->taints.end());
        std::sort(node.taints.begin(), node.taints.end());
        node.taints.erase(std::unique(node.taints.begin(), node.taints.end()), node.taints.end());
      }
    }
  }

  [[nodiscard]] bool matches(const Flavor& flavor, std::size_t n) const {
    if (!flavor.gpu_model.empty() && flavor.gpu_model != traits_[n].gpu_model) return false;
    if (!has_all(traits_[n].features, flavor.features)) return false;
    if (flavor.node_pool.empty()) return true;
    const auto pool = pools_.find(flavor.node_pool);
    return pool != pools_.end() && pool->second.contains(n);
  }

  static std::array<double, kResourceCount> charge_of(const Resources& thousandths) {
    const bool given = !thousandths.is_zero();
    const auto part = [&](Resource r, double otherwise) {
      return given ? static_cast<double>(thousandths[r]) / 1000 : otherwise;
    };
    std::array<double, kResourceCount> out{};
    out[static_cast<std::size_t>(Resource::cpu)] = part(Resource::cpu, kCoreCharge) / kCoreUnit;
    out[static_cast<std::size_t>(Resource::memory)] = part(Resource::memory, kGibCharge) / kGib;
    out[static_cast<std::size_t>(Resource::gpu)] = part(Resource::gpu, kGpuCharge) / kGpuUnit;
    out[static_cast<std::size_t>(Resource::scratch)] = part(Resource::scratch, 0) / kGib;
    out[static_cast<std::size_t>(Resource::io)] = part(Resource::io, 0) / kGiga;
    out[static_cast<std::size_t>(Resource::net)] = part(Resource::net, 0) / kGiga;
    return out;
  }

  // A node gets the flavor with the most conditions that it fulfils; between equals, the first by
  // name.
  void add_flavors() {
    view_.flavors.push_back({"", charge_of({})});
    std::vector<const Flavor*> flavors = all_of<Flavor>(documents_);
    for (const Flavor* f : flavors) {
      flavor_[f->name] = static_cast<std::uint32_t>(view_.flavors.size());
      view_.flavors.push_back({f->name, charge_of(f->charge)});
    }
    const auto conditions = [](const Flavor* f) {
      return (f->node_pool.empty() ? 0 : 1) + (f->gpu_model.empty() ? 0 : 1) + f->features.size();
    };
    std::stable_sort(flavors.begin(), flavors.end(), [&](const Flavor* a, const Flavor* b) {
      return conditions(a) > conditions(b);
    });
    for (std::size_t n = 0; n < traits_.size(); ++n)
      for (const Flavor* f : flavors)
        if (matches(*f, n)) {
          out_.nodes[n].flavor = flavor_.at(f->name);
          break;
        }
  }

  void add_topology() {
    const auto topologies = all_of<Topology>(documents_);
    if (topologies.empty()) return;
    const Topology& topology = *topologies.front();
    for (const std::string& level : topology.levels) {
      sched::TopologyLevel view{level, {}};
      std::map<std::string, std::uint32_t> domain_of_host;
      for (const tenancy::TopologyDomain& d : topology.domains) {
        if (d.level != level) continue;
        for (const std::string& host : hosts_of(d.nodes))
          domain_of_host[host] = static_cast<std::uint32_t>(view.domains.size());
        view.domains.push_back(d.name);
      }
      for (std::size_t n = 0; n < traits_.size(); ++n) {
        const auto it = domain_of_host.find(traits_[n].name);
        out_.nodes[n].domains.push_back(it == domain_of_host.end() ? sched::kNoIndex : it->second);
      }
      view_.levels.push_back(std::move(view));
    }
  }

  // A tenant is unlimited in a resource that no line names. If only lines for other flavors name
  // it, the tenant may use none of this flavor. A cohort has no quota of a resource that no line
  // names.
  [[nodiscard]] std::vector<sched::FlavorLimits> limits_of(
      const std::vector<tenancy::QuotaLine>& lines, bool tenant) const {
    std::vector<sched::FlavorLimits> out(view_.flavors.size());
    for (std::size_t r = 0; r < kResourceCount; ++r) {
      bool total = false, some = false;
      for (const tenancy::QuotaLine& line : lines)
        if (static_cast<std::size_t>(line.resource) == r)
          (line.flavor.empty() ? total : some) = true;
      for (std::size_t f = 0; f < out.size(); ++f) {
        const bool closed = tenant && f > 0 && some && !total;
        out[f].nominal[r] = tenant && !closed ? sched::kUnlimited : 0;
        out[f].borrow[r] = closed ? 0 : sched::kUnlimited;
        out[f].lend[r] = sched::kUnlimited;
      }
    }
    for (const tenancy::QuotaLine& line : lines) {
      const auto flavor = flavor_.find(line.flavor);
      if (!line.flavor.empty() && flavor == flavor_.end()) continue;
      sched::FlavorLimits& limits = out[line.flavor.empty() ? 0 : flavor->second];
      const auto r = static_cast<std::size_t>(line.resource);
      limits.nominal[r] = line.nominal;
      limits.borrow[r] = line.borrow.value_or(sched::kUnlimited);
      limits.lend[r] = line.lend.value_or(sched::kUnlimited);
    }
    return out;
  }

  std::uint32_t add_node(const std::string& name, const std::string& cohort,
                         std::optional<std::uint32_t> weight,
                         const std::vector<tenancy::QuotaLine>& quota, bool tenant) {
    sched::QuotaNode node;
    node.name = name;
    if (!cohort.empty()) node.parent = cohort_node(cohort);
    node.weight = weight.value_or(1000);
    node.tenant = tenant;
    node.limits = limits_of(quota, tenant);
    view_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(view_.nodes.size() - 1);
  }

  // Adds a cohort after its parents. A cohort that only its members name has no quota of its own.
  std::uint32_t cohort_node(const std::string& name) {
    if (const auto it = cohorts_.find(name); it != cohorts_.end()) return it->second;
    const bool fresh = opening_.insert(name).second;
    GANTRY_ASSERT(fresh, "cohorts that are in each other were checked");
    const Cohort* cohort = find<Cohort>(documents_, name);
    const std::uint32_t node =
        cohort == nullptr ? add_node(name, "", std::nullopt, {}, false)
                          : add_node(name, cohort->parent, cohort->weight, cohort->quota, false);
    return cohorts_[name] = node;
  }

  void add_cohorts() {
    for (const Cohort* cohort : all_of<Cohort>(documents_)) cohort_node(cohort->name);
  }

  [[nodiscard]] std::uint32_t class_index(const std::string& name) const {
    for (std::uint32_t i = 0; i < out_.classes.size(); ++i)
      if (view_.classes[i].name == name) return i;
    return out_.default_class;
  }

  void add_tenants() {
    for (const Tenant* given : all_of<Tenant>(documents_)) {
      CompiledTenant tenant;
      const Tier* tier = given->tier.empty() ? nullptr : find<Tier>(documents_, given->tier);
      tenant.effective = tier == nullptr ? *given : with_defaults(*given, tier->defaults);
      const Tenant& t = tenant.effective;
      const bool loose = t.cohort.empty() && loose_ == LooseTenants::one_cohort;
      tenant.quota_node =
          add_node(t.name, loose ? std::string(kClusterCohort) : t.cohort, t.weight, t.quota, true);
      sched::QuotaNode& node = view_.nodes[tenant.quota_node];
      node.reclaim = t.reclaim.value_or(tenancy::Reclaim::any);
      node.max_running = t.counts.running_jobs;
      tenant.default_class = class_index(t.default_class);
      for (std::uint32_t i = 0; i < out_.classes.size(); ++i) {
        const auto& allowed = t.allowed_classes;
        const bool named =
            std::find(allowed.begin(), allowed.end(), out_.classes[i].name) != allowed.end();
        if (i == tenant.default_class || (allowed.empty() ? !out_.classes[i].preempts : named))
          tenant.allowed_classes.push_back(i);
      }
      for (std::uint32_t n = 0; n < traits_.size(); ++n)
        if (may_use(t, n)) tenant.nodes.push_back(n);
      take_roles(tenant.effective.grants);
      for (const tenancy::Grant& grant : t.grants)
        if (tenancy::of_cluster(grant.role)) out_.cluster_grants.push_back(grant);
      out_.tenants.emplace(t.name, std::move(tenant));
    }
  }

  // Grants of the site's own roles get the base of the role.
  void take_roles(std::vector<tenancy::Grant>& grants) const {
    for (tenancy::Grant& grant : grants) {
      const auto it = out_.roles.find(grant.custom);
      if (it == out_.roles.end()) continue;
      for (const auto& [role, name] : enum_names(tenancy::Role{}))
        if (name == it->second.base) grant.role = role;
    }
  }

  [[nodiscard]] bool may_use(const Tenant& tenant, std::uint32_t n) const {
    const std::string& owner = out_.nodes[n].tenant;
    if (!owner.empty() && owner != tenant.name) return false;
    if (tenant.node_pools.empty() || owner == tenant.name) return true;
    return std::any_of(tenant.node_pools.begin(), tenant.node_pools.end(),
                       [&](const std::string& pool) {
                         const auto it = pools_.find(pool);
                         return it != pools_.end() && it->second.contains(n);
                       });
  }

  const Documents& documents_;
  const std::vector<std::string>& class_names_;
  const std::vector<NodeTraits>& traits_;
  const LooseTenants loose_;
  sched::Tenancy view_;
  CompiledTenancy out_;
  std::map<std::string, std::set<std::size_t>> pools_;
  std::map<std::string, std::uint32_t> flavor_, cohorts_;
  std::set<std::string> opening_;
};

}  // namespace

DocumentKey key_of(const tenancy::Document& document) {
  const int kind =
      std::visit([](const auto& d) { return std::decay_t<decltype(d)>::kKind; }, document);
  return {kind, tenancy::name_of(document)};
}

Tenant with_defaults(Tenant t, const Tenant& tier) {
  const auto unset = [](auto& mine, const auto& theirs) {
    if (!mine) mine = theirs;
  };
  const auto empty = [](auto& mine, const auto& theirs) {
    if (mine.empty()) mine = theirs;
  };
  unset(t.weight, tier.weight);
  empty(t.quota, tier.quota);
  unset(t.own_queue, tier.own_queue);
  unset(t.jobs.default_time, tier.jobs.default_time);
  unset(t.jobs.max_time, tier.jobs.max_time);
  unset(t.jobs.default_memory_per_cpu, tier.jobs.default_memory_per_cpu);
  unset(t.jobs.default_cpus, tier.jobs.default_cpus);
  unset(t.jobs.default_io, tier.jobs.default_io);
  unset(t.jobs.default_net, tier.jobs.default_net);
  unset(t.jobs.max_per_job, tier.jobs.max_per_job);
  unset(t.jobs.max_per_node, tier.jobs.max_per_node);
  unset(t.jobs.max_nodes, tier.jobs.max_nodes);
  unset(t.jobs.host_network, tier.jobs.host_network);
  unset(t.jobs.keep_others_off, tier.jobs.keep_others_off);
  unset(t.idle_gpus.note, tier.idle_gpus.note);
  unset(t.idle_gpus.warn, tier.idle_gpus.warn);
  unset(t.idle_gpus.requeue, tier.idle_gpus.requeue);
  unset(t.idle_gpus.cancel, tier.idle_gpus.cancel);
  unset(t.counts.queued_jobs, tier.counts.queued_jobs);
  unset(t.counts.running_jobs, tier.counts.running_jobs);
  unset(t.counts.array_tasks, tier.counts.array_tasks);
  unset(t.counts.reservations, tier.counts.reservations);
  unset(t.counts.queued_jobs_per_user, tier.counts.queued_jobs_per_user);
  unset(t.counts.submits_per_minute, tier.counts.submits_per_minute);
  unset(t.counts.service_requests, tier.counts.service_requests);
  empty(t.projects, tier.projects);
  empty(t.grants, tier.grants);
  empty(t.label_rules, tier.label_rules);
  empty(t.classes, tier.classes);
  empty(t.default_class, tier.default_class);
  empty(t.allowed_classes, tier.allowed_classes);
  empty(t.node_pools, tier.node_pools);
  unset(t.reclaim, tier.reclaim);
  for (const auto& [key, value] : tier.labels) t.labels.emplace(key, value);
  empty(t.network.default_profile, tier.network.default_profile);
  empty(t.network.profiles, tier.network.profiles);
  empty(t.network.services, tier.network.services);
  unset(t.security.enforce, tier.security.enforce);
  unset(t.security.audit, tier.security.audit);
  unset(t.security.warn, tier.security.warn);
  empty(t.security.registries, tier.security.registries);
  unset(t.security.images_by_digest, tier.security.images_by_digest);
  unset(t.security.sandbox, tier.security.sandbox);
  empty(t.security.sandboxes, tier.security.sandboxes);
  empty(t.description, tier.description);
  return t;
}

std::vector<std::string> new_class_names(const Documents& documents,
                                         const std::vector<std::string>& class_names) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& name) {
    for (const auto* list : {&class_names, static_cast<const std::vector<std::string>*>(&out)})
      if (std::find(list->begin(), list->end(), name) != list->end()) return;
    out.push_back(name);
  };
  for (const PriorityClass& c : built_in_classes()) add(c.name);
  for (const PriorityClass* c : all_of<PriorityClass>(documents)) add(c->name);
  return out;
}

void drop_ended_grants(CompiledTenancy& compiled, Instant now) {
  compiled.next_end.reset();
  const auto drop = [&](std::vector<tenancy::Grant>& grants) {
    std::erase_if(grants, [&](const tenancy::Grant& g) { return g.until && *g.until <= now; });
    for (const tenancy::Grant& grant : grants)
      if (grant.until && (!compiled.next_end || *grant.until < *compiled.next_end))
        compiled.next_end = grant.until;
  };
  drop(compiled.cluster_grants);
  for (auto& [name, tenant] : compiled.tenants) drop(tenant.effective.grants);
}

CompiledTenancy compile(const Documents& documents, const std::vector<std::string>& class_names,
                        const std::vector<NodeTraits>& nodes, std::uint64_t revision,
                        Duration half_life, LooseTenants loose) {
  return Compiler(documents, class_names, nodes, revision, half_life, loose).run();
}

}  // namespace gantry::core
