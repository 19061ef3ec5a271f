// Turns what was collected from objects of Kubernetes and Kueue into documents: roles are bound,
// namespaces become tenants and get their queues, and what has no meaning here is noted. Used
// inside config/tenancy only.
#pragma once

#include <span>
#include <vector>

#include "config/tenancy/files/k8s_objects.h"

namespace gantry::tenancy {

// Empties `parts` except for its notes, to which it adds. `known` are the documents that exist.
std::vector<ReadDocument> assemble(Translation& parts, std::span<const Document> known);

}  // namespace gantry::tenancy
