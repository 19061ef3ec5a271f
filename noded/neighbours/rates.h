// Two samples of one node give one row for each channel: how full it was, and what each job took of
// it and waited for it in between.
#pragma once

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "noded/neighbours/rules.h"
#include "noded/neighbours/sample.h"

namespace gantry::neighbours {

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
