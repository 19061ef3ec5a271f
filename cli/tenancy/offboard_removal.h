// A tenant that is removed takes its own documents with it, and its name in others.
#pragma once

#include <string>
#include <vector>

#include "cli/tenancy/tenancy_plan.h"

namespace gantry::cli {

// The tenant's document, and those of its budgets, policies and datasets, and of network profiles
// that no other tenant names.
std::vector<tenancy::Document> owned_by(const std::vector<tenancy::Document>& documents,
                                        const std::string& name);

// The change that removes all of these, and the tenant's name from other documents. Pools that were
// its own become shared, because nothing else can be meant.
Change removal_of(const proto::TenancyDocuments& present, const std::string& name);

}  // namespace gantry::cli
