// The fold: records of what changed since the last one, sorted by table and key; see load.h.
#include <algorithm>

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "ctld/core/apply/load.h"

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
  ArrayRecord r;
  r.pending = tasks.pending.spans();
  r.done_ok = tasks.done_ok.spans();
  r.done_bad = tasks.done_bad.spans();
  r.corr_met = tasks.corr_met.spans();
  r.corr_never = tasks.corr_never.spans();
  r.max_running = tasks.max_running;
  r.never_started = tasks.never_started;
  r.last_history = tasks.last_history;
  r.worst = tasks.worst;
  r.worst_exit = tasks.worst_exit;
  return r;
}

ActiveRecord record_of(const Active& active) {
  ActiveRecord r;
  r.placed = active.placed;
  r.exclusive = active.exclusive;
  r.warned = active.warned;
  r.nodes = active.nodes;
  r.finish = active.finish;
  r.usage = active.usage;
  r.steps = active.steps;
  r.next_step = active.next_step;
  r.charge = active.charge;
  r.checkpoint = active.checkpoint;
  r.waits = active.waits;
  r.bill = active.bill;
  r.idle_told = active.idle_told;
  r.suspended = active.suspended;
  r.suspended_before = active.suspended_before;
  return r;
}

void fold_nodes(State& state, std::vector<store::RecordChange>& out) {
  std::vector<store::RecordChange> changes;
  for (const NodeId id : take(state.fold_nodes)) {
    Node& node = state.node(id);
    node.fold_due = false;
    NodeRecord r;
    r.id = node.id;
    r.health = node.health;
    r.intent = node.intent;
    r.reason = node.reason;
    r.reason_by = node.reason_by;
    r.since = node.since;
    r.facts = node.facts;
    r.drained_gpus = node.drained_gpus;
    changes.push_back({store::Table::node, node.name, codec::encode(r)});
  }
  std::sort(changes.begin(), changes.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  std::move(changes.begin(), changes.end(), std::back_inserter(out));
}

void fold_keys(State& state, std::vector<store::RecordChange>& out) {
  for (const std::string& key : take(state.fold_keys)) {
    const auto it = state.user_keys.find(key);
    std::optional<Bytes> value;
    if (it != state.user_keys.end()) value = codec::encode(TextRecord{it->second});
    out.push_back({store::Table::user_key, key, std::move(value)});
  }
  std::vector<store::RecordChange> changes;
  for (const NodeId id : take(state.fold_node_keys))
    changes.push_back({store::Table::node_key, state.node(id).name,
                       codec::encode(TextRecord{state.node(id).public_key})});
  std::sort(changes.begin(), changes.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  std::move(changes.begin(), changes.end(), std::back_inserter(out));
}

void fold_partitions(State& state, std::vector<store::RecordChange>& out) {
  std::vector<store::RecordChange> changes;
  for (const PartitionId id : take(state.fold_partitions)) {
    const Partition& p = state.partition(id);
    changes.push_back(
        {store::Table::partition, p.key(), codec::encode(PartitionRecord{p.id, p.up_set})});
  }
  std::sort(changes.begin(), changes.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  std::move(changes.begin(), changes.end(), std::back_inserter(out));
}

std::string text_of(const DocumentKey& key) {
  return fmt::format("{}/{}", key.first, key.second);
}

void fold_tenancy(TenancyState& tenancy, std::vector<store::RecordChange>& out) {
  std::map<std::string, std::optional<Bytes>> documents;
  for (const DocumentKey& key : take(tenancy.fold_documents)) {
    const auto it = tenancy.documents.find(key);
    documents[text_of(key)] = it == tenancy.documents.end()
                                  ? std::nullopt
                                  : std::optional(codec::encode(DocumentRecord{it->second}));
  }
  for (auto& [key, value] : documents)
    out.push_back({store::Table::document, key, std::move(value)});
  for (const sched::ShareId id : take(tenancy.fold_shares))
    out.push_back({store::Table::share, store::ordered_key(id.value()),
                   codec::encode(tenancy.shares[id.value()])});
  for (const std::string& name : take(tenancy.fold_reservations)) {
    const auto it = tenancy.reservations.find(name);
    out.push_back({store::Table::reservation, name,
                   it == tenancy.reservations.end() ? std::nullopt
                                                    : std::optional(codec::encode(it->second))});
  }
  for (const std::uint64_t revision : take(tenancy.fold_revisions)) {
    const auto it = std::find_if(tenancy.history.begin(), tenancy.history.end(),
                                 [&](const TenancyRevision& r) { return r.revision == revision; });
    out.push_back({store::Table::revision, store::ordered_key(revision),
                   it == tenancy.history.end() ? std::nullopt : std::optional(codec::encode(*it))});
  }
  for (const std::uint64_t number : take(tenancy.fold_alerts)) {
    const auto it = std::find_if(tenancy.alerts.begin(), tenancy.alerts.end(),
                                 [&](const proto::QuotaAlert& a) { return a.number == number; });
    out.push_back({store::Table::alert, store::ordered_key(number),
                   it == tenancy.alerts.end() ? std::nullopt : std::optional(codec::encode(*it))});
  }
}

void fold_posted(LedgerState& ledger, std::vector<store::RecordChange>& out) {
  for (std::string& name : take(ledger.fold_posted)) {
    Bytes value = codec::encode(ledger.posted.at(name));
    out.push_back({store::Table::posted, std::move(name), std::move(value)});
  }
}

void fold_ledger(LedgerState& ledger, std::vector<store::RecordChange>& out) {
  for (std::string& key : take(ledger.fold_sums)) {
    LedgerSum& sum = ledger.sums.at(key);
    sum.fold_due = false;
    out.push_back({store::Table::ledger, std::move(key), codec::encode(sum)});
  }
}

void fold_budgets(BudgetState& budgets, std::vector<store::RecordChange>& out) {
  for (std::string& name : take(budgets.fold_books)) {
    const auto it = budgets.books.find(name);
    std::optional<Bytes> value;
    if (it != budgets.books.end()) {
      it->second.fold_due = false;
      value = codec::encode(it->second);
    }
    out.push_back({store::Table::usage, std::move(name), std::move(value)});
  }
}

void fold_increases(BudgetState& budgets, std::vector<store::RecordChange>& out) {
  for (const std::uint64_t number : take(budgets.fold_increases)) {
    const auto it = budgets.increases.find(number);
    out.push_back(
        {store::Table::increase, store::ordered_key(number),
         it == budgets.increases.end() ? std::nullopt : std::optional(codec::encode(it->second))});
  }
}

void fold_triggers(TriggerTable& table, std::vector<store::RecordChange>& out) {
  for (const TriggerId id : take(table.fold)) {
    const auto it = table.all.find(id);
    out.push_back(
        {store::Table::trigger, store::ordered_key(id.value()),
         it == table.all.end() ? std::nullopt : std::optional(codec::encode(it->second))});
  }
}

}  // namespace

JobRecord record_of(const State& state, const Job& job) {
  JobRecord r;
  r.array = job.array;
  r.ordinal = job.ordinal;
  r.phase = job.phase;
  r.hold = job.hold;
  r.started_once = job.started_once;
  r.outcome = job.outcome;
  r.exit = job.exit;
  if (job.renamed) r.name = state.names.text(job.name);
  if (job.respecified) {
    r.account = state.names.text(job.account);
    r.reservation = class_of(state, job).reservation;
  }
  if (job.reshaped) {
    r.shape = class_of(state, job).shape;
    r.may_requeue = job.may_requeue;
  }
  r.partition = class_of(state, job).partition;
  r.time_limit = time_limit_of(state, job);
  r.nice = job.nice;
  r.priority = job.priority;
  r.restarts = job.restarts;
  r.launch_failures = job.launch_failures;
  r.attempt = job.attempt;
  r.submitted = job.submitted;
  r.eligible = job.eligible;
  r.not_before = job.not_before;
  r.backing_off = job.backing_off;
  r.started = job.started;
  r.ended = job.ended;
  r.cause = job.cause;
  if (job.dependencies)
    for (const DependencyState& d : job.dependencies->list) r.dependencies.push_back(d.status);
  if (job.tasks) r.tasks = record_of(*job.tasks);
  if (job.active) r.active = record_of(*job.active);
  if (job.comment) r.comment = *job.comment;
  r.preemptions = job.preemptions;
  r.share = job.share;
  r.class_priority = job.class_priority;
  r.billed = job.billed;
  r.credited = job.credited;
  if (job.lowered || job.is_element()) r.priority_class = class_of(state, job).priority_class;
  r.lowered = job.lowered;
  r.window_named = job.window_named;
  return r;
}

store::FoldBatch fold(State& state, EventSeq applied) {
  store::FoldBatch out;
  out.applied = applied;
  if (state.fold_meta)
    out.records.push_back(
        {store::Table::meta, "controller",
         codec::encode(MetaRecord{state.epoch, state.last_job, state.last_time, applied,
                                  state.tenancy.class_names, state.tenancy.half_life,
                                  state.budgets.kill_wait, state.budgets.start_timeout,
                                  state.triggers.last})});
  state.fold_meta = false;
  for (const JobId id : take(state.fold_jobs)) {
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
  fold_budgets(state.budgets, out.records);
  fold_tenancy(state.tenancy, out.records);
  fold_ledger(state.ledger, out.records);
  fold_increases(state.budgets, out.records);
  fold_posted(state.ledger, out.records);
  fold_triggers(state.triggers, out.records);
  out.history.swap(state.history);
  out.spec_deletes = take(state.forgotten_specs);
  out.blob_deletes = state.blobs.take_unused();
  return out;
}

}  // namespace gantry::core
