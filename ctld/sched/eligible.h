// Which nodes a class may use, and whether it could start there at all with every job gone.
//
// Classes with the same partition, constraint and excluded nodes share one set. Sets are made when
// first needed and again after nodes or partitions changed; within a set nodes are counted by size,
// so the question "could it ever" costs as many steps as there are kinds of nodes.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "ctld/sched/bits.h"
#include "ctld/sched/grid.h"
#include "ctld/sched/queue.h"

namespace gantry::sched {

inline constexpr std::size_t kMaxNamedNodes = 16;  // in a verdict's subject

struct SizeCount {
  Room size;
  std::uint32_t available = 0;
  std::uint32_t all = 0;
};

struct NodeSet {
  std::uint64_t generation = 0;
  Bits nodes;  // in any state
  std::vector<SizeCount> sizes;
  std::string unavailable;  // host list of the first kMaxNamedNodes that are not available
};

class Eligible {
 public:
  static constexpr std::size_t kMaxSets = 4096;

  void partition_changed(const PartitionChanged& partition);
  void node_changed(const NodeChanged& node);

  [[nodiscard]] const PartitionChanged* partition(PartitionId id) const;
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

  void begin_plan();  // forgets old sets when there are too many; never within a plan

  // Brings the class's node set, required nodes and standing up to date.
  void refresh(JobClass& cls, const Grid& grid);
  [[nodiscard]] const Bits& nodes_of(const JobClass& cls) const {
    return sets_[cls.node_set].nodes;
  }

 private:
  struct SetKey {
    PartitionId partition;
    std::string constraint;
    std::vector<std::string> excluded;
    friend auto operator<=>(const SetKey&, const SetKey&) = default;
  };
  std::uint32_t set_for(const ClassKey& key, const Grid& grid);
  void fill(NodeSet& set, const SetKey& key, const Grid& grid) const;
  [[nodiscard]] Verdict stand(const JobClass& cls, const Grid& grid) const;
  [[nodiscard]] Verdict stand_required(const JobClass& cls, const Grid& grid) const;
  [[nodiscard]] bool could_hold(const JobClass& cls, const Grid& grid, bool only_available) const;

  std::uint64_t generation_ = 1;
  std::vector<std::optional<PartitionChanged>> partitions_;
  std::unordered_map<std::string, std::uint32_t> node_by_name_;
  std::map<SetKey, std::uint32_t> set_by_key_;
  std::deque<NodeSet> sets_;
};

}  // namespace gantry::sched
