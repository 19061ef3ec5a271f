// Recovery: State from its records; see load.h.
#include "ctld/core/apply/load.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/proto/budget.h"
#include "common/proto/ledger.h"
#include "common/proto/tenant_events.h"
#include "ctld/core/context.h"
#include "ctld/core/job_reader.h"
#include "ctld/core/money/budgets.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/notify/triggers.h"
#include "ctld/core/resources/index.h"
#include "ctld/core/state/state.h"
#include "ctld/core/state/use_state.h"

namespace gantry::core {
namespace {

void restore_tasks(ArrayState& tasks, const ArrayRecord& r) {
  static_cast<ArrayFacts&>(tasks) = r;
  tasks.pending = OrdinalSet::from_spans(r.pending);
  tasks.done_ok = OrdinalSet::from_spans(r.done_ok);
  tasks.done_bad = OrdinalSet::from_spans(r.done_bad);
  tasks.corr_met = OrdinalSet::from_spans(r.corr_met);
  tasks.corr_never = OrdinalSet::from_spans(r.corr_never);
}

// Restores a job from its record. The facts from the spec (or from the array) must be set already.
void restore(MutableState& state, Job& job, JobRecord&& r) {
  static_cast<JobFacts&>(job) = static_cast<JobFacts&&>(r);
  if (r.name) {
    state.names.drop(job.name);
    job.name = state.names.add(*r.name);
    job.renamed = true;
  }
  if (r.account) {
    state.names.drop(job.account);
    job.account = state.names.add(*r.account);
    job.respecified = true;
  }
  if (r.comment) job.comment = std::make_unique<std::string>(std::move(*r.comment));
  set_queues(job, std::move(r.queues));
  set_windows(job, std::move(r.windows));
  if (r.notes) job.notes = std::make_unique<JobNotes>(std::move(*r.notes));
  sched::ClassKey key = class_of(state, job);
  key.partition = r.partition;
  key.time_limit = r.time_limit;
  if (r.reservation) key.reservation = *r.reservation;
  if (r.shape) {
    key.shape = *r.shape;
    job.may_requeue = r.may_requeue.value_or(job.may_requeue);
    job.reshaped = true;
  }
  if (r.priority_class) key.priority_class = *r.priority_class;
  set_class(state, job, key);
  if (job.dependencies)
    for (std::size_t i = 0; i < job.dependencies->list.size() && i < r.dependencies.size(); ++i)
      job.dependencies->list[i].status = r.dependencies[i];
  if (job.tasks && r.tasks) restore_tasks(*job.tasks, *r.tasks);
  if (r.active) job.active = std::make_unique<Active>(std::move(*r.active));
  if (job.phase == Phase::ended) state.ended.emplace_back(job.ended.value_or(Instant{}), job.id);
}

}  // namespace

Result<void> Loader::node(std::string_view name, std::string_view value) {
  auto r = codec::decode<NodeRecord>(value);
  if (!r) return broken("node record", r.error());
  if (state_.nodes.size() <= r->id.value()) state_.nodes.resize(r->id.value() + 1);
  Node& node = state_.nodes[r->id.value()];
  static_cast<NodeRecord&>(node) = std::move(*r);
  node.name = name;
  state_.node_ids[node.name] = node.id;
  return {};
}

Result<void> Loader::record(store::Table table, std::string_view key, std::string_view value) {
  switch (table) {
    case store::Table::meta: {
      const auto r = codec::decode<MetaRecord>(value);
      if (!r) return broken("meta record", r.error());
      state_.epoch = r->epoch;
      state_.last_job = r->last_job;
      state_.last_time = r->last_time;
      applied_ = r->applied;
      if (!r->class_names.empty()) state_.tenancy.class_names = r->class_names;
      state_.tenancy.half_life = r->half_life;
      state_.budgets.kill_wait = r->kill_wait;
      state_.budgets.start_timeout = r->start_timeout;
      state_.triggers.last = r->last_trigger;
      return {};
    }
    case store::Table::job_state:
      reader_.record(JobId(store::ordered_key_value(key)), value);
      return {};
    case store::Table::node: return node(key, value);
    case store::Table::node_key:
      if (key.starts_with(kTokenKey)) {
        auto token = codec::decode<EnrollToken>(value);
        if (!token) return broken("enrolment token", token.error());
        state_.enroll_tokens[std::string(key.substr(kTokenKey.size()))] = std::move(*token);
        return {};
      }
      [[fallthrough]];
    case store::Table::user_key: {
      const auto r = codec::decode<TextRecord>(value);
      if (!r) return broken("key record", r.error());
      if (table == store::Table::user_key)
        state_.user_keys[std::string(key)] = r->text;
      else
        node_keys_.emplace_back(key, r->text);
      return {};
    }
    case store::Table::partition: {
      const auto r = codec::decode<PartitionRecord>(value);
      if (!r) return broken("partition record", r.error());
      if (state_.partitions.size() <= r->id.value()) state_.partitions.resize(r->id.value() + 1);
      Partition& partition = state_.partitions[r->id.value()];
      static_cast<PartitionRecord&>(partition) = *r;
      partition.set_key(std::string(key));
      state_.partition_ids[std::string(key)] = r->id;
      if (!partition.tenant.empty()) state_.parts_of_tenants[partition.tenant].push_back(r->id);
      return {};
    }
    case store::Table::document:
    case store::Table::share:
    case store::Table::reservation:
    case store::Table::revision:
    case store::Table::alert: return tenancy(table, value);
    case store::Table::ledger: {
      auto r = codec::decode<LedgerSum>(value);
      if (!r) return broken("sum of the ledger", r.error());
      add_total(state_.ledger, std::string(key), *r);
      state_.ledger.sums.insert_or_assign(std::string(key), std::move(*r));
      return {};
    }
    case store::Table::usage: {
      auto r = codec::decode<BudgetBook>(value);
      if (!r) return broken("record of a budget", r.error());
      state_.budgets.books.insert_or_assign(std::string(key), std::move(*r));
      return {};
    }
    case store::Table::increase: {
      auto r = codec::decode<proto::Increase>(value);
      if (!r) return broken("request for more", r.error());
      state_.budgets.last_increase = std::max(state_.budgets.last_increase, r->number);
      const std::uint64_t number = r->number;
      state_.budgets.increases.insert_or_assign(number, std::move(*r));
      return {};
    }
    case store::Table::posted: {
      auto r = codec::decode<proto::PostedBatch>(value);
      if (!r) return broken("batch of charges", r.error());
      state_.ledger.posted.insert_or_assign(std::string(key), std::move(*r));
      return {};
    }
    case store::Table::trigger: {
      auto r = codec::decode<TriggerState>(value);
      if (!r) return broken("trigger", r.error());
      TriggerState& one = state_.triggers.all[r->trigger.id];
      one = std::move(*r);
      index_trigger(state_.triggers, one);
      return {};
    }
    case store::Table::use: {
      auto r = codec::decode<UseRecord>(value);
      if (!r) return broken("record of use", r.error());
      state_.used.insert_or_assign(std::string(key), std::move(*r));
      return {};
    }
    case store::Table::secret: return secret(key, value);
    case store::Table::service: {
      auto r = codec::decode<ServiceState>(value);
      if (!r) return broken("service", r.error());
      state_.services.all.insert_or_assign(std::string(key), std::move(*r));
      return {};
    }
    case store::Table::request: return {};  // not used by this release
  }
  return fail(ErrorCode::malformed, "the store has a table that this release does not know");
}

Result<void> Loader::secret(std::string_view key, std::string_view value) {
  const std::size_t slash = key.find('/');
  TenantSecrets& tenant = state_.secrets.tenants[std::string(key.substr(0, slash))];
  if (slash == std::string_view::npos) {
    const auto r = codec::decode<RemovedRecord>(value);
    if (!r) return broken("record of removed secrets", r.error());
    tenant.removed = r->removed;
    return {};
  }
  auto r = codec::decode<SecretState>(value);
  if (!r) return broken("secret", r.error());
  tenant.by_name.insert_or_assign(std::string(key.substr(slash + 1)), std::move(*r));
  return {};
}

Result<void> Loader::tenancy(store::Table table, std::string_view value) {
  TenancyState& tenancy = state_.tenancy;
  if (table == store::Table::document) {
    auto r = codec::decode<DocumentRecord>(value);
    if (!r) return broken("tenancy document", r.error());
    const DocumentKey key = key_of(r->document);
    tenancy.documents.insert_or_assign(key, std::move(r->document));
  } else if (table == store::Table::share) {
    auto r = codec::decode<ShareNode>(value);
    if (!r) return broken("fair-share record", r.error());
    if (tenancy.shares.size() <= r->id.value()) tenancy.shares.resize(r->id.value() + 1);
    tenancy.share_ids[{r->parent, r->name}] = r->id;
    tenancy.shares[r->id.value()] = std::move(*r);
  } else if (table == store::Table::reservation) {
    auto r = codec::decode<AdvanceReservation>(value);
    if (!r) return broken("reservation", r.error());
    const std::string name = r->name;
    tenancy.reservations.insert_or_assign(name, std::move(*r));
  } else if (table == store::Table::alert) {
    auto r = codec::decode<proto::QuotaAlert>(value);
    if (!r) return broken("quota alert", r.error());
    tenancy.last_alert = r->number;  // alerts come in order of their numbers
    tenancy.alerts.push_back(std::move(*r));
  } else {
    auto r = codec::decode<TenancyRevision>(value);
    if (!r) return broken("revision of tenancy documents", r.error());
    tenancy.revision = r->revision;  // revisions come in order of their numbers
    r->bytes = value.size();
    tenancy.history_bytes += r->bytes;
    tenancy.history.push_back(std::move(*r));
  }
  return {};
}

Result<void> Loader::spec(JobId id, std::string_view data) {
  if (!std::exchange(counted_, true)) take(reader_.count());
  ASSIGN(read, reader_.spec(id, data));
  take(std::move(*read));
  return {};
}

void Loader::take(ReadCount&& count) {
  state_.requests.reserve(count.records);
}

void Loader::take(ReadJob&& read) {
  if (!read.record) {
    state_.new_specs.emplace(read.id, std::move(read.spec));
    return;
  }
  Job& job = state_.jobs.add(read.id);
  job.id = read.id;
  job.spec = std::move(read.spec);
  fill_job(state_, job, read.head, read.record->partition, read.record->time_limit);
  restore(state_, job, std::move(*read.record));
  index_job(state_, job, &read.head);
}

Result<void> Loader::job_without_spec(JobId id, JobRecord&& record) {
  const Job* array = state_.jobs.find(record.array);
  if (record.array == JobId{} || array == nullptr || !array->is_array())
    return fail(ErrorCode::malformed, fmt::format("the store has no spec of job {}", id.value()));
  Job& job = state_.jobs.add(id);
  job.id = id;
  fill_element(state_, job, *array, record.ordinal);
  if (job.respecified && !record.account) {  // likewise without its account or reservation
    const auto head = codec::decode<SpecHead>(array->spec);
    if (!head) return broken(fmt::format("spec of job {}", array->id.value()), head.error());
    state_.names.drop(job.account);
    job.account = state_.names.add(head->spec.account);
    sched::ClassKey key = class_of(state_, job);
    key.reservation = head->spec.reservation;
    set_class(state_, job, key);
    job.respecified = false;
  }
  if (job.reshaped &&
      !record.shape) {  // the array's shape was changed after this task was split off
    const auto head = codec::decode<SpecHead>(array->spec);
    if (!head) return broken(fmt::format("spec of job {}", array->id.value()), head.error());
    sched::ClassKey key = class_of(state_, job);
    key.shape = head->spec.shape;
    set_class(state_, job, key);
    job.may_requeue = head->spec.requeue;
    job.reshaped = false;
  }
  if (job.renamed && !record.name) {  // the array was renamed after this task was split off
    const auto head = codec::decode<SpecHead>(array->spec);
    if (!head) return broken(fmt::format("spec of job {}", array->id.value()), head.error());
    state_.names.drop(job.name);
    job.name = state_.names.add(head->spec.name);
    job.renamed = false;
  }
  restore(state_, job, std::move(record));
  index_job(state_, job, nullptr);
  return {};
}

Result<void> Loader::finish() {
  finished_ = true;
  state_.ledger.prices = compile_prices(state_.tenancy.documents);
  if (ReadRest read = reader_.rest(); !read.records.empty()) take(std::move(read));
  for (auto& [id, bytes] : rest_) {
    auto record = codec::decode<JobRecord>(bytes);
    if (!record) return broken(fmt::format("record of job {}", id.value()), record.error());
    if (auto done = job_without_spec(id, std::move(*record)); !done) return done;
  }
  rest_ = {};
  for (const auto& [name, key] : node_keys_) {
    const auto it = state_.node_ids.find(name);
    if (it == state_.node_ids.end() || key.empty()) continue;
    state_.node(it->second).public_key = key;
    state_.node_keys[key] = it->second;
  }
  load_budgets(state_);
  // Tasks sort before their array, because a task needs its array as long as the task is known.
  std::sort(state_.ended.begin(), state_.ended.end(), [&](const auto& a, const auto& b) {
    const bool array_a = state_.jobs.at(a.second).is_array();
    const bool array_b = state_.jobs.at(b.second).is_array();
    return std::tie(a.first, array_a, a.second) < std::tie(b.first, array_b, b.second);
  });
  return {};
}

void doubt_orders(MutableState& state) {
  for (const JobId id : jobs_on_nodes(state)) {
    JobEdit job(state, id);
    for (NodeRun& run : job->active->nodes) run.perhaps_over |= run.state == RunState::launched;
  }
}

}  // namespace gantry::core
