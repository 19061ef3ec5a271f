#include "ctld/core/money/metrics.h"

#include <algorithm>

#include "common/codec/codec.h"
#include "common/metrics/families.h"
#include "common/metrics/ledger_metrics.h"
#include "common/proto/budget.h"
#include "common/proto/ledger.h"
#include "common/proto/tenancy_view.h"
#include "ctld/core/money/budgets.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/state/state.h"
#include "ctld/core/state/stored_spec.h"

namespace gantry::core {
namespace {

using Series = std::map<std::array<std::string, 3>, proto::LedgerRow>;

void add_to(Series& out, const std::string& tenant, const std::string& type,
            const std::string& item, const LedgerSum& sum) {
  proto::LedgerRow& row = out[{tenant, type, item}];
  row.tenant = tenant;
  row.job_type = type;
  row.item = item;
  if (const auto held = proto::held_member(item)) add_held(row.*held, sum.held, held_unit(item));
  row.cost += sum.cost;
  row.credit += sum.credit;
  row.runs += sum.runs;
}

proto::LedgerReply counters(const State& state, Instant now,
                            const std::optional<std::string>& tenant) {
  Series series;
  const auto& totals = state.ledger.totals;
  auto it = tenant ? totals.lower_bound({*tenant, "", ""}) : totals.begin();
  for (; it != totals.end() && (!tenant || it->first[0] == *tenant); ++it)
    add_to(series, it->first[0], it->first[1], it->first[2], it->second);
  accrue(state, now, [&](const LedgerParts& parts, const LedgerSum& more) {
    if (parts.period.find('W') != std::string::npos) return;
    if (tenant && parts.tenant != *tenant) return;
    add_to(series, parts.tenant, parts.job_type, parts.item, more);
  });
  proto::LedgerReply out;
  out.currency = state.ledger.prices.currency;
  for (auto& [key, row] : series) out.rows.push_back(std::move(row));
  return out;
}

// GPUs held, and numbers of jobs, by queue.
proto::TenantUsageReply held_now(const State& state, const std::optional<std::string>& tenant) {
  proto::TenantUsageReply out;
  std::map<std::string, GpuThousandths> gpus;
  for (const JobId id : jobs_on_nodes(state)) {
    const Job& job = state.jobs.at(id);
    const std::string& name = state.partition(class_of(state, job).partition).payer();
    if (!job.active || (tenant && name != *tenant)) continue;
    for (const BillLine& line : job.active->bill.lines)
      if (line.what.item.starts_with("gpu:")) gpus[name] += GpuThousandths{line.amount};
  }
  for (const Partition& partition : state.partitions) {
    if (partition.declared == nullptr || !partition.tenant.empty()) continue;
    if (tenant && partition.name != *tenant) continue;
    proto::TenantUse& row = out.rows.emplace_back();
    row.name = partition.name;
    const QueueCounts counts = state.tenant_counts(partition.name);
    row.queued = counts.queued;
    row.running = counts.active;
    row.used.set<Resource::gpu>(gpus[partition.name]);
  }
  return out;
}

proto::BudgetList budgets_now(const State& state, Instant now,
                              const std::optional<std::string>& tenant) {
  proto::BudgetList out;
  out.currency = state.ledger.prices.currency;
  for (const auto& [name, stand] : stands_of(state, now)) {
    const BudgetAccount& account = state.budgets.accounts.at(name);
    if (tenant && account.budget.tenant != *tenant) continue;
    proto::BudgetRow& row = out.rows.emplace_back();
    row.budget = account.budget;
    row.period = stand.span.name;
    row.amount = amount_of(account);
    row.spent = stand.spent;
    row.reserved = stand.reserved;
    row.forecast = stand.forecast;
    row.little_history = stand.little_history;
  }
  return out;
}

struct LabelUse {
  std::uint64_t jobs = 0, cpus = 0, gpus = 0;  // cores, whole GPUs and slices
  void add(const LabelUse& more) {
    jobs += more.jobs;
    cpus += more.cpus;
    gpus += more.gpus;
  }
};
using LabelUses = std::map<std::pair<std::string, std::string>, LabelUse>;  // by tenant and value

LabelUse use_of(const Job& job) {
  LabelUse out{1, 0, 0};
  for (const NodeRun& run : job.active->nodes) {
    if (run.state == RunState::released) continue;
    out.cpus += run.grant.cpus.size();
    out.gpus += run.grant.devices.size();
  }
  return out;
}

// Users choose these values, so there may be any number of them; keeps those with the most jobs.
LabelUses with_most_jobs(const LabelUses& all) {
  if (all.size() <= kMostLabelValues) return all;
  std::vector<LabelUses::const_iterator> order;
  for (auto it = all.begin(); it != all.end(); ++it) order.push_back(it);
  std::stable_sort(order.begin(), order.end(),
                   [](auto a, auto b) { return a->second.jobs > b->second.jobs; });
  LabelUses out;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (i < kMostLabelValues)
      out[order[i]->first].add(order[i]->second);
    else
      out[{order[i]->first.first, "other"}].add(order[i]->second);
  return out;
}

std::string label_metrics(const State& state, const std::optional<std::string>& tenant,
                          const std::vector<std::string>& keys) {
  if (keys.empty()) return {};
  std::map<std::string, LabelUses> uses;
  for (const JobId id : jobs_on_nodes(state)) {
    const Job& job = state.jobs.at(id);
    const std::string& name = state.partition(class_of(state, job).partition).payer();
    if (!job.active || (tenant && name != *tenant)) continue;
    const auto read = codec::decode<SpecExtras>(spec_bytes(state, job));
    if (!read) continue;
    for (const std::string& key : keys)
      if (const auto it = read->spec.labels.find(key); it != read->spec.labels.end())
        uses[key][{name, it->second}].add(use_of(job));
  }
  metrics::Family jobs("gantry_label_jobs", "gauge", "Jobs on nodes, by a label of theirs.");
  metrics::Family cpus("gantry_label_cpus", "gauge", "Cores that they hold.");
  metrics::Family gpus("gantry_label_gpus", "gauge", "GPUs, slices and parts that they hold.");
  for (const auto& [key, all] : uses)
    for (const auto& [who, use] : with_most_jobs(all)) {
      const std::string labels = metrics::label("tenant", who.first) + "," +
                                 metrics::label("key", key) + "," +
                                 metrics::label("value", who.second);
      jobs.add(labels, std::to_string(use.jobs));
      cpus.add(labels, std::to_string(use.cpus));
      gpus.add(labels, std::to_string(use.gpus));
    }
  return jobs.text() + cpus.text() + gpus.text();
}

}  // namespace

std::string metrics_text(const State& state, Instant now, const std::optional<std::string>& tenant,
                         const std::vector<std::string>& labels) {
  return ledger_metrics(counters(state, now, tenant), held_now(state, tenant)) +
         label_metrics(state, tenant, labels) + budget_metrics(budgets_now(state, now, tenant));
}

}  // namespace gantry::core
