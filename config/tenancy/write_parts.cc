// Writes lists that have a shape of their own: quota, projects, roles, labels, plans and hours.
#include <set>

#include "common/money/price_book.h"
#include "config/tenancy/amounts.h"
#include "config/tenancy/member_types.h"
#include "config/tenancy/read_rules.h"
#include "config/values.h"

namespace gantry::tenancy {

using config::Yaml;

Yaml write_quota(const std::vector<QuotaLine>& v, Style style) {
  if (v.empty()) return {};
  Yaml out = yaml_map();
  Yaml flavors = yaml_map();
  for (const auto& [resource, key] : kResourceKeys) {
    for (const QuotaLine& line : v) {
      if (line.resource != resource) continue;
      Yaml& section = line.flavor.empty() ? out : yaml_child(flavors, line.flavor);
      const auto amount = [&](std::int64_t n) {
        return yaml_scalar(show_amount(line.resource, n));
      };
      if (!line.borrow && !line.lend && style == Style::file) {
        yaml_add(section, key, amount(line.nominal));
        continue;
      }
      Yaml& cell = yaml_child(section, key);
      yaml_add(cell, "nominal", amount(line.nominal));
      if (line.borrow) yaml_add(cell, "borrow", amount(*line.borrow));
      if (line.lend) yaml_add(cell, "lend", amount(*line.lend));
    }
  }
  if (!flavors.entries.empty()) yaml_add(out, "flavors", std::move(flavors));
  return out;
}

Yaml write_projects(const std::vector<Project>& v) {
  if (v.empty()) return {};
  Yaml out = yaml_map();
  for (const Project& project : v) {
    Yaml& section = yaml_child(out, project.name);
    yaml_add(section, "shares", yaml_scalar(std::to_string(project.shares)));
    if (!project.parent.empty()) yaml_add(section, "parent", yaml_scalar(project.parent));
    if (!project.description.empty())
      yaml_add(section, "description", yaml_scalar(project.description));
    if (!project.organization.empty())
      yaml_add(section, "organization", yaml_scalar(project.organization));
    if (project.users.empty()) continue;
    Yaml users = yaml_map();
    for (const UserShare& u : project.users)
      yaml_add(users, u.user, yaml_scalar(std::to_string(u.shares)));
    yaml_add(section, "users", std::move(users));
  }
  return out;
}

// The names of roles in the order in which they are written: built-in ones, then those of the site.
std::vector<std::string> role_names(const std::vector<Grant>& grants) {
  std::vector<std::string> out;
  for (const auto& [role, name] : enum_names(Role{})) out.emplace_back(name);
  std::set<std::string> own;
  for (const Grant& grant : grants)
    if (!grant.custom.empty()) own.insert(grant.custom);
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

Yaml write_grants(const std::vector<Grant>& v) {
  if (v.empty()) return {};
  Yaml out = yaml_map();
  for (const std::string& name : role_names(v)) {
    std::vector<std::string> users;
    std::vector<std::string> groups;
    std::map<std::string, std::string> ends;
    for (const Grant& grant : v) {
      if ((grant.custom.empty() ? enum_name(grant.role) : grant.custom) != name) continue;
      if (!grant.user.empty()) users.push_back(grant.user);
      if (!grant.group.empty()) groups.push_back(grant.group);
      if (grant.until) ends[grant.user.empty() ? grant.group : grant.user] = show_utc(*grant.until);
    }
    if (!users.empty()) yaml_add(yaml_child(out, name), "users", yaml_list(users));
    if (!groups.empty()) yaml_add(yaml_child(out, name), "groups", yaml_list(groups));
    for (const auto& [who, end] : ends)
      yaml_add(yaml_child(yaml_child(out, name), "until"), who, yaml_scalar(end));
  }
  return out;
}

Yaml write_label_rules(const std::vector<LabelRule>& v) {
  if (v.empty()) return {};
  Yaml out = yaml_map();
  for (const LabelRule& rule : v) {
    Yaml& section = yaml_child(out, rule.key);
    if (!rule.values.empty()) yaml_add(section, "values", yaml_list(rule.values));
    if (!rule.value.empty()) yaml_add(section, "default", yaml_scalar(rule.value));
  }
  return out;
}

Yaml write_plans(const std::vector<PricePlan>& v) {
  if (v.empty()) return {};
  Yaml out = yaml_map();
  for (const PricePlan& plan : v) {
    Yaml& section = yaml_child(out, plan.name);
    yaml_add(section, "factor", yaml_scalar(show_thousandths(plan.factor)));
    if (!plan.classes.empty()) yaml_add(section, "classes", yaml_list(plan.classes));
    if (!plan.projects.empty()) yaml_add(section, "projects", yaml_list(plan.projects));
    if (!plan.tenants.empty()) yaml_add(section, "tenants", yaml_list(plan.tenants));
    if (!plan.tiers.empty()) yaml_add(section, "tiers", yaml_list(plan.tiers));
    if (!plan.sandboxes.empty()) yaml_add(section, "sandboxes", yaml_list(plan.sandboxes));
  }
  return out;
}

Yaml write_hours(const std::vector<PriceHours>& v) {
  if (v.empty()) return {};
  Yaml out = yaml_map();
  for (const PriceHours& hours : v) {
    Yaml& section = yaml_child(out, hours.name);
    yaml_add(section, "from", yaml_scalar(format_time_of_day(hours.from)));
    yaml_add(section, "until", yaml_scalar(format_time_of_day(hours.until)));
    yaml_add(section, "factor", yaml_scalar(show_thousandths(hours.factor)));
    if (!hours.days.empty()) yaml_add(section, "days", yaml_list(hours.days));
  }
  return out;
}

}  // namespace gantry::tenancy
