#include "ctld/sched/cycle/slice_plan.h"

#include <bit>

#include "ctld/sched/place/place.h"

namespace gantry::sched {
namespace {

constexpr std::size_t kJobsPerLine = 16;  // jobs of a line about which the planner is asked
constexpr std::size_t kLines = 256;
// The planner of slices knows only jobs on one node. A job on several nodes is presented as several
// jobs, each of which may use a part of the nodes, so that no two get the same; for more nodes than
// this, no places are kept.
constexpr std::uint32_t kMostParts = 8;

JobId planned_id(JobId job, std::uint32_t part) {
  return JobId{job.value() * kMostParts + part};
}

// A slice whose parts belong to jobs is in use until the last of these jobs ends.
void extend(std::vector<MigUsed>& used, const MigUsed& by) {
  for (MigUsed& u : used)
    if (u.at == by.at) {
      u.until = std::max(u.until, by.until);
      return;
    }
  used.push_back(by);
}

void extend(std::vector<MigSliceView>& slices, MigPlacementId at, const MigUse& by) {
  for (MigSliceView& s : slices)
    if (s.at == at && s.use) {
      s.use->until = s.use->until && by.until ? std::optional(std::max(*s.use->until, *by.until))
                                              : std::nullopt;
      return;
    }
  slices.push_back({at, by, false});
}

}  // namespace

// The slices of a GPU that are in use, and until when.
std::vector<MigUsed> SlicePlan::used_on(std::uint32_t node, std::size_t gpu) const {
  const MigNode& mig = d_.view.grid.slices().on(node);
  const std::uint64_t layout = mig.gpus()[gpu].layout;
  std::vector<MigUsed> used;
  const auto add = [&](const std::vector<GpuGrant>& devices, std::optional<Instant> until) {
    for (const GpuGrant& d : devices)
      if (const auto at = mig.find(d); at && at->first == gpu && (layout >> at->second & 1) != 0)
        extend(used,
               {at->second, until ? std::max(*until, d_.now + microseconds(1)) : kMigNever, false});
  };
  for (const std::uint32_t slot : d_.view.running.on_node(node)) {
    const Placement& p = d_.view.running[slot];
    add(p.use_of(node).devices, p.ends_by);
  }
  for (const Trial::Taken& t : trial_.taken())
    if (t.node == node) add(t.devices, t.until);
  return used;
}

SlicePlan::SlicePlan(Draft& draft, const Trial& trial) : d_(draft), trial_(trial) {
  d_.view.grid.slices().settle();
  for (const MigKept& kept : d_.left.kept_slices) {
    const auto slot = d_.view.queue.find(kept.job);
    if (!slot || kept.node >= d_.view.grid.size()) continue;
    const auto at = d_.view.grid.slices().on(kept.node).find({kept.gpu, kept.profile, kept.start});
    if (!at) continue;
    const std::uint32_t owner = d_.view.queue.line(d_.view.queue[*slot].line).class_index;
    d_.view.grid.slices().hold(kept.node, at->first, {kept.job, at->second, kept.from, owner},
                               used_on(kept.node, at->first));
  }
}

void SlicePlan::note(const LineTurn& turn) {
  const JobShape& shape = d_.cls(turn).key.shape;
  if (shape.gpu_slice.empty() || shape.min_nodes > kMostParts) return;
  if (waiters_.size() < kLines) waiters_.push_back(turn);
}

bool SlicePlan::waits_for_slices(const JobClass& c) const {
  if (c.key.shape.gpu_slice.empty()) return false;
  if (c.demand.min_nodes > 1) return true;
  const Bits& nodes = d_.view.eligible.nodes_of(c);
  const auto has = [&](std::uint32_t n) {
    return nodes.test(n) && d_.view.grid.available(n) &&
           has_devices(d_.view.grid, c, n, d_.end_of(c));
  };
  if (c.key.shape.gpu_share > 0 && d_.view.grid.slices().any_with_parts(has)) return false;
  return !d_.view.grid.slices().fleet().any(c.key.shape.gpu_slice, has);
}

// Adds every GPU in MIG mode that may take work to the view; `places` gets where each is.
MigView SlicePlan::view_slices(std::vector<std::pair<std::uint32_t, std::size_t>>& places) const {
  MigView view;
  view.now = d_.now;
  const MigShapes& shapes = d_.view.grid.slices().shapes();
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    view.tables.push_back(&shapes[s].table);
    view.asked.emplace_back(shapes[s].table.profiles().size(), 0);
  }
  std::map<std::uint32_t, std::vector<const Trial::Taken*>> taken;
  for (const Trial::Taken& t : trial_.taken())
    if (!t.devices.empty()) taken[t.node].push_back(&t);
  for (std::uint32_t n = 0; n < d_.view.grid.size(); ++n) {
    const MigNode& mig = d_.view.grid.slices().on(n);
    if (mig.gpus().empty() || !d_.view.grid.available(n)) continue;
    const std::size_t first = view.gpus.size();
    for (std::size_t i = 0; i < mig.gpus().size(); ++i) {
      const MigNode::Gpu& gpu = mig.gpus()[i];
      MigGpuView& v = view.gpus.emplace_back();
      v.node = n;
      v.index = gpu.index;
      v.table = gpu.shape->index;
      v.mig = true;
      v.fixed = gpu.by_hand;
      places.emplace_back(n, i);
      for (std::uint64_t left = gpu.existing & ~gpu.layout; left != 0; left &= left - 1)
        v.slices.push_back({static_cast<MigPlacementId>(std::countr_zero(left)), {}, false});
    }
    const auto use = [&](const std::vector<GpuGrant>& devices, const MigUse& by) {
      for (const GpuGrant& d : devices)
        if (const auto at = mig.find(d);
            at && (mig.gpus()[at->first].layout >> at->second & 1) != 0)
          extend(view.gpus[first + at->first].slices, at->second, by);
    };
    for (const std::uint32_t slot : d_.view.running.on_node(n)) {
      const Placement& p = d_.view.running[slot];
      use(p.use_of(n).devices, {p.job, p.ends_by});
    }
    if (const auto started = taken.find(n); started != taken.end())
      for (const Trial::Taken* t : started->second) use(t->devices, {JobId{}, t->until});
  }
  return view;
}

// Adds one want for each node that a job of the class needs.
void SlicePlan::add_wants(const JobClass& c, MigView& view) const {
  const std::uint32_t parts = c.demand.min_nodes;
  MigWant want;
  want.profile = c.key.shape.gpu_slice;
  for (const std::string& model : c.key.shape.gpu_models)
    for (std::uint32_t t = 0; t < view.tables.size(); ++t)
      if (view.tables[t]->model() == model) want.tables.push_back(t);
  const std::size_t first = view.wants.size();
  view.wants.resize(first + parts, want);
  const Bits& nodes = d_.view.eligible.nodes_of(c);
  std::size_t turn = 0;
  for (std::size_t w = 0; w < nodes.words(); ++w)
    any_in_word(nodes.word(w), w, [&](std::uint32_t n) {
      if (tasks_fitting(c.demand, d_.view.grid.room(n), d_.view.grid.room(n)) > 0)
        view.wants[first + turn++ % parts].nodes.push_back(n);
      return false;
    });
  for (std::size_t i = first; i < view.wants.size(); ++i)
    if (view.wants[i].nodes.empty())
      view.wants[i].nodes.push_back(kNoIndex);  // empty means any node
}

// Adds the first jobs of each waiting line, taking one job of each line in turn.
void SlicePlan::ask(MigView& view) {
  std::map<std::uint32_t, std::uint32_t> want_of;  // by class
  std::vector<OrderedSlots::Cursor> next;
  for (const LineTurn& turn : waiters_) {
    next.push_back(*turn.head);
    const JobClass& c = d_.cls(turn);
    const auto [at, made] =
        want_of.try_emplace(turn.class_index, static_cast<std::uint32_t>(view.wants.size()));
    if (!made) continue;
    add_wants(c, view);
  }
  for (std::size_t round = 0; round < kJobsPerLine; ++round)
    for (std::size_t i = 0; i < waiters_.size(); ++i) {
      const LineTurn& turn = waiters_[i];
      if (d_.jobs(turn).at_end(next[i])) continue;
      const JobClass& c = d_.cls(turn);
      const JobShape& shape = c.key.shape;
      // Jobs whose parts share one slice want one place, so only the first of them asks.
      const bool shares =
          shape.gpu_share > 0 && round % (kWholeDevice.value() / shape.gpu_share) != 0;
      for (std::uint32_t part = 0; !shares && part < c.demand.min_nodes; ++part)
        view.jobs.push_back({planned_id(d_.job(turn, next[i]).job, part),
                             want_of.at(turn.class_index) + part, std::max(1u, shape.gpus_per_node),
                             c.key.least_limit()});
      next[i] = d_.jobs(turn).next(next[i]);
    }
}

void SlicePlan::plan() {
  if (!d_.everything) return;
  if (waiters_.empty()) return d_.left.kept_slices.clear();
  std::vector<std::pair<std::uint32_t, std::size_t>> places;
  MigView view = view_slices(places);
  ask(view);
  // The places kept so far, with GPUs as they are numbered now.
  std::map<JobId, MigReservation> held;
  for (const MigKept& kept : d_.left.kept_slices) {
    if (kept.node >= d_.view.grid.size()) continue;
    const auto at = d_.view.grid.slices().on(kept.node).find({kept.gpu, kept.profile, kept.start});
    const auto gpu = at ? std::find(places.begin(), places.end(), std::pair{kept.node, at->first})
                        : places.end();
    if (gpu == places.end()) continue;
    MigReservation& r = held[planned_id(kept.job, kept.part)];
    r.job = planned_id(kept.job, kept.part);
    if (kept.from < kMigNever) r.at = kept.from;
    r.grants.push_back({static_cast<std::uint32_t>(gpu - places.begin()), at->second, false});
  }
  for (const auto& [job, r] : held) view.held.push_back(r);
  const MigPlan plan = plan_mig(view, {});
  d_.plan.stats.attempts += plan.attempts / 64;
  d_.left.kept_slices.clear();
  const auto keep = [&](JobId job, const std::vector<MigGrant>& grants, Instant from) {
    for (const MigGrant& g : grants) {
      if (!g.at) continue;
      const auto [node, i] = places[g.gpu];
      const MigNode::Gpu& gpu = d_.view.grid.slices().on(node).gpus()[i];
      const MigPlacement& at = gpu.shape->table.placements()[*g.at];
      d_.left.kept_slices.push_back({JobId{job.value() / kMostParts},
                                     static_cast<std::uint32_t>(job.value() % kMostParts), node,
                                     gpu.index, gpu.shape->table.profiles()[at.profile].id,
                                     static_cast<std::uint16_t>(at.start), from});
    }
  };
  for (const MigReservation& r : plan.reservations) keep(r.job, r.grants, r.at.value_or(kMigNever));
  // The job's place is free, but the job waits for something else, so its place stays kept.
  for (const MigStart& s : plan.starts)
    if (held.contains(s.job)) keep(s.job, s.grants, d_.now);
}

std::optional<Verdict> SlicePlan::explain(JobId job) const {
  for (const MigKept& kept : d_.left.kept_slices)
    if (kept.job == job && kept.from > d_.now)
      return Verdict{Reason::mig_repartition, kept.from < kMigNever ? kept.from.us : 0, kept.gpu,
                     d_.view.grid.node(kept.node).name};
  return std::nullopt;
}

}  // namespace gantry::sched
