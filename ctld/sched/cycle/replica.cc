#include "ctld/sched/cycle/replica.h"

#include "common/assert.h"

namespace gantry::sched {

void Replica::apply(const Change& change) {
  struct Apply {
    Replica& r;
    void operator()(const NodeChanged& c) const {
      r.running_.node_changed(c, r.grid_);
      r.charges_.node_changed(c);
      r.eligible_.node_changed(c);
      r.memory_.forget();
    }
    void operator()(const PartitionChanged& c) const {
      r.grid_.set_gres_names(c.gres_names);
      r.eligible_.partition_changed(c);
      r.charges_.partition_changed(c);
      r.queue_.partition_changed(c);
      r.memory_.forget();
    }
    void operator()(const JobQueued& c) const {
      const PartitionChanged* partition = r.partition(c.key.partition);
      GANTRY_ASSERT(partition != nullptr, "a job was queued in a partition that is not known");
      r.scores_.changed();
      r.touch_queue(c.job);
      r.queue_.add(c, *partition);
      r.touch_queue(c.job);
    }
    void operator()(const JobUnqueued& c) const {
      r.touch_queue(c.job);
      r.queue_.remove(c.job);
    }
    void operator()(const JobPlaced& c) const {
      r.scores_.changed();
      r.touch_nodes(c.job);
      r.running_.place(c, r.grid_);
      r.touch_nodes(c.job);
      r.charges_.place(c);
    }
    void operator()(const JobLimitChanged& c) const {
      r.running_.set_end(c.job, c.ends_by);
      r.touch_nodes(c.job);
      r.charges_.set_end(c.job, c.ends_by);
    }
    void operator()(const NodeReleased& c) const {
      r.memory_.touch_node(c.node.value());
      r.running_.release(c.job, c.node, r.grid_);
      r.charges_.release(c.job, c.node);
    }
    void operator()(const TenancyChanged& c) const {
      r.tenancy_ = c.tenancy;
      r.grid_.set_levels(c.tenancy->levels);
      r.charges_.tenancy_changed(c.tenancy);
      r.shares_.set_half_life(c.tenancy->half_life);
      r.memory_.forget();
    }
    void operator()(const ShareChanged& c) const { r.shares_.change(c); }
    void operator()(const ReservationChanged& c) const {
      if (c.removed)
        r.reservations_.erase(c.name);
      else
        r.reservations_[c.name] = c;
      r.timeline_.set_windows(r.reservations_);
      r.memory_.forget();
    }
  };
  std::visit(Apply{*this}, change);
}

void Replica::touch_queue(JobId job) {
  const auto slot = queue_.find(job);
  if (!slot) return;
  memory_.touch_partition(
      queue_.job_class(queue_.line(queue_[*slot].line).class_index).key.partition);
  if (promises_.contains(job)) memory_.touch_job(job);
}

void Replica::touch_nodes(JobId job) {
  if (const auto slot = running_.find(job))
    for (const Use& use : running_[*slot].uses) memory_.touch_node(use.node);
}

std::vector<Promise> Replica::promises() const {
  std::vector<Promise> all;
  for (const auto& [job, of_job] : promises_) all.insert(all.end(), of_job.begin(), of_job.end());
  return all;
}

void Replica::promise(const std::vector<Promise>& promises) {
  memory_.forget();
  promises_.clear();
  for (const Promise& p : promises) promises_[p.job].push_back(p);
}

std::string Replica::audit() const {
  if (auto wrong = grid_.audit(); !wrong.empty()) return "grid: " + wrong;
  if (auto wrong = running_.audit(grid_); !wrong.empty()) return "running: " + wrong;
  if (auto wrong = queue_.audit(); !wrong.empty()) return "queue: " + wrong;
  if (auto wrong = charges_.audit(); !wrong.empty()) return "quota: " + wrong;
  return "";
}

}  // namespace gantry::sched
