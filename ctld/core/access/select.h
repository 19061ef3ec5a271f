// Which jobs a request means: by reference ("12", "12_3", "12_[1-4]") or by filter, narrowed to
// what the asker may see. Used by every message that names jobs.
#pragma once

#include <functional>
#include <vector>

#include "common/job/public_state.h"
#include "common/proto/job_ref.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/context.h"

namespace gantry::core {

struct Selected {
  JobId job{};
  std::optional<OrdinalSet> tasks;  // of an array: these pending ones only; unset = all of them
  bool implied = false;             // by naming the whole array
};

// A filter's conditions but `jobs`, ready to be asked of many jobs.
class JobMatch {
 public:
  static Result<JobMatch> make(const State& state, const proto::JobFilter& filter);
  [[nodiscard]] bool operator()(const State& state, const Job& job) const;

 private:
  std::vector<std::string> users_, names_, partitions_, accounts_, reservations_, tenants_;
  std::vector<NodeId> nodes_;
  bool by_node_ = false;
  std::optional<StateSet> states_;
};

inline constexpr std::size_t kMaxRefs = 100'000;          // in one request
inline constexpr std::size_t kMaxRefRanges = 10'000;      // index ranges of all of them
inline constexpr std::uint64_t kMaxRefSteps = 8'000'000;  // width of ranges with a step
inline constexpr std::size_t kMaxFilterWords = 1000;      // users, names, ... of one filter

// Are a request's references well formed, and not too many? Asked of every message.
Result<void> check_refs(const ClientMessage& message);

// The jobs that these references name, in id order, each once; an array brings its elements,
// the leader of a heterogeneous job its other components (implied). What
// is unknown, or nothing that the asker may do this with, goes to `unknown`.
std::vector<Selected> resolve(const State& state, const Identity& who,
                              const std::vector<proto::JobRef>& refs,
                              std::vector<proto::JobRef>& unknown, May what = May::see);

// Moves those of `unknown` that name somebody else's job which is not over to done.refused, as
// Slurm does; after that, whoever named one knows no more than that its number is taken.
void refuse_others(const State& state, const Identity& who, std::vector<proto::JobRef>& unknown,
                   proto::JobsDone& done);

// Walks what `who` may see (or change) and the filter (without `jobs`) matches, in id order above
// `after`, until f returns false.
void walk_jobs(const State& state, const Identity& who, const JobMatch& match, JobId after,
               const std::function<bool(const Job&)>& f, May what = May::see);

// An array whose tasks are all elements of their own has no row.
bool has_row(const Job& job);

// The reference that names the job: 12, 12_3, or 12+1.
proto::JobRef ref_of(const State& state, const Job& job);

}  // namespace gantry::core
