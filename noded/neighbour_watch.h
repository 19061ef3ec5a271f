// Watches who takes what from whom on this node (noded/sampling, noded/neighbours), and holds back
// for a while who holds up others.
//
// What is about to be held is written down first, in `holds.msgpack` of the state directory, and is
// undone from there by the next daemon if this one is killed. Its end undoes everything itself.
// Links are not written down: the next daemon gives each job's link its own rate (job_networks.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/log/log.h"
#include "common/loop/clock.h"
#include "common/loop/loop.h"
#include "common/proto/neighbours.h"
#include "config/config.h"
#include "noded/neighbours/detector.h"
#include "noded/neighbours/restraint.h"
#include "noded/network/fabric.h"
#include "noded/sampling/sampler.h"

namespace gantry::node {

// A hold as it is written down: what has to be undone, without anything else being known.
struct KeptHold {
  std::string cgroup;
  std::string disk;             // "254:0"; "" = the weight of cpu
  std::uint64_t own_bytes = 0;  // the job's own limit, which comes back
  GANTRY_FIELDS(FIELD(1, cgroup), FIELD(2, disk), FIELD(3, own_bytes))
};
struct KeptHolds {
  std::vector<KeptHold> holds;
  GANTRY_FIELDS(FIELD(1, holds))
};

class NeighbourWatch {
 public:
  struct Options {
    std::string state_dir;
    NodedConfig config;
    runtime::CgroupLayout cgroups;
    std::function<std::vector<sampling::WatchedJob>()> running;  // sorted by key
    // Holds the link of a job to so many bytes per second; 0 = to its own rate. May be null.
    std::function<void(const proto::AttemptKey&, network::Fabric::Way, std::uint64_t)> limit_link{};
  };
  NeighbourWatch(Options options, loop::Loop& loop, const Logger& log);
  ~NeighbourWatch();
  NeighbourWatch(const NeighbourWatch&) = delete;
  NeighbourWatch& operator=(const NeighbourWatch&) = delete;

  // Undoes all holds; the last call, made while links can still be changed.
  void let_go();
  [[nodiscard]] proto::NodeSharing said() const;
  [[nodiscard]] std::vector<std::string> not_counted() const { return sampler_.not_counted(); }

 private:
  void look();
  void act(const neighbours::Restraint::Step& step, Instant now);
  Result<void> set(const neighbours::Hold& hold);
  void undo(const KeptHold& kept);
  void hold_link(const neighbours::Hold& hold) const;
  void limit_link(const neighbours::Hold& hold, std::uint64_t most) const;
  [[nodiscard]] KeptHold kept(const neighbours::Hold& hold) const;
  Result<void> write_down();
  [[nodiscard]] std::string disk_number(const std::string& name) const;

  Options options_;
  const Logger& log_;
  loop::ClusterClock clock_;
  sampling::Sampler sampler_;
  neighbours::Detector detector_;
  neighbours::Restraint restraint_;
  KeptHolds in_force_;
  loop::Watch timer_;
};

}  // namespace gantry::node
