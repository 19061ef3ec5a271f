// Checks of what a caller passes to a store. They are on in every build, and both implementations
// use them.
#pragma once

#include "ctld/store/store.h"

namespace gantry::store {

// `last` is the newest event; `last_spec` is the highest job id ever appended.
void check_append(const AppendBatch& batch, EventSeq last, JobId last_spec);
void check_fold(const FoldBatch& batch, EventSeq applied, EventSeq last);

}  // namespace gantry::store
