// What it costs to make room on one node, and on several together; see preempt.h for the cost.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ctld/sched/preempt/preempt_rules.h"

namespace gantry::sched {

struct NodePrice {
  std::uint32_t node = 0;
  bool required = false;
  std::int64_t cost = 0;
  std::vector<const Suspect*> victims;
};

struct Priced {
  std::vector<const Suspect*> victims;
  std::int64_t cost = 0;
};

class NodePrices {
 public:
  // Up to this many jobs on a node every subset is considered; of more, the cheapest for their
  // size.
  static constexpr std::size_t kExact = 12;

  // `room`: free on each node, but for what the suspects hold. `all`: suspects there are, whether
  // among these or not. `share`: tasks for each node.
  NodePrices(const PreemptRequest& request, const std::vector<Room>& room,
             const std::vector<const Suspect*>& suspects, std::size_t all, std::uint32_t share);

  // Suspects that count as gone already: they cost nothing more.
  void set_gone(const std::vector<const Suspect*>& gone);
  struct Holder {
    const Suspect* suspect = nullptr;
    const Room* room = nullptr;
  };
  // The suspects on the node, and what each holds there.
  [[nodiscard]] std::span<const Holder> on(std::uint32_t node) const;
  // Free there, or by then, without any of them.
  [[nodiscard]] const Room& room(std::uint32_t node) const { return room_[node]; }
  // Is that room for the job's part on the node?
  [[nodiscard]] bool enough(std::uint32_t node, const Room& room) const {
    return holds(r_.cls.demand, r_.grid.room(node), room, share_);
  }
  // The cheapest suspects on the node whose going makes room there.
  [[nodiscard]] std::optional<NodePrice> offer(std::uint32_t node) const;
  // Victims of all these together, and those gone: each charged once, none that no node needs.
  [[nodiscard]] Priced settle(const std::vector<NodePrice>& offers) const;

 private:
  [[nodiscard]] NodePrice exact(std::uint32_t node, Room room, std::vector<Holder> jobs) const;
  [[nodiscard]] NodePrice greedy(std::uint32_t node, Room room, std::vector<Holder> jobs) const;

  const PreemptRequest& r_;
  const std::vector<Room>& room_;
  const std::uint32_t share_;
  std::vector<Holder> holders_;       // by node, then in the order of the suspects
  std::vector<std::uint32_t> first_;  // by node: its first holder
  std::vector<const Suspect*> gone_;
  std::vector<bool> is_gone_;  // by index
};

}  // namespace gantry::sched
