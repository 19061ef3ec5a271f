// What jobs see of the site's storage: their tenant's directory, and the datasets that they ask
// for. Documents grant it (common/tenancy/tenancy_parts.h). It is looked at when a job is
// submitted, as long as it waits, and with each order to start it; the node shows nothing else.
#pragma once

#include <optional>
#include <vector>

#include "common/proto/node_order.h"
#include "ctld/core/context.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {

struct Partition;

inline constexpr std::size_t kMostDatasetsOfJob = 32;

// Whether a job in this queue may ask for these datasets. One that does not exist and one that the
// tenant may not use are refused with the same words.
Result<void> check_datasets(const State& state, const Partition& queue,
                            const std::vector<DatasetUse>& uses);

// Why a waiting job may not start because of its datasets; unset if it may.
std::optional<Verdict> verdict_of_datasets(const State& state, const Job& job);

// The directories that an attempt of the job may see now.
std::vector<StorageMount> storage_for(const State& state, const Job& job);

// Whether a job in this queue may stage these files, all in its tenant's part of the object store.
// A key may be given in full, as s3://BUCKET/PREFIX...; it is stored without that part.
Result<void> check_staging(const State& state, const Partition& queue, JobSpec& spec);

// How long the job's copies from the object store may take before its script starts.
Duration stage_in_time(const Context& ctx, const Job& job);

// Adds to an order what its staging needs: where the object store is, and the sealed keys to it.
void add_object_store(const State& state, const Job& job, proto::Launch& launch, BlobRefs& blobs);

}  // namespace gantry::core
