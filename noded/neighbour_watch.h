// Watches which jobs slow down which others on this node (noded/sampling, noded/neighbours), and
// throttles the cause for a while.
//
// A hold (one such throttling) is written to `holds.msgpack` in the state directory before it is
// made, and the next daemon undoes it if this one is killed. At its normal end the daemon undoes
// all holds. Holds of links are not written: the next daemon gives each job's link its own rate
// (job_networks.h).
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

// A hold as stored in the file: all that is needed to undo it.
struct KeptHold {
  std::string cgroup;
  std::string disk;             // the held disk, "254:0"; "" = the hold is a cpu weight
  std::uint64_t own_bytes = 0;  // the job's own limit, which is restored
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
    // Limits the link of a job to this many bytes per second; 0 = back to its own rate. May be
    // null.
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
