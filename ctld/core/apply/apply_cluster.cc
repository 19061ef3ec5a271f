// apply() of events about the controller, nodes, partitions and keys.
#include "common/assert.h"
#include "common/proto/gpu_rows.h"
#include "ctld/core/apply.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/resources/index.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

void apply_event(MutableState& state, Instant, const event::ControllerStarted& e) {
  GANTRY_ASSERT(e.epoch > state.epoch, "the epoch grows");
  state.epoch = e.epoch;
}

void apply_event(MutableState& state, Instant, const event::NodeDeclared& e) {
  GANTRY_ASSERT(e.node.value() == state.nodes.size(), "node ids are given in order");
  Node& node = state.nodes.emplace_back();
  node.id = e.node;
  node.name = e.name;
  state.node_ids[e.name] = e.node;
  touch(state, node);
}

void apply_event(MutableState& state, Instant, const event::PartitionDeclared& e) {
  GANTRY_ASSERT(e.partition.value() == state.partitions.size(), "partition ids are given in order");
  Partition& partition = state.partitions.emplace_back();
  partition.id = e.partition;
  partition.set_key(e.name);
  state.partition_ids[e.name] = e.partition;
  if (!partition.tenant.empty()) {
    state.parts_of_tenants[partition.tenant].push_back(e.partition);
    if (const Partition* whole = state.partition_named(partition.name)) {
      partition.up_set = whole->up_set;
      partition.accepts_jobs_set = whole->accepts_jobs_set;
    }
  }
  state.unfolded.partitions.push_back(e.partition);
}

void apply_event(MutableState& state, Instant, const event::NodeRegistered& e) {
  Node& node = state.node(e.node);
  node.facts = e.facts;
  state.last_job = std::max(state.last_job, e.highest_job);
  touch(state, node);
}

void apply_event(MutableState& state, Instant at, const event::NodeHealthChanged& e) {
  Node& node = state.node(e.node);
  node.health = e.health;
  if (node.intent == NodeIntent::open) {  // an operator's reason stays
    node.reason = e.reason;
    node.reason_by.clear();
    node.since = e.reason.empty() ? std::nullopt : std::optional(at);
  }
  touch(state, node);
}

void apply_event(MutableState& state, Instant, const event::NodesLost& e) {
  for (const NodeId id : e.nodes) {
    Node& node = state.node(id);
    GANTRY_ASSERT(node.health == NodeHealth::lost && node.intent == NodeIntent::open,
                  "lost, and no operator's");
    node.reason = e.reason;
    node.since = e.since;
    touch(state, node);
  }
}

void apply_event(MutableState& state, Instant at, const event::NodeIntentChanged& e) {
  Node& node = state.node(e.node);
  node.intent = e.intent;
  node.reason = e.reason;
  node.reason_by = e.by;
  node.since = e.reason.empty() ? std::nullopt : std::optional(at);
  touch(state, node);
}

void apply_event(MutableState& state, Instant, const event::NodeNoted& e) {
  Node& node = state.node(e.node);
  if (e.file_features) node.features_set.reset();
  if (e.features) node.features_set = e.features;
  if (e.comment) node.comment = *e.comment;
  touch(state, node);
}

namespace {

auto drained_at(Node& node, const std::string& uuid) {
  return std::lower_bound(node.drained_gpus.begin(), node.drained_gpus.end(), uuid,
                          [](const proto::DrainedGpu& d, const auto& u) { return d.uuid < u; });
}

}  // namespace

void apply_event(MutableState& state, Instant at, const event::GpuDrained& e) {
  Node& node = state.node(e.node);
  auto d = drained_at(node, e.uuid);
  if (d == node.drained_gpus.end() || d->uuid != e.uuid)
    d = node.drained_gpus.insert(d, {e.uuid, {}, {}, at});  // a new reason does not change the time
  d->reason = e.reason;
  d->by = e.by;
  touch(state, node);
}

void apply_event(MutableState& state, Instant, const event::GpuResumed& e) {
  Node& node = state.node(e.node);
  const auto d = drained_at(node, e.uuid);
  GANTRY_ASSERT(d != node.drained_gpus.end() && d->uuid == e.uuid, "a GPU that was drained");
  node.drained_gpus.erase(d);
  touch(state, node);
}

void apply_event(MutableState& state, Instant, const event::NodeEnrolled& e) {
  Node& node = state.node(e.node);
  state.node_keys.erase(node.public_key);
  node.public_key = e.public_key;
  if (!e.public_key.empty()) state.node_keys[e.public_key] = e.node;
  state.unfolded.node_keys.push_back(e.node);
  touch(state, node);
}

void apply_event(MutableState& state, Instant at, const event::EnrollTokenMade& e) {
  state.enroll_tokens[e.hash] = {e.node, at, e.expires, e.by};
  state.unfolded.enroll_tokens.push_back(e.hash);
}

void apply_event(MutableState& state, Instant, const event::EnrollTokensGone& e) {
  for (const std::string& hash : e.hashes) {
    GANTRY_ASSERT(state.enroll_tokens.erase(hash) == 1, "only what is there goes");
    state.unfolded.enroll_tokens.push_back(hash);
  }
}

namespace {

// Changes the partition and the queues that tenants have in it.
template <class Change>
void change_partitions(MutableState& state, PartitionId partition, Change change) {
  const std::string name = state.partition(partition).name;
  for (Partition& p : state.partitions) {
    if (p.name != name) continue;
    change(p);
    state.unfolded.partitions.push_back(p.id);
  }
}

}  // namespace

void apply_event(MutableState& state, Instant, const event::PartitionUpChanged& e) {
  change_partitions(state, e.partition, [&](Partition& p) {
    p.up_set = e.up;
    if (e.accepts_jobs) p.accepts_jobs_set = e.accepts_jobs;
  });
}

void apply_event(MutableState& state, Instant at, const event::PartitionSet& e) {
  change_partitions(state, e.partition, [&](Partition& p) {
    if (e.reset) p.up_set = p.accepts_jobs_set = std::nullopt;
    if (e.up) p.up_set = e.up;
    if (e.accepts_jobs) p.accepts_jobs_set = e.accepts_jobs;
  });
  Partition& partition = state.partition(e.partition);
  partition.origin = e.origin;
  partition.values = e.values;
  const bool file_alone = e.origin == PartitionOrigin::file && e.values.empty();
  partition.changed_by = file_alone ? std::string() : e.by;
  partition.changed = file_alone ? std::nullopt : std::optional(at);
}

void apply_event(MutableState& state, Instant, const event::KeyRegistered& e) {
  if (e.user)
    state.user_keys[e.public_key] = *e.user;
  else
    state.user_keys.erase(e.public_key);
  state.unfolded.user_keys.push_back(e.public_key);
}

}  // namespace gantry::core
