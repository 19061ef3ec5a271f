#include "ctld/sched/gpu/mig_board.h"

#include <algorithm>
#include <bit>

#include "common/assert.h"

namespace gantry::sched {
MigBoard::MigBoard(const MigView& view, Duration change,
                   const std::vector<std::vector<std::uint32_t>>& wanted)
    : view_(&view), change_(change), gpus_(view.gpus.size()) {
  orders_.reserve(view.tables.size());
  for (std::size_t t = 0; t < view.tables.size(); ++t)
    orders_.emplace_back(*view.tables[t], wanted[t]);
  for (const MigOrder& order : orders_) {
    pools_.emplace_back(order, gpus_.size());
    fixed_idle_.emplace_back().resize(gpus_.size());
  }
  for (std::uint32_t g = 0; g < gpus_.size(); ++g) add(g);
}

void MigBoard::add(std::uint32_t g) {
  const MigGpuView& v = view_->gpus[g];
  if (g == 0 || view_->gpus[g - 1].node != v.node) {
    GANTRY_ASSERT(g == 0 || view_->gpus[g - 1].node < v.node, "GPUs ascend by node");
    nodes_.push_back({.first = g});
  }
  ++nodes_.back().count;
  nodes_.back().changing |= v.changing;
  node_of_.push_back(static_cast<std::uint32_t>(nodes_.size() - 1));
  Gpu& gpu = gpus_[g];
  const Instant soon = view_->now + microseconds(1);  // a job past its limit may end at any moment
  const auto until = [&](const MigUse& use) {
    return use.until ? std::max(*use.until, soon) : kMigNever;
  };
  gpu.whole = !v.mig && v.healthy;
  if (v.whole) gpu.whole_until = until(*v.whole);
  gpu.slices = v.mig && v.healthy && v.table.has_value();
  if (!gpu.slices) return;
  for (const MigSliceView& s : v.slices)
    if (s.use || s.failed)
      gpu.used.push_back({s.at, s.failed ? kMigNever : until(*s.use), s.failed});
    else
      gpu.idle |= mig_bit(s.at);
  gpu.busy = mig_state_at(table(g), gpu.used, view_->now, 0);
  GANTRY_ASSERT(mig_state_at(table(g), gpu.used, view_->now, gpu.idle) != kNoMigState,
                "the slices of a GPU are a legal layout");
  refresh(g);
}

// Enters the GPU where searches find it: by what fits on it, by its idle slices, or by its
// reservations.
void MigBoard::refresh(std::uint32_t g) {
  const Gpu& gpu = gpus_[g];
  const std::uint32_t t = *view_->gpus[g].table;
  const bool plain = gpu.reserved.empty(), fixed = view_->gpus[g].fixed;
  if (plain && !fixed)
    pools_[t].put(g, gpu.busy);
  else
    pools_[t].take_out(g);
  if (plain && fixed && gpu.idle != 0)
    fixed_idle_[t].set(g);
  else
    fixed_idle_[t].clear(g);
  const auto at = std::lower_bound(drained_.begin(), drained_.end(), g);
  const bool listed = at != drained_.end() && *at == g;
  if (plain && listed) drained_.erase(at);
  if (!plain && !listed) drained_.insert(at, g);
}

bool MigBoard::spares_reserved(std::uint32_t g, std::uint64_t places, Instant end) const {
  const Gpu& gpu = gpus_[g];
  return sched::spares_reserved(table(g), gpu.used, gpu.reserved, places, end);
}

std::uint32_t MigBoard::turn_of(const Places& places) const {
  const Node& node = nodes_[node_of_[places.front().first]];
  std::uint32_t last = 0, turns = node.turns, counted = 0;  // counted: GPUs of the node, as bits
  for (const auto& [g, at] : places) {
    const Gpu& gpu = gpus_[g];
    const bool given_up =
        std::find(gpu.destroy.begin(), gpu.destroy.end(), at) != gpu.destroy.end();
    if ((gpu.idle & mig_bit(at)) != 0 || given_up) continue;
    const std::uint32_t own = std::uint32_t{1} << ((g - node.first) % 32);
    if (gpu.turn == 0 && (counted & own) == 0) {
      counted |= own;
      ++turns;
    }
    last = std::max(last, gpu.turn != 0 ? gpu.turn : turns);
  }
  return last;
}

Instant MigBoard::end_of(const Places& places, const std::optional<Duration>& limit) const {
  if (!limit) return kMigNever;
  const std::uint32_t turn = turn_of(places);
  const bool changing = nodes_[node_of_[places.front().first]].changing;
  return view_->now + change_ * (turn + (turn > 0 && changing ? 1 : 0)) + *limit;
}

std::uint64_t MigBoard::open(std::uint32_t g, std::uint32_t profile,
                             const std::optional<Duration>& limit, std::uint64_t also) const {
  const Gpu& gpu = gpus_[g];
  if (!gpu.slices) return 0;
  const MigTable& t = table(g);
  MigState s = gpu.busy;
  for (std::uint64_t left = also; left != 0; left &= left - 1)
    s = t.with(s, static_cast<MigPlacementId>(std::countr_zero(left)));
  std::uint64_t open = t.legal(s, profile);
  if (view_->gpus[g].fixed) open &= gpu.idle;
  if (gpu.reserved.empty()) return open;
  for (std::uint64_t left = open; left != 0; left &= left - 1) {
    const auto p = static_cast<MigPlacementId>(std::countr_zero(left));
    if (!spares_reserved(g, also | mig_bit(p), end_of({{g, p}}, limit))) open &= ~mig_bit(p);
  }
  return open;
}

std::optional<MigBoard::Chance> MigBoard::chance(std::uint32_t g, std::uint32_t profile,
                                                 std::uint64_t also) const {
  const Gpu& gpu = gpus_[g];
  if (!gpu.slices) return std::nullopt;
  if (view_->gpus[g].fixed) return fixed_chance(g, profile, also);
  const MigTable& t = table(g);
  for (const Reserved& r : gpu.reserved) also |= mig_bit(r.at);
  // Moves from one end of a use to the next: as many steps as there are slices in use, and one
  // without any.
  for (Instant at = view_->now;;) {
    const MigState s = mig_state_at(t, gpu.used, at, also);
    if (s != kNoMigState && t.legal(s, profile) != 0) {
      const MigPlacementId p = *order(g).start(s, t.placements_of(profile), gpu.idle);
      Chance c{g, p, at, 0};
      for (const Used& u : gpu.used)
        c.in_way += static_cast<std::uint32_t>(
            std::popcount(t.placements()[u.at].mask & t.placements()[p].mask));
      return c;
    }
    if (at == kMigNever) return std::nullopt;
    Instant next = kMigNever;
    for (const Used& u : gpu.used)
      if (u.until > at) next = std::min(next, u.until);
    at = next;
  }
}

std::optional<MigBoard::Chance> MigBoard::fixed_chance(std::uint32_t g, std::uint32_t profile,
                                                       std::uint64_t also) const {
  const Gpu& gpu = gpus_[g];
  for (const Reserved& r : gpu.reserved) also |= mig_bit(r.at);
  const std::uint64_t of = table(g).placements_of(profile) & ~also;
  std::optional<Chance> best;
  if ((gpu.idle & of) != 0)
    best = {g, static_cast<MigPlacementId>(std::countr_zero(gpu.idle & of)), view_->now, 0};
  for (const Used& u : gpu.used)
    if (!u.failed && (mig_bit(u.at) & of) != 0 && (!best || u.until < best->from))
      best = {g, u.at, u.until, table(g).profiles()[profile].memory_slices};
  return best;
}

// Destroys idle slices: first those on the same memory; then, until the placement is legal, a slice
// that suffices alone, or else the one with the most compute slices.
void MigBoard::make_room(std::uint32_t g, MigPlacementId at) {
  Gpu& gpu = gpus_[g];
  const MigTable& t = table(g);
  const auto drop = [&](MigPlacementId p) {
    gpu.idle &= ~mig_bit(p);
    gpu.destroy.push_back(p);
  };
  for (std::uint64_t left = gpu.idle; left != 0; left &= left - 1) {
    const auto p = static_cast<MigPlacementId>(std::countr_zero(left));
    if ((t.placements()[p].mask & t.placements()[at].mask) != 0) drop(p);
  }
  const auto legal = [&](std::uint64_t idle) {
    return mig_state_at(t, gpu.used, view_->now, idle | mig_bit(at)) != kNoMigState;
  };
  while (!legal(gpu.idle)) {
    GANTRY_ASSERT(gpu.idle != 0, "what is claimed fits beside what is in use");
    std::optional<MigPlacementId> victim;
    bool enough = false;
    for (std::uint64_t left = gpu.idle; left != 0; left &= left - 1) {
      const auto p = static_cast<MigPlacementId>(std::countr_zero(left));
      const bool alone = legal(gpu.idle & ~mig_bit(p));
      const auto compute = [&](MigPlacementId q) {
        return t.profiles()[t.placements()[q].profile].compute_slices;
      };
      if (!victim || (alone && !enough) || (alone == enough && compute(p) > compute(*victim))) {
        victim = p;
        enough = alone;
      }
    }
    drop(*victim);
  }
}

MigGrant MigBoard::claim(std::uint32_t g, MigPlacementId at, Instant end) {
  Gpu& gpu = gpus_[g];
  bool exists = (gpu.idle & mig_bit(at)) != 0;
  if (!exists) {
    GANTRY_ASSERT(!view_->gpus[g].fixed, "a GPU partitioned by hand stays as it is");
    make_room(g, at);
    exists = std::erase(gpu.destroy, at) > 0;  // it existed only to make room for another slice
  }
  if (!exists) {
    gpu.create.push_back(at);
    if (gpu.turn == 0) gpu.turn = ++nodes_[node_of_[g]].turns;
  }
  gpu.idle &= ~mig_bit(at);
  gpu.used.push_back({at, end, false});
  gpu.busy = table(g).with(gpu.busy, at);
  GANTRY_ASSERT(gpu.busy != kNoMigState, "what is claimed fits beside what is in use");
  refresh(g);
  return {g, at, exists};
}

void MigBoard::claim_whole(std::uint32_t g, const std::optional<Duration>& limit) {
  GANTRY_ASSERT(gpus_[g].whole && gpus_[g].whole_until == Instant{}, "a whole GPU is given once");
  gpus_[g].whole_until = limit ? view_->now + *limit : kMigNever;
}

void MigBoard::reserve(std::uint32_t g, Reserved reserved) {
  gpus_[g].reserved.push_back(reserved);
  refresh(g);
}

void MigBoard::reserve_whole(std::uint32_t g, JobId job, Instant from) {
  gpus_[g].whole_from = from;
  gpus_[g].whole_for = job;
}

void MigBoard::unreserve(std::uint32_t g, JobId job) {
  Gpu& gpu = gpus_[g];
  if (gpu.whole_from && gpu.whole_for == job) gpu.whole_from.reset();
  if (std::erase_if(gpu.reserved, [&](const Reserved& r) { return r.job == job; }) > 0) refresh(g);
}

std::vector<MigChange> MigBoard::changes() const {
  std::vector<MigChange> out;
  for (const Node& node : nodes_) {
    const std::size_t first = out.size();
    for (std::uint32_t g = node.first; g < node.first + node.count; ++g)
      if (const Gpu& gpu = gpus_[g]; gpu.turn != 0)
        out.push_back({g, gpu.turn, node.changing, gpu.destroy, gpu.create});
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
              [](const MigChange& a, const MigChange& b) { return a.turn < b.turn; });
  }
  return out;
}

}  // namespace gantry::sched
