// Selects the jobs that a request means: by reference ("12", "12_3", "12_[1-4]") or by filter,
// narrowed to what the asker may see. Every message that names jobs uses this.
#pragma once

#include <functional>
#include <vector>

#include "common/job/public_state.h"
#include "common/proto/job_ref.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/state/ordinal_set.h"

namespace gantry::proto {
struct JobFilter;
struct JobsDone;
}  // namespace gantry::proto

namespace gantry::core {

struct State;
struct Job;

struct Selected {
  JobId job{};
  std::optional<OrdinalSet> tasks;  // of an array: only these pending tasks; unset = all
  bool implied = false;             // selected by naming the whole array
};

// The conditions of a filter except `jobs`, prepared for asking about many jobs.
class JobMatch {
 public:
  static Result<JobMatch> make(const State& state, const proto::JobFilter& filter);
  [[nodiscard]] bool operator()(const State& state, const Job& job) const;

 private:
  // Whether the job is in one of the queues of the filter. A waiting job counts as in every queue
  // that it named.
  [[nodiscard]] bool in_queue(const State& state, const Job& job) const;
  [[nodiscard]] bool in_window(const State& state,
                               const Job& job) const;  // likewise for reservations
  std::vector<std::string> users_, names_, partitions_, accounts_, reservations_, tenants_;
  std::vector<NodeId> nodes_;
  bool by_node_ = false;
  std::optional<StateSet> states_;
};

inline constexpr std::size_t kMaxRefs = 100'000;          // references in one request
inline constexpr std::size_t kMaxRefRanges = 10'000;      // index ranges of all references together
inline constexpr std::uint64_t kMaxRefSteps = 8'000'000;  // width of ranges with a step
inline constexpr std::size_t kMaxFilterWords = 1000;      // users, names, ... of one filter

// Refuses references that are not well formed or too many. Every message is checked.
Result<void> check_refs(const proto::AnyMessage& message);

// The jobs that these references name, in id order, each once. An array brings its elements, the
// leader of a heterogeneous job its other components (both implied). A reference goes to `unknown`
// if there is no such job, or if the asker may not do `what` with it.
std::vector<Selected> resolve(const State& state, const Identity& who,
                              const std::vector<proto::JobRef>& refs,
                              std::vector<proto::JobRef>& unknown, May what = May::see);

// Moves from `unknown` to done.refused those references that name another user's job which has not
// ended, as Slurm does. The asker learns only that the number is taken.
void refuse_others(const State& state, const Identity& who, std::vector<proto::JobRef>& unknown,
                   proto::JobsDone& done);

// Calls f for the jobs that `who` may see (or change) and that match the filter (without `jobs`),
// in id order above `after`, until f returns false.
void walk_jobs(const State& state, const Identity& who, const JobMatch& match, JobId after,
               const std::function<bool(const Job&)>& f, May what = May::see);

// Whether the job has a row of its own in listings. An array without pending tasks has none,
// because its elements have rows, unless it has ended and no element is known any more.
bool has_row(const Job& job);

// The reference that names the job: 12, 12_3, or 12+1.
proto::JobRef ref_of(const State& state, const Job& job);

}  // namespace gantry::core
