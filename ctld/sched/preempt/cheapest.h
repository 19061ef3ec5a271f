// The cost of making room on one node, and on several together; preempt.h defines the cost.
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
  // On a node with up to this many jobs every subset is considered; with more, the jobs that are
  // cheapest for their size.
  static constexpr std::size_t kExact = 12;

  // `room`: what is free on each node if all suspects are gone. `all`: the number of all suspects,
  // also of those not in `suspects`. `share`: tasks on each node.
  NodePrices(const PreemptRequest& request, const std::vector<Room>& room,
             const std::vector<const Suspect*>& suspects, std::size_t all, std::uint32_t share);

  // Treats these suspects as gone: they cost nothing more.
  void set_gone(const std::vector<const Suspect*>& gone);
  struct Holder {
    const Suspect* suspect = nullptr;
    const Room* room = nullptr;
  };
  // The suspects on the node, and what each holds there.
  [[nodiscard]] std::span<const Holder> on(std::uint32_t node) const;
  // The room that is free on the node before any suspect leaves.
  [[nodiscard]] const Room& room(std::uint32_t node) const { return room_[node]; }
  // True if that room holds the job's part on the node.
  [[nodiscard]] bool enough(std::uint32_t node, const Room& room) const {
    return holds(r_.cls.demand, r_.grid.room(node), room, share_);
  }
  // The cheapest suspects on the node whose leaving makes enough room there; nullopt if no set
  // does.
  [[nodiscard]] std::optional<NodePrice> offer(std::uint32_t node) const;
  // The victims of all offers together with those that are gone: each costs only once, and none is
  // superfluous.
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
