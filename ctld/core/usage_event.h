// One usage event, as it is written to the file controller.usage_events: a line of JSON.
#pragma once

#include <string>
#include <vector>

#include "common/fields.h"
#include "common/types.h"

namespace gantry::core {

struct UsageThing {
  std::string item;    // "cpu", "memory", "scratch", "io", "net", "gpu:a100", "gpu:a100:1g.10gb"
  std::string pool;    // node pool; "" = none
  std::string amount;  // held from the start on: cores, GiB, GPUs
  std::string hours;   // in an "end": amount x time, three decimal places
  std::string cost;    // in an "end": exact
  GANTRY_FIELDS(FIELD(1, item), FIELD(2, pool), FIELD(3, amount), FIELD(4, hours), FIELD(5, cost))
};

struct UsageEvent {
  std::string id;         // "CLUSTER-NUMBER", of the journal: ascending, never used twice
  std::uint64_t seq = 0;  // the number in the id
  std::string kind;       // "start", "end"
  std::string at;         // "2026-11-22T10:00:00Z"
  std::string tenant;     // without tenants: the partition
  std::string project, user;
  std::string job;  // "12", "12_3"
  std::uint32_t attempt = 0;
  std::string job_type;  // "batch", "array", "interactive"
  std::string plan;      // plan of the price book
  std::string rate;      // in a "start": cost per hour
  std::string started;   // in an "end": when it started
  std::string outcome;   // in an "end": "completed", ..., "requeued"
  std::string cost;      // in an "end": four decimal places
  std::string credit;    // in an "end": the part of `cost` that is credited
  std::string currency;  // "" = there are no prices
  std::vector<UsageThing> things;
  GANTRY_FIELDS(FIELD(1, id), FIELD(2, seq), FIELD(3, kind), FIELD(4, at), FIELD(5, tenant),
                FIELD(6, project), FIELD(7, user), FIELD(8, job), FIELD(9, attempt),
                FIELD(10, job_type), FIELD(11, plan), FIELD(12, rate), FIELD(13, started),
                FIELD(14, outcome), FIELD(15, cost), FIELD(16, credit), FIELD(17, currency),
                FIELD(18, things))
};

}  // namespace gantry::core
