// Whom a job may have beside it. Two things that the room on a node does not say:
//
// - Anti-affinity: jobs of one key are at most so many to a domain (a node, or a topology level's);
//   each node of a gang counts as one. The limit is the asking job's own; nodes in no domain of the
//   level have none.
// - Sharing: on the nodes of a job that shares with its user (tenant) only, nobody else's jobs may
//   be. Who has no user that is known shares with nobody.
#pragma once

#include <unordered_map>
#include <vector>

#include "ctld/sched/nodes/running.h"
#include "ctld/sched/queue/queue.h"

namespace gantry::sched {

class Neighbours {
 public:
  // `at`: what ends by then has left. `user`: its leaf of the fair-share tree, or kNoShare.
  Neighbours(const Running& running, const Grid& grid, const JobClass& cls, std::uint32_t user,
             std::optional<Instant> at = std::nullopt);

  // Nothing to ask: every node will do.
  static bool none(const Running& running, const JobClass& cls) {
    return cls.key.shape.anti_affinity.empty() && cls.key.shape.sharing == NodeSharing::any &&
           !running.any_locks();
  }

  [[nodiscard]] bool allows(std::uint32_t node) const;
  // Leaves as many in each domain as may be there together: the first ones.
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
  std::uint32_t level_ = 0;                                     // of the limit
  std::unordered_map<std::uint32_t, std::uint32_t> in_domain_;  // jobs of the key
};

}  // namespace gantry::sched
