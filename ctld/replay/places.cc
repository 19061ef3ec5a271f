#include "ctld/replay/places.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace gantry::replay {
namespace {

constexpr std::size_t kMostJobs = 12;  // jobs on a node up to which every set of them is tried
constexpr std::size_t kMostSteps = 200'000;  // steps of the search

// What each tenant loses through a set of jobs.
class Losses {
 public:
  explicit Losses(const std::vector<std::int64_t>& excess) : excess_(excess) {}

  // Adds a job. Returns false if its tenant would then lose more than it must.
  bool add(const HeldUnits& h) {
    Loss& loss = of_[h.tenant];
    if (std::find(loss.jobs.begin(), loss.jobs.end(), std::pair{h.of_job, h.job}) !=
        loss.jobs.end())
      return true;
    loss.jobs.emplace_back(h.of_job, h.job);
    loss.sum += h.of_job;
    return loss.sum - std::max_element(loss.jobs.begin(), loss.jobs.end())->first <
           excess_[h.tenant];
  }
  bool add(const std::vector<HeldUnits>& jobs) {
    return std::all_of(jobs.begin(), jobs.end(), [&](const HeldUnits& h) { return add(h); });
  }

 private:
  struct Loss {
    std::int64_t sum = 0;
    std::vector<std::pair<std::int64_t, std::uint32_t>> jobs;
  };
  const std::vector<std::int64_t>& excess_;
  std::map<std::uint32_t, Loss> of_;
};

// The sets of jobs on a node that each free enough there; no set contains another. Jobs that run
// only on this node and have the same tenant and size are interchangeable.
struct Ways {
  std::vector<std::vector<HeldUnits>> sets;
  std::vector<std::vector<std::pair<std::uint32_t, std::int64_t>>> kinds;  // tenant, units
  bool alone = true;  // true if all its jobs run on this node only
};

Ways ways_of(std::int64_t missing, const std::vector<HeldUnits>& jobs,
             const std::vector<std::int64_t>& excess) {
  Ways ways;
  for (std::uint32_t mask = 0; mask < (1u << jobs.size()); ++mask) {
    std::vector<HeldUnits> set;
    std::int64_t freed = 0, least = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if ((mask >> i) & 1) {
        set.push_back(jobs[i]);
        freed += jobs[i].units;
        least = set.size() == 1 ? jobs[i].units : std::min(least, jobs[i].units);
      }
    if (freed < missing || (!set.empty() && freed - least >= missing)) continue;
    if (!Losses(excess).add(set)) continue;
    std::vector<std::pair<std::uint32_t, std::int64_t>> kind;
    bool alone = true;
    for (const HeldUnits& h : set) {
      kind.emplace_back(h.tenant, h.units);
      alone = alone && h.units == h.of_job;
    }
    std::sort(kind.begin(), kind.end());
    if (alone && std::find(ways.kinds.begin(), ways.kinds.end(), kind) != ways.kinds.end())
      continue;
    ways.alone = ways.alone && alone;
    ways.kinds.push_back(std::move(kind));
    ways.sets.push_back(std::move(set));
  }
  return ways;
}

class Places {
 public:
  Places(std::vector<Ways> nodes, const std::vector<std::int64_t>& excess)
      : nodes_(std::move(nodes)), losses_(excess) {
    // Sorts nodes with interchangeable sets together.
    std::sort(nodes_.begin(), nodes_.end(), [](const Ways& a, const Ways& b) {
      return std::pair{a.kinds.size(), a.kinds} < std::pair{b.kinds.size(), b.kinds};
    });
  }

  bool find(std::size_t at, std::uint32_t nodes, const Losses& before) {
    if (nodes == 0) return true;
    while (at + nodes <= nodes_.size()) {
      if (++steps_ > kMostSteps) return true;
      for (const auto& set : nodes_[at].sets) {
        Losses with = before;
        if (with.add(set) && find(at + 1, nodes - 1, with)) return true;
      }
      const Ways& failed = nodes_[at++];
      while (failed.alone && at < nodes_.size() && nodes_[at].alone &&
             nodes_[at].kinds == failed.kinds)
        ++at;
    }
    return false;
  }
  bool find(std::uint32_t nodes) { return find(0, nodes, losses_); }

 private:
  std::vector<Ways> nodes_;
  const Losses losses_;
  std::size_t steps_ = 0;
};

}  // namespace

bool could_have_place(const std::vector<std::int64_t>& room, const std::vector<HeldUnits>& held,
                      const std::vector<std::int64_t>& excess, std::uint32_t nodes,
                      std::int64_t each) {
  std::vector<std::vector<HeldUnits>> there(room.size());
  for (const HeldUnits& h : held)
    if (excess[h.tenant] > 0) there[h.node].push_back(h);
  std::vector<Ways> able;
  for (std::size_t n = 0; n < room.size(); ++n) {
    std::int64_t most = room[n];
    for (const HeldUnits& h : there[n]) most += h.units;
    if (most < each) continue;
    Ways ways;
    if (there[n].size() > kMostJobs)
      // The node has too many jobs to try every set: assumes that freeing it costs nothing.
      ways.sets.emplace_back(), ways.kinds.emplace_back();
    else
      ways = ways_of(each - room[n], there[n], excess);
    if (!ways.sets.empty()) able.push_back(std::move(ways));
  }
  return able.size() >= nodes && Places(std::move(able), excess).find(nodes);
}

}  // namespace gantry::replay
