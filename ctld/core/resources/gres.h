// Named resources that nodes declare: who holds which of them.
#pragma once

#include <optional>
#include <string>

#include "common/job/job_shape.h"
#include "ctld/core/context.h"
#include "ctld/sched/change.h"

namespace gantry::core {

struct Node;

// Why the node cannot give these, or nullopt: it has no such name or place, the place is held, or
// they are not what the shape asks for.
std::optional<std::string> gres_objection(const Node& node, const sched::NodeGrant& grant,
                                          const JobShape& shape);

// For apply() only. Asserts when taking what is held, or releasing what is not held.
void take_gres(Node& node, const sched::NodeGrant& grant);
void give_gres(Node& node, const sched::NodeGrant& grant);

std::size_t gres_held(const Node& node);  // sum over all names; for audit()

// Amounts in the order in which the scheduler counts them.
GresAmounts gres_amounts(const State& state, const std::vector<GresGrant>& gres);
GresAmounts gres_amounts_taken(const State& state, const Node& node);

}  // namespace gantry::core
