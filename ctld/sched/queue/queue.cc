#include "ctld/sched/queue/queue.h"

#include <fmt/core.h>

#include "common/assert.h"

namespace gantry::sched {

// ---- WaitingPool

std::uint32_t WaitingPool::add(const Waiting& w) {
  std::uint32_t slot = used_;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else {
    if (used_ % kBlock == 0) blocks_.push_back(std::make_unique<Waiting[]>(kBlock));
    ++used_;
  }
  (*this)[slot] = w;
  return slot;
}

std::size_t WaitingPool::bytes() const {
  return blocks_.size() * kBlock * sizeof(Waiting) + free_.capacity() * sizeof(std::uint32_t);
}

// ---- JobIndex

std::size_t JobIndex::home(JobId job) const {
  return static_cast<std::size_t>((job.value() * 0x9E3779B97F4A7C15ull) >> 20) &
         (buckets_.size() - 1);
}

std::optional<std::uint32_t> JobIndex::find(JobId job, const WaitingPool& pool) const {
  if (buckets_.empty()) return std::nullopt;
  for (std::size_t i = home(job); buckets_[i] != kEmpty; i = (i + 1) & (buckets_.size() - 1))
    if (pool[buckets_[i]].job == job) return buckets_[i];
  return std::nullopt;
}

void JobIndex::insert(std::uint32_t slot, const WaitingPool& pool) {
  if ((used_ + 1) * 4 > buckets_.size() * 3) grow(pool);
  std::size_t i = home(pool[slot].job);
  while (buckets_[i] != kEmpty) i = (i + 1) & (buckets_.size() - 1);
  buckets_[i] = slot;
  ++used_;
}

// Backward shift: later entries of the same run move up, so no tombstones accumulate.
void JobIndex::erase(JobId job, const WaitingPool& pool) {
  const std::size_t mask = buckets_.size() - 1;
  std::size_t hole = home(job);
  while (pool[buckets_[hole]].job != job) hole = (hole + 1) & mask;
  for (std::size_t i = (hole + 1) & mask; buckets_[i] != kEmpty; i = (i + 1) & mask) {
    const std::size_t from_home = (i - home(pool[buckets_[i]].job)) & mask;
    if (from_home < ((i - hole) & mask)) continue;  // its own bucket comes after the gap
    buckets_[hole] = buckets_[i];
    hole = i;
  }
  buckets_[hole] = kEmpty;
  --used_;
}

void JobIndex::grow(const WaitingPool& pool) {
  const std::vector<std::uint32_t> old = std::exchange(
      buckets_, std::vector<std::uint32_t>(std::max<std::size_t>(64, buckets_.size() * 2), kEmpty));
  used_ = 0;
  for (const std::uint32_t slot : old)
    if (slot != kEmpty) insert(slot, pool);
}

// ---- Queue

namespace {

std::uint32_t share_of(const JobsQueued::Job& job) {
  return job.share ? job.share->value() : kNoShare;
}

Resources least_of(const Demand& d) {
  Resources least;
  const std::int64_t cpus = d.least_cores();
  const Times nodes{d.min_nodes};
  least.set<Resource::cpu>(thousandths_of(Cores{cpus}));
  least.set<Resource::gpu>(d.gpus_in_all > 0 ? thousandths_of(Gpus{d.gpus_in_all})
                                             : thousandths_of(Gpus{d.gpus}) * nodes);
  least.add<Resource::gpu>(thousandths_of_gpu(d.gpu_share) * nodes);
  least.add<Resource::gpu>(least_weight(d.slices * nodes));
  least.set<Resource::scratch>(ByteCount{d.scratch} * nodes);
  least.set<Resource::io>(ByteRate{d.io} * nodes);
  least.set<Resource::net>(BitRate{d.net} * nodes);
  if (d.memory_rule == MemoryRule::per_node)
    least.set<Resource::memory>(d.memory_per_gpu > 0
                                    ? ByteCount{d.memory_per_gpu} * Times{d.gpus_in_all}
                                    : ByteCount{d.memory} * nodes);
  if (d.memory_rule == MemoryRule::per_cpu)
    least.set<Resource::memory>(ByteCount{d.memory} * Times{cpus});
  return least;
}

}  // namespace

void Queue::add(const JobQueued& change, const PartitionChanged& partition) {
  const JobsQueued::Job job{change.job,       change.priority,     change.queued_since,
                            change.startable, change.rank,         change.share,
                            change.raised,    change.own_priority, change.namesake};
  if (has(change.key, job)) return;
  remove(job.job);
  if (partitions_.size() <= change.key.partition.value()) partition_changed(partition);
  insert(intern(change.key, partition), job);
}

void Queue::add(const JobsQueued& change, const PartitionChanged& partition) {
  if (partitions_.size() <= change.key.partition.value()) partition_changed(partition);
  // Removing a job may remove its old class, so the new class is looked up after the removals.
  std::vector<const JobsQueued::Job*> fresh;
  fresh.reserve(change.jobs.size());
  for (const JobsQueued::Job& job : change.jobs) {
    if (has(change.key, job)) continue;
    remove(job.job);
    fresh.push_back(&job);
  }
  if (fresh.empty()) return;
  const std::uint32_t class_index = intern(change.key, partition);
  for (const JobsQueued::Job* job : fresh) insert(class_index, *job);
}

bool Queue::has(const ClassKey& key, const JobsQueued::Job& job) {
  GANTRY_ASSERT(job.startable > 0, "queued a job of which nothing may start");
  const auto slot = index_.find(job.job, pool_);
  if (!slot) return false;
  Waiting& w = pool_[*slot];
  const Line& line = lines_[w.line];
  if (w.rank != job.rank || w.priority != job.priority || w.since != job.queued_since ||
      w.own_priority != job.own_priority || w.namesake != job.namesake ||
      line.share != share_of(job) || classes_[line.class_index]->key != key)
    return false;
  w.startable = job.startable;  // usual for an array: one element less each time
  return true;
}

void Queue::insert(std::uint32_t class_index, const JobsQueued::Job& job) {
  const std::uint32_t line = line_for(class_index, share_of(job));
  const std::uint32_t slot =
      pool_.add({job.priority, job.queued_since, job.job, job.startable, line, job.rank, job.raised,
                 job.namesake, job.own_priority});
  index_.insert(slot, pool_);
  link(slot);
  ++size_;
}

void Queue::remove(JobId job) {
  const auto slot = index_.find(job, pool_);
  if (!slot) return;
  unlink(*slot);
  index_.erase(job, pool_);
  pool_.drop(*slot);
  --size_;
}

void Queue::partition_changed(const PartitionChanged& partition) {
  const std::uint32_t id = partition.partition.value();
  if (partitions_.size() <= id) partitions_.resize(id + 1);
  partitions_[id].priority = partition.priority;
  for (std::uint32_t c = 0; c < classes_.size(); ++c) {
    if (!classes_[c] || classes_[c]->key.partition != partition.partition) continue;
    classes_[c]->demand = demand_of(classes_[c]->key.shape, partition);
    classes_[c]->least = least_of(classes_[c]->demand);
    classes_[c]->standing.generation = 0;
  }
}

std::size_t Queue::in_front_of(const Waiting& job, PartitionId partition) const {
  const OrderedSlots& jobs = partitions_[partition.value()].jobs;
  return jobs.position(jobs.lower_bound([&](std::uint32_t s) { return before(pool_[s], job); }));
}

std::uint32_t Queue::intern(const ClassKey& key, const PartitionChanged& partition) {
  if (const auto it = class_of_.find(key); it != class_of_.end()) return it->second;
  std::uint32_t index = static_cast<std::uint32_t>(classes_.size());
  if (!free_classes_.empty()) {
    index = free_classes_.back();
    free_classes_.pop_back();
  } else {
    classes_.emplace_back();
  }
  classes_[index] = std::make_unique<JobClass>();
  classes_[index]->index = index;
  classes_[index]->key = key;
  classes_[index]->demand = demand_of(key.shape, partition);
  classes_[index]->least = least_of(classes_[index]->demand);
  class_of_.emplace(key, index);
  return index;
}

std::uint32_t Queue::line_for(std::uint32_t class_index, std::uint32_t share) {
  const std::uint64_t key = (std::uint64_t{class_index} << 32) | share;
  const auto [it, made] = line_of_.try_emplace(key, 0);
  if (!made) return it->second;
  if (free_lines_.empty()) {
    it->second = static_cast<std::uint32_t>(lines_.size());
    lines_.emplace_back();
  } else {
    it->second = free_lines_.back();
    free_lines_.pop_back();
  }
  Line& line = lines_[it->second];
  line.class_index = class_index;
  line.share = share;
  if (++classes_[class_index]->lines == 1) classes_[class_index]->told = {};
  return it->second;
}

void Queue::link(std::uint32_t slot) {
  const auto less = [this](std::uint32_t a, std::uint32_t b) { return before(pool_[a], pool_[b]); };
  const std::uint32_t index = pool_[slot].line;
  Line& line = lines_[index];
  const bool first = line.jobs.empty() || less(slot, line.jobs.front());
  if (first) unplace(index);
  line.jobs.insert(slot, less);
  if (first) place(index);
  PartitionQueue& queue = queue_of(line);
  queue.jobs.insert(slot, less);
  ++queue.changes;
  if (queue.jobs.size() > 1) return;
  const std::uint32_t id = classes_[line.class_index]->key.partition.value();
  busy_.insert(std::lower_bound(busy_.begin(), busy_.end(), id), id);
}

void Queue::unlink(std::uint32_t slot) {
  const auto less = [this](std::uint32_t a, std::uint32_t b) { return before(pool_[a], pool_[b]); };
  const std::uint32_t index = pool_[slot].line;
  Line& line = lines_[index];
  const std::uint32_t c = line.class_index;
  const bool first = line.jobs.front() == slot;
  if (first) unplace(index);
  line.jobs.erase(slot, less);
  if (first) place(index);
  PartitionQueue& queue = queue_of(line);
  queue.jobs.erase(slot, less);
  ++queue.changes;
  if (queue.jobs.empty()) std::erase(busy_, classes_[c]->key.partition.value());
  if (!line.jobs.empty()) return;
  line_of_.erase((std::uint64_t{c} << 32) | line.share);
  free_lines_.push_back(index);
  if (--classes_[c]->lines == 0) retire(c);
}

void Queue::place(std::uint32_t index) {
  const Line& line = lines_[index];
  if (!line.jobs.empty()) queue_of(line).users[line.share].insert({pool_[line.jobs.front()]});
}

void Queue::unplace(std::uint32_t index) {
  const Line& line = lines_[index];
  if (line.jobs.empty()) return;
  auto& users = queue_of(line).users;
  const auto user = users.find(line.share);
  user->second.erase({pool_[line.jobs.front()]});
  if (user->second.empty()) users.erase(user);
}

// A class without jobs is kept for a while, because the next job of its kind will probably come
// soon.
void Queue::retire(std::uint32_t c) {
  if (!std::exchange(classes_[c]->listed_idle, true)) idle_.push_back(c);
  if (idle_.size() <= kMaxIdleClasses) return;
  const std::uint32_t old = idle_.front();
  idle_.pop_front();
  classes_[old]->listed_idle = false;
  if (classes_[old]->lines > 0) return;
  class_of_.erase(classes_[old]->key);
  classes_[old].reset();
  free_classes_.push_back(old);
}

std::size_t Queue::bytes() const {
  // Estimates that leaves are three quarters full on average, in two orders.
  return pool_.bytes() + index_.bytes() + size_ * 2 * sizeof(std::uint32_t) * 4 / 3;
}

std::string Queue::audit_line(std::uint32_t index) const {
  const OrderedSlots& list = lines_[index].jobs;
  const Waiting* last = nullptr;
  for (auto at = list.begin(); !list.at_end(at); at = list.next(at)) {
    const Waiting& w = pool_[list[at]];
    if (w.line != index) return fmt::format("job {} is in a foreign line", w.job.value());
    if (last && !before(*last, w)) return fmt::format("job {} is out of order", w.job.value());
    if (index_.find(w.job, pool_) != list[at]) return fmt::format("job {} is lost", w.job.value());
    last = &w;
  }
  return "";
}

std::string Queue::audit() const {
  std::size_t jobs = 0, in_partitions = 0, placed = 0, lines = 0;
  for (std::uint32_t p = 0; p < partitions_.size(); ++p) {
    in_partitions += partitions_[p].jobs.size();
    if (partitions_[p].jobs.empty() == std::binary_search(busy_.begin(), busy_.end(), p))
      return fmt::format("partition {} is busy or not", p);
    for (const auto& [share, list] : partitions_[p].users) {
      if (list.empty()) return fmt::format("user {} has no lines", share);
      for (const LinePlace& at : list) {
        const Line& line = lines_[at.first.line];
        if (line.jobs.empty() || pool_[line.jobs.front()].job != at.first.job ||
            line.share != share || classes_[line.class_index]->key.partition.value() != p)
          return fmt::format("line {} is misplaced", at.first.line);
        if (auto wrong = audit_line(at.first.line); !wrong.empty()) return wrong;
        jobs += line.jobs.size();
        ++placed;
      }
    }
  }
  for (const auto& c : classes_) lines += c ? c->lines : 0;
  if (jobs != size_ || in_partitions != size_)
    return fmt::format("{} jobs, {} in lines, {} in partitions", size_, jobs, in_partitions);
  if (placed != line_of_.size() || lines != placed)
    return fmt::format("{} lines, {} in classes, {} in order", line_of_.size(), lines, placed);
  return "";
}

}  // namespace gantry::sched
