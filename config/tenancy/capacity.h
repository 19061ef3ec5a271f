// Documents against the nodes there are: parts of the cluster to amounts, and what people should
// know before they apply.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/proto/tenancy.h"
#include "config/tenancy/read.h"

namespace gantry::tenancy {

// All nodes, and those of each flavor. The flavor of a node is, of those that match it, the one
// with the most conditions, by name between equals.
struct Capacity {
  Resources total;
  std::map<std::string, Resources> flavors;
};
Capacity capacity_of(std::span<const Document> documents, std::span<const proto::NodesAlike> nodes);

// Amounts for what `documents` give as parts of the cluster, rounded down; the flavors they name
// are those of `all`. `notes` get a sentence for each, with what rounding took. Parts of one
// resource may not sum to more than all of it.
Result<void> resolve_parts(std::span<ReadDocument> documents, const Capacity& capacity,
                           std::vector<std::string>& notes);

// Guarantees beyond what there is, borrowing without a cohort, tenants that nobody may use, ...:
// sentences, by document.
std::vector<std::string> warnings_of(std::span<const Document> documents,
                                     std::span<const proto::NodesAlike> nodes);

}  // namespace gantry::tenancy
