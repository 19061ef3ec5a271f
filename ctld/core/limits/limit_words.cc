#include "ctld/core/limits/limit_words.h"

#include <cmath>

#include <fmt/core.h>

#include "common/tenancy/use_limits.h"
#include "common/text/text.h"

namespace gantry::core {
namespace {

// How Slurm's reasons spell a TRES. In some reasons, some TRES have an older spelling.
std::string word_of(bool qos, const std::string& tres) {
  if (tres == "cpu") return "Cpu";
  if (tres == "mem") return qos ? "Memory" : "Mem";
  if (tres == "node") return "Node";
  if (tres == "billing") return "Billing";
  return tres.starts_with("license/") ? "License" : "GRES";
}

bool old_style(const std::string& tres) {
  return tres == "cpu" || tres == "node";
}

std::string group_name(const std::string& prefix, bool qos, const std::string& tres) {
  if (tres == "mem") return prefix + "GrpMemLimit";
  return prefix + "Grp" + word_of(qos, tres) + (old_style(tres) ? "Limit" : "");
}

std::string minutes_name(const std::string& prefix, bool qos, const std::string& tres,
                         const char* what) {
  if (tres == "cpu") return fmt::format("{}GrpCPU{}Limit", prefix, what);
  return fmt::format("{}Grp{}{}", prefix, word_of(qos, tres), what);
}

std::string amount_text(const std::string& tres, double amount) {
  const auto whole = static_cast<std::int64_t>(std::ceil(amount - 1e-6));
  if (tres == "mem") return format_memory(whole << 20) + " of memory";
  const char* many = whole == 1 ? "" : "s";
  if (tres == "cpu") return fmt::format("{} core{}", whole, many);
  if (tres == "node") return fmt::format("{} node{}", whole, many);
  if (tres == "billing") return fmt::format("{} unit{} of billing", whole, many);
  return fmt::format("{} of {}", whole, tres);
}

std::string minutes_text(const std::string& tres, double minutes) {
  if (minutes > 1e15) return "minutes without end";
  const auto whole = static_cast<std::int64_t>(std::ceil(minutes - 1e-6));
  return fmt::format("{} minutes of {}", whole, tres == "cpu" ? "a core" : tres);
}

std::string wall_text(double minutes) {
  if (minutes > 1e15) return "time without end";
  return format_duration_long(seconds(static_cast<std::int64_t>(minutes * 60)));
}

}  // namespace

std::string reason_name(bool qos, LimitKind kind, const std::string& tres) {
  const std::string prefix = qos ? "QOS" : "Assoc";
  const std::string word = word_of(qos, tres);
  switch (kind) {
    case LimitKind::group: return group_name(prefix, qos, tres);
    case LimitKind::group_minutes: return minutes_name(prefix, qos, tres, "Minutes");
    case LimitKind::group_running_minutes: return minutes_name(prefix, qos, tres, "RunMinutes");
    case LimitKind::group_jobs: return prefix + "GrpJobsLimit";
    case LimitKind::group_wall: return prefix + "GrpWallLimit";
    case LimitKind::job: return prefix + "Max" + word + "PerJob" + (old_style(tres) ? "Limit" : "");
    case LimitKind::node: return prefix + "Max" + word + "PerNode";
    case LimitKind::job_minutes:
      return prefix + "Max" + word + "MinutesPerJob" + (tres == "cpu" ? "Limit" : "");
    case LimitKind::least: return tres == "cpu" ? "QOSMinCpuNotSatisfied" : "QOSMin" + word;
    case LimitKind::wall: return prefix + "MaxWallDurationPerJobLimit";
    case LimitKind::user: return "QOSMax" + word + "PerUser" + (old_style(tres) ? "Limit" : "");
    case LimitKind::account: return "Max" + word_of(true, tres) + "PerAccount";
    case LimitKind::user_jobs: return qos ? "QOSMaxJobsPerUserLimit" : "AssocMaxJobsLimit";
    case LimitKind::account_jobs: return "MaxJobsPerAccount";
  }
  return prefix + "ResourceLimit";
}

std::string limit_words(const std::string& subject, LimitKind kind, const std::string& tres,
                        double would, double limit) {
  const auto held = [&](std::string_view whose, std::string_view name) {
    return fmt::format("{} would have {}, and {} of {} allows {}", whose, amount_text(tres, would),
                       name, subject, amount_text(tres, limit));
  };
  const auto jobs = [&](std::string_view whose, std::string_view name) {
    return fmt::format("{:.0f} {} of {} {}, and {} of {} allows {:.0f}", would,
                       would == 1 ? "job" : "jobs", whose, would == 1 ? "runs" : "run", name,
                       subject, limit);
  };
  switch (kind) {
    case LimitKind::group: return held("all jobs of " + subject, "GrpTRES");
    case LimitKind::group_minutes:
      return fmt::format("{} might have used up {}, and its GrpTRESMins allows {}", subject,
                         minutes_text(tres, would), minutes_text(tres, limit));
    case LimitKind::group_running_minutes:
      return fmt::format("running jobs of {} might use {} more, and its GrpTRESRunMins allows {}",
                         subject, minutes_text(tres, would), minutes_text(tres, limit));
    case LimitKind::group_jobs: return jobs(subject, "GrpJobs");
    case LimitKind::group_wall:
      return fmt::format("jobs of {} have run for {} in all, and its GrpWall allows {}", subject,
                         wall_text(would), wall_text(limit));
    case LimitKind::job: return held("it", "MaxTRESPerJob");
    case LimitKind::node: return held("on a node it", "MaxTRESPerNode");
    case LimitKind::job_minutes:
      return fmt::format("it might use {}, and MaxTRESMinsPerJob of {} allows {}",
                         minutes_text(tres, would), subject, minutes_text(tres, limit));
    case LimitKind::least:
      return fmt::format("it asks for {}, and MinTRESPerJob of {} is {}", amount_text(tres, would),
                         subject, amount_text(tres, limit));
    case LimitKind::wall:
      return fmt::format("its time limit is {}, and MaxWall of {} is {}", wall_text(would), subject,
                         wall_text(limit));
    case LimitKind::user: return held("all jobs of its user", "MaxTRESPerUser");
    case LimitKind::account: return held("all jobs of its account", "MaxTRESPerAccount");
    case LimitKind::user_jobs: return jobs("its user", "MaxJobs");
    case LimitKind::account_jobs: return jobs("its account", "MaxJobsPerAccount");
  }
  return "a limit of " + subject + " is reached";
}

}  // namespace gantry::core
