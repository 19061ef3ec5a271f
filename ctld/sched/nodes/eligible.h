// The nodes that a class may use, and whether the class could start there if no job ran.
//
// Classes that ask the same of a node (partition, features, GPU models, taints tolerated, with or
// without GPUs, excluded names) share one set. Sets are made when first needed, and again after
// nodes or partitions have changed. Within a set nodes are counted by size, so checking whether the
// class could ever start takes as many steps as there are kinds of nodes.
//
// A job runs on nodes of one flavor, and of one GPU model if it has an order of preference. So a
// set is divided into choices, in the order in which they are tried. Without flavors there is one
// choice.
#pragma once

#include <deque>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ctld/sched/bits.h"
#include "ctld/sched/nodes/grid.h"
#include "ctld/sched/queue/queue.h"

namespace gantry::sched {

inline constexpr std::size_t kMaxNamedNodes = 16;  // nodes named in a verdict's subject

struct SizeCount {
  Room size;
  Room well;  // counts the GPUs that are out of service now as well
  std::uint32_t available = 0;
  std::uint32_t all = 0;
};

struct NodeSet {
  std::uint64_t generation = 0;
  Bits nodes;  // nodes of the set, in any state
  std::vector<SizeCount> sizes;
  std::vector<NodeChoice>
      choices;              // choices of a class's set: at least one, unless the set is empty
  std::string unavailable;  // host list of the first kMaxNamedNodes that are not available
  std::string taints;       // taints by which nodes are kept out of the set
};

class Eligible {
 public:
  static constexpr std::size_t kMaxSets = 4096;

  void partition_changed(const PartitionChanged& partition);
  void node_changed(const NodeChanged& node);

  [[nodiscard]] const PartitionChanged* partition(PartitionId id) const;
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

  void begin_plan();  // forgets old sets if there are too many; never during a plan

  // Brings the class's node set, required nodes, least need and standing up to date.
  void refresh(JobClass& cls, const Grid& grid);

  // True if the choice has enough nodes of the right size, in any state and with every job gone.
  [[nodiscard]] bool can_ever_hold(const JobClass& cls, const NodeChoice& choice,
                                   const Grid& grid) const {
    return could_hold(cls, sets_[choice.node_set], grid, false);
  }

  // All nodes of the class, whatever their flavor.
  [[nodiscard]] const Bits& nodes_of(const JobClass& cls) const {
    return sets_[cls.node_set].nodes;
  }
  // The choices on which the class may run, in the order of trying: by JobShape::gpu_models, then
  // flavor.
  [[nodiscard]] std::span<const NodeChoice> flavors_of(const JobClass& cls) const {
    return cls.required.empty() ? sets_[cls.node_set].choices : cls.choices;
  }
  [[nodiscard]] const Bits& nodes_of(const NodeChoice& choice) const {
    return sets_[choice.node_set].nodes;
  }

 private:
  struct SetKey {  // set of a class, or of one of its choices
    PartitionId partition;
    std::string constraint;
    std::optional<Sandbox> sandbox;
    std::uint32_t abilities = 0;
    std::vector<std::string> excluded, gpu_models, tolerations;
    bool gpus = false;
    std::string slice;
    bool shared = false;                                            // with parts of GPUs
    std::optional<std::pair<std::uint32_t, std::uint32_t>> choice;  // place in gpu_models, flavor
    friend auto operator<=>(const SetKey&, const SetKey&) = default;
  };
  std::uint32_t set_for(const SetKey& key, const Grid& grid);
  void set_least(JobClass& cls) const;
  void fill(std::uint32_t index, const SetKey& key, const Grid& grid);
  static bool admits(const SetKey& key, const Grid& grid, std::uint32_t n);
  static std::vector<std::string> not_tolerated(const SetKey& key, const GridNode& node);
  static void count(NodeSet& set, std::uint32_t n, const Grid& grid);
  [[nodiscard]] Verdict stand(const JobClass& cls, const Grid& grid) const;
  [[nodiscard]] Verdict stand_required(const JobClass& cls, const Grid& grid) const;
  // For a class that needs one topology domain: reason none if a domain has room with all jobs
  // gone.
  [[nodiscard]] Verdict stand_in_domain(const JobClass& cls, const Grid& grid) const;
  // nodes: most nodes of one domain that can take a task; enough: whether a domain holds the job.
  struct BestDomain {
    std::uint32_t nodes = 0;
    bool enough = false;
  };
  [[nodiscard]] BestDomain best_domain(const JobClass& cls, const Grid& grid,
                                       bool only_available) const;
  [[nodiscard]] bool could_hold(const JobClass& cls, const Grid& grid, bool only_available) const;
  [[nodiscard]] bool could_hold(const JobClass& cls, const NodeSet& set, const Grid& grid,
                                bool only_available) const;

  std::uint64_t generation_ = 1;
  std::vector<std::optional<PartitionChanged>> partitions_;
  std::unordered_map<std::string, std::uint32_t> node_by_name_;
  std::map<SetKey, std::uint32_t> set_by_key_;
  std::deque<NodeSet> sets_;
};

}  // namespace gantry::sched
