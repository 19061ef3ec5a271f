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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "item", s.item);
    v(2, "pool", s.pool);
    v(3, "amount", s.amount);
    v(4, "hours", s.hours);
    v(5, "cost", s.cost);
  }
};

struct UsageEvent {
  std::string id;         // "CLUSTER-NUMBER", of the journal: ascending, never used twice
  std::uint64_t seq = 0;  // the number
  std::string kind;       // "start", "end"
  std::string at;         // "2026-11-22T10:00:00Z"
  std::string tenant;     // without tenants: the partition
  std::string project, user;
  std::string job;  // "12", "12_3"
  std::uint32_t attempt = 0;
  std::string job_type;  // "batch", "array", "interactive"
  std::string plan;      // of the price book
  std::string rate;      // in a "start": cost per hour
  std::string started;   // in an "end"
  std::string outcome;   // in an "end": "completed", ..., "requeued"
  std::string cost;      // in an "end": four decimal places
  std::string credit;    // in an "end": the part of `cost` that is credited
  std::string currency;  // "" = there are no prices
  std::vector<UsageThing> things;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "id", s.id);
    v(2, "seq", s.seq);
    v(3, "kind", s.kind);
    v(4, "at", s.at);
    v(5, "tenant", s.tenant);
    v(6, "project", s.project);
    v(7, "user", s.user);
    v(8, "job", s.job);
    v(9, "attempt", s.attempt);
    v(10, "job_type", s.job_type);
    v(11, "plan", s.plan);
    v(12, "rate", s.rate);
    v(13, "started", s.started);
    v(14, "outcome", s.outcome);
    v(15, "cost", s.cost);
    v(16, "credit", s.credit);
    v(17, "currency", s.currency);
    v(18, "things", s.things);
  }
};

}  // namespace gantry::core
