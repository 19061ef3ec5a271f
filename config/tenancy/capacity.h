// Compares documents with the existing nodes: turns parts of the cluster into amounts, and collects
// warnings that people should see before they apply.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/proto/tenancy.h"
#include "config/tenancy/read.h"

namespace gantry::tenancy {

// The resources of all nodes, and of the nodes of each flavor. If several flavors match a node, its
// flavor is the one with the most conditions; of equal ones, the first by name.
struct Capacity {
  Resources total;
  std::map<std::string, Resources> flavors;
};
Capacity capacity_of(std::span<const Document> documents, std::span<const proto::NodesAlike> nodes);

// Computes the amounts that `documents` give as parts of the cluster, rounded down. A flavor that
// they name may be in any of the documents. `notes` get a sentence for each amount, with what
// rounding took. The parts of one resource may not add up to more than all of it.
Result<void> resolve_parts(std::span<ReadDocument> documents, const Capacity& capacity,
                           std::vector<std::string>& notes);

// Warnings as sentences, by document: more guaranteed than exists, borrowing without a cohort,
// tenants without users, ...
std::vector<std::string> warnings_of(std::span<const Document> documents,
                                     std::span<const proto::NodesAlike> nodes);

}  // namespace gantry::tenancy
