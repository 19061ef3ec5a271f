#include "ctld/sched/nodes/topology.h"

#include <algorithm>
#include <map>

namespace gantry::sched {
namespace {

using Candidates = std::vector<Candidate>;
using Domains = std::map<std::uint32_t, Candidates>;  // by index, so ties go to the lowest

class Chooser {
 public:
  Chooser(const Grid& grid, const JobClass& cls, std::span<const Candidate> candidates)
      : grid_(grid),
        d_(cls.demand),
        required_(static_cast<std::uint32_t>(cls.required.size())),
        share_((d_.tasks + d_.min_nodes - 1) / d_.min_nodes),
        all_(candidates.begin(), candidates.end()) {}

  // Places the job in one domain: at the narrowest level, from `widest` down, that has a domain
  // with enough nodes.
  std::optional<std::vector<Share>> one_domain(std::uint32_t widest) const {
    for (std::uint32_t level = grid_.levels().count() + 1; level-- > widest;) {
      std::vector<std::pair<std::uint64_t, std::uint32_t>> by_room;
      const Domains domains = split(all_, level);
      for (const auto& [domain, here] : domains)
        if (const std::uint64_t room = sum_fits(here);
            here.size() >= d_.min_nodes && room >= d_.tasks)
          by_room.emplace_back(room, domain);
      std::sort(by_room.begin(), by_room.end());
      for (const auto& [room, domain] : by_room)
        if (auto shares = within(domains.at(domain), level + 1)) return shares;
    }
    return std::nullopt;
  }

  std::optional<std::vector<Share>> balanced(std::uint32_t level) const {
    if (required_ > 0) return std::nullopt;
    const Domains domains = split(even(all_), level);
    const std::uint32_t nodes = d_.min_nodes;
    for (std::uint32_t k = 1; k <= std::min<std::size_t>(nodes, domains.size()); ++k) {
      const std::uint32_t least = nodes / k, with_more = nodes % k;
      std::vector<std::pair<std::size_t, std::uint32_t>> tight;  // nodes, domain
      for (const auto& [domain, here] : domains)
        if (here.size() >= least) tight.emplace_back(here.size(), domain);
      std::sort(tight.begin(), tight.end());
      Candidates chosen;
      std::uint32_t more = 0, less = 0;
      // The tightest domains with more than `least` nodes take one more; of the other domains, the
      // tightest.
      std::vector<std::uint32_t> others;
      for (const auto& [size, domain] : tight) {
        if (more < with_more && size > least) {
          append(chosen, pack(domains.at(domain), level + 1, least + 1));
          ++more;
        } else {
          others.push_back(domain);
        }
      }
      for (const std::uint32_t domain : others)
        if (less < k - with_more) {
          append(chosen, pack(domains.at(domain), level + 1, least));
          ++less;
        }
      if (more + less == k) return choose_nodes(d_, chosen, required_);
    }
    return std::nullopt;
  }

  // Places the job over several domains, from the widest level down.
  std::optional<std::vector<Share>> spread_out() const { return within(all_, 0); }

 private:
  // Splits the candidates by domain of the level; below the narrowest level each node is a domain.
  // Nodes in no domain are left out.
  [[nodiscard]] Domains split(const Candidates& from, std::uint32_t level) const {
    Domains domains;
    for (const Candidate& c : from)
      if (const std::uint32_t domain = grid_.levels().domain(level, c.node); domain != kNoIndex)
        domains[domain].push_back(c);
    return domains;
  }

  [[nodiscard]] Candidates even(const Candidates& from) const {
    Candidates able;
    for (const Candidate& c : from)
      if (c.fits >= share_) able.push_back(c);
    return able;
  }

  // Places the job on these candidates: packed by the levels from `level` on, if enough can take an
  // even share.
  [[nodiscard]] std::optional<std::vector<Share>> within(const Candidates& from,
                                                         std::uint32_t level) const {
    const Candidates able = even(from);
    if (required_ == 0 && able.size() >= d_.min_nodes)
      return choose_nodes(d_, pack(able, level, d_.min_nodes), 0);
    return choose_nodes(d_, from, required_);
  }

  // Chooses `count` candidates of `from`, which must have that many.
  [[nodiscard]] Candidates pack(const Candidates& from, std::uint32_t level,
                                std::uint32_t count) const {
    if (level >= grid_.levels().count()) return {from.begin(), from.begin() + count};
    Domains domains = split(from, level);
    Candidates chosen;
    while (chosen.size() < count && !domains.empty()) {
      const std::size_t left = count - chosen.size();
      auto tightest = domains.end(), largest = domains.begin();
      for (auto it = domains.begin(); it != domains.end(); ++it) {
        const std::size_t size = it->second.size();
        if (size >= left && (tightest == domains.end() || size < tightest->second.size()))
          tightest = it;
        if (size > largest->second.size()) largest = it;
      }
      if (tightest != domains.end()) {
        append(chosen, pack(tightest->second, level + 1, static_cast<std::uint32_t>(left)));
        return chosen;
      }
      append(chosen, std::move(largest->second));
      domains.erase(largest);
    }
    for (const Candidate& c : from)  // candidates in no domain
      if (chosen.size() < count && grid_.levels().domain(level, c.node) == kNoIndex)
        chosen.push_back(c);
    return chosen;
  }

  static void append(Candidates& to, Candidates from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  const Grid& grid_;
  const Demand& d_;
  const std::uint32_t required_;
  const std::uint32_t share_;  // tasks on each node, if they are spread evenly
  const Candidates all_;
};

}  // namespace

std::optional<std::vector<Share>> choose_places(const Grid& grid, const JobClass& cls,
                                                std::span<const Candidate> candidates) {
  const JobShape& shape = cls.key.shape;
  const auto required = static_cast<std::uint32_t>(cls.required.size());
  const auto level = grid.levels().find(shape.topology_level);
  if (shape.topology == TopologyWish::none) return choose_nodes(cls.demand, candidates, required);
  if (!level) {
    if (shape.topology == TopologyWish::required) return std::nullopt;
    return choose_nodes(cls.demand, candidates, required);
  }
  const Chooser chooser(grid, cls, candidates);
  if (shape.topology == TopologyWish::balanced)
    if (auto shares = chooser.balanced(*level)) return shares;
  if (auto shares = chooser.one_domain(*level)) return shares;
  if (shape.topology == TopologyWish::required) return std::nullopt;
  if (auto shares = chooser.one_domain(0)) return shares;
  return chooser.spread_out();
}

std::vector<std::vector<std::uint32_t>> split_by_wish(const Grid& grid, const JobClass& cls,
                                                      std::span<const std::uint32_t> nodes) {
  const JobShape& shape = cls.key.shape;
  const auto level = grid.levels().find(shape.topology_level);
  std::vector<std::vector<std::uint32_t>> out;
  if (shape.topology != TopologyWish::none && level) {
    std::map<std::uint32_t, std::vector<std::uint32_t>> domains;
    for (const std::uint32_t n : nodes)
      if (const std::uint32_t domain = grid.levels().domain(*level, n); domain != kNoIndex)
        domains[domain].push_back(n);
    for (auto& [domain, here] : domains) out.push_back(std::move(here));
  }
  if (shape.topology != TopologyWish::required) out.emplace_back(nodes.begin(), nodes.end());
  return out;
}

}  // namespace gantry::sched
