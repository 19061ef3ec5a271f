// Parts of the topology (racks, blocks: its domains, at any level) as fault domains: what fails
// with a switch or a power supply is one fault, with one cause and one time, and an operator names
// it by the rack.
//
// Nothing is stored of a domain: a fault of one is the reason of its nodes, which go by their own
// ways (they come back one by one, an operator's word about one stays).
#pragma once

#include <string>
#include <vector>

#include "ctld/core/context.h"

namespace gantry::core {

// Nodes of one domain, and what it is called in reasons: "rack r1".
struct DomainNodes {
  std::string title;
  std::vector<NodeId> nodes;  // configured ones, ascending
};

// By NAME, or LEVEL:NAME where two levels have a domain of that name. Errors: not_found (also: no
// topology is declared), invalid_argument (two levels have it).
Result<DomainNodes> domain_nodes(const State& state, const std::string& name);

// After these nodes were lost just now: of each the widest domain in which no node answers any
// more, and at least two have stopped to within node_timeout of now, is one fault (event
// NodesLost). One node that still answers shows that switch and power are there, so there is none.
void look_at_racks(Context& ctx, const std::vector<NodeId>& lost);

}  // namespace gantry::core
