// Two samples of one node give one row for each channel: how full it was, and what each job took of
// it and waited for it in between.
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

// The thresholds of saturation and of harm, as data: one row for each kind of thing that jobs
// share.

using Resource = proto::SharedResource;

// Shares of 1. A channel is saturated from `saturated` on: of cpu and memory it is the part of the
// time in which somebody on the node waits, of the others the part of what the device can do. A job
// is held up from `harmed` on: by the part of the time in which it waits through no cause of its
// own or, where the kernel does not count that, by how much less than before it gets done.
struct Rule {
  Resource resource = Resource::cpu;
  double saturated = 0;
  double harmed = 0;
};

// What the kernel does not count for a job is seen only from this fall of its throughput on.
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
  std::string device;  // of disk and network
  friend auto operator<=>(const Channel&, const Channel&) = default;
};

struct JobRow {
  proto::AttemptKey key;
  double use = 0;  // cores, bytes (memory), bytes per second (disks: and requests, weighed)
  // The part of the time in which it waited, and how much of that it brought on itself. Unset: the
  // kernel does not count it.
  std::optional<double> waited;
  double own = 0;
  double natural = 0;               // what it would wait alone: a program that reads waits for that
  double alone = 0;                 // of that, what is not reading back what memory had no room for
  bool limited = false;             // it has reached a limit of its own on this channel
  std::vector<std::uint16_t> cpus;  // cpu only; empty = all
  [[nodiscard]] double held_up() const {
    return waited ? std::max(*waited - own - natural, 0.0) : 0.0;
  }
};

struct Row {
  Instant at{};
  double level = 0;          // as Rule::saturated has it
  double use = 0;            // of all together, in the unit of JobRow::use
  std::vector<JobRow> jobs;  // sorted by key
  [[nodiscard]] const JobRow* of(const proto::AttemptKey& key) const;
  // What belongs to no job.
  [[nodiscard]] double machine() const;
};

// `before` must be the older one. A job or device that is in one of them only is left out. Counts
// that run backwards count as no use.
std::map<Channel, Row> rates(const Sample& before, const Sample& now);

}  // namespace gantry::neighbours
