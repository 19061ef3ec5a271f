#include "ctld/sched/nodes/running.h"

#include <algorithm>

#include <fmt/core.h>

namespace gantry::sched {
namespace {

bool by_node(const Use& use, std::uint32_t node) {
  return use.node < node;
}

}  // namespace

const Use& Placement::use_of(std::uint32_t node) const {
  return *std::lower_bound(uses.begin(), uses.end(), node, by_node);
}

// An exclusive job holds every core of its nodes, also cores that a node gained since its start.
void Running::measure(Use& use, const Placement& p, const Grid& grid) const {
  use.room.slices = grid.slices().on(use.node).compute_of(use.devices).narrow<std::int32_t>();
  // A GPU that was drained or has failed since then does not count as capacity of the node.
  use.room.gpus = static_cast<std::int32_t>(use.granted_gpus);
  use.room.gpu_parts = {};
  for (const GpuGrant& d : use.devices) {
    const bool here = grid.node(use.node).has_gpu(d.gpu);
    if (d.whole() && !here) --use.room.gpus;
    if (is_part(d) && here) use.room.gpu_parts += d.thousandths;
  }
  use.room.gres = grid.amounts_of(use.gres);
  if (p.exclusive) use.cpus = grid.node(use.node).cpus;
  use.room.cpus = grid.node(use.node).count_known(use.cpus);
}

// The nodes were of one flavor when the job started; if they are of several now, the flavor is 0.
void Running::note_flavor(Placement& p, const Grid& grid) {
  p.flavor = p.uses.empty() ? 0 : grid.node(p.uses.front().node).flavor;
  for (const Use& use : p.uses)
    if (grid.node(use.node).flavor != p.flavor) p.flavor = 0;
}

void Running::note_held(std::uint32_t slot) {
  Placement& p = pool_[slot];
  p.held = {};
  for (const Use& use : p.uses) {
    p.held.add<Resource::cpu>(thousandths_of(Cores{static_cast<std::int64_t>(use.granted_cpus)}));
    p.held.add<Resource::memory>(ByteCount{use.room.memory});
    p.held.add<Resource::gpu>(thousandths_of(Gpus{use.granted_gpus}));
    for (const GpuGrant& d : use.devices)
      if (!d.whole()) p.held.add<Resource::gpu>(d.thousandths);
    p.held.add<Resource::scratch>(ByteCount{use.room.scratch});
    p.held.add<Resource::io>(ByteRate{use.io});
    p.held.add<Resource::net>(BitRate{use.net});
  }
  if (end_of_.size() < pool_.size()) end_of_.resize(pool_.size());
  End& end = end_of_[slot];
  end = {p.ends_by.value_or(Instant{}), 0, static_cast<std::uint32_t>(p.uses.size()), {}};
  if (p.uses.size() != 1) return;
  end.node = p.uses.front().node;
  end.room = p.uses.front().room;
}

void Running::place(const JobPlaced& change, Grid& grid) {
  if (const auto it = by_job_.find(change.job); it != by_job_.end()) {
    const Placement old = pool_[it->second];
    for (const Use& use : old.uses) release(change.job, NodeId{use.node}, grid);
  }
  if (change.grants.empty()) return;
  std::uint32_t slot = static_cast<std::uint32_t>(pool_.size());
  if (free_.empty()) {
    pool_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  Placement& p = pool_[slot];
  p.job = change.job;
  p.ends_by = change.ends_by;
  p.exclusive = change.exclusive;
  p.leaving = change.leaving;
  p.requeue = change.requeue;
  p.sharing = change.sharing;
  p.partition = change.partition;
  p.priority_class = change.priority_class;
  p.share = change.share;
  p.started = change.started;
  p.checkpoint = change.checkpoint;
  p.preemptions = change.preemptions;
  p.anti_affinity = change.anti_affinity;
  p.namesake = change.namesake;
  p.uses.reserve(change.grants.size());
  for (const NodeGrant& g : change.grants)
    p.uses.push_back({g.node.value(),
                      {g.memory, g.scratch},
                      g.cpus,
                      g.devices,
                      g.gres,
                      g.cpus.size(),
                      g.gpus,
                      g.io,
                      g.net});
  std::sort(p.uses.begin(), p.uses.end(),
            [](const Use& a, const Use& b) { return a.node < b.node; });
  for (Use& use : p.uses) {
    grid.grow(std::size_t{use.node} + 1);
    if (on_node_.size() <= use.node) on_node_.resize(std::size_t{use.node} + 1);
    measure(use, p, grid);
    grid.take(use.node, use.room, things_of(use, p));
    on_node_[use.node].push_back(slot);
  }
  note_held(slot);
  note_flavor(p, grid);
  by_job_.emplace(change.job, slot);
  join_group(slot);
  if (!p.anti_affinity.empty()) by_key_[p.anti_affinity].push_back(slot);
  if (p.namesake != 0) by_namesake_[p.namesake].push_back(slot);
  locks_ += p.sharing != NodeSharing::any ? 1 : 0;
  if (p.ends_by) ends_.insert(slot, earlier());
}

void Running::release(JobId job, NodeId node, Grid& grid) {
  const auto it = by_job_.find(job);
  if (it == by_job_.end()) return;
  const std::uint32_t slot = it->second;
  Placement& p = pool_[slot];
  const auto use = std::lower_bound(p.uses.begin(), p.uses.end(), node.value(), by_node);
  if (use == p.uses.end() || use->node != node.value()) return;
  grid.give(use->node, use->room, things_of(*use, p));
  auto& here = on_node_[use->node];
  *std::find(here.begin(), here.end(), slot) = here.back();
  here.pop_back();
  p.uses.erase(use);
  note_held(slot);
  note_flavor(p, grid);
  if (p.uses.empty()) remove(slot);
}

void Running::remove(std::uint32_t slot) {
  Placement& p = pool_[slot];
  if (p.ends_by) ends_.erase(slot, earlier());
  by_job_.erase(p.job);
  leave_group(slot);
  if (!p.anti_affinity.empty()) {
    const auto key = by_key_.find(p.anti_affinity);
    std::erase(key->second, slot);
    if (key->second.empty()) by_key_.erase(key);
  }
  if (p.namesake != 0) {
    const auto same = by_namesake_.find(p.namesake);
    std::erase(same->second, slot);
    if (same->second.empty()) by_namesake_.erase(same);
  }
  locks_ -= p.sharing != NodeSharing::any ? 1 : 0;
  p = Placement{};
  free_.push_back(slot);
}

void Running::set_end(JobId job, std::optional<Instant> ends_by) {
  const auto it = by_job_.find(job);
  if (it == by_job_.end()) return;
  Placement& p = pool_[it->second];
  if (p.ends_by) ends_.erase(it->second, earlier());
  p.ends_by = ends_by;
  note_held(it->second);
  if (p.ends_by) ends_.insert(it->second, earlier());
}

void Running::set_leaving(JobId job, bool leaving) {
  const auto it = by_job_.find(job);
  if (it == by_job_.end()) return;
  leave_group(it->second);
  pool_[it->second].leaving = leaving;
  join_group(it->second);
}

void Running::join_group(std::uint32_t slot) {
  auto& slots = groups_[group_of(pool_[slot])];
  pool_[slot].group_at = static_cast<std::uint32_t>(slots.size());
  slots.push_back(slot);
}

void Running::leave_group(std::uint32_t slot) {
  const auto group = groups_.find(group_of(pool_[slot]));
  auto& slots = group->second;
  const std::uint32_t at = pool_[slot].group_at;
  slots[at] = slots.back();
  pool_[slots[at]].group_at = at;
  slots.pop_back();
  if (slots.empty()) groups_.erase(group);
}

void Running::node_changed(const NodeChanged& change, Grid& grid) {
  grid.change(change);  // afterwards everything on the node is free
  const std::uint32_t n = change.node.value();
  if (on_node_.size() <= n) return;
  for (const std::uint32_t slot : on_node_[n]) {
    Placement& p = pool_[slot];
    Use& use = *std::lower_bound(p.uses.begin(), p.uses.end(), n, by_node);
    measure(use, p, grid);
    grid.take(n, use.room, things_of(use, p));
    note_held(slot);
    note_flavor(p, grid);
  }
}

std::span<const std::uint32_t> Running::with_key(const std::string& key) const {
  const auto it = by_key_.find(key);
  return it == by_key_.end() ? std::span<const std::uint32_t>() : it->second;
}

std::span<const std::uint32_t> Running::of_namesake(std::uint32_t namesake) const {
  const auto it = by_namesake_.find(namesake);
  return it == by_namesake_.end() ? std::span<const std::uint32_t>() : it->second;
}

void Running::add_guest(const Guest& guest) {
  guests_.push_back(guest);
  locks_ += guest.sharing != NodeSharing::any ? 1 : 0;
}

void Running::forget_guests() {
  for (const Guest& guest : guests_) locks_ -= guest.sharing != NodeSharing::any ? 1 : 0;
  guests_.clear();
}

std::string Running::audit(const Grid& grid) const {
  std::vector<Room> held(grid.size());
  std::size_t with_end = 0, in_groups = 0, locks = 0, with_key = 0, with_namesake = 0;
  for (const auto& [job, slot] : by_job_) {
    const Placement& p = pool_[slot];
    if (p.job != job || p.uses.empty()) return fmt::format("placement of job {}", job.value());
    with_end += p.ends_by ? 1 : 0;
    locks += p.sharing != NodeSharing::any ? 1 : 0;
    with_key += p.anti_affinity.empty() ? 0 : 1;
    with_namesake += p.namesake == 0 ? 0 : 1;
    const auto group = groups_.find(group_of(p));
    if (group == groups_.end() || group->second[p.group_at] != slot)
      return fmt::format("group of job {}", job.value());
    Placement same = p;
    note_flavor(same, grid);
    if (same.flavor != p.flavor) return fmt::format("flavor of job {}", job.value());
    for (const Use& use : p.uses) held[use.node] += use.room;
    const End& end = end_of_[slot];
    if (end.nodes != p.uses.size() || (p.ends_by && end.at != *p.ends_by) ||
        (end.nodes == 1 && (end.node != p.uses[0].node || end.room != p.uses[0].room)))
      return fmt::format("end of job {}", job.value());
  }
  if (with_end != ends_.size()) return "number of ends";
  for (const auto& [group, slots] : groups_) in_groups += slots.size();
  for (const auto& [key, slots] : by_key_) with_key -= slots.size();
  for (const auto& [namesake, slots] : by_namesake_) with_namesake -= slots.size();
  if (locks != locks_ || with_key != 0 || with_namesake != 0 || !guests_.empty())
    return "keys and locks";
  if (in_groups != by_job_.size()) return "number of placements in groups";
  for (std::uint32_t n = 0; n < grid.size(); ++n) {
    held[n] += grid.free(n);
    if (held[n] != grid.room(n)) return fmt::format("node {}: held and free are not its size", n);
  }
  return "";
}

}  // namespace gantry::sched
