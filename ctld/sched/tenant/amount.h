// The amount that a grant takes, in the units of quota and charges.
#pragma once

#include "common/resources/resources.h"
#include "ctld/sched/change.h"

namespace gantry::sched {

inline Resources amount_of(const NodeGrant& grant) {
  Resources out;
  out.set<Resource::cpu>(thousandths_of(Cores{std::ssize(grant.cpus)}));
  out.set<Resource::memory>(ByteCount{grant.memory});
  out.set<Resource::gpu>(thousandths_of(Gpus{grant.gpus}));
  for (const GpuGrant& d : grant.devices)
    if (!d.whole()) out.add<Resource::gpu>(d.thousandths);
  out.set<Resource::scratch>(ByteCount{grant.scratch});
  out.set<Resource::io>(ByteRate{grant.io});
  out.set<Resource::net>(BitRate{grant.net});
  return out;
}

}  // namespace gantry::sched
