// Parts of the topology (racks, blocks: domains of any level) as fault domains. All nodes that fail
// with one switch or power supply are one fault, with one cause and one time, and an operator can
// name them by the rack.
//
// Nothing is stored about a domain. A fault of a domain is the reason of its nodes; each node still
// comes back by itself, and a state that an operator set for one node stays.
#pragma once

#include <string>
#include <vector>

#include "ctld/core/context.h"

namespace gantry::core {

// The nodes of one domain, and its name in reasons, such as "rack r1".
struct DomainNodes {
  std::string title;
  std::vector<NodeId> nodes;  // configured nodes of the domain, ascending
};

// Finds a domain by NAME, or by LEVEL:NAME if two levels have a domain of that name. Errors:
// not_found (also if no topology is declared), invalid_argument (two levels have the name).
Result<DomainNodes> domain_nodes(const State& state, const std::string& name);

// Call it after these nodes were lost. For each of them, the widest domain in which no node answers
// any more is one fault (event NodesLost), if at least two of its nodes were lost within the last
// node_timeout. A node that still answers shows that switch and power work, so there is no common
// fault.
void look_at_racks(Context& ctx, const std::vector<NodeId>& lost);

}  // namespace gantry::core
