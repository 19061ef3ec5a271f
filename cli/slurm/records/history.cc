#include "cli/slurm/records/history.h"

#include <algorithm>

#include "cli/columns/history_rows.h"
#include "cli/columns/job_words.h"
#include "cli/slurm/records/account_fields.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

// Adds a step "extern" to a job that has started. Slurm shows an allocation, which has no batch
// step, with this step.
void add_extern(proto::HistoryRow& job) {
  if (!job.row.started || job.row.node_list.empty()) return;
  const auto is_extern = [](const proto::StepRow& s) { return s.step == "extern"; };
  if (std::any_of(job.steps.begin(), job.steps.end(), is_extern)) return;
  proto::StepRow step;
  step.step = "extern";
  step.name = "extern";
  step.running = job.row.phase != Phase::ended;
  step.started = *job.row.started;
  step.ended = job.row.ended;
  step.cpus = job.row.cpus;
  step.gpus = job.row.gpus;
  step.tasks = job.row.nodes;
  step.node_list = job.row.node_list;
  const auto after_batch = std::find_if(job.steps.begin(), job.steps.end(),
                                        [](const proto::StepRow& s) { return s.step != "batch"; });
  job.steps.insert(after_batch, std::move(step));
}

}  // namespace

Result<History> ask_history(Session& session, proto::QueryHistory query) {
  ASSIGN(reply, history_rows(session, std::move(query)));
  History history;
  history.now = reply->now;
  history.jobs = std::move(reply->rows);
  for (proto::HistoryRow& job : history.jobs) add_extern(job);
  return history;
}

std::string_view priority_class_of(const proto::HistoryRow& job) {
  return job.priority_class.empty() ? std::string_view("normal") : job.priority_class;
}

void keep_only(History& history, const HistorySieve& sieve) {
  const auto asked = [](const std::vector<std::string>& names, std::string_view name) {
    const std::string lower = lower_case(name);
    return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& n) {
             return lower_case(n) == lower;
           });
  };
  const auto within = [](const std::optional<HistorySieve::Range>& range, std::uint32_t n) {
    return !range || (n >= range->low && n <= range->high);
  };
  std::erase_if(history.jobs, [&](const proto::HistoryRow& job) {
    const AccountRow line{&job, nullptr, history.now, Units::usual, ""};
    std::string group;
    put_group(group, line);
    const Duration limit = job.row.time_limit.value_or(kUnlimited);
    const Duration least = sieve.limit_min.value_or(Duration{});
    const bool exactly = sieve.limit_min && !sieve.limit_max;
    const Duration most = exactly ? least : sieve.limit_max.value_or(kUnlimited);
    return !asked(sieve.qos, priority_class_of(job)) || !asked(sieve.wckeys, job.wckey) ||
           !asked(sieve.groups, group) || !asked(sieve.reasons, reason_of(job.row)) ||
           !within(sieve.cpus, cpus_of(line)) || !within(sieve.nodes, job.row.nodes) ||
           limit < least || limit > most;
  });
}

void cut_times(History& history, std::optional<Instant> start, std::optional<Instant> end) {
  const auto cut = [&](std::optional<Instant>& t) {
    if (t && start) t = std::max(*t, *start);
    if (t && end) t = std::min(*t, *end);
  };
  for (proto::HistoryRow& job : history.jobs) {
    cut(job.row.started);
    cut(job.row.ended);
  }
}

}  // namespace gantry::cli::slurm
