// What a plan tries in the view: jobs that it starts hold their nodes, and jobs that it preempts
// are gone after their deadline. All of it can be undone: when the trial ends, grid, placements and
// timeline are as they were when it began (the timeline is made again for each plan).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ctld/sched/cycle/draft.h"

namespace gantry::sched {

class Trial {
 public:
  explicit Trial(Draft& draft) : d_(draft) {}
  ~Trial();  // undoes everything
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  struct Taken {  // what a job that this plan starts takes on one node
    std::uint32_t node = 0;
    Room room;
    std::vector<std::uint16_t> cpus;
    std::vector<GpuGrant> devices;
    std::vector<GresGrant> gres;
    PartitionId tenant;
    std::optional<Instant> until;  // unset: without a limit
    [[nodiscard]] Things things() const { return {cpus, devices, gres, tenant}; }
  };
  struct Asked {  // a job that the plan preempts
    JobId victim;
    std::optional<Instant> limit;  // when it would have ended
    Instant by;
  };

  // The job holds its nodes from now on, which must be free, for the limit; returns what exactly it
  // holds.
  std::vector<NodeGrant> take(const Waiting& w, const JobClass& c, const std::vector<Share>& shares,
                              std::optional<Duration> limit);
  // In this plan the running job counts as gone by `by`, and cannot be the victim of another job.
  void ask_to_leave(JobId victim, Instant by);
  void take_back_asking();  // undoes the last one

  [[nodiscard]] std::span<const Taken> taken() const { return taken_; }
  [[nodiscard]] std::span<const Asked> asked() const { return asked_; }

 private:
  Draft& d_;
  std::vector<Taken> taken_;
  std::vector<Asked> asked_;
};

}  // namespace gantry::sched
