// The waiting jobs, in order: rank of their class (higher first), priority (higher first),
// queued_since (earlier first), id.
//
// Jobs that are equal for every placement (equal ClassKey) form a class, so a plan's cost follows
// classes, not jobs. The jobs of one class and one user (a leaf of the fair-share tree) form a
// line. Each partition keeps its lines by user, in the order of their first jobs, and all of its
// jobs (to know how many precede a job). A waiting job costs about 70 bytes; queueing and
// unqueueing cost O(log jobs).
#pragma once

#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "common/job/job_state.h"
#include "ctld/sched/change.h"
#include "ctld/sched/queue/geometry.h"
#include "ctld/sched/queue/ordered_slots.h"

namespace gantry::sched {

struct Waiting {
  std::int64_t priority = 0;
  Instant since{};
  JobId job{};
  std::uint32_t startable = 0;  // elements of an array that may start now
  std::uint32_t line = 0;
  std::int32_t rank = 0;
  bool raised : 1 = false;          // true if the rank was raised while it waited
  std::uint32_t namesake : 31 = 0;  // see NamesakesApart
  std::int64_t own_priority = 0;    // the part of priority that counts only inside its tenant
};

// The order within a partition, except for fair share between its users.
inline bool before(const Waiting& a, const Waiting& b) {
  if (a.rank != b.rank) return a.rank > b.rank;
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.since != b.since) return a.since < b.since;
  return a.job < b.job;
}

// The order between the first jobs of queues, which may belong to several tenants. A priority that
// a tenant gives its own jobs does not count between tenants.
inline bool before_others(const Waiting& a, const Waiting& b) {
  if (a.rank != b.rank) return a.rank > b.rank;
  const std::int64_t of_a = a.priority - a.own_priority, of_b = b.priority - b.own_priority;
  if (of_a != of_b) return of_a > of_b;
  if (a.since != b.since) return a.since < b.since;
  return a.job < b.job;
}

// Keeps records in blocks that never move, so that growing never copies a million of them.
class WaitingPool {
 public:
  std::uint32_t add(const Waiting& w);
  void drop(std::uint32_t slot) { free_.push_back(slot); }
  Waiting& operator[](std::uint32_t slot) { return blocks_[slot / kBlock][slot % kBlock]; }
  const Waiting& operator[](std::uint32_t slot) const {
    return blocks_[slot / kBlock][slot % kBlock];
  }
  [[nodiscard]] std::size_t bytes() const;

 private:
  static constexpr std::uint32_t kBlock = 4096;
  std::vector<std::unique_ptr<Waiting[]>> blocks_;
  std::vector<std::uint32_t> free_;
  std::uint32_t used_ = 0;
};

// Maps a job id to its slot: open addressing over the pool's own ids, 4 bytes a bucket.
class JobIndex {
 public:
  [[nodiscard]] std::optional<std::uint32_t> find(JobId job, const WaitingPool& pool) const;
  void insert(std::uint32_t slot, const WaitingPool& pool);  // its job must be absent
  void erase(JobId job, const WaitingPool& pool);            // its job must be there
  [[nodiscard]] std::size_t bytes() const { return buckets_.size() * sizeof(std::uint32_t); }

 private:
  static constexpr std::uint32_t kEmpty = ~std::uint32_t{0};
  [[nodiscard]] std::size_t home(JobId job) const;
  void grow(const WaitingPool& pool);
  std::vector<std::uint32_t> buckets_;  // a power of two, at most 3/4 full
  std::size_t used_ = 0;
};

// Whether a class could start if all jobs were gone. It is kept until nodes or partitions change.
struct Standing {
  std::uint64_t generation = 0;  // generation of the replica; 0 = never computed
  Verdict verdict;               // Reason::none = it can
};

// Nodes of a set that have one flavor.
struct NodeChoice {
  std::uint32_t flavor = 0;    // index into Tenancy::flavors; 0 = nodes without one of their own
  std::uint32_t node_set = 0;  // the class's own set if there is no other choice
};

// The members that a plan reads of every line come first, so that they are adjacent in memory.
struct JobClass {
  std::uint32_t index = 0;  // Queue::job_class()
  std::uint32_t lines = 0;  // lines with jobs
  Standing standing;
  Resources least;                  // a job of it takes at least this
  std::vector<NodeChoice> choices;  // those that have all required nodes, if the class names any
  std::uint32_t node_set = 0;       // see eligible.h; valid with standing.generation
  std::vector<std::uint32_t> required;  // node numbers, sorted; valid with standing.generation
  // Numbers of RequestKeys, by choice of nodes. Empty: a job of the class that finds no place says
  // nothing about other classes or later plans.
  std::vector<std::uint32_t> requests;
  std::uint64_t requests_generation = 0;  // generation for which they were made; 0 = never
  ClassKey key;
  Demand demand;
  // The last verdict that a plan has given. It is kept while plans give only news
  // (Policy::everything).
  struct Told {
    JobId head{};
    Verdict of_head, of_rest;
    std::uint64_t changes = 0;  // PartitionQueue::changes, if of_rest depends on the queue
  };
  Told told;
  bool listed_idle = false;  // true if it is in Queue's list of classes without jobs
};

inline constexpr std::uint32_t kNoShare = std::numeric_limits<std::uint32_t>::max();

struct Line {
  std::uint32_t class_index = 0;
  std::uint32_t share = kNoShare;  // ShareId of the user
  OrderedSlots jobs;
};

// The place of a line among the lines of its user: by its first job.
struct LinePlace {
  Waiting first;
  friend bool operator<(const LinePlace& a, const LinePlace& b) { return before(a.first, b.first); }
};
using Lines = std::set<LinePlace>;

// A partition's waiting jobs.
struct PartitionQueue {
  std::uint32_t priority = 0;
  std::uint64_t changes = 0;             // counts jobs that have come or gone
  OrderedSlots jobs;                     // jobs of all users
  std::map<std::uint32_t, Lines> users;  // by ShareId (kNoShare: no tenant); no entry is empty
};

class Queue {
 public:
  static constexpr std::size_t kMaxIdleClasses = 4096;

  void add(const JobQueued& change, const PartitionChanged& partition);  // adds or changes
  void add(const JobsQueued& change, const PartitionChanged& partition);
  void remove(JobId job);  // does nothing if absent
  void partition_changed(const PartitionChanged& partition);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const Waiting& operator[](std::uint32_t slot) const { return pool_[slot]; }
  [[nodiscard]] JobClass& job_class(std::uint32_t index) { return *classes_[index]; }
  [[nodiscard]] const JobClass& job_class(std::uint32_t index) const { return *classes_[index]; }
  [[nodiscard]] std::size_t classes() const { return classes_.size(); }  // greater than every index
  // The job's slot; nullopt: the job does not wait.
  [[nodiscard]] std::optional<std::uint32_t> find(JobId job) const {
    return index_.find(job, pool_);
  }
  [[nodiscard]] const Line& line(std::uint32_t index) const { return lines_[index]; }
  [[nodiscard]] std::uint32_t namesake_of(JobId job) const {  // 0: the job does not wait
    const auto slot = index_.find(job, pool_);
    return slot ? pool_[*slot].namesake : 0;
  }
  // Partitions with waiting jobs, by number.
  [[nodiscard]] const std::vector<std::uint32_t>& busy() const { return busy_; }
  [[nodiscard]] const PartitionQueue& partition(std::uint32_t id) const { return partitions_[id]; }
  // How many waiting jobs of the partition precede this one (an array counts as one).
  [[nodiscard]] std::size_t in_front_of(const Waiting& job, PartitionId partition) const;

  [[nodiscard]] std::size_t bytes() const;  // memory of all waiting jobs
  [[nodiscard]] std::string audit() const;  // "" or the first thing that is wrong

 private:
  std::uint32_t intern(const ClassKey& key, const PartitionChanged& partition);
  // True if the job waits already with this class; then it is updated.
  bool has(const ClassKey& key, const JobsQueued::Job& job);
  void insert(std::uint32_t class_index, const JobsQueued::Job& job);
  std::uint32_t line_for(std::uint32_t class_index, std::uint32_t share);
  void link(std::uint32_t slot);
  void unlink(std::uint32_t slot);
  void place(std::uint32_t line);  // puts it among its user's lines, by its first job
  void unplace(std::uint32_t line);
  void retire(std::uint32_t class_index);
  [[nodiscard]] PartitionQueue& queue_of(const Line& line) {
    return partitions_[classes_[line.class_index]->key.partition.value()];
  }
  [[nodiscard]] std::string audit_line(std::uint32_t index) const;

  struct KeyHash {
    std::size_t operator()(const ClassKey& key) const { return hash_of(key); }
  };

  WaitingPool pool_;
  JobIndex index_;
  std::size_t size_ = 0;
  std::vector<std::unique_ptr<JobClass>> classes_;
  std::vector<std::uint32_t> free_classes_;
  std::unordered_map<ClassKey, std::uint32_t, KeyHash> class_of_;
  std::deque<std::uint32_t> idle_;  // classes without jobs, oldest first; some may have jobs again
  std::deque<Line> lines_;
  std::vector<std::uint32_t> free_lines_;
  std::unordered_map<std::uint64_t, std::uint32_t> line_of_;  // class and user
  std::vector<PartitionQueue> partitions_;                    // by id
  std::vector<std::uint32_t> busy_;
};

}  // namespace gantry::sched
