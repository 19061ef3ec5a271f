// Recovery of the core from the store, by two threads: one reads and decodes in advance, the
// calling one builds the state. Both process the same records in the same order, so the result is
// that of one thread.
#pragma once

#include "ctld/core/core.h"
#include "ctld/store/store.h"

namespace gantry::ctld {

// Loads records, specs and events into a core that has not started. Nobody else may use the store
// meanwhile. The error is the store's, or tells what is damaged.
Result<void> recover(core::Core& core, const store::Store& store);

}  // namespace gantry::ctld
