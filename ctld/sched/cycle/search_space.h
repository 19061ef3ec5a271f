// The nodes on which this plan looks for places of a class, and what the class has in common with
// others: nodes by flavor and window, the jobs that it may run beside, and the number of its
// request (request_keys.h).
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "ctld/sched/cycle/draft.h"
#include "ctld/sched/nodes/neighbours.h"

namespace gantry::sched {

class SearchSpace {
 public:
  explicit SearchSpace(Draft& draft) : d_(draft) {}

  // The nodes of the choice; for a job that names a reservation only those of its window, for which
  // Windows::speak_for() must have been called. Valid until the next call.
  [[nodiscard]] const Bits& nodes_for(const JobClass& c, const NodeChoice& choice);
  // True if some choice of the class holds all these nodes. A change of the documents may have
  // separated the nodes of a reservation.
  [[nodiscard]] bool may_use(const JobClass& c, const std::vector<Share>& shares) const;
  // The jobs that a job of the user may run beside; nullopt: there is nothing to check.
  [[nodiscard]] std::optional<Neighbours> neighbours_of(const JobClass& c,
                                                        std::uint32_t user) const;
  // The place that find_place() gives on `nodes` to a job with this number (NamesakesApart): first
  // without the nodes of jobs that it is to be kept apart from, and with them if that finds none.
  // `hopeful` as there.
  [[nodiscard]] std::optional<std::vector<Share>> place_for(std::uint32_t namesake,
                                                            const JobClass& c, const Bits& nodes,
                                                            const Neighbours* neighbours,
                                                            Bits* hopeful);
  [[nodiscard]] GpuScores* scores();  // null: no node has GPUs
  // Nodes of the choice that no job of the turn's class has yet found too small; the search may
  // take more out. Null: the first search of a line, or nodes are not the same for all its jobs.
  Bits* hopeful(LineTurn& turn, const NodeChoice& choice);
  // The number of the class's request for the choice (one of Eligible::flavors_of()); kNone:
  // whether it finds a place says nothing about other classes.
  std::uint32_t request_of(JobClass& c, const NodeChoice& choice);
  // The same without limit and flavor, for a class with one choice; nullopt: there is none.
  std::optional<std::uint32_t> demand_id_of(JobClass& c);

 private:
  Draft& d_;
  std::unordered_map<std::uint64_t, Bits> hopeful_;  // by class and nodes
  Bits in_window_;                                   // scratch of nodes_for()
  [[nodiscard]] std::optional<Bits> kept_apart(std::uint32_t own, const Bits& nodes) const;
};

}  // namespace gantry::sched
