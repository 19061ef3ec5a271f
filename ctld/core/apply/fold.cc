// The fold: records of what changed since the last fold, sorted by table and key; see load.h.
#include <algorithm>

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/proto/tenant_events.h"
#include "ctld/core/apply/load.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

template <class T>
void sort_unique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

template <class T>
std::vector<T> take(std::vector<T>& list) {
  std::vector<T> out;
  out.swap(list);
  sort_unique(out);
  return out;
}

ArrayRecord record_of(const ArrayState& tasks) {
  ArrayRecord r{tasks, {}, {}, {}, {}, {}};
  r.pending = tasks.pending.spans();
  r.done_ok = tasks.done_ok.spans();
  r.done_bad = tasks.done_bad.spans();
  r.corr_met = tasks.corr_met.spans();
  r.corr_never = tasks.corr_never.spans();
  return r;
}

void fold_nodes(MutableState& state, std::vector<store::RecordChange>& out) {
  std::vector<store::RecordChange> changes;
  for (const NodeId id : take(state.unfolded.nodes)) {
    Node& node = state.node(id);
    node.fold_due = false;
    changes.push_back({store::Table::node, node.name, codec::encode<NodeRecord>(node)});
  }
  std::sort(changes.begin(), changes.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  std::move(changes.begin(), changes.end(), std::back_inserter(out));
}

// A key may be set and removed again between two folds; the record has its newest state.
void fold_keys(MutableState& state, std::vector<store::RecordChange>& out) {
  std::map<std::string, std::optional<Bytes>> users, nodes;
  for (const std::string& key : take(state.unfolded.user_keys)) {
    const auto it = state.user_keys.find(key);
    users[key] = it == state.user_keys.end() ? std::nullopt
                                             : std::optional(codec::encode(TextRecord{it->second}));
  }
  for (const std::string& hash : take(state.unfolded.enroll_tokens)) {
    const auto it = state.enroll_tokens.find(hash);
    nodes[std::string(kTokenKey) + hash] =
        it == state.enroll_tokens.end() ? std::nullopt : std::optional(codec::encode(it->second));
  }
  for (const NodeId id : take(state.unfolded.node_keys))
    nodes[state.node(id).name] = codec::encode(TextRecord{state.node(id).public_key});
  for (auto& [key, value] : users) out.push_back({store::Table::user_key, key, std::move(value)});
  for (auto& [key, value] : nodes) out.push_back({store::Table::node_key, key, std::move(value)});
}

void fold_partitions(MutableState& state, std::vector<store::RecordChange>& out) {
  std::vector<store::RecordChange> changes;
  for (const PartitionId id : take(state.unfolded.partitions)) {
    const Partition& p = state.partition(id);
    changes.push_back({store::Table::partition, p.key(), codec::encode<PartitionRecord>(p)});
  }
  std::sort(changes.begin(), changes.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  std::move(changes.begin(), changes.end(), std::back_inserter(out));
}

std::string text_of(const DocumentKey& key) {
  return fmt::format("{}/{}", key.first, key.second);
}

void fold_tenancy(MutableState& state, std::vector<store::RecordChange>& out) {
  const TenancyState& tenancy = state.tenancy;
  std::map<std::string, std::optional<Bytes>> documents;
  for (const DocumentKey& key : take(state.unfolded.documents)) {
    const auto it = tenancy.documents.find(key);
    documents[text_of(key)] = it == tenancy.documents.end()
                                  ? std::nullopt
                                  : std::optional(codec::encode(DocumentRecord{it->second}));
  }
  for (auto& [key, value] : documents)
    out.push_back({store::Table::document, key, std::move(value)});
  for (const sched::ShareId id : take(state.unfolded.shares))
    out.push_back({store::Table::share, store::ordered_key(id.value()),
                   codec::encode(tenancy.shares[id.value()])});
  for (const std::string& name : take(state.unfolded.reservations)) {
    const auto it = tenancy.reservations.find(name);
    out.push_back({store::Table::reservation, name,
                   it == tenancy.reservations.end() ? std::nullopt
                                                    : std::optional(codec::encode(it->second))});
  }
  for (const std::uint64_t revision : take(state.unfolded.revisions)) {
    const auto it = std::find_if(tenancy.history.begin(), tenancy.history.end(),
                                 [&](const TenancyRevision& r) { return r.revision == revision; });
    out.push_back({store::Table::revision, store::ordered_key(revision),
                   it == tenancy.history.end() ? std::nullopt : std::optional(codec::encode(*it))});
  }
  for (const std::uint64_t number : take(state.unfolded.alerts)) {
    const auto it = std::find_if(tenancy.alerts.begin(), tenancy.alerts.end(),
                                 [&](const proto::QuotaAlert& a) { return a.number == number; });
    out.push_back({store::Table::alert, store::ordered_key(number),
                   it == tenancy.alerts.end() ? std::nullopt : std::optional(codec::encode(*it))});
  }
}

void fold_posted(MutableState& state, std::vector<store::RecordChange>& out) {
  for (std::string& name : take(state.unfolded.posted)) {
    Bytes value = codec::encode(state.ledger.posted.at(name));
    out.push_back({store::Table::posted, std::move(name), std::move(value)});
  }
}

void fold_ledger(MutableState& state, std::vector<store::RecordChange>& out) {
  for (std::string& key : take(state.unfolded.sums)) {
    LedgerSum& sum = state.ledger.sums.at(key);
    sum.fold_due = false;
    out.push_back({store::Table::ledger, std::move(key), codec::encode(sum)});
  }
}

void fold_budgets(MutableState& state, std::vector<store::RecordChange>& out) {
  for (std::string& name : take(state.unfolded.books)) {
    const auto it = state.budgets.books.find(name);
    std::optional<Bytes> value;
    if (it != state.budgets.books.end()) {
      it->second.fold_due = false;
      value = codec::encode(it->second);
    }
    out.push_back({store::Table::usage, std::move(name), std::move(value)});
  }
}

void fold_increases(MutableState& state, std::vector<store::RecordChange>& out) {
  for (const std::uint64_t number : take(state.unfolded.increases)) {
    const auto it = state.budgets.increases.find(number);
    out.push_back({store::Table::increase, store::ordered_key(number),
                   it == state.budgets.increases.end() ? std::nullopt
                                                       : std::optional(codec::encode(it->second))});
  }
}

void fold_triggers(MutableState& state, std::vector<store::RecordChange>& out) {
  for (const TriggerId id : take(state.unfolded.triggers)) {
    const auto it = state.triggers.all.find(id);
    out.push_back(
        {store::Table::trigger, store::ordered_key(id.value()),
         it == state.triggers.all.end() ? std::nullopt : std::optional(codec::encode(it->second))});
  }
}

void fold_used(MutableState& state, std::vector<store::RecordChange>& out) {
  for (std::string& key : take(state.unfolded.used)) {
    const auto it = state.used.find(key);
    std::optional<Bytes> value;
    if (it != state.used.end()) value = codec::encode(it->second);
    out.push_back({store::Table::use, std::move(key), std::move(value)});
  }
}

// A secret is stored under the key TENANT/NAME, and the secrets that a tenant has removed under
// TENANT; neither name has a slash.
void fold_secrets(MutableState& state, std::vector<store::RecordChange>& out) {
  std::map<std::string, std::optional<Bytes>> records;
  for (const auto& [tenant, name] : take(state.unfolded.secrets)) {
    const auto it = state.secrets.tenants.find(tenant);
    const SecretState* secret = state.secrets.find(tenant, name);
    if (name.empty())
      records[tenant] = it == state.secrets.tenants.end()
                            ? std::nullopt
                            : std::optional(codec::encode(RemovedRecord{it->second.removed}));
    else
      records[tenant + "/" + name] =
          secret == nullptr ? std::nullopt : std::optional(codec::encode(*secret));
  }
  for (auto& [key, value] : records) out.push_back({store::Table::secret, key, std::move(value)});
}

void fold_services(MutableState& state, std::vector<store::RecordChange>& out) {
  for (const std::string& name : take(state.unfolded.services)) {
    const auto it = state.services.all.find(name);
    out.push_back(
        {store::Table::service, name,
         it == state.services.all.end() ? std::nullopt : std::optional(codec::encode(it->second))});
  }
}

}  // namespace

JobRecord record_of(const State& state, const Job& job) {
  JobRecord r;
  static_cast<JobFacts&>(r) = job;
  const sched::ClassKey& key = class_of(state, job);
  if (job.renamed) r.name = state.names.text(job.name);
  if (job.respecified) {
    r.account = state.names.text(job.account);
    r.reservation = key.reservation;
  }
  if (job.reshaped) {
    r.shape = key.shape;
    r.may_requeue = job.may_requeue;
  }
  if (job.lowered || job.is_element()) r.priority_class = key.priority_class;
  r.partition = key.partition;
  r.time_limit = key.time_limit;
  if (job.dependencies)
    for (const DependencyState& d : job.dependencies->list) r.dependencies.push_back(d.status);
  if (job.tasks) r.tasks = record_of(*job.tasks);
  if (job.active) r.active = *job.active;
  if (job.comment) r.comment = *job.comment;
  if (job.queues) r.queues = *job.queues;
  if (job.windows) r.windows = *job.windows;
  if (job.notes) r.notes = *job.notes;
  return r;
}

store::FoldBatch fold(MutableState& state, EventSeq applied) {
  store::FoldBatch out;
  out.applied = applied;
  if (state.unfolded.meta)
    out.records.push_back(
        {store::Table::meta, "controller",
         codec::encode(MetaRecord{state.epoch, state.last_job, state.last_time, applied,
                                  state.tenancy.class_names, state.tenancy.half_life,
                                  state.budgets.kill_wait, state.budgets.start_timeout,
                                  state.triggers.last})});
  state.unfolded.meta = false;
  for (const JobId id : take(state.unfolded.jobs)) {
    Job* job = state.jobs.find(id);
    std::optional<Bytes> value;
    if (job != nullptr) {
      job->fold_due = false;
      value = codec::encode(record_of(state, *job));
    }
    out.records.push_back(
        {store::Table::job_state, store::ordered_key(id.value()), std::move(value)});
  }
  fold_nodes(state, out.records);
  fold_keys(state, out.records);
  fold_partitions(state, out.records);
  fold_budgets(state, out.records);
  fold_tenancy(state, out.records);
  fold_ledger(state, out.records);
  fold_increases(state, out.records);
  fold_posted(state, out.records);
  fold_triggers(state, out.records);
  fold_used(state, out.records);
  fold_secrets(state, out.records);
  fold_services(state, out.records);
  out.history.swap(state.unfolded.history);
  out.spec_deletes = take(state.unfolded.forgotten_specs);
  out.blob_deletes = state.blobs.take_unused();
  return out;
}

}  // namespace gantry::core
