#include "ctld/sched/preempt/cheapest.h"

#include <algorithm>
#include <limits>

namespace gantry::sched {
NodePrices::NodePrices(const PreemptRequest& request, const std::vector<Room>& room,
                       const std::vector<const Suspect*>& suspects, std::size_t all,
                       std::uint32_t share)
    : r_(request), room_(room), share_(share), is_gone_(all, false) {
  // Sorts by node, by counting; the suspects of a node keep their order.
  first_.assign(room.size() + 1, 0);
  for (const Suspect* s : suspects)
    for (const Use& use : r_.running[s->slot].uses) ++first_[use.node + 1];
  for (std::size_t n = 1; n < first_.size(); ++n) first_[n] += first_[n - 1];
  holders_.resize(first_.back());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (const Suspect* s : suspects)
    for (const Use& use : r_.running[s->slot].uses) holders_[next[use.node]++] = {s, &use.room};
}

std::span<const NodePrices::Holder> NodePrices::on(std::uint32_t node) const {
  return {holders_.data() + first_[node], holders_.data() + first_[node + 1]};
}

void NodePrices::set_gone(const std::vector<const Suspect*>& gone) {
  gone_ = gone;
  is_gone_.assign(is_gone_.size(), false);
  for (const Suspect* s : gone) is_gone_[s->index] = true;
}

std::optional<NodePrice> NodePrices::offer(std::uint32_t node) const {
  Room room = room_[node], most = room_[node];
  std::vector<Holder> jobs;
  for (const Holder& h : on(node)) {
    most += *h.room;
    if (is_gone_[h.suspect->index])
      room += *h.room;
    else
      jobs.push_back(h);
  }
  if (enough(node, room)) return NodePrice{node, false, 0, {}};
  if (!enough(node, most)) return std::nullopt;
  return jobs.size() <= kExact ? exact(node, room, std::move(jobs))
                               : greedy(node, room, std::move(jobs));
}

NodePrice NodePrices::exact(std::uint32_t node, Room room, std::vector<Holder> jobs) const {
  std::stable_sort(jobs.begin(), jobs.end(), [](const Holder& a, const Holder& b) {
    return a.suspect->cost < b.suspect->cost;
  });
  std::vector<Room> rest(jobs.size() + 1);  // what all jobs from here on hold together
  for (std::size_t i = jobs.size(); i-- > 0;) {
    rest[i] = rest[i + 1];
    rest[i] += *jobs[i].room;
  }
  std::int64_t best_cost = std::numeric_limits<std::int64_t>::max();
  std::uint32_t best = 0;
  const auto descend = [&](auto& self, std::size_t at, const Room& have, std::int64_t cost,
                           std::uint32_t taken) -> void {
    if (cost >= best_cost) return;
    if (enough(node, have)) {
      best_cost = cost;
      best = taken;
      return;
    }
    Room all = have;
    all += rest[at];
    if (at == jobs.size() || !enough(node, all)) return;
    Room with = have;
    with += *jobs[at].room;
    self(self, at + 1, with, cost + jobs[at].suspect->cost, taken | (1u << at));
    self(self, at + 1, have, cost, taken);
  };
  descend(descend, 0, room, 0, 0);
  NodePrice price{node, false, best_cost, {}};
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if ((best >> i) & 1) price.victims.push_back(jobs[i].suspect);
  return price;
}

NodePrice NodePrices::greedy(std::uint32_t node, Room room, std::vector<Holder> jobs) const {
  const bool for_gpus = r_.cls.demand.gpus > 0;
  const auto units = [&](const Holder& h) {
    return static_cast<__int128>(std::max(1, for_gpus ? h.room->gpus * 1024 : h.room->cpus));
  };
  std::stable_sort(jobs.begin(), jobs.end(), [&](const Holder& a, const Holder& b) {
    return a.suspect->cost * units(b) < b.suspect->cost * units(a);
  });
  std::vector<Holder> taken;
  for (const Holder& h : jobs) {
    if (enough(node, room)) break;
    room += *h.room;
    taken.push_back(h);
  }
  std::stable_sort(taken.begin(), taken.end(), [](const Holder& a, const Holder& b) {
    return b.suspect->cost < a.suspect->cost;
  });
  NodePrice price{node, false, 0, {}};
  for (const Holder& h : taken) {
    Room without = room;
    without -= *h.room;
    if (enough(node, without)) {
      room = without;
      continue;
    }
    price.cost += h.suspect->cost;
    price.victims.push_back(h.suspect);
  }
  return price;
}

Priced NodePrices::settle(const std::vector<NodePrice>& offers) const {
  std::vector<const Suspect*> all = gone_;
  std::vector<bool> kept = is_gone_;
  std::vector<std::uint32_t> nodes;
  for (const NodePrice& offer : offers) {
    nodes.push_back(offer.node);
    for (const Suspect* s : offer.victims) {
      if (!kept[s->index]) all.push_back(s);
      kept[s->index] = true;
    }
  }
  std::sort(nodes.begin(), nodes.end());
  std::sort(all.begin(), all.end(), [](const Suspect* a, const Suspect* b) {
    return std::pair{b->cost, b->job} < std::pair{a->cost, a->job};
  });
  const auto enough_with_kept = [&](const Use& use) {
    if (!std::binary_search(nodes.begin(), nodes.end(), use.node)) return true;
    Room room = room_[use.node];
    for (const Holder& h : on(use.node))
      if (kept[h.suspect->index]) room += *h.room;
    return enough(use.node, room);
  };
  Priced out;
  for (const Suspect* s : all) {
    const auto& uses = r_.running[s->slot].uses;
    kept[s->index] = false;
    if (std::all_of(uses.begin(), uses.end(), enough_with_kept)) continue;
    kept[s->index] = true;
    out.cost += s->cost;
    out.victims.push_back(s);
  }
  return out;
}

}  // namespace gantry::sched
