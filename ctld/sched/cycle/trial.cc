#include "ctld/sched/cycle/trial.h"

#include "ctld/sched/place/place.h"

namespace gantry::sched {

Trial::~Trial() {
  View& v = d_.view;
  Memory& memory = d_.left.memory;
  for (auto t = taken_.rbegin(); t != taken_.rend(); ++t) {
    v.grid.give(t->node, t->room, t->things());
    memory.touch_node(t->node);
  }
  v.grid.slices().drop_holds();
  v.running.forget_guests();
  for (const Asked& a : asked_)
    for (const Use& use : v.running[*v.running.find(a.victim)].uses) memory.touch_node(use.node);
  while (!asked_.empty()) take_back_asking();
}

std::vector<NodeGrant> Trial::take(const Waiting& w, const JobClass& c,
                                   const std::vector<Share>& shares,
                                   std::optional<Duration> limit) {
  View& v = d_.view;
  const Instant end = Timeline::end_of(d_.now, limit);
  auto grants = make_grants(v.grid, c, shares, end);
  std::optional<Instant> until;
  if (limit) until = end;
  const std::uint32_t user = v.queue.line(w.line).share;
  const JobShape& shape = c.key.shape;
  for (const NodeGrant& g : grants) {
    Taken taken{g.node.value(), {g.memory, g.scratch, 0, static_cast<std::int32_t>(g.gpus)},
                g.cpus,         g.devices,
                g.gres,         c.key.partition,
                until};
    taken.room.slices = c.demand.slices.narrow<std::int32_t>();
    taken.room.gpu_parts = thousandths_of_gpu(c.demand.gpu_share).narrow<std::int32_t>();
    taken.room.gres = c.demand.gres;
    v.grid.take(taken.node, taken.room, taken.things());
    v.grid.slices().lasts(taken.node, taken.devices, until.value_or(kMigNever));
    v.running.add_guest(
        {taken.node,
         {c.key.partition, user == kNoShare ? std::nullopt : std::optional(ShareId{user})},
         shape.sharing,
         shape.anti_affinity,
         w.namesake});
    taken_.push_back(std::move(taken));
  }
  v.timeline.started(c.demand, shares, until);
  return grants;
}

void Trial::ask_to_leave(JobId victim, Instant by) {
  View& v = d_.view;
  const auto limit = v.charges.ends_by(victim);
  const bool sooner = !limit || by < *limit;
  asked_.push_back({victim, limit, by});
  v.running.set_leaving(victim, true);
  if (!sooner) return;
  v.timeline.moved(v.running[*v.running.find(victim)], by, limit);
  v.running.set_end(victim, by);
}

void Trial::take_back_asking() {
  View& v = d_.view;
  const Asked& a = asked_.back();
  v.running.set_leaving(a.victim, false);
  if (!a.limit || a.by < *a.limit) {
    v.timeline.moved(v.running[*v.running.find(a.victim)], a.limit.value_or(Timeline::kNever),
                     a.by);
    v.running.set_end(a.victim, a.limit);
  }
  asked_.pop_back();
}

}  // namespace gantry::sched
