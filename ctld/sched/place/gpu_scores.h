// Tells placement which nodes with GPUs are alike now, how much a job would fragment their free
// GPUs (fragment.h), and which requests are expected.
//
// Nodes are in one state if their free GPUs are the same, and their free cores and memory are the
// same in steps of a 32nd and a 16th of the node. A search visits states, of which there are far
// fewer than nodes, and the score of each request and state is kept. So the cost of a decision
// depends only on what has changed since the last one.
//
// The mix counts the requests of jobs that wait and run, each node of a job once. If more wait than
// run, the waiting ones are scaled down to the number of those that run. The mix is counted again
// at the beginning of a plan if more jobs have come or started since then than were counted; while
// nothing waits or runs, the last mix stays. The mix is not a fact from the core: a replica that
// has to plan like another one gets the other's mix with expect().
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ctld/sched/nodes/grid.h"
#include "ctld/sched/nodes/running.h"
#include "ctld/sched/place/fragment.h"
#include "ctld/sched/queue/queue.h"

namespace gantry::sched {

class GpuScores {
 public:
  struct State {
    GpuRoom room;  // with cores and memory rounded down
    std::array<std::uint32_t, kMostGpus>
        owners{};              // the tenant of each shared GPU; kNoIndex for others
    std::uint32_t beyond = 0;  // devices beyond kMostGpus, which are not considered
    std::int32_t cpu_step = 1;
    bool idle = false;  // true if all cores are free
    bool sharing = false;
    friend bool operator==(const State&, const State&);
  };

  // ---- the mix
  void changed() { ++changes_; }  // call it when a job has come, or started
  void count(const Running& running, const Queue& queue);  // counts the mix again if it is time
  [[nodiscard]] const GpuMix& mix() const { return mix_; }
  void expect(const GpuMix& mix);

  // ---- nodes
  void settle(Grid& grid);  // call it before a search
  [[nodiscard]] bool any() const {
    return with_gpus_ > 0;
  }  // true if there are nodes with GPUs, free or not
  // A word of the set of nodes that have at least one GPU not taken as a whole.
  [[nodiscard]] std::uint64_t idle_gpus_word(std::size_t w) const { return idle_gpus_.word(w); }

  // ---- a search; its results hold until settle() or another ask().
  void ask(const JobClass& cls);
  [[nodiscard]] bool blind() const { return !fragmentation_.knows_any(); }
  // The score of a node with GPUs; nullopt if its free GPUs or cores do not suffice.
  [[nodiscard]] std::optional<int> score(std::uint32_t node);
  // Calls f(state, its nodes by number, score) for each state with idle GPUs that may take the job.
  template <class F>
  void each(F&& f) {
    for (const std::uint32_t s : live_)
      if (const auto score = score_of(s)) f(states_[s].state, states_[s].nodes, *score);
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::size_t kMostAsks = 1024, kMostStates = 1 << 16;
  struct Hash {
    std::size_t operator()(const State& s) const;
  };
  struct Kept {
    State state;
    std::vector<std::uint32_t> nodes;  // sorted
    std::uint32_t live_at = kNone;
    std::uint64_t amount_of = 0;  // the generation of the mix for which `amount` was computed
    double amount = 0;
  };
  using Ask = std::pair<GpuNeed, std::uint32_t>;  // request, and the tenant if it asks for a part;
                                                  // else kNoIndex
  [[nodiscard]] static State state_of(const Grid& grid, std::uint32_t n);
  void move(std::uint32_t node, std::uint32_t to);
  void forget_states();
  std::optional<int> score_of(std::uint32_t s);
  std::optional<GpuRoom> after(const State& s) const;

  GpuMix mix_;
  Fragmentation fragmentation_;
  std::uint64_t changes_ = 0, counted_ = 0;
  std::uint64_t generation_ = 1;  // generation of the mix

  std::vector<Kept> states_;
  std::unordered_map<State, std::uint32_t, Hash> known_;
  std::vector<std::uint32_t> live_;  // states that have nodes, in no particular order
  std::vector<std::uint32_t> at_;    // state by node; kNone: it has no idle GPUs
  std::uint32_t with_gpus_ = 0;      // nodes
  Bits gpu_nodes_, idle_gpus_;

  std::map<Ask, std::vector<std::int8_t>> asks_;  // by state: score, kNotKnown or kDoesNotDo
  std::map<Ask, std::vector<std::int8_t>>::iterator asking_ = asks_.end();
  static constexpr std::int8_t kNotKnown = -2, kDoesNotDo = -1;
};

// The request of a job of the class on each node, if its tasks are spread evenly over min_nodes
// nodes.
GpuNeed need_of(const JobClass& cls);

}  // namespace gantry::sched
