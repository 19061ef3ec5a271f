// Keeps the derived parts of State up to date; see index.h.
#include "ctld/core/resources/index.h"

#include <algorithm>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "ctld/core/resources/gpus.h"
#include "ctld/core/resources/gres.h"
#include "ctld/core/resources/licenses.h"
#include "ctld/core/resources/uses.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr std::uint64_t kRecordBytes = 1024;     // estimated memory of a job besides its spec
constexpr std::uint64_t kDependencyBytes = 128;  // estimated memory of each of its dependencies

std::uint64_t record_bytes(const Job& job, const SpecHead& head) {
  return job.spec.size() + kRecordBytes + head.spec.dependencies.size() * kDependencyBytes;
}

store::Digest digest_of(const Bytes& bytes) {
  store::Digest out{};
  GANTRY_ASSERT(bytes.size() == out.size(), "a digest has 32 octets");
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

void count_in_queue(MutableState& state, const Job& job, std::uint64_t sign) {
  const PartitionId id = class_of(state, job).partition;
  if (state.queues.size() <= id.value()) state.queues.resize(id.value() + 1);
  QueueCounts& queue = state.queues[id.value()];
  if (job.placed()) queue.active += sign;
  if (job.phase != Phase::queued) return;
  wait_for_licenses(state, job, sign == 1);
  const std::uint64_t tasks = job.is_array() ? job.tasks->pending.count() : 1;
  queue.queued += sign * tasks;
  const auto own = state.user_queued.try_emplace({id, job.uid}, 0).first;
  own->second += sign * tasks;
  if (own->second == 0) state.user_queued.erase(own);
}

// Adds the job to the counters; with sign -1 subtracts it.
void count(MutableState& state, const Job& job, std::uint64_t sign) {
  Counters& c = state.counters;
  if (job.phase == Phase::queued)
    c.queued += sign * (job.is_array() ? job.tasks->pending.count() : 1);
  if (job.phase == Phase::queued && (job.queues || job.windows)) c.several += sign;
  if (job.placed()) c.active += sign;
  count_in_queue(state, job, sign);
  if (job.phase != Phase::ended && !job.is_element()) c.unended += sign;
  count_use(state, job, sign == 1);
  if (job.phase != Phase::ended)
    state.users[job.uid].unended += sign * (job.is_array() ? job.tasks->pending.count() : 1);
  if (!job.is_element()) return;
  Job* array = state.jobs.find(job.array);
  GANTRY_ASSERT(array != nullptr && array->is_array(), "an element's array outlives it");
  if (job.placed()) array->tasks->active += static_cast<std::uint32_t>(sign);
  if (job.phase != Phase::ended) array->tasks->unended += static_cast<std::uint32_t>(sign);
  if (job.phase != Phase::queued) return;
  if (sign == 1)
    array->tasks->queued.insert(job.id);
  else
    array->tasks->queued.erase(job.id);
}

}  // namespace

JobEdit::JobEdit(MutableState& state, JobId id) : state_(state), job_(state.jobs.at(id)) {
  count(state_, job_, std::uint64_t(-1));
}

JobEdit::~JobEdit() {
  count(state_, job_, 1);
  touch(state_, job_);
  if (job_.is_element()) state_.touched.jobs.push_back(job_.array);
}

void touch(MutableState& state, Job& job) {
  state.touched.jobs.push_back(job.id);
  if (job.fold_due) return;
  job.fold_due = true;
  state.unfolded.jobs.push_back(job.id);
}

void touch(MutableState& state, Node& node) {
  state.touched.nodes.push_back(node.id);
  state.touched.trigger_nodes.push_back(node.id);
  if (node.fold_due) return;
  node.fold_due = true;
  state.unfolded.nodes.push_back(node.id);
}

void set_class(MutableState& state, Job& job, const sched::ClassKey& key) {
  const ClassId next = state.classes.add(key);
  state.classes.drop(job.cls);
  job.cls = next;
}

void fill_job(MutableState& state, Job& job, const SpecHead& head, PartitionId partition,
              std::optional<Duration> time_limit) {
  const SpecHead::Spec& spec = head.spec;
  job.kind = spec.kind;
  job.name = state.names.add(spec.name);
  job.account = state.names.add(spec.account);
  job.user = state.names.add(head.owner.user);
  job.uid = head.owner.uid;
  // A component is requeued together with its leader, whatever its own kind is.
  job.may_requeue =
      spec.requeue && (spec.kind == JobKind::batch || (spec.het && spec.het->offset > 0));
  job.nice = spec.nice;
  job.priority = spec.priority;
  job.deadline = spec.deadline;
  job.warn = spec.warn_signal;
  job.no_kill = spec.no_kill;
  job.has_image = !spec.container.image.empty();
  sched::ClassKey key{partition,        spec.shape, time_limit,   0,
                      spec.reservation, spec.het,   spec.time_min};
  const auto& classes = state.tenancy.class_names;
  if (const auto it = std::find(classes.begin(), classes.end(), spec.priority_class);
      it != classes.end())
    key.priority_class = static_cast<std::uint32_t>(it - classes.begin());
  job.cls = state.classes.add(key);
  if (!spec.dependencies.empty()) {
    job.dependencies = std::make_unique<Dependencies>();
    job.dependencies->any = spec.any_dependency;
    job.dependencies->cancel_on_never = spec.cancel_on_invalid_dependency;
    for (const Dependency& d : spec.dependencies)
      job.dependencies->list.push_back({d, DependencyStatus::open});
  }
  if (spec.array) {
    job.tasks = std::make_unique<ArrayState>();
    job.tasks->indexes = ArrayIndexes(spec.array->ranges);
    job.tasks->max_running = spec.array->max_running;
    job.tasks->pending = OrdinalSet::first_n(job.tasks->indexes.count());
    job.tasks->never_started = job.tasks->indexes.count();
  }
}

void set_queues(Job& job, std::vector<PartitionId> queues) {
  job.queues.reset();
  if (!queues.empty()) job.queues = std::make_unique<std::vector<PartitionId>>(std::move(queues));
}

void set_windows(Job& job, std::vector<std::string> windows) {
  job.windows.reset();
  if (!windows.empty())
    job.windows = std::make_unique<std::vector<std::string>>(std::move(windows));
}

void fill_element(MutableState& state, Job& element, const Job& array, std::uint32_t ordinal) {
  element.array = array.id;
  element.ordinal = ordinal;
  element.task = array.tasks->indexes.index_of(ordinal);
  element.kind = array.kind;
  element.name = state.names.add(state.names.text(array.name));
  element.account = state.names.add(state.names.text(array.account));
  element.user = state.names.add(state.names.text(array.user));
  element.renamed = array.renamed;
  element.respecified = array.respecified;
  element.window_named = array.window_named;
  element.asked_more = array.asked_more;
  element.reshaped = array.reshaped;
  element.lowered = array.lowered;
  element.uid = array.uid;
  element.share = array.share;
  element.class_priority = array.class_priority;
  element.may_requeue = array.may_requeue;
  element.nice = array.nice;
  element.site_factor = array.site_factor;
  element.priority = array.priority;
  element.deadline = array.deadline;
  element.warn = array.warn;
  element.no_kill = array.no_kill;
  element.has_image = array.has_image;
  element.cls = state.classes.add(class_of(state, array));
  if (array.queues) set_queues(element, *array.queues);
  if (array.windows) set_windows(element, *array.windows);
}

void add_dependent(MutableState& state, const Job& job, const Dependency& d) {
  if (d.kind == DependencyKind::singleton) {
    state.singletons[name_key(job.uid, job.name)].insert(job.id);
  } else {
    state.dependents[{d.job, d.array_task}].insert(job.id);
  }
}

void remove_dependent(MutableState& state, const Job& job, const Dependency& d) {
  const auto without = [&](auto& table, const auto& key) {
    const auto it = table.find(key);
    if (it == table.end()) return;
    const auto at = it->second.find(job.id);
    if (at != it->second.end()) it->second.erase(at);
    if (it->second.empty()) table.erase(it);
  };
  if (d.kind == DependencyKind::singleton)
    without(state.singletons, name_key(job.uid, job.name));
  else
    without(state.dependents, DependencyKey{d.job, d.array_task});
}

void index_job(MutableState& state, Job& job, const SpecHead* head) {
  state.last_job = std::max(state.last_job, job.id);
  UserJobs& user = state.users[job.uid];
  if (user.name.empty()) user.name = state.names.text(job.user);
  user.jobs.add(job.id);
  if (head != nullptr) {
    if (!head->request_id.empty()) state.requests[request_key(job.uid, head->request_id)] = job.id;
    if (!head->spec.secrets.empty()) state.secrets.wanted[job.id] = head->spec.secrets;
    if (!head->spec.datasets.empty()) state.datasets_wanted[job.id] = head->spec.datasets;
    if (head->spec.replica) {
      state.services.replicas[job.id] = *head->spec.replica;
      state.services.jobs[head->spec.replica->service].insert(job.id);
    }
    user.stored += record_bytes(job, *head);
    if (!head->script_digest.empty() && state.blobs.add(digest_of(head->script_digest), job.uid))
      user.stored += head->script_bytes;
    if (!head->environment_digest.empty() &&
        state.blobs.add(digest_of(head->environment_digest), job.uid))
      user.stored += head->environment_bytes;
  }
  if (job.is_element()) state.jobs.at(job.array).tasks->elements[job.ordinal] = job.id;
  if (job.phase != Phase::ended && !job.is_element())
    state.same_name[name_key(job.uid, job.name)].add(job.id);
  if (job.phase == Phase::queued && job.dependencies)
    for (const DependencyState& d : job.dependencies->list)
      if (d.status == DependencyStatus::open) add_dependent(state, job, d.what);
  if (job.placed()) take_licenses(state, job);
  if (job.placed() && job.active)
    for (const NodeRun& run : job.active->nodes)
      if (run.state != RunState::released) take_grant(state, job, run.grant, job.active->exclusive);
  count(state, job, 1);
}

void unindex_ended(MutableState& state, const Job& job) {
  if (job.dependencies)
    for (const DependencyState& d : job.dependencies->list)
      if (d.status == DependencyStatus::open) remove_dependent(state, job, d.what);
  if (job.is_element()) return;
  const std::uint64_t key = name_key(job.uid, job.name);
  const auto it = state.same_name.find(key);
  if (it == state.same_name.end()) return;
  it->second.removed([&](JobId id) {
    const Job* other = state.jobs.find(id);
    return other != nullptr && other->phase != Phase::ended && id != job.id &&
           name_key(other->uid, other->name) == key;
  });
  if (it->second.empty()) state.same_name.erase(it);
}

namespace {

void forget_replica(ServiceTable& services, JobId id) {
  const auto of = services.replicas.find(id);
  if (of == services.replicas.end()) return;
  const auto jobs = services.jobs.find(of->second.service);
  if (jobs != services.jobs.end()) {
    jobs->second.erase(id);
    if (jobs->second.empty()) services.jobs.erase(jobs);
  }
  services.replicas.erase(of);
}

void drop_stored(MutableState& state, const Job& job, const SpecHead& head) {
  std::uint64_t bytes = record_bytes(job, head);
  if (!head.script_digest.empty() && state.blobs.drop(digest_of(head.script_digest), job.uid))
    bytes += head.script_bytes;
  if (!head.environment_digest.empty() &&
      state.blobs.drop(digest_of(head.environment_digest), job.uid))
    bytes += head.environment_bytes;
  UserJobs& user = state.users[job.uid];
  GANTRY_ASSERT(user.stored >= bytes, "more bytes given back than were stored");
  user.stored -= bytes;
}

}  // namespace

void unindex_job(MutableState& state, Job& job) {
  GANTRY_ASSERT(job.phase == Phase::ended, "only ended jobs are forgotten");
  if (!job.is_element()) {
    const auto head = codec::decode<SpecHead>(job.spec);
    GANTRY_ASSERT(head.has_value(), "a spec that was read once");
    const auto it = state.requests.find(request_key(job.uid, head->request_id));
    if (it != state.requests.end() && it->second == job.id) state.requests.erase(it);
    drop_stored(state, job, *head);
    state.secrets.wanted.erase(job.id);
    state.datasets_wanted.erase(job.id);
    forget_replica(state.services, job.id);
    state.unfolded.forgotten_specs.push_back(job.id);
  } else if (Job* array = state.jobs.find(job.array)) {
    array->tasks->elements.erase(job.ordinal);
  }
  UserJobs& user = state.users[job.uid];
  user.jobs.removed([&](JobId id) { return id != job.id && state.jobs.find(id) != nullptr; });
  if (user.jobs.empty()) state.users.erase(job.uid);
  state.names.drop(job.name);
  state.names.drop(job.account);
  state.names.drop(job.user);
  state.classes.drop(job.cls);
}

void take_grant(MutableState& state, const Job& job, const sched::NodeGrant& grant,
                bool exclusive) {
  Node& node = state.node(grant.node);
  for (const std::uint16_t cpu : grant.cpus) {
    if (node.cpu_taken.size() <= cpu) node.cpu_taken.resize(cpu + 1u);
    GANTRY_ASSERT(!node.cpu_taken[cpu], "a core is given to one job at a time");
    node.cpu_taken[cpu] = true;
  }
  node.cpus_taken += static_cast<std::uint32_t>(grant.cpus.size());
  node.memory_taken += grant.memory;
  node.scratch_taken += grant.scratch;
  take_gpus(node, grant, class_of(state, job).partition);
  take_gres(node, grant);
  node.exclusive_jobs += exclusive ? 1 : 0;
  const auto at = std::lower_bound(node.jobs.begin(), node.jobs.end(), job.id);
  GANTRY_ASSERT(at == node.jobs.end() || *at != job.id, "a job holds a node once");
  node.jobs.insert(at, job.id);
  state.touched.trigger_nodes.push_back(node.id);
}

void give_grant(MutableState& state, const Job& job, const sched::NodeGrant& grant,
                bool exclusive) {
  Node& node = state.node(grant.node);
  for (const std::uint16_t cpu : grant.cpus) {
    GANTRY_ASSERT(cpu < node.cpu_taken.size() && node.cpu_taken[cpu], "a core given back twice");
    node.cpu_taken[cpu] = false;
  }
  GANTRY_ASSERT(node.cpus_taken >= grant.cpus.size() && node.memory_taken >= grant.memory &&
                    node.scratch_taken >= grant.scratch,
                "more given back than taken");
  node.cpus_taken -= static_cast<std::uint32_t>(grant.cpus.size());
  node.memory_taken -= grant.memory;
  node.scratch_taken -= grant.scratch;
  give_gpus(node, grant, class_of(state, job).partition);
  // A drained GPU that the job held is out of service from now on.
  if (!node.drained_gpus.empty()) state.touched.nodes.push_back(node.id);
  give_gres(node, grant);
  node.exclusive_jobs -= exclusive ? 1 : 0;
  const auto at = std::lower_bound(node.jobs.begin(), node.jobs.end(), job.id);
  GANTRY_ASSERT(at != node.jobs.end() && *at == job.id, "a node given back by who has it");
  node.jobs.erase(at);
  state.touched.trigger_nodes.push_back(node.id);
}

}  // namespace gantry::core
