// What a plan tries in the view: the jobs that it starts hold their nodes, and those that it asks
// to leave are gone by then. A snapshot that can be undone: when the trial ends, grid, placements
// and timeline are as they were when it began (the timeline begins anew with each plan).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ctld/sched/cycle/draft.h"

namespace gantry::sched {

class Trial {
 public:
  explicit Trial(Draft& draft) : d_(draft) {}
  ~Trial();  // puts everything back
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  struct Taken {  // on one node, by a job that this plan starts
    std::uint32_t node = 0;
    Room room;
    std::vector<std::uint16_t> cpus;
    std::vector<GpuGrant> devices;
    std::vector<GresGrant> gres;
    PartitionId tenant;
    std::optional<Instant> until;  // unset: without a limit
    [[nodiscard]] Things things() const { return {cpus, devices, gres, tenant}; }
  };
  struct Asked {  // to leave
    JobId victim;
    std::optional<Instant> limit;  // when it would have ended
    Instant by;
  };

  // The job holds its nodes from now on; says what exactly. They must be free.
  std::vector<NodeGrant> take(const Waiting& w, const JobClass& c,
                              const std::vector<Share>& shares);
  // In this plan the running job is gone by then, and nobody else's victim.
  void ask_to_leave(JobId victim, Instant by);
  void take_back_asking();  // the last one

  [[nodiscard]] std::span<const Taken> taken() const { return taken_; }
  [[nodiscard]] std::span<const Asked> asked() const { return asked_; }

 private:
  Draft& d_;
  std::vector<Taken> taken_;
  std::vector<Asked> asked_;
};

}  // namespace gantry::sched
