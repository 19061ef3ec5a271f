// See view.h.
#include "tests/sim/check/view.h"

#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "ctld/sched/change.h"

namespace gantry::sim {

void View::apply(const sched::Change& change) {
  std::visit([this](const auto& c) { take(c); }, change);
}

void View::take(const sched::NodeChanged& c) {
  nodes_[c.node] = c;
}
void View::take(const sched::PartitionChanged& c) {
  partitions_[c.partition] = c;
}
void View::take(const sched::JobQueued& c) {
  queued_[c.job] = c;
}
void View::take(const sched::JobsQueued& c) {
  for (const sched::JobsQueued::Job& j : c.jobs)
    queued_[j.job] = {j.job,  c.key,   j.priority, j.queued_since, j.startable,
                      j.rank, j.share, j.raised,   j.own_priority, j.namesake};
}
void View::take(const sched::JobUnqueued& c) {
  queued_.erase(c.job);
}
void View::take(const sched::JobPlaced& c) {
  placed_[c.job] = c;
}

void View::take(const sched::JobLimitChanged& c) {
  if (const auto it = placed_.find(c.job); it != placed_.end()) it->second.ends_by = c.ends_by;
}

void View::take(const sched::NodeReleased& c) {
  const auto it = placed_.find(c.job);
  if (it == placed_.end()) return;
  std::erase_if(it->second.grants, [&](const auto& g) { return g.node == c.node; });
  if (it->second.grants.empty()) placed_.erase(it);
}

void View::take(const sched::TenancyChanged& c) {
  tenancy_ = c.tenancy;
}
void View::take(const sched::ShareChanged& c) {
  shares_[c.share] = c;
}
void View::take(const sched::NamesakesApart& c) {
  apart_ = c;
}
void View::take(const sched::ReservationChanged& c) {
  if (c.removed)
    reservations_.erase(c.name);
  else
    reservations_[c.name] = c;
}

std::string View::text() const {
  std::string out;
  if (tenancy_ && tenancy_->revision > 0)
    out +=
        fmt::format("tenancy {} with {} quota nodes, {} flavors, {} classes\n", tenancy_->revision,
                    tenancy_->nodes.size(), tenancy_->flavors.size(), tenancy_->classes.size());
  for (const auto& [id, s] : shares_)
    out += fmt::format("share {} of {} shares {} usage {} rate {} at {}\n", id.value(),
                       s.parent ? std::int64_t{s.parent->value()} : -1, s.shares, s.usage.amount,
                       s.usage.rate, s.usage.at.us);
  for (const auto& [name, r] : reservations_)
    out += fmt::format("reservation {} of {} nodes from {} until {}\n", name, r.nodes.size(),
                       r.from.us, r.until.us);
  for (const auto& [a, b] : apart_.pairs) out += fmt::format("apart {} {}\n", a, b);
  for (const auto& [id, n] : nodes_)
    out += fmt::format(
        "node {} {} {} cpus {} mem {} sockets {} gpus {} {} of {} {} flavor {} domains {} taints "
        "{}{}{}\n",
        id.value(), n.name, n.available ? "available" : "not available", n.cpus.size(), n.memory,
        n.sockets, n.gpus, n.gpu_model, n.devices.size(), n.gpu_sharing ? "shared" : "alone",
        n.flavor, fmt::join(n.domains, ","), fmt::join(n.taints, ","),
        n.gpu_jobs_only ? " gpu jobs" : "", n.spread ? " spread" : "");
  for (const auto& [id, p] : partitions_)
    out += fmt::format("partition {} {} {} {} quota {}\n", id.value(), p.name, p.up ? "up" : "down",
                       p.nodes.size(), p.quota_node);
  for (const auto& [id, q] : queued_)
    out += fmt::format(
        "queued {} partition {} priority {} rank {} since {} startable {} limit {} "
        "class {} share {}\n",
        id.value(), q.key.partition.value(), q.priority, q.rank, q.queued_since.us, q.startable,
        q.key.time_limit ? q.key.time_limit->us : -1, q.key.priority_class,
        q.share ? std::int64_t{q.share->value()} : -1);
  for (const auto& [id, p] : placed_) {
    out +=
        fmt::format("placed {} of {} class {} rank {} preempted {} since {} until {}{}{}{}",
                    id.value(), p.partition.value(), p.priority_class, p.rank, p.preemptions,
                    p.started.us, p.ends_by ? p.ends_by->us : -1, p.exclusive ? " exclusive" : "",
                    p.leaving ? " leaving" : "", p.requeue ? "" : " once");
    for (const sched::NodeGrant& g : p.grants) {
      out += fmt::format(" {}:", g.node.value());
      for (const auto cpu : g.cpus) out += fmt::format("{},", cpu);
      for (const GpuGrant& d : g.devices)
        out += fmt::format(" gpu {}:{}@{}:{}:{}", d.gpu, d.profile ? std::int64_t{*d.profile} : -1,
                           d.start, d.thousandths.value(), d.of_slice.value());
    }
    out += "\n";
  }
  return out;
}

}  // namespace gantry::sim
