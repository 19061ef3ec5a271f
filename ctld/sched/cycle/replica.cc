#include "ctld/sched/cycle/replica.h"

#include "common/assert.h"

namespace gantry::sched {

void Replica::apply(const Change& change) {
  struct Apply {
    Replica& r;
    void operator()(const NodeChanged& c) const {
      r.view_.running.node_changed(c, r.view_.grid);
      r.view_.charges.node_changed(c);
      r.view_.eligible.node_changed(c);
      r.left_.memory.forget();
    }
    void operator()(const PartitionChanged& c) const {
      r.view_.grid.set_gres_names(c.gres_names);
      r.view_.eligible.partition_changed(c);
      r.view_.charges.partition_changed(c);
      r.view_.queue.partition_changed(c);
      r.left_.memory.forget();
    }
    void operator()(const JobQueued& c) const {
      const PartitionChanged* partition = r.partition(c.key.partition);
      GANTRY_ASSERT(partition != nullptr, "a job was queued in a partition that is not known");
      r.view_.scores.changed();
      r.touch_queue(c.job);
      r.view_.queue.add(c, *partition);
      r.touch_queue(c.job);
    }
    void operator()(const JobsQueued& c) const {
      const PartitionChanged* partition = r.partition(c.key.partition);
      GANTRY_ASSERT(partition != nullptr, "jobs were queued in a partition that is not known");
      r.view_.scores.changed();
      for (const JobsQueued::Job& job : c.jobs) r.touch_queue(job.job);
      r.view_.queue.add(c, *partition);
      for (const JobsQueued::Job& job : c.jobs) r.touch_queue(job.job);
    }
    void operator()(const JobUnqueued& c) const {
      r.touch_queue(c.job);
      r.view_.queue.remove(c.job);
    }
    void operator()(const JobPlaced& c) const {
      r.view_.scores.changed();
      r.touch_nodes(c.job);
      r.view_.running.place(c, r.view_.grid);
      r.touch_nodes(c.job);
      r.view_.charges.place(c);
    }
    void operator()(const JobLimitChanged& c) const {
      r.view_.running.set_end(c.job, c.ends_by);
      r.touch_nodes(c.job);
      r.view_.charges.set_end(c.job, c.ends_by);
    }
    void operator()(const NodeReleased& c) const {
      r.left_.memory.touch_node(c.node.value());
      r.view_.running.release(c.job, c.node, r.view_.grid);
      r.view_.charges.release(c.job, c.node);
    }
    void operator()(const TenancyChanged& c) const {
      r.view_.tenancy = c.tenancy;
      r.view_.grid.set_levels(c.tenancy->levels);
      r.view_.charges.tenancy_changed(c.tenancy);
      r.view_.shares.set_half_life(c.tenancy->half_life);
      r.left_.memory.forget();
    }
    void operator()(const ShareChanged& c) const { r.view_.shares.change(c); }
    // No job starts or waits because of this change, so nothing has to be looked at again.
    void operator()(const NamesakesApart& c) const { r.view_.apart = c; }
    void operator()(const ReservationChanged& c) const {
      if (c.removed)
        r.windows_.erase(c.name);
      else
        r.windows_[c.name] = c;
      r.view_.windows.set(r.windows_);
      r.left_.memory.forget();
    }
  };
  std::visit(Apply{*this}, change);
}

void Replica::touch_queue(JobId job) {
  const auto slot = view_.queue.find(job);
  if (!slot) return;
  left_.memory.touch_partition(
      view_.queue.job_class(view_.queue.line(view_.queue[*slot].line).class_index).key.partition);
  if (left_.reservations.contains(job)) left_.memory.touch_job(job);
}

void Replica::touch_nodes(JobId job) {
  if (const auto slot = view_.running.find(job))
    for (const Use& use : view_.running[*slot].uses) left_.memory.touch_node(use.node);
}

std::vector<Reservation> Replica::reservations() const {
  std::vector<Reservation> all;
  for (const auto& [job, of_job] : left_.reservations)
    all.insert(all.end(), of_job.begin(), of_job.end());
  return all;
}

void Replica::set_reservations(const std::vector<Reservation>& reservations) {
  left_.memory.forget();
  left_.reservations.clear();
  for (const Reservation& p : reservations) left_.reservations[p.job].push_back(p);
}

std::string Replica::audit() const {
  if (auto wrong = view_.grid.audit(); !wrong.empty()) return "grid: " + wrong;
  if (auto wrong = view_.running.audit(view_.grid); !wrong.empty()) return "running: " + wrong;
  if (auto wrong = view_.queue.audit(); !wrong.empty()) return "queue: " + wrong;
  if (auto wrong = view_.charges.audit(); !wrong.empty()) return "quota: " + wrong;
  return "";
}

}  // namespace gantry::sched
