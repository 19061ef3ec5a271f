// Reads roles and who has them; network policies only get a note.
#include <fmt/core.h>

#include <algorithm>

#include "config/tenancy/files/k8s_objects.h"

namespace gantry::tenancy {
namespace {

bool is_any_of(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 6> kWrites{"*",     "create", "update",
                                                  "patch", "delete", "deletecollection"};
constexpr std::array<std::string_view, 4> kGrants{"roles", "rolebindings", "resourcequotas",
                                                  "namespaces"};
// Resources of Kubernetes that have a counterpart in a batch system.
constexpr std::array<std::string_view, 8> kJobs{"jobs",      "pods",        "pods/log", "pods/exec",
                                                "workloads", "localqueues", "cronjobs", "*"};

struct Rule {
  std::vector<std::string> groups, resources, verbs;
};

// The strongest role of Gantry that a rule gives. `unknown` gets the resources that have no meaning
// here.
std::optional<Role> role_of(const Rule& rule, std::string& unknown) {
  const bool writes = std::any_of(rule.verbs.begin(), rule.verbs.end(),
                                  [](const auto& verb) { return is_any_of(verb, kWrites); });
  std::optional<Role> best;
  const auto at_least = [&](Role role) { best = best ? std::max(*best, role) : role; };
  for (const std::string& resource : rule.resources) {
    const bool batch = is_any_of(resource, kJobs) || resource.ends_with("jobs");
    if (!batch && !is_any_of(resource, kGrants)) {
      unknown += fmt::format("{}{}", unknown.empty() ? "" : ", ", resource);
      continue;
    }
    if (!writes)
      at_least(Role::viewer);
    else if (resource == "*" || resource == "roles" || resource == "rolebindings")
      at_least(Role::tenant_admin);
    else if (batch)
      at_least(Role::user);
    else
      at_least(Role::viewer);
  }
  return best;
}

Result<void> read_rule(const Value& value, const Meta& meta, Translation& into,
                       RoleMeaning& meaning) {
  Rule rule;
  const auto texts = [](std::vector<std::string>& out) {
    return [&out](const Value& v) -> Result<void> {
      ASSIGN(read, v.texts());
      out = std::move(*read);
      return {};
    };
  };
  auto done = Keys(value, into, meta)
                  .on("apiGroups", texts(rule.groups))
                  .on("resources", texts(rule.resources))
                  .required("verbs", texts(rule.verbs))
                  .note("resourceNames", "roles are of all jobs of a tenant, not of some by name")
                  .note("nonResourceURLs", "Gantry has no addresses to allow")
                  .run();
  if (!done) return done;
  std::string unknown;
  const auto role = role_of(rule, unknown);
  if (role) meaning.role = meaning.role ? std::max(*meaning.role, *role) : *role;
  if (!unknown.empty())
    into.note(meta, value,
              fmt::format("there is nothing in Gantry that rights to {} would be of", unknown));
  const bool quota = std::find(rule.resources.begin(), rule.resources.end(), "resourcequotas") !=
                     rule.resources.end();
  if (quota && std::any_of(rule.verbs.begin(), rule.verbs.end(),
                           [](const auto& verb) { return is_any_of(verb, kWrites); }))
    into.note(meta, value, "quota is changed by administrators of the cluster only");
  return {};
}

Result<void> read_subject(const Value& value, Binding& binding, Translation& into) {
  std::string kind;
  std::string name;
  auto done = Keys(value, into, binding.meta)
                  .text("kind", kind)
                  .text("name", name)
                  .note("apiGroup", "")
                  .note("namespace", "")
                  .run();
  if (!done) return done;
  static constexpr std::array<std::string_view, 3> kKinds{"User", "Group", "ServiceAccount"};
  if (!is_any_of(kind, kKinds))
    return value.wrong(fmt::format("`kind` \"{}\" is none of User, Group, ServiceAccount", kind));
  if (name.empty()) return value.wrong("`name` is missing");
  if (kind == "ServiceAccount" || name.starts_with("system:")) {
    into.note(binding.meta, value,
              fmt::format("{} is no user or group of the operating system", name));
    return {};
  }
  const std::string domain = "@" + into.user_domain;
  if (!into.user_domain.empty() && name.ends_with(domain)) name.resize(name.size() - domain.size());
  if (!(kind == "Group" ? is_group_name(name) : is_account_name(name))) {
    into.note(binding.meta, value, fmt::format("\"{}\" cannot be a login or group name", name));
    return {};
  }
  if (name.find('@') != std::string::npos)
    into.note(binding.meta, value,
              fmt::format(
                  "`{0}` has to be a login name on the cluster; `--user-domain {1}` makes it `{2}`",
                  name, name.substr(name.find('@') + 1), name.substr(0, name.find('@'))));
  Grant grant;
  (kind == "User" ? grant.user : grant.group) = std::move(name);
  binding.subjects.emplace_back(value.place(), std::move(grant));
  return {};
}

}  // namespace

Result<void> read_role(const Value& root, const Meta& meta, Translation& into) {
  RoleMeaning meaning;
  const auto rules = [&](const Value& value) -> Result<void> {
    ASSIGN(items, value.items());
    for (const Value& item : *items)
      if (auto done = read_rule(item, meta, into, meaning); !done) return done;
    return {};
  };
  auto done = object_keys(root, into, meta)
                  .on("rules", rules)
                  .note("aggregationRule", "rules of other roles are not added to this one")
                  .run();
  if (!done) return done;
  into.roles[{meta.name_space, meta.name}] = meaning;
  return {};
}

Result<void> read_binding(const Value& root, const Meta& meta, Translation& into) {
  Binding binding;
  binding.meta = meta;
  const auto role = [&](const Value& value) -> Result<void> {
    binding.role_place = value.place();
    return Keys(value, into, meta)
        .note("apiGroup", "")
        .text("kind", binding.role_kind)
        .text("name", binding.role_name)
        .run();
  };
  const auto subjects = [&](const Value& value) -> Result<void> {
    ASSIGN(items, value.items());
    for (const Value& item : *items)
      if (auto done = read_subject(item, binding, into); !done) return done;
    return {};
  };
  auto done =
      object_keys(root, into, meta).required("roleRef", role).on("subjects", subjects).run();
  if (!done) return done;
  if (!meta.name_space.empty()) into.in_namespace(meta);
  into.bindings.push_back(std::move(binding));
  return {};
}

}  // namespace gantry::tenancy
