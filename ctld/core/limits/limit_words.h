// The names of a limit of use that a job would exceed: Slurm's name of the reason, and a clause for
// people.
#pragma once

#include <string>

namespace gantry::core {

enum class LimitKind {
  group,
  group_minutes,
  group_running_minutes,
  group_jobs,
  group_wall,
  job,
  node,
  job_minutes,
  least,
  wall,
  user,
  account,
  user_jobs,
  account_jobs,
};

// "QOSGrpCpuLimit", "AssocMaxJobsLimit"
std::string reason_name(bool qos, LimitKind kind, const std::string& tres);
// `subject` is the user, account or QOS whose limit it is; wall times are in minutes.
std::string limit_words(const std::string& subject, LimitKind kind, const std::string& tres,
                        double would, double limit);

}  // namespace gantry::core
