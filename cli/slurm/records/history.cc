#include "cli/slurm/records/history.h"

#include <fmt/core.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <tuple>

#include "cli/columns/history_rows.h"
#include "cli/columns/job_words.h"
#include "cli/slurm/records/account_fields.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

// Adds a step "extern" to a started job. Slurm shows it for every job, and for an allocation, which
// has no batch step, it is the only one.
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

namespace {

std::int64_t mean_of(const proto::CallCount& c) {
  return c.count > 0 ? c.time.us / static_cast<std::int64_t>(c.count) : 0;
}

std::vector<proto::CallCount> sorted(std::vector<proto::CallCount> calls, CallOrder order) {
  const auto amount = [&](const proto::CallCount& c) -> std::int64_t {
    switch (order) {
      case CallOrder::count: return static_cast<std::int64_t>(c.count);
      case CallOrder::time: return c.time.us;
      case CallOrder::mean: return mean_of(c);
      case CallOrder::name: break;
    }
    return 0;
  };
  std::sort(calls.begin(), calls.end(), [&](const auto& a, const auto& b) {
    return std::tuple(-amount(a), a.name) < std::tuple(-amount(b), b.name);
  });
  return calls;
}

void print_counts(const proto::CallCount& c) {
  fmt::print(" count:{:<6} ave_time:{:<6} total_time:{}\n", c.count, mean_of(c), c.time.us);
}

}  // namespace

void print_calls(const proto::ShowStatsReply& stats, CallOrder order) {
  fmt::print("\nRemote Procedure Call statistics by message type\n");
  for (const proto::CallCount& c : sorted(stats.calls, order)) {
    std::uint16_t number = 0;
    for (const proto::MessageRow& row : proto::kMessages)
      if (row.name == c.name) number = static_cast<std::uint16_t>(row.type);
    fmt::print("\t{:<40}({:5})", c.name, number);
    print_counts(c);
  }
  fmt::print("\nRemote Procedure Call statistics by user\n");
  for (const proto::CallCount& c : sorted(stats.callers, order)) {
    const passwd* known = ::getpwnam(c.name.c_str());
    fmt::print("\t{:<16}({:>8})", c.name, known != nullptr ? std::to_string(known->pw_uid) : "-");
    print_counts(c);
  }
}

std::string c_time(Instant t) {
  const std::time_t seconds = static_cast<std::time_t>(t.us / 1'000'000);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%a %b %d %H:%M:%S %Y", &parts);
  return fmt::format("{} ({})", text.data(), static_cast<std::int64_t>(seconds));
}

}  // namespace gantry::cli::slurm
