// gantry-ctld --accept-old-store: the operator decides to continue with this store, although it is
// older than what its nodes or the high-water mark know.
//
// Epoch and job ids continue kJobMargin above everything that is known, so that nodes obey again
// and no id is used twice. Waiting jobs are held at the next start, because they may have run since
// the copy was made. Jobs that the store had ordered to start and no node had confirmed may have
// run too: they are not ordered again, and are lost if their node does not list them
// (core::NodeRun::perhaps_over). Attempts that run on nodes and are not in the store are left alone
// (strangers.h). Nothing else changes.
#pragma once

#include <string>

#include "common/result.h"
#include "config/config.h"
#include "ctld/age/high_water.h"
#include "ctld/store/store.h"

namespace gantry::age {

inline constexpr std::uint64_t kJobMargin = 10'000;

// The error wrong_state means that the store is not older than anything known; nothing was changed.
Result<HighWater> accept_old_store(const Config& config);
// The same for a store that is already open. The caller has to save the mark.
Result<HighWater> accept_old_store(const Config& config, store::Store& store,
                                   const HighWater& known);

}  // namespace gantry::age
