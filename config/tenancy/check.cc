#include "config/tenancy/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/resources/gres.h"
#include "common/tenancy/use_limits.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"
#include "config/nearest.h"
#include "config/tenancy/check_references.h"
#include "config/tenancy/read_parts.h"
#include "config/values.h"

namespace gantry::tenancy {
namespace {

constexpr std::size_t kMostLevels = 16;  // projects above a project

// Also not shorter than the nodes' interval: noded.gpu_sample.
constexpr Duration kLeastIdle = seconds(1);

// Checks all documents; it stops at the first problem.
class Checker : private References {
 public:
  Checker(std::span<const Document> documents, const std::function<bool(const Document&)>& blame)
      : References(documents), blame_(blame) {}

  Found run() {
    for (const Document& document : documents_) {
      current_ = &document;
      auto& names = names_[std::string(kind_of(document))];
      if (!config::is_word(name_of(document)) && !std::holds_alternative<Manifest>(document) &&
          !std::holds_alternative<LicenseResource>(document))
        return problem("name", not_a_name(name_of(document)));
      if (!names.insert(name_of(document)).second) return problem("name", "is there twice");
      if (const auto* cohort = std::get_if<Cohort>(&document))
        parents_[cohort->name] = cohort->parent;
      if (const auto* tenant = std::get_if<Tenant>(&document))
        for (const auto& [user, account] : tenant->default_accounts)
          default_tenants_.emplace(user, tenant->name);
    }
    for (const Document& document : documents_) {
      current_ = &document;
      if (blame_ && !blame_(document)) continue;
      if (Found found = std::visit([&](const auto& d) { return check(d); }, document)) return found;
    }
    Found found = check_default_class();
    if (!found) found = check_private_nodes();
    if (found && blame_ && !blame_(*current_)) return std::nullopt;
    return found;
  }

 private:
  [[nodiscard]] Found check_quota(const std::vector<QuotaLine>& quota) const {
    std::set<std::pair<std::string, Resource>> seen;
    for (const QuotaLine& line : quota) {
      const std::string_view resource =
          line.resource == Resource::memory ? "memory" : enum_name(line.resource);
      const std::string path = line.flavor.empty()
                                   ? fmt::format("quota.{}", resource)
                                   : fmt::format("quota.flavors.{}.{}", line.flavor, resource);
      if (!seen.emplace(line.flavor, line.resource).second) return problem(path, "is there twice");
      if (line.nominal < 0 || line.borrow.value_or(0) < 0 || line.lend.value_or(0) < 0)
        return problem(path, "is below 0");
      // A cohort may lend more than its own nominal quota, because its members' quota is lent
      // through it too.
      if (kind_of(*current_) != Cohort::kName && line.lend && *line.lend > line.nominal)
        return problem(path, "`lend` is more than nominal, and only what is owned can be lent");
      if (Found found = refer(Flavor::kName, line.flavor, "quota.flavors." + line.flavor))
        return found;
    }
    return std::nullopt;
  }

  [[nodiscard]] Found check_shared(const Tenant& t) const {
    if (Found found = check_quota(t.quota)) return found;
    if (Found found = refer(PriorityClass::kName, t.default_class, "default_class")) return found;
    for (const std::string& name : t.allowed_classes)
      if (Found found = refer(PriorityClass::kName, name, "allowed_classes")) return found;
    for (const std::string& name : t.node_pools)
      if (Found found = refer(NodePool::kName, name, "node_pools")) return found;
    const auto& allowed = t.allowed_classes;
    if (!t.default_class.empty() && !allowed.empty() &&
        std::find(allowed.begin(), allowed.end(), t.default_class) == allowed.end())
      return problem("default_class",
                     fmt::format("`{}` is none of its allowed_classes", t.default_class));
    if (t.jobs.default_time && t.jobs.max_time && *t.jobs.default_time > *t.jobs.max_time)
      return problem("defaults.time", "is longer than limits.time");
    if (t.jobs.default_time && t.jobs.default_time->us <= 0)
      return problem("defaults.time", "must be longer than 0s");
    if (t.jobs.max_time && t.jobs.max_time->us <= 0)
      return problem("limits.time", "must be longer than 0s");
    if (t.jobs.default_cpus == 0u) return problem("defaults.cpus", "must be at least 1");
    for (const auto& [key, rate] : {std::pair("defaults.io", t.jobs.default_io),
                                    std::pair("defaults.net", t.jobs.default_net)})
      if (rate && (*rate < kLeastRate || *rate > kMostRate))
        return problem(key, "is outside of 100K to 10T");
    if (t.jobs.max_nodes == 0u) return problem("limits.nodes", "must be at least 1");
    if (t.counts.service_requests == 0u)
      return problem("limits.service_requests", "must be at least 1");
    if (t.weight && Thousandths{*t.weight} > kMostWeight)
      return problem("weight", "is above 1000000");
    if (Found found = check_tenant_network(*this, t.network)) return found;
    if (Found found = check_counts(t)) return found;
    if (Found found = check_people(t)) return found;
    std::set<std::string> seen;
    for (const TenantClass& c : t.classes)
      if (!config::is_word(c.name) || !seen.insert(c.name).second)
        return problem("classes", fmt::format("`{}` is no name, or is there twice", c.name));
    return std::nullopt;
  }

  [[nodiscard]] Found check_counts(const Tenant& t) const {
    if (t.grants.size() > kMostGrants)
      return problem(
          "roles",
          fmt::format(
              "has {} grants; a tenant may have {}, and one to a group holds for all who are in it",
              t.grants.size(), kMostGrants));
    if (t.projects.size() > kMostProjects)
      return problem("projects", fmt::format("has {} projects; a tenant may have {}",
                                             t.projects.size(), kMostProjects));
    if (t.classes.size() > kMostTenantClasses)
      return problem("classes", fmt::format("has {} classes; a tenant may have {}",
                                            t.classes.size(), kMostTenantClasses));
    std::size_t users = 0;
    for (const Project& p : t.projects)
      if ((users += p.users.size()) > kMostProjectUsers)
        return problem(
            fmt::format("projects.{}.users", p.name),
            fmt::format("with them the projects name {} users; those of a tenant may name {}",
                        users, kMostProjectUsers));
    return std::nullopt;
  }

  [[nodiscard]] Found check_people(const Tenant& t) const {
    if (Found found = check_grants(*this, t.grants)) return found;
    if (Found found = check_label_rules(*this, t.label_rules)) return found;
    if (Found found = check_security(*this, t.security)) return found;
    if (Found found = check_tenant_storage(*this, t)) return found;
    if (Found found = check_idle(t.idle_gpus)) return found;
    std::set<std::string> projects;
    for (const Project& p : t.projects) {
      const std::string path = "projects." + p.name;
      if (!config::is_word(p.name)) return problem("projects", not_a_name(p.name));
      if (!projects.insert(p.name).second) return problem(path, "is there twice");
      if (std::max(p.description.size(), p.organization.size()) > kMostProjectText)
        return problem(path,
                       fmt::format("has a description or an organization of more than {} bytes",
                                   kMostProjectText));
      std::set<std::string> users;
      if (p.shares > kMostShares) return problem(path + ".shares", "is above 1000000");
      for (const UserShare& u : p.users)
        if (!is_account_name(u.user) || !users.insert(u.user).second || u.shares > kMostShares)
          return problem(path + ".users", fmt::format("\"{}\" is not the name of a user, is there "
                                                      "twice, or has more than 1000000 shares",
                                                      u.user));
    }
    return check_parents(t);
  }

  // Every parent is a project of the tenant, and no project is below itself.
  [[nodiscard]] Found check_parents(const Tenant& t) const {
    for (const Project& p : t.projects) {
      if (p.parent.empty()) continue;
      const std::string path = "projects." + p.name + ".parent";
      if (std::none_of(t.projects.begin(), t.projects.end(),
                       [&](const Project& other) { return other.name == p.parent; }))
        return problem(path, fmt::format("there is no project `{}` in the tenant", p.parent));
      const auto above = projects_above(t.projects, p.name);
      if (std::find(above.begin(), above.end(), p.name) != above.end())
        return problem(path, "is below itself");
      if (above.size() > kMostLevels)
        return problem(path, fmt::format("has {} projects above it; at most {} may be",
                                         above.size(), kMostLevels));
      if (p.name == t.name)
        return problem(path, "the project of the tenant's own name is the top one");
    }
    return std::nullopt;
  }

  [[nodiscard]] Found check_default_accounts(const Tenant& t) const {
    if (t.default_accounts.size() > kMostGrants)
      return problem("default_accounts", fmt::format("has {} users; a tenant may have {}",
                                                     t.default_accounts.size(), kMostGrants));
    for (const auto& [user, account] : t.default_accounts) {
      const std::string path = "default_accounts." + user;
      if (!is_account_name(user))
        return problem(path, fmt::format("\"{}\" is not the name of a user", user));
      const bool known =
          account == t.name || std::any_of(t.projects.begin(), t.projects.end(),
                                           [&](const Project& p) { return p.name == account; });
      if (!known)
        return problem(
            path, fmt::format("`{}` is neither a project of the tenant nor the tenant", account));
      if (const std::string& first = default_tenants_.at(user); first != t.name)
        return problem(
            path,
            fmt::format("tenant `{}` has a default account of the same user, who can have one",
                        first));
    }
    return std::nullopt;
  }

  // Each action must come later than the milder one before it; otherwise the milder one would never
  // be taken.
  [[nodiscard]] Found check_idle(const IdleGpuLimits& idle) const {
    struct Step {
      std::string_view name;
      const std::optional<Duration>& after;
    };
    std::optional<Step> milder;
    for (const Step& step : {Step{"note", idle.note}, Step{"warn", idle.warn},
                             Step{"requeue", idle.requeue}, Step{"cancel", idle.cancel}}) {
      if (!step.after) continue;
      const std::string path = fmt::format("idle_gpus.{}", step.name);
      if (*step.after < kLeastIdle) return problem(path, "is below 1s");
      if (milder && *step.after <= *milder->after)
        return problem(path, fmt::format("is not after `{}`", milder->name));
      milder.emplace(step);
    }
    return std::nullopt;
  }

  [[nodiscard]] Found check(const Tenant& t) const {
    if (Found found = refer(Cohort::kName, t.cohort, "cohort")) return found;
    if (Found found = refer(Tier::kName, t.tier, "tier")) return found;
    if (Found found = check_default_accounts(t)) return found;
    if (Found found = check_associations(t)) return found;
    return check_shared(t);
  }

  [[nodiscard]] Found check(const Tier& t) const { return check_shared(t.defaults); }

  [[nodiscard]] Found check(const Cohort& c) const {
    if (Found found = refer(Cohort::kName, c.parent, "parent")) return found;
    std::string path = c.name;
    std::set<std::string> seen{c.name};
    for (std::string up = c.parent; !up.empty();) {
      path += " -> " + up;
      if (!seen.insert(up).second) return problem("parent", "goes in a circle: " + path);
      if (seen.size() > kMostCohortLevels)
        return problem("parent",
                       fmt::format("is nested more than {} deep: {}", kMostCohortLevels, path));
      const auto next = parents_.find(up);
      up = next == parents_.end() ? "" : next->second;
    }
    return check_quota(c.quota);
  }

  [[nodiscard]] Found check(const PriorityClass& c) const {
    if (c.value > kMostValue || c.value < -kMostValue)
      return problem("value", fmt::format("is outside of -{0} to {0}", kMostValue));
    if (c.age_step && c.age_step->us <= 0) return problem("age_step", "must be longer than 0s");
    if (Found found = check_victims(c)) return found;
    return check_limits("limits", c.limits, true);
  }

  [[nodiscard]] Found check(const Flavor& f) const {
    for (const ResourceRow& row : kResourceTable)
      if (f.charge[row.id] < 0) return problem("charge", "is below 0");
    return refer(NodePool::kName, f.node_pool, "node_pool");
  }

  [[nodiscard]] Found check(const NodePool& p) const {
    if (p.nodes.empty() && p.features.empty())
      return problem("nodes", "is missing; a pool has `nodes` or `features`");
    if (const auto hosts = expand_hostlist(p.nodes); !hosts)
      return problem("nodes", hosts.error().message);
    return refer(Tenant::kName, p.tenant, "tenant");
  }

  [[nodiscard]] Found check(const Topology& t) const {
    if (names_.at(std::string(Topology::kName)).size() > 1)
      return problem("", "there is another Topology; a cluster has one");
    if (t.levels.empty()) return problem("levels", "is missing; from the widest to the narrowest");
    if (std::set<std::string>(t.levels.begin(), t.levels.end()).size() != t.levels.size())
      return problem("levels", "names one twice");
    for (const std::string& level : t.levels)
      if (level == "node") return problem("levels", "`node` is always the narrowest; leave it out");
    const std::vector<std::string_view> levels(t.levels.begin(), t.levels.end());
    std::map<std::string, std::string> wider;  // host -> its domain of the level before
    for (const TopologyDomain& d : t.domains)
      if (std::find(levels.begin(), levels.end(), d.level) == levels.end())
        return problem("domains." + d.level,
                       fmt::format("is none of `levels`{}", did_you_mean(d.level, levels)));
    for (const std::string& level : t.levels)
      if (Found found = check_level(t, level, wider)) return found;
    return std::nullopt;
  }

  // `wider` has each host's domain of the level before; this function replaces it by the domain of
  // this level.
  [[nodiscard]] Found check_level(const Topology& t, const std::string& level,
                                  std::map<std::string, std::string>& wider) const {
    std::map<std::string, std::string> here;
    std::set<std::string> names;
    for (const TopologyDomain& d : t.domains) {
      if (d.level != level) continue;
      const std::string path = fmt::format("domains.{}.{}", level, d.name);
      if (!names.insert(d.name).second) return problem(path, "is there twice");
      const auto hosts = expand_hostlist(d.nodes);
      if (!hosts) return problem(path, hosts.error().message);
      std::optional<std::string> around;
      for (const std::string& host : *hosts) {
        const auto [other, fresh] = here.emplace(host, d.name);
        if (!fresh)
          return problem(path, fmt::format("`{}` is in `{}` already", host, other->second));
        if (level == t.levels.front()) continue;
        const auto found = wider.find(host);
        const std::string domain = found == wider.end() ? "" : found->second;
        if (around && *around != domain)
          return problem(
              path,
              fmt::format(
                  "lies in several domains of the wider level: `{}` is in `{}`, others in `{}`",
                  host, domain, *around));
        around = domain;
      }
    }
    wider = std::move(here);
    return std::nullopt;
  }

  [[nodiscard]] Found check(const OtherCluster& c) const {
    constexpr std::size_t kMostRows = 100'000, kMostRow = 8192;
    if (c.accounting.size() > kMostRows)
      return problem("accounting", fmt::format("has more than {} rows", kMostRows));
    for (const std::string& row : c.accounting)
      if (row.empty() || row.size() > kMostRow || row.find('=') == std::string::npos)
        return problem("accounting", fmt::format("has the row '{:.80}', which is not of the form "
                                                 "KEY=VALUE|KEY=VALUE with at most {} bytes",
                                                 row, kMostRow));
    return std::nullopt;
  }
  [[nodiscard]] Found check(const LicenseResource& r) const {
    const std::size_t at = r.name.find('@');
    if (at == std::string::npos || !config::is_word(r.name.substr(0, at)) ||
        !config::is_word(r.name.substr(at + 1)))
      return problem("name", "is not NAME@SERVER");
    if (r.count.value_or(0) > kMostLicenses)
      return problem("count", fmt::format("is more than {}", kMostLicenses));
    for (const auto& [cluster, text] : r.percent)
      if (const auto percent = parse_integer("the part", text, 0, 100); !percent)
        return problem("percent." + cluster, percent.error().message);
    return std::nullopt;
  }
  // Classes that take from each other in a circle would end each other's jobs for ever.
  [[nodiscard]] Found check_victims(const PriorityClass& c) const {
    std::map<std::string, const PriorityClass*> classes;
    for (const Document& document : documents_)
      if (const auto* one = std::get_if<PriorityClass>(&document)) classes[one->name] = one;
    std::set<std::string> seen;
    std::vector<std::string> open = c.victims;
    for (const std::string& name : c.victims)
      if (Found found = refer(PriorityClass::kName, name, "victims")) return found;
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (name == c.name)
        return problem("victims", "goes in a circle: " + c.name + " would be a victim of itself");
      if (!seen.insert(name).second) continue;
      const auto it = classes.find(name);
      if (it != classes.end())
        open.insert(open.end(), it->second->victims.begin(), it->second->victims.end());
    }
    return std::nullopt;
  }
  [[nodiscard]] Found check_limits(const std::string& path, const LimitTexts& texts,
                                   bool qos) const {
    for (const auto& [key, text] : texts) {
      const LimitName* name = limit_named(key);
      if (name == nullptr || !(qos ? name->qos : name->association))
        return problem(path, fmt::format("`{}` is no limit of {}", key,
                                         qos ? "a class" : "an account or a user"));
    }
    if (const auto read = read_use_limits(texts); !read) return problem(path, read.error().message);
    return std::nullopt;
  }
  [[nodiscard]] Found check_associations(const Tenant& t) const {
    for (const auto& [of, row] : t.associations) {
      const std::string account = of.substr(0, of.find('/'));
      const bool known =
          account == t.name || std::any_of(t.projects.begin(), t.projects.end(),
                                           [&](const Project& p) { return p.name == account; });
      const std::string path = "associations." + of;
      if (!known) return problem(path, "is neither the tenant nor a project of it");
      if (Found found = check_limits(path, read_limit_row(row), false)) return found;
    }
    return std::nullopt;
  }
  [[nodiscard]] Found check(const PriceBook& b) const { return check_price_book(*this, b); }
  [[nodiscard]] Found check(const Budget& b) const { return check_budget(*this, b); }
  [[nodiscard]] Found check(const NetworkProfile& p) const {
    return check_network_profile(*this, p);
  }
  [[nodiscard]] Found check(const NetworkService& s) const {
    return check_network_service(*this, s);
  }
  [[nodiscard]] Found check(const CustomRole& r) const { return check_custom_role(*this, r); }
  [[nodiscard]] Found check(const Policy& p) const { return check_policy(*this, p); }
  [[nodiscard]] Found check(const Dataset& d) const { return check_dataset(*this, d); }
  [[nodiscard]] Found check(const Service& s) const { return check_service(*this, s); }

  [[nodiscard]] Found check(const Manifest& m) const {
    constexpr std::size_t kMostName = 600, kMostText = 1 << 20;
    const bool sound =
        std::count(m.name.begin(), m.name.end(), '/') == 2 && m.name.size() <= kMostName &&
        std::none_of(m.name.begin(), m.name.end(),
                     [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; });
    if (!sound) return problem("name", "is not KIND/NAMESPACE/NAME of an object");
    if (m.text.empty() || m.text.size() > kMostText)
      return problem("text",
                     fmt::format("has {} bytes; 1 to {} are allowed", m.text.size(), kMostText));
    return std::nullopt;
  }

  [[nodiscard]] Found check_default_class() {
    const Document* first = nullptr;
    const Document* normal = nullptr;
    for (const Document& document : documents_) {
      const auto* c = std::get_if<PriorityClass>(&document);
      if (c == nullptr) continue;
      if (c->name == kBuiltInClasses[0]) normal = &document;
      if (!c->is_default) continue;
      current_ = &document;
      if (first != nullptr)
        return problem("default", fmt::format("`{}` is the default already; one class can be",
                                              name_of(*first)));
      first = &document;
    }
    if (first == nullptr && normal != nullptr) {
      current_ = normal;
      return problem("default", "no class is the default any more; one needs `default: true`");
    }
    return std::nullopt;
  }

  [[nodiscard]] Found check_private_nodes() {
    std::map<std::string, const NodePool*> owner;
    for (const Document& document : documents_) {
      const auto* pool = std::get_if<NodePool>(&document);
      // If a pool has features, its nodes depend on the cluster; warnings_of() checks such pools.
      if (pool == nullptr || pool->tenant.empty() || !pool->features.empty()) continue;
      current_ = &document;
      const auto hosts = expand_hostlist(pool->nodes);
      if (!hosts) continue;  // the problem is already reported
      for (const std::string& host : *hosts) {
        const auto [other, fresh] = owner.emplace(host, pool);
        if (!fresh && other->second->tenant != pool->tenant)
          return problem("nodes", fmt::format("`{}` is `{}`'s own already, by pool `{}`", host,
                                              other->second->tenant, other->second->name));
      }
    }
    return std::nullopt;
  }

  const std::function<bool(const Document&)>& blame_;
  std::map<std::string, std::string> parents_;  // parents of cohorts
  std::map<std::string, std::string>
      default_tenants_;  // by user: the first that has a default account
};

}  // namespace

std::optional<Problem> find_problem(std::span<const Document> documents,
                                    const std::function<bool(const Document&)>& blame) {
  return Checker(documents, blame).run();
}

std::string to_string(const Problem& problem) {
  return fmt::format("{} {}{}{}: {}", problem.kind, problem.name, problem.path.empty() ? "" : ": ",
                     problem.path, problem.what);
}

Result<void> check_documents(std::span<const Document> documents) {
  if (const auto problem = find_problem(documents))
    return fail(ErrorCode::invalid_argument, to_string(*problem));
  return {};
}

}  // namespace gantry::tenancy
