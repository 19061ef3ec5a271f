#include "ctld/sched/gpu/mig_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "common/assert.h"
#include "ctld/sched/gpu/mig_board.h"
#include "ctld/sched/gpu/mig_target.h"

namespace gantry::sched {
namespace {

constexpr Duration kForever{INT64_MAX};

// A possible reservation. The earlier one is better, then the one for which fewer memory slices in
// use must become free.
struct Offer {
  std::vector<MigGrant> grants;  // empty: no offer yet
  Instant from = kMigNever;
  std::uint32_t in_way = UINT32_MAX;
  void take_better(Offer&& o) {
    if (grants.empty() || std::tie(o.from, o.in_way) < std::tie(from, in_way)) *this = std::move(o);
  }
};

class Planner {
 public:
  Planner(const MigView& view, const MigPolicy& policy)
      : view_(view),
        policy_(policy),
        board_(view, policy.change, mig_wanted(view)),
        targets_(mig_targets(view)) {}

  MigPlan run();

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;  // want, count

  void count_gpus();
  void restore_held();
  void serve(const MigJob& job);
  bool place(const MigJob& job);
  bool place_one(const MigJob& job, const MigTarget& target, MigTarget::Cut cut);
  bool place_many(const MigJob& job, const MigTarget& target, MigTarget::Cut cut);
  bool try_node(const MigJob& job, std::uint32_t node, const MigTarget& target, MigTarget::Cut cut);
  MigBoard::Places choose(const MigJob& job, const MigBoard::Node& node, const MigTarget& target,
                          MigTarget::Cut cut, bool reserved_too) const;
  bool place_whole(const MigJob& job, const MigTarget& target);
  void start(const MigJob& job, const MigBoard::Places& places);
  void wait(const MigJob& job, std::optional<MigReservation> held);
  void freed();
  std::optional<MigReservation> best_chance(const MigJob& job);
  void slice_chances(const MigJob& job, const MigTarget& target, MigTarget::Cut cut, Offer& best);
  void whole_chances(const MigJob& job, const MigTarget& target, Offer& best);
  void close(const MigTarget& target, bool whole);
  [[nodiscard]] std::uint32_t whole_reserved() const;
  [[nodiscard]] bool may_drain(std::uint32_t table) const;
  [[nodiscard]] std::uint32_t most_reserved(std::uint32_t gpus) const {
    return std::max<std::uint32_t>(1, gpus * policy_.reserved_part / 100);
  }
  void hold(const MigReservation& r);
  void drop(const MigReservation& r);
  void list_switches();

  const MigView& view_;
  const MigPolicy& policy_;
  MigBoard board_;
  std::vector<MigTarget> targets_;  // by want
  std::vector<std::uint32_t>
      of_table_;  // number of a target's GPUs, of which a part may be reserved
  std::uint32_t whole_gpus_ = 0;
  std::map<JobId, MigReservation> held_;  // reservations of jobs that have not had their turn
  std::map<Key, Duration> failed_;        // jobs that run at least this long cannot be placed
  static constexpr std::uint32_t kWholeGpus = UINT32_MAX;
  std::set<std::uint32_t> closed_;  // tables (or whole GPUs) in which no job gets a reservation now
  std::set<Key> hopeless_;          // jobs of this kind can get no reservation now
  struct Waiting {
    MigWaiting what;
    std::uint64_t gpus = 0;  // GPUs or slices of all its jobs
  };
  std::map<std::uint32_t, Waiting> waiting_;  // waiting jobs, by want
  MigPlan plan_;
};

MigPlan Planner::run() {
  count_gpus();
  restore_held();
  for (const MigJob& job : view_.jobs) serve(job);
  plan_.changes = board_.changes();
  for (const auto& [want, waiting] : waiting_) plan_.waiting.push_back(waiting.what);
  list_switches();
  return std::move(plan_);
}

void Planner::count_gpus() {
  of_table_.assign(view_.tables.size(), 0);
  for (std::uint32_t g = 0; g < view_.gpus.size(); ++g) {
    const MigBoard::Gpu& gpu = board_.gpu(g);
    if (gpu.slices) ++of_table_[*view_.gpus[g].table];
    if (gpu.whole) ++whole_gpus_;
  }
}

// ---- reservations

void Planner::hold(const MigReservation& r) {
  for (const MigGrant& grant : r.grants)
    if (grant.at)
      board_.reserve(grant.gpu, {r.job, *grant.at, r.at.value_or(kMigNever)});
    else
      board_.reserve_whole(grant.gpu, r.job, r.at.value_or(kMigNever));
}

void Planner::drop(const MigReservation& r) {
  for (const MigGrant& grant : r.grants) board_.unreserve(grant.gpu, r.job);
}

// Makes the reservations of the last plan again. It forgets those of jobs that no longer wait, and
// those on GPUs that can no longer give the place.
void Planner::restore_held() {
  std::map<JobId, const MigJob*> jobs;
  if (!view_.held.empty())
    for (const MigJob& job : view_.jobs) jobs.emplace(job.job, &job);
  for (const MigReservation& r : view_.held) {
    const auto job = jobs.find(r.job);
    bool valid = job != jobs.end() && job->second->count == r.grants.size();
    for (const MigGrant& grant : r.grants) {
      if (!valid) break;
      valid = grant.gpu < view_.gpus.size() && targets_[job->second->want].has(grant.gpu);
      if (!valid) break;
      const MigBoard::Gpu& gpu = board_.gpu(grant.gpu);
      valid = grant.at ? gpu.slices && *grant.at < board_.table(grant.gpu).placements().size()
                       : gpu.whole && !gpu.whole_from;
      if (valid && grant.at)
        valid = std::any_of(targets_[job->second->want].cuts.begin(),
                            targets_[job->second->want].cuts.end(), [&](MigTarget::Cut c) {
                              return view_.gpus[grant.gpu].table == c.table &&
                                     board_.table(grant.gpu).placements()[*grant.at].profile ==
                                         c.profile;
                            });
    }
    if (!valid || !held_.emplace(r.job, r).second) continue;
    hold(r);
  }
}

// True if more GPUs may be reserved: those with reservations are still a small part.
bool Planner::may_drain(std::uint32_t table) const {
  std::uint32_t drained = 0;
  for (const std::uint32_t d : board_.drained()) drained += view_.gpus[d].table == table ? 1 : 0;
  return drained < most_reserved(of_table_[table]);
}

void Planner::slice_chances(const MigJob& job, const MigTarget& target, MigTarget::Cut cut,
                            Offer& best) {
  if (closed_.contains(cut.table)) return;
  const bool drain = may_drain(cut.table);
  for (const MigBoard::Node& node : board_.nodes()) {
    std::vector<std::uint64_t> also(node.count, 0);
    Offer offer{{}, view_.now, 0};
    while (offer.grants.size() < job.count) {
      std::optional<MigBoard::Chance> first;
      for (std::uint32_t i = 0; i < node.count; ++i) {
        const std::uint32_t g = node.first + i;
        if (view_.gpus[g].table != cut.table || !target.has(g)) continue;
        if (!drain && board_.gpu(g).reserved.empty()) continue;
        ++plan_.attempts;
        const auto c = board_.chance(g, cut.profile, also[i]);
        if (c && (!first || std::tie(c->from, c->in_way) < std::tie(first->from, first->in_way)))
          first = c;
      }
      if (!first) break;
      also[first->gpu - node.first] |= std::uint64_t{1} << first->at;
      offer.grants.push_back({first->gpu, first->at, false});
      offer.from = std::max(offer.from, first->from);
      offer.in_way += first->in_way;
    }
    if (offer.grants.size() == job.count) best.take_better(std::move(offer));
  }
}

std::uint32_t Planner::whole_reserved() const {
  std::uint32_t n = 0;
  for (std::uint32_t g = 0; g < view_.gpus.size(); ++g) n += board_.gpu(g).whole_from ? 1 : 0;
  return n;
}

void Planner::whole_chances(const MigJob& job, const MigTarget& target, Offer& best) {
  if (closed_.contains(kWholeGpus) || whole_reserved() >= most_reserved(whole_gpus_)) return;
  for (const MigBoard::Node& node : board_.nodes()) {
    std::vector<std::pair<Instant, std::uint32_t>> ends;
    for (std::uint32_t g = node.first; g < node.first + node.count; ++g)
      if (board_.gpu(g).whole && !board_.gpu(g).whole_from && target.has(g))
        ends.emplace_back(std::max(board_.gpu(g).whole_until, view_.now), g);
    if (ends.size() < job.count) continue;
    ++plan_.attempts;
    std::sort(ends.begin(), ends.end());
    Offer offer{{}, ends[job.count - 1].first, 0};
    for (std::uint32_t i = 0; i < job.count; ++i)
      offer.grants.push_back({ends[i].second, std::nullopt, false});
    best.take_better(std::move(offer));
  }
}

// A job gets no reservation if others have as many as is allowed. Jobs after it get none either:
// otherwise small jobs would follow each other on the GPUs that are reserved.
void Planner::close(const MigTarget& target, bool whole) {
  if (whole && whole_reserved() >= most_reserved(whole_gpus_)) closed_.insert(kWholeGpus);
  for (const MigTarget::Cut cut : target.cuts)
    if (!may_drain(cut.table)) closed_.insert(cut.table);
}

std::optional<MigReservation> Planner::best_chance(const MigJob& job) {
  const MigTarget& target = targets_[job.want];
  const bool whole = view_.wants[job.want].profile.empty();
  Offer best;
  if (whole) whole_chances(job, target, best);
  if (!whole || job.count == 1)
    for (const MigTarget::Cut cut : target.cuts) slice_chances(job, target, cut, best);
  if (best.grants.empty()) {
    close(target, whole);
    return std::nullopt;
  }
  MigReservation r{job.job, std::move(best.grants), best.from};
  std::sort(r.grants.begin(), r.grants.end(),
            [](const MigGrant& a, const MigGrant& b) { return a.gpu < b.gpu; });
  if (best.from == kMigNever) r.at.reset();
  return r;
}

// ---- jobs

void Planner::serve(const MigJob& job) {
  std::optional<MigReservation> held;
  if (const auto at = held_.find(job.job); at != held_.end()) {
    held = std::move(at->second);
    held_.erase(at);
    drop(*held);
  }
  const Key key{job.want, job.count};
  const Duration limit = job.limit.value_or(kForever);
  const auto failed = failed_.find(key);
  if (held || failed == failed_.end() || limit < failed->second) {
    if (job.count > 0 && job.count <= targets_[job.want].most_now && place(job)) {
      if (held) freed();
      return;
    }
    if (!held) failed_[key] = limit;
  }
  wait(job, std::move(held));
}

bool Planner::place(const MigJob& job) {
  const MigTarget& target = targets_[job.want];
  const bool whole = view_.wants[job.want].profile.empty();
  if (whole && place_whole(job, target)) return true;
  if (whole && job.count > 1) return false;
  for (const MigTarget::Cut cut : target.cuts)
    if (job.count == 1 ? place_one(job, target, cut) : place_many(job, target, cut)) return true;
  return false;
}

// Tries first the GPUs where the job hinders no other: those kept for others, until these need
// them, and those whose partitioning is fixed; then the fullest.
bool Planner::place_one(const MigJob& job, const MigTarget& target, MigTarget::Cut cut) {
  const auto take = [&](std::uint32_t g) {
    ++plan_.attempts;
    const MigBoard::Gpu& gpu = board_.gpu(g);
    const std::uint64_t open = board_.open(g, cut.profile, job.limit, 0);
    const auto at = board_.order(g).start(gpu.busy, open, gpu.idle);
    if (at) start(job, {{g, *at}});
    return at.has_value();
  };
  for (const std::uint32_t g : board_.drained())
    if (view_.gpus[g].table == cut.table && target.has(g) && take(g)) return true;
  const Bits& fixed = board_.fixed_idle(cut.table);
  for (std::size_t w = 0; w < fixed.words(); ++w)
    if (any_in_word(fixed.word(w), w, [&](std::uint32_t g) { return target.has(g) && take(g); }))
      return true;
  return board_.pool(cut.table).any(cut.profile, target.among ? &*target.among : nullptr, take);
}

bool Planner::place_many(const MigJob& job, const MigTarget& target, MigTarget::Cut cut) {
  std::vector<bool> tried(board_.nodes().size(), false);
  const auto node_of = [&](std::uint32_t g) {
    const std::uint32_t n = board_.node_of(g);
    if (tried[n]) return false;
    tried[n] = true;
    ++plan_.attempts;
    return try_node(job, n, target, cut);
  };
  const Bits& fixed = board_.fixed_idle(cut.table);
  for (std::size_t w = 0; w < fixed.words(); ++w)
    if (any_in_word(fixed.word(w), w, [&](std::uint32_t g) { return target.has(g) && node_of(g); }))
      return true;
  return board_.pool(cut.table).any(cut.profile, target.among ? &*target.among : nullptr, node_of);
}

// Places all slices of the job on this node. If that is impossible with reserved GPUs, because the
// job would stay there too long, it tries the others.
bool Planner::try_node(const MigJob& job, std::uint32_t node, const MigTarget& target,
                       MigTarget::Cut cut) {
  for (const bool reserved_too : {true, false}) {
    const MigBoard::Places places = choose(job, board_.nodes()[node], target, cut, reserved_too);
    if (places.empty()) continue;
    const Instant end = board_.end_of(places, job.limit);
    std::map<std::uint32_t, std::uint64_t> by_gpu;
    for (const auto& [g, at] : places) by_gpu[g] |= std::uint64_t{1} << at;
    if (!std::all_of(by_gpu.begin(), by_gpu.end(), [&](const auto& on) {
          return board_.spares_reserved(on.first, on.second, end);
        }))
      continue;
    start(job, places);
    return true;
  }
  return false;
}

// Chooses places one after the other, as for single slices; returns none if not all slices have a
// place.
MigBoard::Places Planner::choose(const MigJob& job, const MigBoard::Node& node,
                                 const MigTarget& target, MigTarget::Cut cut,
                                 bool reserved_too) const {
  const MigTable& table = *view_.tables[cut.table];
  struct Try {
    std::uint32_t gpu = 0;
    MigState state = 0;
    std::uint64_t also = 0;
  };
  std::vector<Try> tries;
  for (std::uint32_t g = node.first; g < node.first + node.count; ++g)
    if (board_.gpu(g).slices && view_.gpus[g].table == cut.table && target.has(g) &&
        (reserved_too || board_.gpu(g).reserved.empty()))
      tries.push_back({g, board_.gpu(g).busy, 0});
  MigBoard::Places places;
  while (places.size() < job.count) {
    Try* best = nullptr;
    std::uint64_t best_open = 0;
    int best_rank = 0;
    for (Try& t : tries) {
      const std::uint64_t open = board_.open(t.gpu, cut.profile, job.limit, t.also);
      if (open == 0) continue;
      const bool first = view_.gpus[t.gpu].fixed || !board_.gpu(t.gpu).reserved.empty();
      const int rank = first ? -1 : board_.order(t.gpu).rank(t.state, cut.profile);
      if (best != nullptr && rank >= best_rank) continue;
      best = &t;
      best_open = open;
      best_rank = rank;
    }
    if (best == nullptr) return {};
    const auto at =
        board_.order(best->gpu).start(best->state, best_open, board_.gpu(best->gpu).idle);
    places.emplace_back(best->gpu, *at);
    best->state = table.with(best->state, *at);
    best->also |= std::uint64_t{1} << *at;
  }
  return places;
}

// Takes the node with the fewest free GPUs that suffice; reserved GPUs may be used until they are
// needed.
bool Planner::place_whole(const MigJob& job, const MigTarget& target) {
  std::vector<std::uint32_t> best, free;
  for (const MigBoard::Node& node : board_.nodes()) {
    free.clear();
    for (std::uint32_t g = node.first; g < node.first + node.count; ++g) {
      const MigBoard::Gpu& gpu = board_.gpu(g);
      const bool kept = gpu.whole_from && (*gpu.whole_from == kMigNever || !job.limit ||
                                           view_.now + *job.limit > *gpu.whole_from);
      if (gpu.whole && gpu.whole_until == Instant{} && target.has(g) && !kept) free.push_back(g);
    }
    if (free.size() >= job.count && (best.empty() || free.size() < best.size())) best = free;
  }
  ++plan_.attempts;
  if (best.empty()) return false;
  best.resize(job.count);
  MigStart& s = plan_.starts.emplace_back(MigStart{job.job, {}, 0});
  for (const std::uint32_t g : best) {
    board_.claim_whole(g, job.limit);
    s.grants.push_back({g, std::nullopt, false});
  }
  return true;
}

void Planner::start(const MigJob& job, const MigBoard::Places& places) {
  MigStart s{job.job, {}, board_.turn_of(places)};
  const Instant end = board_.end_of(places, job.limit);
  for (const auto& [g, at] : places) s.grants.push_back(board_.claim(g, at, end));
  std::sort(s.grants.begin(), s.grants.end(), [](const MigGrant& a, const MigGrant& b) {
    return std::tie(a.gpu, a.at) < std::tie(b.gpu, b.at);
  });
  plan_.starts.push_back(std::move(s));
}

void Planner::wait(const MigJob& job, std::optional<MigReservation> held) {
  const MigTarget& target = targets_[job.want];
  const Key key{job.want, job.count};
  const bool possible = job.count > 0 && job.count <= target.most_now;
  std::optional<MigReservation> r;
  if (possible &&
      (held || (plan_.reservations.size() < policy_.reservations && !hopeless_.contains(key)))) {
    r = best_chance(job);
    if (!r) hopeless_.insert(key);
    const auto when = [](const MigReservation& x) { return x.at.value_or(kMigNever); };
    if (held && (!r || when(*r) >= when(*held)))
      r = std::move(held);
    else if (held)
      freed();
  }
  Waiting& w = waiting_[job.want];
  if (w.what.jobs++ == 0) {
    w.what = {job.want, 1, job.job, MigWhy::in_use};
    if (r) w.what.why = MigWhy::reserved;
    if (!possible) w.what.why = job.count <= target.most_ever ? MigWhy::mode : MigWhy::nowhere;
  }
  w.gpus += job.count;
  if (!r) return;
  hold(*r);
  plan_.reservations.push_back(std::move(*r));
}

// A held place is free again: jobs that failed before may find one now, or in the next plan.
void Planner::freed() {
  failed_.clear();
  hopeless_.clear();
  closed_.clear();
}

// ---- MIG mode

// Lists empty GPUs in the other mode, without planned changes, that waiting jobs could use.
void Planner::list_switches() {
  std::set<std::uint32_t> listed;
  for (const auto& [want, waiting] : waiting_) {
    if (waiting.what.why == MigWhy::nowhere) continue;
    const MigTarget& target = targets_[want];
    const bool whole = view_.wants[want].profile.empty();
    std::uint64_t needed = waiting.gpus;
    for (std::uint32_t g = 0; g < view_.gpus.size() && needed > 0; ++g) {
      if (plan_.switches.size() >= policy_.mode_switches) return;
      const MigGpuView& v = view_.gpus[g];
      const MigBoard::Gpu& gpu = board_.gpu(g);
      const bool idle = gpu.used.empty() && gpu.reserved.empty() && !gpu.whole_from &&
                        gpu.whole_until == Instant{};
      if (!v.healthy || v.fixed || v.changing || v.mig != whole || !idle || !target.has(g) ||
          listed.contains(g))
        continue;
      std::uint64_t gives = whole ? 1 : 0;
      if (!whole)
        for (const MigTarget::Cut cut : target.cuts)
          if (v.table == cut.table) gives = view_.tables[cut.table]->fits(0, cut.profile);
      if (gives == 0) continue;
      listed.insert(g);
      plan_.switches.push_back({g, !whole, want});
      needed -= std::min(needed, gives);
    }
  }
}

}  // namespace

MigPlan plan_mig(const MigView& view, const MigPolicy& policy) {
  return Planner(view, policy).run();
}

}  // namespace gantry::sched
