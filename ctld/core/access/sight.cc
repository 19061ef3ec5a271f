#include "ctld/core/access/sight.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "common/overloaded.h"
#include "common/proto/any/any_message.h"
#include "common/proto/any/message_codec.h"
#include "common/proto/tenancy.h"
#include "common/text/hostlist.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr std::string_view kOthers = "a reservation of others";

template <class List, class Keep>
void keep(List& list, Keep seen) {
  std::erase_if(list, [&](const auto& one) { return !seen(one); });
}

}  // namespace

Sight::Sight(const State& state, const Identity& who)
    : state_(state), who_(who), everything_(sees_all(state, who)), reach_(state, who) {
  if (everything_) return;
  for (const auto& [name, tenant] : state.tenancy.compiled.tenants)
    if (has_right(state, who, name, TenantRight::see))
      tenants_.push_back(name);  // sorted, as in the map
  see_nodes();
}

void Sight::see_nodes() {
  nodes_.assign(state_.nodes.size(), false);
  const auto& compiled = state_.tenancy.compiled.nodes;
  for (const PartitionId id : state_.partition_order) {
    const Partition& p = state_.partition(id);
    if (!partition(p)) continue;
    for (const NodeId node : p.nodes) {
      const std::size_t n = node.value();
      nodes_[n] = n >= compiled.size() || compiled[n].tenant.empty() || tenant(compiled[n].tenant);
    }
  }
  // Nodes with a job that the asker sees are seen too, even if partitions have changed since.
  for (const Node& node : state_.nodes)
    for (const JobId id : node.jobs)
      if (!nodes_[node.id.value()] && reach_.may(May::see, state_, state_.jobs.at(id)))
        nodes_[node.id.value()] = true;
}

bool Sight::tenant(const std::string& name) const {
  return everything_ || std::binary_search(tenants_.begin(), tenants_.end(), name);
}

bool Sight::partition(const Partition& partition) const {
  if (everything_) return true;
  if (partition.declared == nullptr) return false;
  if (!partition.tenant.empty()) return tenant(partition.tenant);
  const auto queue = state_.tenancy.queues.find(partition.name);
  const bool tenants = queue != state_.tenancy.queues.end() && partition.declared == &queue->second;
  return !tenants || tenant(partition.name);
}

bool Sight::node(NodeId id) const {
  return everything_ || nodes_.at(id.value());
}

const Node* Sight::node_named(std::string_view name) const {
  const Node* found = state_.node_named(name);
  return found != nullptr && node(found->id) ? found : nullptr;
}

std::vector<std::string> Sight::names_of(const std::vector<NodeId>& nodes) const {
  std::vector<std::string> out;
  for (const NodeId id : nodes)
    if (node(id)) out.push_back(state_.node(id).name);
  return out;
}

std::vector<std::string> Sight::accounts(const std::vector<std::string>& names) const {
  const auto& tenants = state_.tenancy.compiled.tenants;
  if (everything_ || tenants.empty()) return names;  // without tenants, any word may be an account
  std::vector<std::string> out;
  const auto project_of = [&](const std::string& tenant, const std::string& name) {
    const auto& projects = tenants.at(tenant).effective.projects;
    return std::any_of(projects.begin(), projects.end(),
                       [&](const tenancy::Project& p) { return p.name == name; });
  };
  for (const std::string& name : names)
    if (tenant(name.substr(0, name.find('/'))) ||
        std::any_of(tenants_.begin(), tenants_.end(),
                    [&](const std::string& mine) { return project_of(mine, name); }))
      out.push_back(name);
  if (out.size() < names.size()) out.emplace_back("others");
  return out;
}

bool Sight::names_me(const AdvanceReservation& r) const {
  return std::find(r.users.begin(), r.users.end(), who_.owner.user) != r.users.end() ||
         std::any_of(r.tenants.begin(), r.tenants.end(),
                     [&](const std::string& name) { return tenant(name); });
}

bool Sight::reservation(const AdvanceReservation& r) const {
  return everything_ || r.maintenance || names_me(r);
}

// Whether a tenant of the asker names this profile of a network.
bool Sight::network_profile(const std::string& name) const {
  return std::any_of(tenants_.begin(), tenants_.end(), [&](const std::string& mine) {
    const CompiledTenant* tenant = state_.tenancy.tenant(mine);
    if (tenant == nullptr) return false;
    const tenancy::TenantNetwork& n = tenant->effective.network;
    return n.default_profile == name ||
           (n.default_profile.empty() && name == tenancy::kBasicProfile) ||
           std::find(n.profiles.begin(), n.profiles.end(), name) != n.profiles.end();
  });
}

// Whether a tenant of the asker, or a profile that it names, names this service.
bool Sight::network_service(const std::string& name) const {
  const auto names = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  const bool of_tenant = std::any_of(tenants_.begin(), tenants_.end(), [&](const auto& mine) {
    const CompiledTenant* tenant = state_.tenancy.tenant(mine);
    return tenant != nullptr && names(tenant->effective.network.services);
  });
  return of_tenant || std::any_of(state_.tenancy.documents.begin(), state_.tenancy.documents.end(),
                                  [&](const auto& entry) {
                                    const auto* profile =
                                        std::get_if<tenancy::NetworkProfile>(&entry.second);
                                    return profile != nullptr && names(profile->services) &&
                                           network_profile(profile->name);
                                  });
}

std::optional<tenancy::Document> Sight::document(const tenancy::Document& document) const {
  if (everything_) return document;
  tenancy::Document copy = document;
  const auto hosts = [&](const std::string& list) {
    auto names = expand_hostlist(list);
    if (!names) return std::string();
    keep(*names, [&](const std::string& name) { return node_named(name) != nullptr; });
    return compress_hostlist(*names);
  };
  const auto& documents = state_.tenancy.documents;
  const auto own = [&](auto what) {  // true for a node of the asker's tenants
    return std::any_of(tenants_.begin(), tenants_.end(), [&](const std::string& name) {
      const auto it = documents.find({tenancy::Tenant::kKind, name});
      return it != documents.end() && what(std::get<tenancy::Tenant>(it->second));
    });
  };
  const bool seen = std::visit(
      Overloaded{
          [&](tenancy::Tenant& t) { return tenant(t.name); },
          [&](tenancy::Policy& p) {
            // A policy of the cluster may name people and tenants in its patterns.
            const auto names = [](const auto& patterns) {
              return patterns.contains("tenant") || patterns.contains("user") ||
                     patterns.contains("account") || patterns.contains("partition");
            };
            return p.tenant.empty() ? !names(p.match) && !names(p.unless) : tenant(p.tenant);
          },
          [&](tenancy::Dataset& d) {
            const auto mine = [&](std::vector<std::string>& names) {
              keep(names, [&](const std::string& name) { return tenant(name); });
              return !names.empty();
            };
            const bool reads = mine(d.read), writes = mine(d.write);
            if (tenant(d.tenant)) {
              d = std::get<tenancy::Dataset>(document);
              return true;
            }
            d.tenant.clear();  // only those who see the tenant may learn whose it is
            return reads || writes;
          },
          [&](tenancy::Service& d) { return tenant(d.tenant); },
          [&](tenancy::Budget& b) { return b.user == who_.owner.user || tenant(b.tenant); },
          [&](tenancy::Tier& t) {
            return own([&](const auto& mine) { return mine.tier == t.name; });
          },
          [&](tenancy::Cohort& c) {
            return own([&](const auto& mine) {
              std::string at = mine.cohort;
              for (int depth = 0; depth < 64 && !at.empty(); ++depth) {
                if (at == c.name) return true;
                const auto up = documents.find({tenancy::Cohort::kKind, at});
                at = up == documents.end() ? "" : std::get<tenancy::Cohort>(up->second).parent;
              }
              return false;
            });
          },
          [&](tenancy::NodePool& p) {
            p.nodes = hosts(p.nodes);
            return p.tenant.empty() || tenant(p.tenant);
          },
          [&](tenancy::Flavor& f) {
            const auto pool = documents.find({tenancy::NodePool::kKind, f.node_pool});
            if (f.node_pool.empty() || pool == documents.end()) return true;
            const std::string& owner = std::get<tenancy::NodePool>(pool->second).tenant;
            return owner.empty() || tenant(owner);
          },
          [&](tenancy::Topology& t) {
            for (auto& domain : t.domains) domain.nodes = hosts(domain.nodes);
            keep(t.domains, [](const auto& domain) { return !domain.nodes.empty(); });
            return true;
          },
          [&](tenancy::PriceBook& b) {
            std::erase_if(b.tenant_zones, [&](const auto& e) { return !tenant(e.first); });
            b.platform_cost = {};
            std::erase_if(b.plans, [&](auto& plan) {
              const bool of_some =
                  plan.classes.empty() && plan.tiers.empty() && plan.sandboxes.empty();
              keep(plan.tenants, [&](const std::string& name) { return tenant(name); });
              keep(plan.projects,
                   [&](const std::string& name) { return tenant(name.substr(0, name.find('/'))); });
              return of_some && plan.tenants.empty() && plan.projects.empty();
            });
            return true;
          },
          [](tenancy::Manifest&) { return false; },  // hidden: the document names all tenants
          [&](tenancy::NetworkProfile& p) { return network_profile(p.name); },
          [&](tenancy::NetworkService& s) { return network_service(s.name); },
          [](auto&) { return true; }},
      copy);
  if (!seen) return std::nullopt;
  return copy;
}

namespace {

// True for fields of requests that name nodes.
bool names_nodes(std::string_view field) {
  return field == "nodes" || field == "required_nodes" || field == "excluded_nodes" ||
         field == "nodelist";
}

}  // namespace

// A node that does not exist is refused here as well. A handler checks other things first, so
// refusing only hidden nodes here would show which nodes exist. Documents name nodes as lists; the
// handler checks whose nodes they may be.
Result<void> check_named_nodes(const State& state, const Identity& who,
                               const proto::AnyMessage& message) {
  if (state.tenancy.compiled.tenants.empty() || sees_all(state, who)) return {};
  if (message.is<proto::ApplyTenancy>()) return {};
  std::optional<Sight> sight;  // made only when needed, because few requests name nodes
  Result<void> found;
  proto::each_text(message, [&](std::string_view field, const std::string& text) {
    if (!found || !names_nodes(field)) return;
    if (!sight) sight.emplace(state, who);
    if (sight->node_named(text) == nullptr) found = tl::unexpected(no_such_node(text));
  });
  return found;
}

Error no_such_node(std::string_view name) {
  return {ErrorCode::not_found, fmt::format("node \"{}\" is not in this cluster", name)};
}

Verdict Sight::verdict(Verdict v) const {
  if (everything_) return v;
  if (v.reason == Reason::cohort_quota) {
    // "gpu of a100: red borrows 8 GPUs, blue borrows 2 GPUs"
    const std::size_t colon = v.subject.find(": ");
    if (colon == std::string::npos) return v;
    std::string_view rest = std::string_view(v.subject).substr(colon + 2);
    std::string holders;
    bool hidden = false;
    while (!rest.empty()) {
      const std::string_view one = rest.substr(0, std::min(rest.find(", "), rest.size()));
      rest.remove_prefix(std::min(one.size() + 2, rest.size()));
      if (tenant(std::string(one.substr(0, one.find(" borrows ")))))
        holders.append(holders.empty() ? "" : ", ").append(one);
      else
        hidden = true;
    }
    if (hidden) holders += holders.empty() ? "others borrow" : ", others borrow";
    v.subject = v.subject.substr(0, colon + 2) + holders;
  } else if (v.reason == Reason::planned) {
    const Job* other =
        state_.jobs.find(JobId(static_cast<std::uint64_t>(std::atoll(v.subject.c_str()))));
    if (other == nullptr || !reach_.may(May::see, state_, *other)) v.subject.clear();
  } else if (v.reason == Reason::maintenance) {
    const auto it = state_.tenancy.reservations.find(v.subject);
    if (it != state_.tenancy.reservations.end() && !reservation(it->second)) v.subject = kOthers;
  } else if (v.reason == Reason::nodes_unavailable) {
    auto names = expand_hostlist(v.subject);
    if (!names) return v;
    keep(*names, [&](const std::string& name) { return node_named(name) != nullptr; });
    v.subject = compress_hostlist(*names);
  }
  return v;
}

}  // namespace gantry::core
