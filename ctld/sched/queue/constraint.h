// Feature expressions of jobs (-C, --constraint): "a&b" = all, "a|b" = any, '&' binds tighter.
//
// There is one parser: the core checks a submit with it, the replica matches nodes with it. Counts
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
      any_of_all;  // all features of one inner list are needed; empty = any node
};

// Features are letters, digits and "_-.:=/"; empty text is "any node".
Result<Constraint> parse_constraint(std::string_view text);

// `features` are those of a node, sorted.
bool matches(const Constraint& constraint, std::span<const std::string> features);

}  // namespace gantry::sched
