// The facts that this node tells the controller about itself: the resources that the configuration
// promises, reduced to what the machine has. The controller drains a node that has less than was
// declared.
#pragma once

#include <string>
#include <vector>

#include "common/proto/node_report.h"
#include "noded/machine/discover.h"
#include "noded/options.h"

namespace gantry::node {

struct FactsReport {
  proto::NodeRegister facts;
  std::vector<std::string> warnings;  // what the machine lacks
};

FactsReport node_facts(const NodeSettings& settings, const runtime::NodeFacts& machine);

}  // namespace gantry::node
