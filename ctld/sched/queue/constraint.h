// Feature expressions of jobs (-C, --constraint): "a&b" = all, "a|b" = any, '&' binds tighter.
//
// There is one parser: the core checks a submit with it, the replica matches nodes with it. Counts
// ("a*4"), brackets, parentheses and negation of Slurm's syntax are refused by name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/job_shape.h"
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

// The feature that stands for a node's sandbox. No constraint of a user can name it.
std::string sandbox_feature(Sandbox level);
std::string ability_feature(NodeAbility ability);
// Whether a node with these features, sorted, has all these abilities (bits of bit_of()).
bool has_abilities(std::uint32_t abilities, std::span<const std::string> features);
// Whether a node with these features, sorted, has the sandbox that a job needs; unset: every node
// has it.
bool has_sandbox(const std::optional<Sandbox>& level, std::span<const std::string> features);
// What a job asks of its nodes apart from their size, in words; "" = nothing.
std::string wanted_of_nodes(const JobShape& shape);

}  // namespace gantry::sched
