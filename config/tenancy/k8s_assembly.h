// From what was collected of the objects of Kubernetes and Kueue to documents: roles are bound,
// namespaces become tenants and get their queues, and what means nothing here is noted. Inside
// config/tenancy only.
#pragma once

#include <span>
#include <vector>

#include "config/tenancy/k8s_objects.h"

namespace gantry::tenancy {

// Empties `parts` but for its notes, to which it adds. `known`: the documents that there are.
std::vector<ReadDocument> assemble(Translation& parts, std::span<const Document> known);

}  // namespace gantry::tenancy
