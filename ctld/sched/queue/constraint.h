// Feature expressions of jobs (-C, --constraint): "a&b" = all, "a|b" = any, '&' binds tighter.
//
// The one parser: the core validates with it at submit, the replica matches with it. Counts
// ("a*4"), brackets, parentheses and negation of Slurm's syntax are refused by name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace gantry::sched {

inline constexpr std::size_t kMaxConstraintFeatures = 64;

struct Constraint {
  std::vector<std::vector<std::string>>
      any_of_all;  // one inner list must be met whole; empty = any
};

// Features are letters, digits and "_-.:=/"; empty text is "any node".
Result<Constraint> parse_constraint(std::string_view text);

// `features` of a node, sorted.
bool matches(const Constraint& constraint, std::span<const std::string> features);

}  // namespace gantry::sched
