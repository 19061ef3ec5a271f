// A machine that is made up: jobs want something of one resource, the resource gives each a fair
// part of what it has, and who wants more waits. It counts what a kernel counts.
//
// It knows nothing of how the detector judges. What is true is found by running the same machine
// with the same noise once more without a job and looking whether the victim waits less.
#pragma once

#include <random>
#include <set>
#include <string>
#include <vector>

#include "noded/neighbours/detector.h"

namespace gantry::neighbours::model {

enum class Kind : std::uint8_t {
  flood,            // one job floods
  two_floods,       // two jobs flood at once
  bursts,           // a flood that comes and goes
  ramp,             // a flood that grows slowly
  beside_a_heavy,   // a flood beside a job that uses much, and no more than before
  machine,          // a process of no job floods
  slow_device,      // the device becomes slow; nobody wants more
  own_limit,        // a job waits at its own limit, the device has room
  own_flood,        // a job floods and nobody else wants anything
  idle_neighbours,  // everybody has what they want
  busy_and_well,    // the device is busy, and no job waits
  flood_and_limit,  // one job floods, another waits at its own limit
};
inline constexpr std::size_t kKinds = 12;

struct Scenario {
  std::uint64_t seed = 0;
  Kind kind = Kind::flood;
  Resource resource = Resource::disk;
};

// What is true from a certain moment on.
struct Truth {
  proto::AttemptKey victim;
  Cause cause = Cause::unknown;
  std::set<proto::AttemptKey> culprits;
};

struct Story {
  std::vector<Sample> samples;  // every three seconds
  Instant onset{};
  std::vector<Truth> truths;
  // Jobs about which no certain verdict exists: they wait a little, or because of both their own
  // use and others'.
  std::set<proto::AttemptKey> unclear;
};

Story play(const Scenario& scenario);

}  // namespace gantry::neighbours::model
