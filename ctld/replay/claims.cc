#include "ctld/replay/claims.h"

#include <algorithm>

#include "ctld/replay/places.h"
#include "ctld/sched/change.h"

namespace gantry::replay {
namespace {

template <class Node>
std::int64_t units_of(const Moment& m, const Node& n) {
  return m.cluster.unit == Resource::gpu ? std::int64_t{n.gpus}
                                         : static_cast<std::int64_t>(n.cpus.size());
}

struct Claims {  // reservations in force
  std::vector<sched::Reservation>
      oldest;                      // reservations of jobs that have waited for oldest_first_after
  std::set<std::uint32_t> served;  // jobs of the tenant that have claimed nodes
  std::int64_t units = 0;          // sum over the jobs in `served`
  bool late = false;               // one of these jobs starts later than the deadline
};

// Collects the reservations in force. Subtracts from `room`, by node, what jobs have claimed.
Claims claims_of(const Moment& m, std::size_t tenant, std::vector<std::int64_t>& room) {
  Claims claims;
  for (sched::Reservation& p : m.replica.reservations()) {
    const auto i = static_cast<std::uint32_t>(p.job.value() - 1);
    const std::int64_t units = m.outcome.jobs[i].units;
    if (p.claimed) {
      if (m.outcome.jobs[i].tenant == tenant) {
        if (p.start > m.outcome.end + m.deadline) {
          claims.late = true;
          return claims;
        }
        claims.units += units;
        claims.served.insert(i);
      }
      for (const sched::Share& s : p.shares)
        room[s.node] -= units / static_cast<std::int64_t>(p.shares.size());
    } else if (p.aged) {
      claims.oldest.push_back(std::move(p));
    }
  }
  return claims;
}

// Subtracts from `room` what jobs hold, and returns the parts that may be preempted. Jobs that are
// leaving count as gone.
std::vector<HeldUnits> held_units(const Moment& m, std::vector<std::int64_t>& room,
                                  std::vector<std::int64_t>& excess) {
  std::vector<HeldUnits> held;
  for (const std::uint32_t i : m.running) {
    const Live& live = m.live[i];
    const JobResult& job = m.outcome.jobs[i];
    if (live.phase == Phase::leaving) {
      excess[job.tenant] -= job.units;
      continue;
    }
    const auto& cls = m.site.compiled.view->classes[live.key.priority_class];
    const bool may_go = cls.preemptible && m.outcome.end - live.started >= cls.min_run_time;
    for (const sched::NodeGrant& g : live.grants) {
      room[g.node.value()] -= units_of(m, g);
      if (may_go) held.push_back({g.node.value(), job.tenant, units_of(m, g), job.units, i});
    }
  }
  return held;
}

// True if jobs can be preempted so that this job fits. Nodes on which it would delay the
// reservation of a job that has waited for oldest_first_after are left out, because no claim takes
// those.
bool could_run(const Moment& m, std::uint32_t i, std::vector<std::int64_t> room,
               std::vector<HeldUnits> held, const std::vector<std::int64_t>& excess,
               const std::vector<sched::Reservation>& oldest) {
  const Instant until =
      sched::Timeline::end_of(m.outcome.end + m.deadline, m.live[i].key.time_limit);
  std::set<std::uint32_t> closed;
  for (const sched::Reservation& p : oldest)
    if (p.start < until && p.job.value() != i + 1)
      for (const sched::Share& s : p.shares) closed.insert(s.node);
  for (const std::uint32_t n : closed) room[n] = 0;
  std::erase_if(held, [&](const HeldUnits& h) { return closed.contains(h.node); });
  const std::uint32_t nodes = m.live[i].key.shape.min_nodes;
  return could_have_place(room, held, excess, nodes, m.outcome.jobs[i].units / nodes);
}

}  // namespace

bool claim_has_place(const Moment& m, std::size_t tenant) {
  if (!m.site.switches.preemption) return true;
  std::vector<std::int64_t> room, excess;
  for (const sched::NodeChanged& node : m.site.nodes) room.push_back(units_of(m, node));
  for (std::size_t t = 0; t < m.outcome.tenants.size(); ++t) excess.push_back(m.meter.excess(t));
  const Claims claims = claims_of(m, tenant, room);
  if (claims.late) return true;
  const std::vector<HeldUnits> held = held_units(m, room, excess);
  return std::any_of(m.waiting.begin(), m.waiting.end(), [&](std::uint32_t i) {
    const JobResult& job = m.outcome.jobs[i];
    if (job.tenant != tenant || claims.served.contains(i)) return false;
    if (claims.units + job.units + excess[tenant] > 0) return false;
    return could_run(m, i, room, held, excess, claims.oldest);
  });
}

}  // namespace gantry::replay
