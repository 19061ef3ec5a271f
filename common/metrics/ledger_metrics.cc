#include "common/metrics/ledger_metrics.h"

#include <fmt/core.h>

#include <map>

#include "common/metrics/families.h"

namespace gantry {
namespace {

using metrics::Family;
using metrics::label;

// Seconds of one unit, exactly to a thousandth; for amounts in thousandths, or in MiB of a GiB.
std::string seconds_of(const Held& held, std::int64_t unit) {
  const __int128 whole =
      static_cast<__int128>(held.hours) * unit * kMicrosecondsPerHour + held.rest;
  if (unit == kThousandthsUnit)
    return fmt::format("{}.{:09}", static_cast<std::int64_t>(whole / 1'000'000'000),
                       static_cast<std::int64_t>(whole % 1'000'000'000));
  // MiB-microseconds become GiB-seconds with six decimal places; the rest is dropped.
  const __int128 micros = whole / kMebibyteUnit;
  return fmt::format("{}.{:06}", static_cast<std::int64_t>(micros / 1'000'000),
                     static_cast<std::int64_t>(micros % 1'000'000));
}

struct Total {
  Held cpu, memory, io, net;
  Money cost, credit;
  std::uint64_t runs = 0;
};

}  // namespace

std::string ledger_metrics(const proto::LedgerReply& ledger, const proto::TenantUsageReply& usage) {
  std::map<std::pair<std::string, std::string>, Total> by_type;  // by tenant and job type
  std::map<std::array<std::string, 3>, Held> gpus;  // by tenant, job type and GPU model
  for (const proto::LedgerRow& row : ledger.rows) {
    Total& total = by_type[{row.tenant, row.job_type}];
    add_held(total.cpu, row.cpu, kThousandthsUnit);
    add_held(total.memory, row.memory, kMebibyteUnit);
    add_held(total.io, row.io, kThousandthsUnit);
    add_held(total.net, row.net, kThousandthsUnit);
    total.cost += row.cost;
    total.credit += row.credit;
    total.runs += row.runs;
    if (!row.item.starts_with("gpu:")) continue;
    const std::string model = row.item.substr(4, row.item.find(':', 4) - 4);
    add_held(gpus[{row.tenant, row.job_type, model}], row.gpu, kThousandthsUnit);
  }
  Family gpu("gantry_gpu_seconds_total", "counter",
             "GPU-seconds held; a slice is its part of one.");
  for (const auto& [key, held] : gpus)
    gpu.add(
        label("tenant", key[0]) + "," + label("job_type", key[1]) + "," + label("gpu_type", key[2]),
        seconds_of(held, kThousandthsUnit));
  Family cpu("gantry_cpu_seconds_total", "counter", "Core-seconds held.");
  Family memory("gantry_memory_gib_seconds_total", "counter", "GiB-seconds of memory held.");
  Family io("gantry_io_gigabytes_total", "counter",
            "GB that held rates of disks (--io) allowed to move, each on all nodes.");
  Family net("gantry_net_gigabits_total", "counter",
             "Gbit that held rates of links (--net) allowed to move, each on all nodes.");
  Family runs("gantry_job_runs_total", "counter", "Attempts of jobs that ended.");
  Family cost("gantry_cost_total", "counter", "What was held, in money.");
  Family credit("gantry_credit_total", "counter", "What of it was credited.");
  for (const auto& [key, total] : by_type) {
    const std::string labels = label("tenant", key.first) + "," + label("job_type", key.second);
    cpu.add(labels, seconds_of(total.cpu, kThousandthsUnit));
    memory.add(labels, seconds_of(total.memory, kMebibyteUnit));
    if (total.io != Held{}) io.add(labels, seconds_of(total.io, kThousandthsUnit));
    if (total.net != Held{}) net.add(labels, seconds_of(total.net, kThousandthsUnit));
    runs.add(labels, std::to_string(total.runs));
    if (ledger.currency.empty()) continue;
    const std::string priced = labels + "," + label("currency", ledger.currency);
    cost.add(priced, format_money(total.cost, 6));
    credit.add(priced, format_money(total.credit, 6));
  }
  Family now("gantry_current_gpus", "gauge", "GPUs held now.");
  Family queued("gantry_queued_jobs", "gauge", "Jobs that wait.");
  Family running("gantry_running_jobs", "gauge", "Jobs that hold something now.");
  for (const proto::TenantUse& row : usage.rows) {
    if (row.is_cohort) continue;
    const std::string labels = label("tenant", row.name);
    const std::int64_t amount = row.used[Resource::gpu];
    now.add(labels, fmt::format("{}.{:03}", amount / kGpuUnit, amount % kGpuUnit));
    queued.add(labels, std::to_string(row.queued));
    running.add(labels, std::to_string(row.running));
  }
  std::string out;
  for (const Family* family :
       {&gpu, &cpu, &memory, &io, &net, &runs, &cost, &credit, &now, &queued, &running})
    out += family->text();
  return out;
}

std::string budget_metrics(const proto::BudgetList& budgets) {
  Family amount("gantry_budget_amount", "gauge", "What may be spent in the present period.");
  Family spent("gantry_budget_spent", "gauge", "What is spent of it, less what was credited.");
  Family reserved("gantry_budget_reserved", "gauge", "What running jobs may still cost.");
  Family forecast("gantry_budget_forecast", "gauge", "What will be spent at the period's end.");
  Family waiting("gantry_budget_waiting_jobs", "gauge", "Jobs that wait for the budget.");
  for (const proto::BudgetRow& row : budgets.rows) {
    if (row.period.empty()) continue;
    const std::string labels = label("tenant", row.budget.tenant) + "," +
                               label("budget", row.budget.name) + "," +
                               label("currency", budgets.currency);
    amount.add(labels, format_money(row.amount, 6));
    spent.add(labels, format_money(row.spent, 6));
    reserved.add(labels, format_money(row.reserved, 6));
    if (!row.little_history) forecast.add(labels, format_money(row.forecast, 6));
    waiting.add(labels, std::to_string(row.waiting));
  }
  std::string out;
  for (const Family* family : {&amount, &spent, &reserved, &forecast, &waiting})
    out += family->text();
  return out;
}

}  // namespace gantry
