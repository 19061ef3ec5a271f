// judge() asks the rules of documents about a job.
//
// The rules are asked by their order, then by name; a rule of the cluster before one of the tenant
// that has the same order. A rule holds if all its `match` patterns match, and its `unless`
// patterns do not all match (a rule without `unless` always holds then). `default` fills in what
// the job leaves open, and later rules see it; `warn` tells the submitter; `deny` refuses; `allow`
// ends the asking, but only for rules of the same owner, so that a tenant cannot allow what the
// cluster denies. In the mode audit a rule only says what it would do.
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
  std::string why;                            // of the refusal
  std::vector<Finding> warnings;              // to the submitter
  std::vector<Finding> audited;               // what rules in the mode audit would have done
  std::map<std::string, std::string> values;  // by field: what was filled in
};

// `policies` in the order in which they are asked (in_order()).
Judgement judge(std::span<const tenancy::Policy* const> policies, Facts facts);

// The rules that are about jobs of this tenant ("" = of nobody), in their order.
std::vector<const tenancy::Policy*> in_order(std::span<const tenancy::Policy* const> all,
                                             std::string_view tenant);

// Fields that `default` may fill in.
inline constexpr std::array<std::string_view, 5> kSettable{"comment", "network_profile", "sandbox",
                                                           "type", "wckey"};
bool is_settable(std::string_view field);  // these, and labels

}  // namespace gantry::policy
