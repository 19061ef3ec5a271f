// find_victims(): the search over nodes. The rules and the quota are in preempt_rules.cc, the
// cheapest victims of one node in cheapest.cc. x is the job for which others have to leave.
#include "ctld/sched/preempt/preempt.h"

#include <algorithm>
#include <limits>
#include <map>

#include "common/assert.h"
#include "ctld/sched/nodes/neighbours.h"
#include "ctld/sched/nodes/topology.h"
#include "ctld/sched/preempt/cheapest.h"
#include "ctld/sched/preempt/node_sets.h"
#include "ctld/sched/preempt/preempt_rules.h"

namespace gantry::sched {
namespace {

constexpr int kMaxRepairs = 32;  // victims that the rules may remove before a set is given up
constexpr std::size_t kMaxGrown = 256;  // victims in a set of by_rules()
constexpr std::size_t kAhead = 8;       // placements that are prefetched before their turn
constexpr int kReprices = 2;            // rounds in which victims on several nodes are charged once

class Search {
 public:
  explicit Search(const PreemptRequest& request)
      : r_(request),
        d_(request.cls.demand),
        nodes_(nodes_for(request)),
        share_((d_.tasks + d_.min_nodes - 1) / d_.min_nodes),
        rules_(request) {
    room_.resize(r_.grid.size());
    for (std::size_t w = 0; w < nodes_.words(); ++w)
      any_in_word(nodes_.word(w), w, [&](std::uint32_t n) {
        if (usable(n)) room_[n] = r_.grid.free(n);
        return false;
      });
    for (const std::uint32_t slot : rules_.leaving()) free(slot, true);
    for (const HeldRoom& held : r_.held)
      if (usable(held.node)) room_[held.node] -= held.room;
  }

  std::optional<VictimSet> run() {
    const auto fits_already = place();
    const bool lacks = rules_.contest(fits_already ? ByResource{} : lacking());
    if (fits_already && !lacks) return VictimSet{{}, *fits_already, 0, 0, {}};
    if (!lacks || share_ > d_.most_per_node) return std::nullopt;
    if (auto set = search_suspects()) return set;
    // What other tenants borrow does not suffice: the quotas guarantee more than the cluster has.
    if (!rules_.let_lower_classes_give_way()) return std::nullopt;
    return search_suspects();
  }

 private:
  using Set = std::vector<const Suspect*>;

  std::optional<VictimSet> search_suspects() {
    suspects_.clear();
    find_suspects();
    if (suspects_.empty()) return std::nullopt;
    const bool by_share = std::any_of(suspects_.begin(), suspects_.end(), [](const Suspect& s) {
      return s.rule == VictimRule::by_share;
    });
    for (const bool rule_b : {false, true}) {
      if (rule_b && !(by_share && r_.rule_b)) break;
      for (std::size_t end = 0; end < suspects_.size();) {
        const std::int32_t highest = suspects_[end].class_value;
        while (end < suspects_.size() && suspects_[end].class_value == highest) ++end;
        if (auto set = search({suspects_.data(), end}, rule_b)) return finish(std::move(*set));
      }
    }
    return std::nullopt;
  }

  // Nodes on which the job may run beside all other jobs. A job that forbids this could itself be a
  // victim, but that is not tried.
  static Bits nodes_for(const PreemptRequest& r) {
    Bits nodes = r.eligible.nodes_of(r.choice);
    if (Neighbours::none(r.running, r.cls)) return nodes;
    const Neighbours neighbours(r.running, r.grid, r.cls, r.user);
    for (std::size_t w = 0; w < nodes.words(); ++w)
      any_in_word(nodes.word(w), w, [&](std::uint32_t n) {
        if (!neighbours.allows(n)) nodes.clear(n);
        return false;
      });
    return nodes;
  }

  [[nodiscard]] bool usable(std::uint32_t n) const {
    return n < r_.grid.size() && nodes_.test(n) && r_.grid.available(n);
  }

  // Adds what a placement holds to room_, or removes it.
  void free(std::uint32_t slot, bool give) {
    for (const Use& use : r_.running[slot].uses) {
      if (!usable(use.node)) continue;
      if (give)
        room_[use.node] += use.room;
      else
        room_[use.node] -= use.room;
    }
  }

  [[nodiscard]] bool is_required(std::uint32_t n) const {
    return std::binary_search(r_.cls.required.begin(), r_.cls.required.end(), n);
  }

  // Finds a place for x in room_.
  [[nodiscard]] std::optional<std::vector<Share>> place() const {
    std::vector<Candidate> candidates;
    for (std::size_t w = 0; w < nodes_.words(); ++w)
      any_in_word(nodes_.word(w), w, [&](std::uint32_t n) {
        if (!usable(n)) return false;
        if (const auto fits = tasks_fitting(d_, r_.grid.room(n), room_[n]); fits > 0)
          candidates.push_back({n, fits, is_required(n)});
        return false;
      });
    if (!r_.cls.key.shape.anti_affinity.empty())
      Neighbours(r_.running, r_.grid, r_.cls, r_.user).trim(candidates);
    return choose_places(r_.grid, r_.cls, candidates);
  }

  // The same as place().has_value(), but cheaper.
  [[nodiscard]] bool has_place() const {
    const JobShape& shape = r_.cls.key.shape;
    if (!r_.cls.required.empty() || shape.topology == TopologyWish::required ||
        !shape.anti_affinity.empty())
      return place().has_value();
    std::uint32_t able = 0;
    for (std::size_t w = 0; w < nodes_.words(); ++w)
      if (any_in_word(nodes_.word(w), w, [&](std::uint32_t n) {
            if (usable(n) && holds(d_, r_.grid.room(n), room_[n], share_)) ++able;
            return able >= d_.min_nodes;
          }))
        return true;
    // Uneven shares may fit where even ones do not.
    return share_ > 1 && d_.min_nodes > 1 && place().has_value();
  }

  // Resources of which too few nodes have enough, each resource considered alone; all resources if
  // there is none.
  [[nodiscard]] ByResource lacking() const {
    std::array<std::uint32_t, 4> enough{};
    for (std::size_t w = 0; w < nodes_.words(); ++w)
      any_in_word(nodes_.word(w), w, [&](std::uint32_t n) {
        if (!usable(n)) return false;
        const Room need = need_for(d_, r_.grid.room(n), share_);
        const Room& room = room_[n];
        enough[0] += room.cpus >= need.cpus ? 1 : 0;
        enough[1] += room.memory >= need.memory ? 1 : 0;
        enough[2] += room.gpu_thousandths() >= need.gpu_thousandths() ? 1 : 0;
        enough[3] += room.scratch >= need.scratch ? 1 : 0;
        return false;
      });
    ByResource lacking{};
    // A node never lacks io or net, because it has no amount of them.
    for (std::size_t r = 0; r < 4; ++r) lacking[r] = enough[r] < d_.min_nodes;
    if (std::find(lacking.begin(), lacking.end(), true) == lacking.end()) lacking.fill(true);
    return lacking;
  }

  // Finds the suspects, sorted by class, then job: the order does not depend on earlier events.
  void find_suspects() {
    struct Found {
      std::int32_t class_value;
      JobId job;
      std::uint32_t slot;
      std::uint32_t group;
    };
    std::vector<PreemptRules::OfGroup> groups;
    std::vector<Found> found;
    for (const auto& [group, slots] : r_.running.groups()) {
      const PreemptRules::OfGroup of_group = rules_.rule_for(group);
      if (of_group.rule == VictimRule::none) continue;
      const std::int32_t value = rules_.value_of(group.priority_class);
      for (std::size_t i = 0; i < slots.size(); ++i) {
        r_.running.fetch(slots[std::min(i + kAhead, slots.size() - 1)]);
        found.push_back(
            {value, r_.running[slots[i]].job, slots[i], static_cast<std::uint32_t>(groups.size())});
      }
      groups.push_back(of_group);
    }
    std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
      return std::pair{a.class_value, a.job} < std::pair{b.class_value, b.job};
    });
    suspects_.reserve(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      r_.running.fetch(found[std::min(i + kAhead, found.size() - 1)].slot);
      auto suspect = rules_.judge(found[i].slot, groups[found[i].group]);
      if (!suspect) continue;
      suspect->index = static_cast<std::uint32_t>(suspects_.size());
      suspects_.push_back(*suspect);
    }
  }

  // Finds a set of these suspects that is allowed and enough, with no superfluous victim.
  std::optional<Set> search(std::span<const Suspect> among, bool rule_b) {
    Set left;
    for (const Suspect& s : among) left.push_back(&s);
    if (!place_without(left)) return std::nullopt;
    auto set = by_places(left, rule_b);
    if (!set) set = by_nodes(left, rule_b);
    if (!set) set = by_rules(left, rule_b);
    if (set) put_back(*set, rule_b);
    return set;
  }

  // Takes the cheapest places first; then asks the rules and the quota about their victims.
  std::optional<Set> by_places(Set left, bool rule_b) {
    for (int i = 0; i < kMaxRepairs; ++i) {
      auto set = cheapest_places(left);
      if (!set) return std::nullopt;
      rules_.sort(*set);
      SetCheck check = rules_.check(*set, rule_b);
      if (!check.offender && !check.fits) check = complete(*set, left, rule_b);
      if (!check.offender) return check.fits ? std::move(set) : std::nullopt;
      std::erase(left, (*set)[*check.offender]);
    }
    return std::nullopt;
  }

  // If the victims on the cheapest places exceed what a tenant has above its quota, other nodes may
  // be possible.
  std::optional<Set> by_nodes(const Set& left, bool rule_b) {
    const NodePrices prices(r_, room_, left, suspects_.size(), share_);
    NodeSets sets(r_, prices, rules_, rule_b);
    for (const auto& domain : domains()) {
      auto set = sets.find(domain, d_.min_nodes, [&](Set& found) {
        return place_without(found) &&
               (rules_.check(found, rule_b).fits || complete(found, left, rule_b).fits);
      });
      if (set) return set;
    }
    return std::nullopt;
  }

  // The victims leave enough room, but not enough quota: adds victims, the cheapest for what they
  // use first, until there is.
  SetCheck complete(Set& set, const Set& left, bool rule_b) {
    Set others;
    for (const Suspect* s : left)
      if (std::find(set.begin(), set.end(), s) == set.end() && s->quota_node != kNoIndex)
        others.push_back(s);
    sort_by_worth(others);
    for (const Suspect* s : others) {
      Set more = set;
      more.push_back(s);
      rules_.sort(more);
      const SetCheck check = rules_.check(more, rule_b);
      if (check.offender) continue;
      set = std::move(more);
      if (check.fits || set.size() == kMaxGrown) return check;
    }
    return {};
  }

  // Takes jobs that may leave, those of x's partition first, then the cheapest for what they use,
  // until quota and room suffice. While x does not fit in its guaranteed quota, at least one tenant
  // exceeds its own: so this finds a set if there is one, though not the best.
  std::optional<Set> by_rules(Set left, bool rule_b) {
    sort_by_worth(left);
    std::stable_partition(left.begin(), left.end(), [&](const Suspect* s) {
      return r_.running[s->slot].partition == r_.cls.key.partition;
    });
    std::size_t next = 1;  // a placement is tried after 1, 2, 4, ... victims
    auto set = rules_.grow(left, rule_b, kMaxGrown, [&](const Set& taken, bool last) {
      if (taken.size() < next && !last) return false;
      next = 2 * taken.size();
      return place_without(taken);
    });
    if (set.empty()) return std::nullopt;
    return set;
  }

  static std::int64_t units(const Suspect& s) {
    const std::int64_t gpus = s.use.amount[Resource::gpu];
    return std::max<std::int64_t>(1, gpus > 0 ? gpus : s.use.amount[Resource::cpu]);
  }
  static void sort_by_worth(Set& set) {
    std::stable_sort(set.begin(), set.end(), [&](const Suspect* a, const Suspect* b) {
      return static_cast<__int128>(a->cost) * units(*b) <
             static_cast<__int128>(b->cost) * units(*a);
    });
  }

  bool place_without(const Set& gone) {
    for (const Suspect* s : gone) free(s->slot, true);
    const bool fits = has_place();
    for (const Suspect* s : gone) free(s->slot, false);
    return fits;
  }

  // Removes victims that are not needed from the set, the most expensive first. One round is
  // enough: a victim that is needed in a set is also needed in a smaller one.
  void put_back(Set& set, bool rule_b) {
    Set dearest = set;
    std::sort(dearest.begin(), dearest.end(), [](const Suspect* a, const Suspect* b) {
      return std::tuple{b->class_value, b->cost, b->job} <
             std::tuple{a->class_value, a->cost, a->job};
    });
    for (const Suspect* s : set) free(s->slot, true);
    for (const Suspect* s : dearest) {
      Set fewer = set;
      std::erase(fewer, s);
      const SetCheck check = rules_.check(fewer, rule_b);
      if (check.offender || !check.fits) continue;
      free(s->slot, false);
      if (has_place())
        set = std::move(fewer);
      else
        free(s->slot, true);
    }
    for (const Suspect* s : set) free(s->slot, false);
  }

  // The cheapest victims that make room for x, without regard to rules about sets of victims.
  std::optional<Set> cheapest_places(const Set& left) {
    if (has_place()) return Set{};  // only quota is missing
    NodePrices prices(r_, room_, left, suspects_.size(), share_);
    std::optional<Priced> best;
    for (const auto& domain : domains()) {
      auto found = cheapest_in(prices, domain);
      if (found && (!best || found->cost < best->cost)) best = std::move(found);
    }
    if (!best) return std::nullopt;
    return std::move(best->victims);
  }

  // Lists of nodes; x must run within one of them.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> domains() const {
    std::vector<std::uint32_t> all;
    for (std::size_t w = 0; w < nodes_.words(); ++w)
      any_in_word(nodes_.word(w), w, [&](std::uint32_t n) {
        if (usable(n)) all.push_back(n);
        return false;
      });
    return split_by_wish(r_.grid, r_.cls, all);
  }

  std::optional<Priced> cheapest_in(NodePrices& prices, const std::vector<std::uint32_t>& nodes) {
    std::optional<Priced> best;
    Set gone;  // victims that are already counted
    for (int round = 0; round <= kReprices; ++round) {
      std::vector<NodePrice> offers;
      std::size_t required = 0;
      prices.set_gone(gone);
      for (const std::uint32_t n : nodes)
        if (auto offer = prices.offer(n)) {
          offer->required = is_required(n);
          required += offer->required ? 1 : 0;
          offers.push_back(std::move(*offer));
        }
      if (offers.size() < d_.min_nodes || required < r_.cls.required.size()) break;
      const auto end = offers.begin() + static_cast<std::ptrdiff_t>(d_.min_nodes);
      std::partial_sort(offers.begin(), end, offers.end(),
                        [](const NodePrice& a, const NodePrice& b) {
                          return std::tuple{!a.required, a.cost, a.node} <
                                 std::tuple{!b.required, b.cost, b.node};
                        });
      offers.erase(end, offers.end());
      Priced priced = prices.settle(offers);
      if (best && best->cost <= priced.cost) break;
      gone = priced.victims;
      best = std::move(priced);
      if (d_.min_nodes == 1) break;
    }
    return best;
  }

  VictimSet finish(Set set) {
    for (const Suspect* s : set) free(s->slot, true);
    VictimSet out;
    auto shares = place();
    GANTRY_ASSERT(shares.has_value(), "victims were chosen that make no room");
    out.shares = std::move(*shares);
    out.highest_class = std::numeric_limits<std::int32_t>::min();
    std::sort(set.begin(), set.end(),
              [](const Suspect* a, const Suspect* b) { return a->job < b->job; });
    for (const Suspect* s : set) {
      out.victims.push_back({s->job, rules_.why(*s), s->lost_work});
      out.highest_class = std::max(out.highest_class, s->class_value);
      out.cost += s->cost;
      out.grace = std::max(out.grace, rules_.grace_of(r_.running[s->slot].priority_class));
    }
    return out;
  }

  const PreemptRequest& r_;
  const Demand& d_;
  const Bits nodes_;
  const std::uint32_t share_;  // tasks on each node
  PreemptRules rules_;
  std::vector<Room> room_;  // by node, for nodes that x may use
  std::vector<Suspect> suspects_;
};

}  // namespace

std::optional<VictimSet> find_victims(const PreemptRequest& request) {
  return Search(request).run();
}

}  // namespace gantry::sched
