#include "cli/columns/account_values.h"

#include <fmt/core.h>

#include "cli/columns/job_words.h"
#include "common/text/text.h"

namespace gantry::cli {

const Usage& usage_of(const HistoryRow& job, const StepRow* step) {
  return step != nullptr ? step->usage : job.usage;
}
std::uint32_t cores_held(const HistoryRow& job, const StepRow* step) {
  if (step != nullptr) return step->cpus;
  return job.row.started || !job.row.node_list.empty() ? job.row.cpus : 0;
}
std::string cpu_time(std::int64_t us) {
  const std::int64_t total = us / 1'000'000;
  const std::int64_t days = total / 86'400;
  const std::int64_t hours = total / 3'600 % 24;
  if (days > 0)
    return fmt::format("{}-{:02}:{:02}:{:02}", days, hours, total / 60 % 60, total % 60);
  if (hours > 0) return fmt::format("{:02}:{:02}:{:02}", hours, total / 60 % 60, total % 60);
  return fmt::format("{:02}:{:02}.{:03}", total / 60, total % 60, us / 1'000 % 1'000);
}
std::string canceller_of(const HistoryRow& job) {
  // The job's cause says who cancelled it: "cancelled by alice (uid 1000)".
  constexpr std::string_view kUid = "(uid ";
  const std::size_t at = job.cause.find(kUid);
  if (job.row.phase != Phase::ended || job.row.outcome != Outcome::cancelled ||
      !job.cause.starts_with("cancelled by ") || at == std::string::npos)
    return "";
  const std::size_t digits = at + kUid.size();
  return " by " + job.cause.substr(digits, job.cause.find(')', digits) - digits);
}

std::string account_of(const HistoryRow& job, const StepRow*) {
  return job.row.account;
}
std::string cores_held_text(const HistoryRow& job, const StepRow* step) {
  return std::to_string(cores_held(job, step));
}
std::string cores_asked(const HistoryRow& job, const StepRow* step) {
  return std::to_string(step != nullptr ? step->cpus : job.row.cpus);
}
std::string line_id(const HistoryRow& job, const StepRow* step) {
  return shown_id(job.row) + (step != nullptr ? "." + step->step : "");
}
std::string raw_line_id(const HistoryRow& job, const StepRow* step) {
  return std::to_string(job.row.job.value()) + (step != nullptr ? "." + step->step : "");
}
std::string line_name(const HistoryRow& job, const StepRow* step) {
  return step != nullptr ? step->name : job.row.name;
}
std::string task_number(const HistoryRow&, const StepRow* step) {
  return step != nullptr ? std::to_string(step->tasks) : "";
}
std::string total_cpu(const HistoryRow& job, const StepRow* step) {
  const Usage& usage = usage_of(job, step);
  return cpu_time(usage.cpu_user_us + usage.cpu_system_us);
}
std::string user_cpu(const HistoryRow& job, const StepRow* step) {
  return cpu_time(usage_of(job, step).cpu_user_us);
}
std::string system_cpu(const HistoryRow& job, const StepRow* step) {
  return cpu_time(usage_of(job, step).cpu_system_us);
}

std::string reason_of_line(const HistoryRow& job) {
  return reason_of(job.row);
}
std::string limit_of(const HistoryRow& job) {
  return job.row.time_limit ? format_duration_long(*job.row.time_limit) : "UNLIMITED";
}
std::string limit_in_minutes(const HistoryRow& job) {
  return job.row.time_limit ? std::to_string(job.row.time_limit->seconds() / 60) : "UNLIMITED";
}
std::string uid_of(const HistoryRow& job) {
  return std::to_string(job.row.uid.value());
}

}  // namespace gantry::cli
