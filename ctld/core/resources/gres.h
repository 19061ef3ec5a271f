// Resources that nodes declare by name: who holds which of them.
#pragma once

#include <optional>
#include <string>

#include "ctld/core/context.h"

namespace gantry::core {

// Why the node cannot give these, or nothing: a name or a place that it has not, or one that is
// held, or not what the shape asks for.
std::optional<std::string> gres_objection(const Node& node, const sched::NodeGrant& grant,
                                          const JobShape& shape);

// apply() only. Giving what is held, or taking back what is not, is our bug.
void take_gres(Node& node, const sched::NodeGrant& grant);
void give_gres(Node& node, const sched::NodeGrant& grant);

std::size_t gres_held(const Node& node);  // of all names; for audit()

// As the scheduler counts them.
GresAmounts gres_amounts(const State& state, const std::vector<GresGrant>& gres);
GresAmounts gres_amounts_taken(const State& state, const Node& node);

}  // namespace gantry::core
