// The jobs that may run beside a job. Two rules do not follow from free resources:
//
// - Anti-affinity: a domain (a node, or a domain of a topology level) may hold at most N jobs
//   of one key; each node of a gang counts as one. The limit is that of the new job; nodes in
//   no domain of the level have no limit.
// - Sharing: on the nodes of a job that shares only with its user (or tenant), no job of another
//   user (or tenant) may run. A job whose user is not known shares with no user.
#pragma once

#include <unordered_map>
#include <vector>

#include "ctld/sched/nodes/running.h"
#include "ctld/sched/queue/queue.h"

namespace gantry::sched {

class Neighbours {
 public:
  // Placements that end by `at` do not count. `user`: the job's leaf of the fair-share tree, or
  // kNoShare.
  Neighbours(const Running& running, const Grid& grid, const JobClass& cls, std::uint32_t user,
             std::optional<Instant> at = std::nullopt);

  // True if there is nothing to check, and every node is allowed.
  static bool none(const Running& running, const JobClass& cls) {
    return cls.key.shape.anti_affinity.empty() && cls.key.shape.sharing == NodeSharing::any &&
           !running.any_locks();
  }

  [[nodiscard]] bool allows(std::uint32_t node) const;
  // Keeps the first candidates of each domain, as many as are allowed there together.
  void trim(std::vector<Candidate>& candidates) const;

 private:
  [[nodiscard]] bool may_share(const Owner& other, NodeSharing theirs) const;
  [[nodiscard]] bool gone(const Placement& p) const {
    return at_ && p.ends_by && *p.ends_by <= *at_;
  }

  const Running& running_;
  const Grid& grid_;
  const JobShape& shape_;
  const Owner owner_;
  const std::optional<Instant> at_;
  std::uint32_t level_ = 0;                                     // the topology level of the limit
  std::unordered_map<std::uint32_t, std::uint32_t> in_domain_;  // nodes of jobs with the key
};

}  // namespace gantry::sched
