#include "ctld/sched/preempt/node_sets.h"

#include <algorithm>

namespace gantry::sched {
namespace {

std::int64_t units(const Suspect& s) {
  const std::int64_t gpus = s.use.amount[Resource::gpu];
  return std::max<std::int64_t>(1, gpus > 0 ? gpus : s.use.amount[Resource::cpu]);
}

bool contains(const NodeSets::Set& set, const Suspect* s) {
  return std::find(set.begin(), set.end(), s) != set.end();
}

}  // namespace

std::optional<NodeSets::Set> NodeSets::find(const std::vector<std::uint32_t>& nodes,
                                            std::uint32_t count, const Accept& accept) {
  accept_ = &accept;
  found_.reset();
  std::vector<Candidate> candidates;
  for (const std::uint32_t n : nodes)
    if (auto c = candidate(n)) candidates.push_back(std::move(*c));
  if (candidates.size() < count) return std::nullopt;
  // The cheapest nodes first; then those with the least in use, because these leave more for other
  // jobs.
  for (const bool by_cost : {true, false}) {
    std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
      return std::tuple{!a.required, by_cost ? a.cost : a.used, a.cost, a.node} <
             std::tuple{!b.required, by_cost ? b.cost : b.used, b.cost, b.node};
    });
    std::vector<Candidate*> all;
    for (Candidate& c : candidates) all.push_back(&c);
    checks_ = 0;
    if (descend(all, {}, count)) return std::move(found_);
    if (checks_ <= kMaxChecks) break;  // the search was complete, so there is no set
  }
  return std::nullopt;
}

std::optional<NodeSets::Candidate> NodeSets::candidate(std::uint32_t node) {
  const auto offer = prices_.offer(node);
  if (!offer) return std::nullopt;
  Candidate c;
  c.node = node;
  c.required = std::binary_search(r_.cls.required.begin(), r_.cls.required.end(), node);
  c.cost = offer->cost;
  for (const Suspect* s : offer->victims) c.used += units(*s);
  c.many = prices_.on(node).size() > NodePrices::kExact;
  return c;
}

void NodeSets::add_ways(Candidate& c) {
  const auto holders = prices_.on(c.node);
  std::vector<Room> rest(holders.size() + 1);  // what all jobs from here on hold together
  for (std::size_t i = holders.size(); i-- > 0;) {
    rest[i] = rest[i + 1];
    rest[i] += *holders[i].room;
  }
  std::vector<std::size_t> taken;
  const auto add = [&](const Room& have) {
    Set way;
    for (const std::size_t i : taken) {
      Room without = have;
      without -= *holders[i].room;
      if (prices_.enough(c.node, without)) return;
      way.push_back(holders[i].suspect);
    }
    c.ways.push_back(std::move(way));
  };
  const auto descend = [&](auto& self, std::size_t at, const Room& have) -> void {
    if (prices_.enough(c.node, have)) return add(have);
    Room all = have;
    all += rest[at];
    if (at == holders.size() || !prices_.enough(c.node, all)) return;
    Room with = have;
    with += *holders[at].room;
    taken.push_back(at);
    self(self, at + 1, with);
    taken.pop_back();
    self(self, at + 1, have);
  };
  descend(descend, 0, prices_.room(c.node));
  const auto cost = [](const Set& way) {
    std::int64_t sum = 0;
    for (const Suspect* s : way) sum += s->cost;
    return sum;
  };
  std::stable_sort(c.ways.begin(), c.ways.end(),
                   [&](const Set& a, const Set& b) { return cost(a) < cost(b); });
  note_kinds(c);
}

// If several sets have suspects of the same kinds, only the cheapest set needs to be tried, except
// for jobs on several nodes.
void NodeSets::note_kinds(Candidate& c) const {
  std::vector<std::vector<Kind>> kinds;
  std::vector<Set> ways;
  for (const Set& way : c.ways) {
    std::vector<Kind> kind;
    for (const Suspect* s : way) {
      if (r_.running[s->slot].uses.size() > 1) return;
      kind.push_back({s->quota_node, s->rule, s->class_value, s->use.flavor, s->use.amount.raw()});
    }
    std::sort(kind.begin(), kind.end());
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
    kinds.push_back(std::move(kind));
    ways.push_back(way);
  }
  std::sort(kinds.begin(), kinds.end());
  c.kinds = std::move(kinds);
  c.ways = std::move(ways);
}

// Adds all sets that consist of `set` and jobs whose leaving makes room on the node.
void NodeSets::extend(Candidate& c, const Set& set, std::vector<Able>& able) {
  if (c.many) {
    if (auto with = clear(c.node, set)) able.push_back({&c, std::move(*with)});
    return;
  }
  if (!std::exchange(c.known, true)) add_ways(c);
  for (const Set& way : c.ways) {
    Set with = set;
    for (const Suspect* s : way)
      if (!contains(set, s)) with.push_back(s);
    if (with.size() > set.size()) {
      if (spent()) return;
      rules_.sort(with);
      if (rules_.check(with, rule_b_).offender) continue;
    }
    able.push_back({&c, std::move(with)});
  }
}

// Makes one set of `set` and jobs of the node that must leave as well, in an order in which they
// may; for nodes with too many jobs to try all sets. It is sorted for the rules.
std::optional<NodeSets::Set> NodeSets::clear(std::uint32_t node, const Set& set) {
  Room room = prices_.room(node);
  std::vector<NodePrices::Holder> jobs;
  for (const NodePrices::Holder& holder : prices_.on(node))
    if (contains(set, holder.suspect))
      room += *holder.room;
    else
      jobs.push_back(holder);
  if (prices_.enough(node, room)) return set;
  for (const bool large_first : {false, true}) {
    std::stable_sort(jobs.begin(), jobs.end(), [&](const auto& a, const auto& b) {
      return large_first ? units(*a.suspect) > units(*b.suspect)
                         : a.suspect->cost < b.suspect->cost;
    });
    Room have = room;
    Set more = set;
    for (const auto& holder : jobs) {
      if (spent()) return std::nullopt;
      Set with = more;
      with.push_back(holder.suspect);
      rules_.sort(with);
      if (rules_.check(with, rule_b_).offender) continue;
      more = std::move(with);
      have += *holder.room;
      if (prices_.enough(node, have)) return more;
    }
  }
  return std::nullopt;
}

// Finds `count` more nodes among these, in addition to the victims so far. Jobs that may not leave
// together with a set may not leave with a larger one either, so only nodes that can be emptied are
// tried further down.
bool NodeSets::descend(std::span<Candidate* const> among, const Set& set, std::uint32_t count) {
  std::vector<Able> able;
  std::vector<Candidate*> nodes;
  for (Candidate* c : among) {
    const std::size_t before = able.size();
    extend(*c, set, able);
    if (checks_ > kMaxChecks) return false;
    if (able.size() > before)
      nodes.push_back(c);
    else if (c->required)
      return false;
  }
  if (nodes.size() < count) return false;
  std::vector<const Candidate*> failed;  // candidates of the same kinds fail, too
  std::size_t at = 0;
  for (std::size_t i = 0; i + count <= nodes.size(); ++i) {
    Candidate& c = *nodes[i];
    const bool has_failed =
        !c.required && !c.kinds.empty() &&
        std::any_of(failed.begin(), failed.end(), [&](auto* f) { return f->kinds == c.kinds; });
    for (; at < able.size() && able[at].candidate == &c; ++at) {
      if (has_failed) continue;
      Set& with = able[at].set;
      if (count > 1 ? descend(std::span(nodes).subspan(i + 1), with, count - 1)
                    : (*accept_)(with)) {
        if (count == 1) found_ = std::move(with);
        return true;
      }
      if (checks_ > kMaxChecks) return false;
    }
    if (c.required) return false;
    failed.push_back(&c);
  }
  return false;
}

}  // namespace gantry::sched
