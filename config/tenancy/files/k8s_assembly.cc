#include "config/tenancy/files/k8s_assembly.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "config/tenancy/check.h"
#include "config/tenancy/read_parts.h"
#include "config/tenancy/write.h"
#include "config/values.h"

namespace gantry::tenancy {
namespace {

template <class T>
const T* find_document(std::span<const Document> documents, std::string_view name) {
  for (const Document& document : documents)
    if (const T* found = std::get_if<T>(&document); found != nullptr && found->name == name)
      return found;
  return nullptr;
}

class Assembly {
 public:
  Assembly(Translation& parts, std::span<const Document> known) : parts_(parts), known_(known) {}

  std::vector<ReadDocument> run() {
    bind_roles();
    for (auto& [name, ns] : parts_.namespaces) add_tenant(name, ns);
    for (auto& [name, queue] : parts_.queues) add_queue_without_namespace(name, queue);
    keep_one_topology();
    for (ReadDocument& read : parts_.documents) keep_domains(read);
    add_cohorts_that_are_only_named();
    for (ReadDocument& read : parts_.documents) leave_out_flavors(read);
    for (ReadDocument& read : out_) leave_out_flavors(read);
    for (ReadDocument& read : out_) parts_.documents.push_back(std::move(read));
    for (ReadDocument& read : parts_.documents) normalise(read.document);
    auto& notes = parts_.notes;
    notes.erase(std::unique(notes.begin(), notes.end()), notes.end());
    return std::move(parts_.documents);
  }

 private:
  void note(const Place& place, std::string object, std::string field, std::string why) {
    parts_.notes.push_back({place, std::move(object), std::move(field), std::move(why)});
  }

  // ---- roles

  [[nodiscard]] std::optional<RoleMeaning> meaning_of(const Binding& binding) const {
    const bool cluster = binding.role_kind == "ClusterRole";
    const auto found =
        parts_.roles.find({cluster ? "" : binding.meta.name_space, binding.role_name});
    if (found != parts_.roles.end()) return found->second;
    static constexpr std::array<std::pair<std::string_view, Role>, 6> kBuiltIn{
        {{"cluster-admin", Role::tenant_admin},
         {"admin", Role::tenant_admin},
         {"edit", Role::user},
         {"view", Role::viewer},
         {"kueue-batch-admin-role", Role::tenant_admin},
         {"kueue-batch-user-role", Role::user}}};
    if (cluster)
      for (const auto& [name, role] : kBuiltIn)
        if (name == binding.role_name) return RoleMeaning{role};
    return std::nullopt;
  }

  void bind_roles() {
    for (const Binding& binding : parts_.bindings) {
      const auto meaning = meaning_of(binding);
      const std::string object = binding.meta.shown();
      if (!meaning || !meaning->role) {
        note(binding.role_place, object, "roleRef",
             fmt::format("{} {} {}: nobody gets a role by it", binding.role_kind, binding.role_name,
                         meaning ? "gives no right that Gantry has"
                                 : "is in none of these files and not built in"));
        continue;
      }
      if (!binding.meta.name_space.empty()) {
        add_grants(binding.meta.name_space, binding, *meaning->role);
        continue;
      }
      if (binding.role_name == "cluster-admin") {
        note(binding.role_place, object, "roleRef",
             "administrators of the cluster are named in gantry.yaml (controller.admins)");
        continue;
      }
      note(binding.role_place, object, "",
           fmt::format("they get the role {} in every tenant of these files; tenants that come "
                       "later need it anew",
                       enum_name(*meaning->role)));
      for (const auto& [name, ns] : parts_.namespaces) add_grants(name, binding, *meaning->role);
    }
  }

  void add_grants(const std::string& tenant, const Binding& binding, Role role) {
    for (const auto& [place, subject] : binding.subjects) {
      Grant grant = subject;
      grant.role = role;
      grants_[tenant].push_back(std::move(grant));
    }
  }

  // ---- tenants

  void add_tenant(const std::string& name, NamespaceParts& ns) {
    Tenant tenant;
    const Tenant* old = find_document<Tenant>(known_, name);
    if (old != nullptr) tenant = *old;
    tenant.name = name;
    ReadDocument& read = out_.emplace_back();
    read.place = ns.place;
    read.translated = true;
    read.places["name"] = ns.place;
    if (ns.declared) set_labels(tenant, ns, old == nullptr);
    if (const auto grants = grants_.find(name); grants != grants_.end())
      tenant.grants = grants->second;
    if (ns.has_counts) {
      if (ns.counts.running_jobs) tenant.counts.running_jobs = ns.counts.running_jobs;
      if (ns.counts.queued_jobs) tenant.counts.queued_jobs = ns.counts.queued_jobs;
    }
    if (ns.jobs) set_job_limits(tenant.jobs, *ns.jobs);
    set_network(tenant, read);
    set_queue(tenant, ns, read);
    set_hard(tenant, ns, read);
    if (!config::is_word(name))
      note(ns.place, "Namespace " + name, "metadata.name", not_a_name(name));
    read.document = std::move(tenant);
  }

  void set_network(Tenant& tenant, ReadDocument& read) {
    const auto found = parts_.networks.find(tenant.name);
    if (found == parts_.networks.end()) return;
    const NetworkParts& network = found->second;
    tenant.network.default_profile = profile_name(tenant.name);
    read.places["network.default"] = network.place;
    if (!network.egress)
      note(network.place, network.object, "spec.policyTypes",
           "no policy of the namespace is about egress, which Kubernetes leaves open then; here "
           "jobs reach the resolvers, and what may reach them");
    if (!network.ingress)
      note(network.place, network.object, "spec.policyTypes",
           "no policy of the namespace is about ingress, which Kubernetes leaves open then; here "
           "only jobs of the tenant that it may reach itself may reach a job");
    ReadDocument& profile = parts_.documents.emplace_back();
    profile.document = profile_of(tenant.name, network);
    profile.place = network.place;
    profile.translated = true;
  }

  void set_labels(Tenant& tenant, const NamespaceParts& ns, bool fresh) {
    tenant.labels = ns.labels;
    // A profile that the namespace does not name stays as it is.
    for (const auto& [from, to] : {std::pair{&ns.security.enforce, &tenant.security.enforce},
                                   {&ns.security.audit, &tenant.security.audit},
                                   {&ns.security.warn, &tenant.security.warn}})
      if (*from) *to = *from;
    const auto tier = ns.labels.find("tier");
    if (tier != ns.labels.end()) {
      if (find_document<Tier>(known_, tier->second) != nullptr)
        tenant.tier = tier->second;
      else
        note(ns.place, "Namespace " + tenant.name, "metadata.labels.tier",
             fmt::format("there is no Tier `{}`; it is kept as a label only", tier->second));
    }
    if (!fresh) return;
    // In Kubernetes every namespace may use every class.
    std::vector<std::string> classes;
    bool any_preempts = false;
    for (const ReadDocument& read : parts_.documents)
      if (const auto* c = std::get_if<PriorityClass>(&read.document)) {
        classes.push_back(c->name);
        any_preempts = any_preempts || c->preempts;
      }
    if (any_preempts) tenant.allowed_classes = std::move(classes);
  }

  static void set_job_limits(JobLimits& out, const JobLimits& from) {
    if (from.default_cpus) out.default_cpus = from.default_cpus;
    if (from.default_memory_per_cpu) out.default_memory_per_cpu = from.default_memory_per_cpu;
    if (from.max_per_node) out.max_per_node = from.max_per_node;
  }

  [[nodiscard]] std::vector<std::string> namespaces_of(const std::string& queue) const {
    std::vector<std::string> out;
    for (const auto& [name, ns] : parts_.namespaces)
      if (!ns.queues.empty() && ns.queues.front().cluster_queue == queue) out.push_back(name);
    return out;
  }

  void set_queue(Tenant& tenant, const NamespaceParts& ns, ReadDocument& read) {
    if (ns.queues.empty()) return;
    const QueueRef& ref = ns.queues.front();
    for (std::size_t i = 1; i < ns.queues.size(); ++i)
      if (ns.queues[i].cluster_queue != ref.cluster_queue)
        note(ns.queues[i].place, ns.queues[i].object, "spec.clusterQueue",
             fmt::format("a tenant has one queue, and {} names {} already", ref.object,
                         ref.cluster_queue));
    const auto found = parts_.queues.find(ref.cluster_queue);
    if (found == parts_.queues.end()) {
      note(ref.place, ref.object, "spec.clusterQueue",
           fmt::format(
               "ClusterQueue {} is in none of these files: the tenant's quota stays as it is",
               ref.cluster_queue));
      return;
    }
    const ClusterQueueParts& queue = found->second;
    warn_of_selector(tenant.name, ns, ref, queue);
    if (queue.pods) tenant.counts.running_jobs = queue.pods;
    tenant.reclaim = queue.reclaim;
    if (namespaces_of(found->first).size() == 1) {
      tenant.quota = queue.quota;
      tenant.cohort = queue.cohort;
      tenant.weight = queue.weight;
      read.places.insert(queue.places.begin(), queue.places.end());
      read.places["cohort"] = queue.place;
      return;
    }
    // Several tenants share the queue, so it becomes a cohort, in which no tenant has quota of its
    // own.
    tenant.cohort = found->first;
    tenant.weight.reset();
    tenant.quota.clear();
    for (const QuotaLine& line : queue.quota)
      tenant.quota.push_back({line.flavor, line.resource, 0, std::nullopt, std::nullopt});
    if (shared_.insert(found->first).second) add_shared_queue(found->first, queue);
  }

  void warn_of_selector(const std::string& tenant, const NamespaceParts& ns, const QueueRef& ref,
                        const ClusterQueueParts& queue) {
    if (!ns.declared) return;
    if (!queue.selector) {
      note(ref.place, ref.object, "spec.clusterQueue",
           fmt::format("{} has no namespaceSelector, which in Kueue admits no namespace; here the "
                       "LocalQueue alone decides",
                       ref.cluster_queue));
      return;
    }
    for (const auto& [key, value] : *queue.selector) {
      // Every namespace has its name as a label.
      if (key == "kubernetes.io/metadata.name" && value == tenant) continue;
      const auto label = ns.labels.find(key);
      if (label != ns.labels.end() && label->second == value) continue;
      note(ref.place, ref.object, "spec.clusterQueue",
           fmt::format("the namespace has not the label {}={} that {} asks for; here the "
                       "LocalQueue alone decides",
                       key, value, ref.cluster_queue));
    }
  }

  void add_shared_queue(const std::string& name, const ClusterQueueParts& queue) {
    Cohort cohort;
    cohort.name = name;
    cohort.parent = queue.cohort;
    cohort.weight = queue.weight;
    cohort.quota = queue.quota;
    ReadDocument& read = parts_.documents.emplace_back();
    read.document = std::move(cohort);
    read.place = queue.place;
    read.places = queue.places;
    read.places["parent"] = queue.place;
    read.translated = true;
    note(queue.place, "ClusterQueue " + name, "",
         "is used by several namespaces: it becomes a cohort, in which their tenants share");
  }

  void add_queue_without_namespace(const std::string& name, ClusterQueueParts& queue) {
    if (!namespaces_of(name).empty()) return;
    Tenant tenant;
    if (const Tenant* old = find_document<Tenant>(known_, name)) tenant = *old;
    tenant.name = name;
    tenant.quota = queue.quota;
    tenant.cohort = queue.cohort;
    tenant.weight = queue.weight;
    tenant.reclaim = queue.reclaim;
    if (queue.pods) tenant.counts.running_jobs = queue.pods;
    ReadDocument& read = out_.emplace_back();
    read.document = std::move(tenant);
    read.place = queue.place;
    read.places = queue.places;
    read.places["cohort"] = queue.place;
    read.translated = true;
    note(queue.place, "ClusterQueue " + name, "",
         "no LocalQueue of these files names it: it becomes a tenant of its own name");
  }

  // A ResourceQuota is never exceeded. It limits what the queue gives, or it is itself the quota if
  // there is no queue.
  void set_hard(Tenant& tenant, const NamespaceParts& ns, ReadDocument& read) {
    for (const auto& [resource, hard] : ns.hard) {
      const std::int64_t guaranteed = hard.requests ? *hard.requests : hard.limits.value_or(0);
      const std::int64_t most = std::max(guaranteed, hard.limits.value_or(guaranteed));
      QuotaLine line{"", resource, guaranteed, most - guaranteed, std::nullopt};
      std::int64_t of_queue = 0;
      bool has_queue = false;
      for (const QuotaLine& other : ns.queues.empty() ? std::vector<QuotaLine>{} : tenant.quota)
        if (other.resource == resource && !other.flavor.empty()) {
          of_queue += other.nominal;
          has_queue = true;
        }
      if (has_queue && !(namespaces_of(ns.queues.front().cluster_queue).size() > 1)) {
        line.nominal = std::min(of_queue, most);
        line.borrow = most - line.nominal;
      } else if (has_queue) {
        line.nominal = 0;
        line.borrow = most;
      }
      std::erase_if(tenant.quota, [of = resource](const QuotaLine& other) {
        return other.resource == of && other.flavor.empty();
      });
      read.places[fmt::format(
          "quota.{}", resource == Resource::memory ? "memory" : enum_name(resource))] = hard.place;
      tenant.quota.push_back(std::move(line));
    }
  }

  // ---- the rest

  [[nodiscard]] bool has_flavor(const std::string& name) const {
    if (find_document<Flavor>(known_, name) != nullptr) return true;
    return std::any_of(parts_.documents.begin(), parts_.documents.end(), [&](const auto& read) {
      const auto* flavor = std::get_if<Flavor>(&read.document);
      return flavor != nullptr && flavor->name == name;
    });
  }

  // Quota of a ResourceFlavor that does not exist yet is left out. Kueue does not activate such a
  // queue either. A resource for which nothing is left is closed; it does not become unlimited.
  void leave_out_flavors(ReadDocument& read) {
    std::vector<QuotaLine>* quota = quota_of(read.document);
    if (quota == nullptr) return;
    std::set<Resource> closed;
    std::set<std::string> missing;
    for (const QuotaLine& line : *quota)
      if (!line.flavor.empty() && !has_flavor(line.flavor)) {
        closed.insert(line.resource);
        missing.insert(line.flavor);
      }
    std::erase_if(*quota, [&](const QuotaLine& line) { return missing.contains(line.flavor); });
    for (const QuotaLine& line : *quota) closed.erase(line.resource);
    if (std::holds_alternative<Tenant>(read.document))
      for (const Resource resource : closed) quota->push_back({"", resource, 0, 0, std::nullopt});
    for (const std::string& name : missing)
      note(read.place, std::string(kind_of(read.document)) + " " + name_of(read.document), "quota",
           fmt::format(
               "there is no ResourceFlavor {} yet: amounts of it count from when it is applied",
               name));
  }

  // Kueue may have one Topology for each flavor, Gantry has one for the cluster. The one that
  // exists already is kept, or else the first.
  void keep_one_topology() {
    std::string kept;
    for (const Document& document : known_)
      if (const auto* t = std::get_if<Topology>(&document)) kept = t->name;
    std::erase_if(parts_.documents, [&](const ReadDocument& read) {
      const auto* t = std::get_if<Topology>(&read.document);
      if (t == nullptr) return false;
      if (kept.empty()) kept = t->name;
      if (kept == t->name) return false;
      note(read.place, "Topology " + t->name, "",
           fmt::format("a cluster has one topology, and that is {}", kept));
      return true;
    });
  }

  void keep_domains(ReadDocument& read) {
    auto* topology = std::get_if<Topology>(&read.document);
    if (topology == nullptr) return;
    const Topology* old = find_document<Topology>(known_, topology->name);
    if (old == nullptr) return;
    for (const TopologyDomain& domain : old->domains)
      if (std::find(topology->levels.begin(), topology->levels.end(), domain.level) !=
          topology->levels.end())
        topology->domains.push_back(domain);
  }

  void add_cohorts_that_are_only_named() {
    std::set<std::string> there;
    std::map<std::string, Place> named;
    const auto look = [&](const ReadDocument& read) {
      if (const auto* cohort = std::get_if<Cohort>(&read.document)) {
        there.insert(cohort->name);
        if (!cohort->parent.empty()) named.emplace(cohort->parent, read.place);
      } else if (const auto* tenant = std::get_if<Tenant>(&read.document)) {
        if (!tenant->cohort.empty()) named.emplace(tenant->cohort, read.place);
      }
    };
    for (const ReadDocument& read : parts_.documents) look(read);
    for (const ReadDocument& read : out_) look(read);
    for (const auto& [name, place] : named) {
      if (there.contains(name)) continue;
      const Cohort* old = find_document<Cohort>(known_, name);
      Cohort cohort = old == nullptr ? Cohort{} : *old;
      cohort.name = name;
      ReadDocument& read = parts_.documents.emplace_back();
      read.document = std::move(cohort);
      read.place = place;
      read.translated = true;
    }
  }

  Translation& parts_;
  std::span<const Document> known_;
  std::vector<ReadDocument> out_;
  std::map<std::string, std::vector<Grant>> grants_;
  std::set<std::string> shared_;
};

}  // namespace

std::vector<ReadDocument> assemble(Translation& parts, std::span<const Document> known) {
  return Assembly(parts, known).run();
}

}  // namespace gantry::tenancy
