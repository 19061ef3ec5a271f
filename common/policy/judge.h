// judge() applies the rules of documents to a job.
//
// The rules are applied by their order, then by name; a rule of the cluster before a rule of the
// tenant with the same order. A rule applies if all its `match` patterns match, and not all its
// `unless` patterns match. `default` fills in what the job leaves open, visible to later rules;
// `warn` tells the submitter; `deny` refuses; `allow` ends the evaluation, but only of rules with
// the same owner, so that a tenant cannot allow what the cluster denies. In the mode audit a rule
// only reports what it would do.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/policy/facts.h"
#include "common/tenancy/tenancy_rules.h"

namespace gantry::policy {

enum class Holds : std::uint8_t { no, yes, unknown };  // unknown: a field of it is not known

Holds holds(const tenancy::Policy& policy, const Facts& facts);

struct Finding {
  const tenancy::Policy* policy = nullptr;
  std::string text;  // one sentence, with the rule's name
};

struct Judgement {
  const tenancy::Policy* denied_by = nullptr;
  std::string why;                            // reason of the refusal
  std::vector<Finding> warnings;              // to the submitter
  std::vector<Finding> audited;               // what rules in the mode audit would have done
  std::map<std::string, std::string> values;  // by field: filled-in values
};

// `policies` in the order of evaluation (in_order()).
Judgement judge(std::span<const tenancy::Policy* const> policies, Facts facts);

// The rules for jobs of this tenant ("" = jobs without a tenant), in their order.
std::vector<const tenancy::Policy*> in_order(std::span<const tenancy::Policy* const> all,
                                             std::string_view tenant);

// Fields that `default` may fill in.
inline constexpr std::array<std::string_view, 5> kSettable{"comment", "network_profile", "sandbox",
                                                           "type", "wckey"};
bool is_settable(std::string_view field);  // these fields, and labels

}  // namespace gantry::policy
