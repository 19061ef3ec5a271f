// A small random cluster and its facts, independent of the scheduler: nodes, partitions, waiting
// and placed jobs in plain maps. It makes changes, checks plans against first principles, turns
// them into facts, and can write all facts again for a replica that is built from scratch.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "ctld/sched/cycle/schedule.h"

namespace gantry::sched {

struct WorldOptions {
  std::uint32_t nodes = 8;
  std::uint32_t partitions = 2;  // they overlap; the first has the highest priority
  bool plain = false;            // equal priorities, one partition, no node ever fails
  bool losses = false;           // with `plain`, nodes do fail
  bool ranks = false;            // some jobs have a higher rank
};

class World {
 public:
  World(std::uint64_t seed, WorldOptions options);

  std::vector<Change> initial();                 // nodes and partitions
  std::vector<Change> facts() const;             // all facts, for a replica from scratch
  std::vector<Change> random_turn();             // some random events; the time advances
  std::vector<Change> accept(const Plan& plan);  // turns every start into a fact

  // Returns "" or the mistake in the plan's starts: nodes, sums and shapes.
  std::string check(const Plan& plan) const;
  // Returns "" or a waiting one-node job that would fit on some node now.
  std::string check_nothing_fits() const;

  [[nodiscard]] bool available(NodeId node) const { return nodes_[node.value()].available; }

  Instant now{seconds(1'000'000).us};
  std::optional<Instant> not_beyond;  // time does not move beyond this, if it is after now
  std::map<JobId, JobQueued> waiting;
  std::map<JobId, JobPlaced> placed;

 private:
  std::uint64_t pick(std::uint64_t n) {
    return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random_);
  }
  bool chance(int percent) { return pick(100) < static_cast<std::uint64_t>(percent); }
  JobShape random_shape();
  Change submit();
  NodeChanged random_node(std::uint32_t id);
  std::string check_start(const Start& start, std::vector<Room>& free,
                          std::vector<std::set<std::uint16_t>>& taken) const;
  [[nodiscard]] bool may_use(const JobShape& shape, PartitionId partition,
                             std::uint32_t node) const;

  std::mt19937_64 random_;
  WorldOptions options_;
  std::vector<NodeChanged> nodes_;
  std::vector<PartitionChanged> partitions_;
  std::uint64_t next_job_ = 1;
};

}  // namespace gantry::sched
