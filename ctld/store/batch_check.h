// Always-on checks of what a caller hands to a store; shared by the implementations.
#pragma once

#include "ctld/store/store.h"

namespace gantry::store {

// `last`: newest event; `last_spec`: highest job id ever appended.
void check_append(const AppendBatch& batch, EventSeq last, JobId last_spec);
void check_fold(const FoldBatch& batch, EventSeq applied, EventSeq last);

}  // namespace gantry::store
