// Two samples of one node give one row for each channel: how saturated it was, and what each job
// used of it and how long it waited for it in between.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/proto/neighbours.h"
#include "noded/neighbours/sample.h"

namespace gantry::neighbours {

// The thresholds of saturation and of harm, as data: one row for each kind of shared resource.

using Resource = proto::SharedResource;

// Fractions of 1. A channel is saturated from `saturated` on: for cpu and memory, the part of the
// time in which a task on the node waits; for the others, the part of what the device can do. A job
// is slowed down from `harmed` on: by the part of the time in which it waits without causing that
// itself or, where the kernel does not count waiting, by the fall of its throughput.
struct Rule {
  Resource resource = Resource::cpu;
  double saturated = 0;
  double harmed = 0;
};

// Least fall of throughput that counts where the kernel does not count waiting.
inline constexpr double kFall = 0.3;

struct Rules {
  std::array<Rule, 6> rows{{{Resource::cpu, 0.20, 0.15},
                            {Resource::memory, 0.10, 0.10},
                            {Resource::disk, 0.80, 0.20},
                            {Resource::network, 0.70, kFall},
                            {Resource::memory_traffic, 0.80, kFall},
                            {Resource::pcie, 0.80, kFall}}};
  [[nodiscard]] const Rule& of(Resource resource) const {
    return rows[static_cast<std::size_t>(resource) - 1];
  }
  [[nodiscard]] Rule& of(Resource resource) { return rows[static_cast<std::size_t>(resource) - 1]; }
};

struct Channel {
  Resource resource = Resource::cpu;
  std::string device;  // name of the disk or network link
  friend auto operator<=>(const Channel&, const Channel&) = default;
};

struct JobRow {
  proto::AttemptKey key;
  double use = 0;  // cores, bytes (memory), bytes per second (disks: plus weighted requests)
  // The part of the time in which it waited, and how much of that it caused itself. Unset if the
  // kernel does not count it.
  std::optional<double> waited;
  double own = 0;
  double natural = 0;    // what it would wait alone: a reading program always waits
  double alone = 0;      // of that, without reading back pages that memory could not hold
  bool limited = false;  // true if it has reached its own limit on this channel
  std::vector<std::uint16_t> cpus;  // only for cpu; empty = all
  [[nodiscard]] double held_up() const {
    return waited ? std::max(*waited - own - natural, 0.0) : 0.0;
  }
};

struct Row {
  Instant at{};
  double level = 0;          // as in Rule::saturated
  double use = 0;            // sum over all, in the unit of JobRow::use
  std::vector<JobRow> jobs;  // sorted by key
  [[nodiscard]] const JobRow* of(const proto::AttemptKey& key) const;
  // Use that belongs to no job.
  [[nodiscard]] double machine() const;
};

// `before` must be the older one. A job or device that is in only one of them is left out. Counters
// that run backwards count as no use.
std::map<Channel, Row> rates(const Sample& before, const Sample& now);

}  // namespace gantry::neighbours
