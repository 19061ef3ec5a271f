// Checks of documents about people and rules: grants, roles of the site's own, labels, policies.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "common/policy/judge.h"
#include "common/text/printable.h"
#include "config/nearest.h"
#include "config/tenancy/check_references.h"
#include "config/tenancy/read_parts.h"
#include "config/tenancy/read_rules.h"
#include "config/values.h"

namespace gantry::tenancy {
namespace {

constexpr std::array<std::string_view, 3> kBases{"viewer", "user", "tenant-admin"};
constexpr std::size_t kMostLabelBytes = 255, kMostMessageBytes = 1024;

std::string role_word(const Grant& grant) {
  return grant.custom.empty() ? std::string(enum_name(grant.role)) : grant.custom;
}

std::vector<std::string_view> fact_names() {
  std::vector<std::string_view> out;
  for (const policy::FactRow& row : policy::kFacts) out.push_back(row.name);
  return out;
}

Found check_patterns(const References& documents, const std::string& path,
                     const std::map<std::string, std::string>& patterns) {
  if (patterns.size() > kMostPatterns)
    return documents.problem(path, fmt::format("has {} patterns; at most {} are allowed",
                                               patterns.size(), kMostPatterns));
  for (const auto& [field, pattern] : patterns) {
    const auto measure = policy::measure_of(field);
    if (!measure)
      return documents.problem(
          path, fmt::format("`{}` is no field of a job{}; there are {}, and labels.KEY", field,
                            did_you_mean(field, fact_names()), fmt::join(fact_names(), ", ")));
    if (const auto sound = policy::check_pattern(*measure, pattern); !sound)
      return documents.problem(path + "." + field, sound.error().message);
  }
  return std::nullopt;
}

Found check_values(const References& documents, const Policy& p) {
  const bool sets = p.action == PolicyAction::set;
  if (sets == p.values.empty())
    return documents.problem("set", sets ? "is missing; `action: default` fills in what it says"
                                         : "is only for `action: default`");
  for (const auto& [field, value] : p.values) {
    if (!policy::is_settable(field))
      return documents.problem(
          "set", fmt::format("`{}` is not filled in by a rule; {} and labels.KEY are", field,
                             fmt::join(policy::kSettable, ", ")));
    const auto one_of = [&](const auto& names) {
      return std::any_of(names.begin(), names.end(),
                         [&](const auto& row) { return row.second == value; });
    };
    if ((field == "type" && !one_of(enum_names(WorkType{}))) ||
        (field == "sandbox" && !one_of(enum_names(Sandbox{}))) || value.empty() ||
        value.size() > kMostLabelBytes || !is_printable(value))
      return documents.problem("set." + field, fmt::format("cannot be \"{}\"", value));
  }
  return std::nullopt;
}

}  // namespace

Found check_grants(const References& documents, const std::vector<Grant>& grants) {
  for (const Grant& grant : grants) {
    const std::string path = fmt::format("roles.{}", role_word(grant));
    if (grant.user.empty() == grant.group.empty())
      return documents.problem(path, "each grant is to a user or to a group");
    const std::string& name = grant.user.empty() ? grant.group : grant.user;
    if (!(grant.user.empty() ? is_group_name(name) : is_account_name(name)))
      return documents.problem(path,
                               fmt::format("\"{}\" is not the name of a user or group", name));
    if (grant.custom.empty()) continue;
    std::vector<std::string_view> known;
    for (const auto& row : enum_names(Role{})) known.push_back(row.second);
    bool there = false;
    for (const Document& document : documents.documents())
      if (const auto* role = std::get_if<CustomRole>(&document)) {
        known.emplace_back(role->name);
        there = there || role->name == grant.custom;
      }
    if (there) continue;
    return documents.problem(
        "roles", fmt::format("there is no role `{}`; there are {}{}", grant.custom,
                             fmt::join(known, ", "), did_you_mean(grant.custom, known)));
  }
  return std::nullopt;
}

Found check_label_rules(const References& documents, const std::vector<LabelRule>& rules) {
  if (rules.size() > kMostLabelRules)
    return documents.problem("label_rules", fmt::format("has {} labels; at most {} are allowed",
                                                        rules.size(), kMostLabelRules));
  std::set<std::string> seen;
  for (const LabelRule& rule : rules) {
    const std::string path = "label_rules." + rule.key;
    if (!policy::is_label_key(rule.key))
      return documents.problem(
          "label_rules",
          fmt::format(
              "`{}` is no key of a label; use 1 to 63 letters, digits, '-', '_', '.' and '/'",
              rule.key));
    if (!seen.insert(rule.key).second) return documents.problem(path, "is there twice");
    for (const std::string& value : rule.values)
      if (value.empty() || value.size() > kMostLabelBytes || !is_printable(value))
        return documents.problem(path + ".values", fmt::format("cannot have \"{}\"", value));
    if (rule.value.size() > kMostLabelBytes || !is_printable(rule.value))
      return documents.problem(path + ".default", "is not a printable text of up to 255 bytes");
    const auto& values = rule.values;
    if (!rule.value.empty() && !values.empty() &&
        std::find(values.begin(), values.end(), rule.value) == values.end())
      return documents.problem(path + ".default", "is none of the values");
  }
  return std::nullopt;
}

bool is_sandbox(std::string_view name) {
  const auto names = enum_names(Sandbox{});
  return std::any_of(names.begin(), names.end(),
                     [&](const auto& row) { return row.second == name; });
}

std::string no_sandbox(const std::string& name) {
  return fmt::format("\"{}\" is no sandbox; there are standard, hardened, gvisor and vm", name);
}

// A registry is a host with a point, a port, or the name localhost, and perhaps a part of its
// names.
Found check_security(const References& documents, const TenantSecurity& security) {
  if (security.registries.size() > kMostRegistries)
    return documents.problem("security.registries",
                             fmt::format("has {} registries; at most {} are allowed",
                                         security.registries.size(), kMostRegistries));
  for (const std::string& registry : security.registries) {
    const std::string host = registry.substr(0, registry.find('/'));
    const bool usual = std::all_of(registry.begin(), registry.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
             std::string_view("._-/:[]").find(c) != std::string_view::npos;
    });
    const bool names_host = host == "localhost" || host.find_first_of(".:") != std::string::npos;
    if (!usual || !names_host || registry.size() > kMostLabelBytes ||
        registry.find("//") != std::string::npos || registry.find("..") != std::string::npos)
      return documents.problem(
          "security.registries",
          fmt::format("`{}` is no registry; give HOST, HOST:PORT or HOST/PATH in lower case, as "
                      "`registry.example.com` or `docker.io/library`",
                      registry));
  }
  for (const std::string& name : security.sandboxes)
    if (!is_sandbox(name)) return documents.problem("security.sandboxes", no_sandbox(name));
  return std::nullopt;
}

Found check_custom_role(const References& documents, const CustomRole& role) {
  for (const auto& [built_in, name] : enum_names(Role{}))
    if (role.name == name) return documents.problem("name", "is that of a built-in role");
  if (std::find(kBases.begin(), kBases.end(), role.base) == kBases.end())
    return documents.problem(
        "base", fmt::format("\"{}\" is none of {}", role.base, fmt::join(kBases, ", ")));
  std::vector<std::string_view> rights;
  for (const auto& row : enum_names(TenantRight{})) rights.push_back(row.second);
  for (const std::string& right : role.without)
    if (std::find(rights.begin(), rights.end(), right) == rights.end())
      return documents.problem("without",
                               fmt::format("there is no right `{}`; there are {}{}", right,
                                           fmt::join(rights, ", "), did_you_mean(right, rights)));
  if (!role.gpus.value_or(true) && !role.gpu_models.empty())
    return documents.problem("gpu_models", "names models, and `gpus: false` forbids all");
  return std::nullopt;
}

Found check_policy(const References& documents, const Policy& p) {
  if (Found found = documents.refer(Tenant::kName, p.tenant, "tenant")) return found;
  if (Found found = check_patterns(documents, "match", p.match)) return found;
  if (Found found = check_patterns(documents, "unless", p.unless)) return found;
  if (p.message.size() > kMostMessageBytes || !is_printable(p.message))
    return documents.problem("message", "is not one printable line of up to 1024 bytes");
  if (p.order < -kMostPolicyOrder || p.order > kMostPolicyOrder)
    return documents.problem("order", fmt::format("is outside of -{0} to {0}", kMostPolicyOrder));
  return check_values(documents, p);
}

}  // namespace gantry::tenancy
