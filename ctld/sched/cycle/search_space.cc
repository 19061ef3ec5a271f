#include "ctld/sched/cycle/search_space.h"

#include <algorithm>
#include <utility>

#include "ctld/sched/place/place.h"

namespace gantry::sched {

std::optional<Neighbours> SearchSpace::neighbours_of(const JobClass& c, std::uint32_t user) const {
  if (Neighbours::none(d_.view.running, c)) return std::nullopt;
  return std::optional<Neighbours>(std::in_place, d_.view.running, d_.view.grid, c, user);
}

GpuScores* SearchSpace::scores() {
  d_.view.scores.settle(d_.view.grid);
  return d_.view.scores.any() ? &d_.view.scores : nullptr;
}

// Returns `nodes` without those of jobs that are to be kept apart from jobs with the number `own`;
// nullopt if none of `nodes` has such a job.
std::optional<Bits> SearchSpace::kept_apart(std::uint32_t own, const Bits& nodes) const {
  std::optional<Bits> out;
  const auto leave_out = [&](std::uint32_t n) {
    if (!nodes.test(n)) return;
    if (!out) out = nodes;
    out->clear(n);
  };
  const Running& running = d_.view.running;
  for (const auto& [a, b] : d_.view.apart.pairs) {
    if (a != own && b != own) continue;
    const std::uint32_t other = a == own ? b : a;
    for (const std::uint32_t slot : running.of_namesake(other))
      for (const Use& use : running[slot].uses) leave_out(use.node);
    for (const Guest& guest : running.guests())
      if (guest.namesake == other) leave_out(guest.node);
  }
  return out;
}

std::optional<std::vector<Share>> SearchSpace::place_for(std::uint32_t namesake, const JobClass& c,
                                                         const Bits& nodes,
                                                         const Neighbours* neighbours,
                                                         Bits* hopeful) {
  View& v = d_.view;
  // The first search leaves nodes out. It writes nothing into `hopeful`, because that would be
  // wrong for jobs that are not kept apart.
  if (const auto fewer = kept_apart(namesake, nodes))
    if (auto place = find_place(v.grid, v.timeline, *fewer, c, nullptr, neighbours, scores()))
      return place;
  return find_place(v.grid, v.timeline, nodes, c, hopeful, neighbours, scores());
}

// Jobs that name a reservation run only on its nodes.
const Bits& SearchSpace::nodes_for(const JobClass& c, const NodeChoice& choice) {
  const Bits& nodes = d_.view.eligible.nodes_of(choice);
  const Window* window = d_.view.windows.own();
  if (window == nullptr || c.key.reservation.empty()) return nodes;
  in_window_ = Bits{};
  in_window_.resize(d_.view.grid.size());
  for (const std::uint32_t n : window->nodes)
    if (nodes.test(n)) in_window_.set(n);
  return in_window_;
}

// All nodes must belong to one choice: a change of the documents may have separated them.
bool SearchSpace::may_use(const JobClass& c, const std::vector<Share>& shares) const {
  const auto choices = d_.view.eligible.flavors_of(c);
  return std::any_of(choices.begin(), choices.end(), [&](const NodeChoice& choice) {
    const Bits& nodes = d_.view.eligible.nodes_of(choice);
    return std::all_of(shares.begin(), shares.end(),
                       [&](const Share& s) { return nodes.test(s.node); });
  });
}

// Notes begin with a line's second search, because most lines fail once per plan and need none.
Bits* SearchSpace::hopeful(LineTurn& turn, const NodeChoice& choice) {
  if (!std::exchange(turn.searched, true) || !d_.cls(turn).key.reservation.empty()) return nullptr;
  if (!Neighbours::none(d_.view.running, d_.cls(turn))) return nullptr;
  const std::uint64_t key = (std::uint64_t{turn.class_index} << 32) | choice.node_set;
  return &hopeful_.try_emplace(key, d_.view.eligible.nodes_of(choice)).first->second;
}

std::uint32_t SearchSpace::request_of(JobClass& c, const NodeChoice& choice) {
  const auto choices = d_.view.eligible.flavors_of(c);
  if (c.requests_generation != d_.left.requests.generation()) {
    c.requests_generation = d_.left.requests.generation();
    c.requests.clear();
    const JobShape& shape = c.key.shape;
    const bool alike = c.required.empty() && !c.demand.particular && c.key.reservation.empty() &&
                       !c.key.het && shape.anti_affinity.empty() &&
                       shape.sharing == NodeSharing::any;
    for (std::size_t i = 0; alike && i < choices.size(); ++i) {
      const NodeChoice& at = choices[i];
      const std::uint32_t nodes =
          d_.left.requests.nodes_of(at.node_set, d_.view.eligible.nodes_of(at));
      c.requests.push_back(
          d_.left.requests.number_of(nodes, c.demand, c.key.least_limit(), {at.flavor, c.least}));
    }
  }
  // If a job limits which jobs may run beside it, a node is not the same for all jobs.
  if (c.requests.empty() || d_.view.running.any_locks()) return RequestKeys::kNone;
  return c.requests[static_cast<std::size_t>(&choice - choices.data())];
}

std::optional<std::uint32_t> SearchSpace::demand_id_of(JobClass& c) {
  const auto choices = d_.view.eligible.flavors_of(c);
  if (choices.size() != 1) return std::nullopt;
  const std::uint32_t own = request_of(c, choices[0]);
  if (own == RequestKeys::kNone) return std::nullopt;
  return d_.left.requests.key(own).demand_id;
}

}  // namespace gantry::sched
