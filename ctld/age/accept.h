// gantry-ctld --accept-old-store: the operator's word that this store is to be gone on with,
// although it is older than what its nodes or the high-water mark know.
//
// Epoch and job ids jump past everything that is known, and kJobMargin more, so that nodes obey
// again and no id is given twice. Jobs that wait are held at the next start: they may have run
// since. So may those that the store has ordered and no node has confirmed: they are not ordered
// again, and are lost where their node does not list them (core::NodeRun::perhaps_over). What runs
// on nodes and is not in the store is left alone (strangers.h). Nothing else changes.
#pragma once

#include <string>

#include "common/result.h"
#include "config/config.h"
#include "ctld/age/high_water.h"
#include "ctld/store/store.h"

namespace gantry::age {

inline constexpr std::uint64_t kJobMargin = 10'000;

// wrong_state: the store is not older than anything known, and nothing was changed.
Result<HighWater> accept_old_store(const Config& config);
// The same of a store that is open; whoever calls it keeps the mark.
Result<HighWater> accept_old_store(const Config& config, store::Store& store,
                                   const HighWater& known);

}  // namespace gantry::age
