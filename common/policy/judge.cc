#include "common/policy/judge.h"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

namespace gantry::policy {

using tenancy::Policy;
using tenancy::PolicyAction;
using tenancy::PolicyMode;

namespace {

Holds all_match(const std::map<std::string, std::string>& patterns, const Facts& facts) {
  Holds out = Holds::yes;
  for (const auto& [field, pattern] : patterns) {
    const auto measure = measure_of(field);
    const auto value = value_of(facts, field);
    if (!measure || !value)
      out = Holds::unknown;
    else if (!matches(*measure, pattern, *value))
      return Holds::no;
  }
  return out;
}

std::string text_of(const Policy& policy, std::string_view verb) {
  return fmt::format("policy {}{} {}{}{}", policy.name,
                     policy.tenant.empty() ? "" : " of tenant " + policy.tenant, verb,
                     policy.message.empty() ? "" : ": ", policy.message);
}

}  // namespace

Holds holds(const Policy& policy, const Facts& facts) {
  const Holds matched = all_match(policy.match, facts);
  if (matched == Holds::no || policy.unless.empty()) return matched;
  const Holds excepted = all_match(policy.unless, facts);
  if (excepted == Holds::yes) return Holds::no;
  return excepted == Holds::unknown ? Holds::unknown : matched;
}

Judgement judge(std::span<const Policy* const> policies, Facts facts) {
  Judgement out;
  bool cluster_done = false, tenant_done = false;
  for (const Policy* policy : policies) {
    bool& done = policy->tenant.empty() ? cluster_done : tenant_done;
    if (done || holds(*policy, facts) != Holds::yes) continue;
    const bool audit = policy->mode == PolicyMode::audit;
    switch (policy->action) {
      case PolicyAction::allow:
        if (!audit) done = true;
        break;
      case PolicyAction::warn:
        (audit ? out.audited : out.warnings).push_back({policy, text_of(*policy, "warns")});
        break;
      case PolicyAction::set:
        for (const auto& [field, value] : policy->values) {
          const auto present = value_of(facts, field);
          if (present && !present->empty()) continue;
          if (audit) {
            out.audited.push_back(
                {policy, text_of(*policy, fmt::format("would set {} to {}", field, value))});
            continue;
          }
          facts.insert_or_assign(field, value);
          out.values.insert_or_assign(field, value);
        }
        break;
      case PolicyAction::deny:
        if (audit) {
          out.audited.push_back({policy, text_of(*policy, "would refuse it")});
          break;
        }
        out.denied_by = policy;
        out.why = text_of(*policy, "refuses it");
        return out;
    }
  }
  return out;
}

std::vector<const Policy*> in_order(std::span<const Policy* const> all, std::string_view tenant) {
  std::vector<const Policy*> out;
  for (const Policy* policy : all)
    if (policy->tenant.empty() || policy->tenant == tenant) out.push_back(policy);
  std::sort(out.begin(), out.end(), [](const Policy* a, const Policy* b) {
    return std::tuple(a->order, !a->tenant.empty(), std::string_view(a->name)) <
           std::tuple(b->order, !b->tenant.empty(), std::string_view(b->name));
  });
  return out;
}

bool is_settable(std::string_view field) {
  return std::find(kSettable.begin(), kSettable.end(), field) != kSettable.end() ||
         (field.starts_with(kLabelFact) && field.size() > kLabelFact.size());
}

}  // namespace gantry::policy
