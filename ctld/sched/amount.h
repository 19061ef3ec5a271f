// What a grant takes, in the units of quota and charges.
#pragma once

#include "common/resources.h"
#include "ctld/sched/change.h"

namespace gantry::sched {

inline Resources amount_of(const NodeGrant& grant) {
  Resources out;
  out[Resource::cpu] = static_cast<std::int64_t>(grant.cpus.size()) * 1000;
  out[Resource::memory] = grant.memory;
  out[Resource::gpu] = std::int64_t{grant.gpus} * kGpuUnit;
  for (const GpuGrant& d : grant.devices)
    if (!d.whole()) out[Resource::gpu] += d.thousandths;
  out[Resource::scratch] = grant.scratch;
  return out;
}

}  // namespace gantry::sched
