// What placement knows of nodes with GPUs: which of them are alike now, how a job there would
// spoil what is free (fragment.h), and the requests that are to be expected.
//
// Nodes whose free GPUs are the same, and whose free cores and memory are so in steps of a 32nd and
// a 16th of the node, are in one state. A search goes by states, of which there are far fewer than
// nodes, and what a score comes to is kept for each request and state. So a decision costs as much
// as has changed since the last one.
//
// The mix is what waits and what runs, each node of a job once; of those who wait no more than of
// those who run. It is taken anew at the beginning of a plan when as many jobs have come or started
// since as were counted; where nothing waits or runs the last one stays. It is no fact: a replica
// that has to plan as another one does is told with expect().
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
    GpuRoom room;                                   // cores and memory rounded down
    std::array<std::uint32_t, kMostGpus> owners{};  // of shared GPUs the tenant; else kNoIndex
    std::uint32_t beyond = 0;                       // devices that are not looked at
    std::int32_t cpu_step = 1;
    bool idle = false;  // all cores free
    bool sharing = false;
    friend bool operator==(const State&, const State&);
  };

  // ---- the mix
  void changed() { ++changes_; }                           // a job has come, or started
  void count(const Running& running, const Queue& queue);  // if it is time to
  [[nodiscard]] const GpuMix& mix() const { return mix_; }
  void expect(const GpuMix& mix);

  // ---- nodes
  void settle(Grid& grid);                                   // before a search
  [[nodiscard]] bool any() const { return with_gpus_ > 0; }  // nodes with GPUs, free or not
  // Nodes with something free of their GPUs.
  [[nodiscard]] std::uint64_t idle_gpus_word(std::size_t w) const { return idle_gpus_.word(w); }

  // ---- a search; these hold until settle() or another ask().
  void ask(const JobClass& cls);
  [[nodiscard]] bool blind() const { return !fragmentation_.knows_any(); }
  // The score of a node with GPUs; nullopt: its GPUs or cores will not do.
  [[nodiscard]] std::optional<int> score(std::uint32_t node);
  // f(state, its nodes by number, score) for all states with idle GPUs that may do.
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
    std::uint64_t amount_of = 0;  // the generation that `amount` is of
    double amount = 0;
  };
  using Ask = std::pair<GpuNeed, std::uint32_t>;  // the tenant, of parts
  [[nodiscard]] static State state_of(const Grid& grid, std::uint32_t n);
  void move(std::uint32_t node, std::uint32_t to);
  void forget_states();
  std::optional<int> score_of(std::uint32_t s);
  std::optional<GpuRoom> after(const State& s) const;

  GpuMix mix_;
  Fragmentation fragmentation_;
  std::uint64_t changes_ = 0, counted_ = 0;
  std::uint64_t generation_ = 1;  // of the mix

  std::vector<Kept> states_;
  std::unordered_map<State, std::uint32_t, Hash> known_;
  std::vector<std::uint32_t> live_;  // with nodes; in no order that means anything
  std::vector<std::uint32_t> at_;    // state by node; kNone: it has no idle GPUs
  std::uint32_t with_gpus_ = 0;      // nodes
  Bits gpu_nodes_, idle_gpus_;

  std::map<Ask, std::vector<std::int8_t>> asks_;  // by state: the score, or one of those below
  std::map<Ask, std::vector<std::int8_t>>::iterator asking_ = asks_.end();
  static constexpr std::int8_t kNotKnown = -2, kDoesNotDo = -1;
};

// What a job of the class asks of one node of several that are alike.
GpuNeed need_of(const JobClass& cls);

}  // namespace gantry::sched
