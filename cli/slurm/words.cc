// Translates our errors to Slurm's words. The controller says in a sentence what is wrong, but
// clients of Slurm look for its fixed texts. The table finds them by the error's code and a part of
// its sentence.
#include <fmt/core.h>

#include "cli/slurm/frame.h"

namespace gantry::cli::slurm {
namespace {

struct Row {
  ErrorCode code;
  std::string_view part;  // a part of our sentence; "" = any
  std::string_view text;  // Slurm's text
};

constexpr std::string_view kNoPartition = "there is no partition \"";
constexpr std::string_view kConfiguration = "Requested node configuration is not available";
constexpr std::string_view kLimits =
    "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)";
constexpr std::string_view kTime =
    "Requested time limit is invalid (missing or exceeds some limit)";
constexpr std::string_view kAccount = "Invalid account or account/partition combination specified";

constexpr std::string_view kNobody = "Unable to contact slurm controller (connect failure)";

constexpr Row kRows[] = {
    {ErrorCode::not_found, "client.conf", kNobody},
    {ErrorCode::not_found, kNoPartition, "Invalid partition name specified"},
    {ErrorCode::not_found, "no default partition",
     "No partition specified or system default partition"},
    {ErrorCode::invalid_argument, "belongs to several tenants",
     "No partition specified or system default partition"},
    {ErrorCode::not_found, "has no project", kAccount},
    {ErrorCode::not_found, "there is no tenant or project", kAccount},
    {ErrorCode::permission_denied, "may not submit to tenant", kAccount},
    {ErrorCode::permission_denied, "does not belong to", kAccount},
    {ErrorCode::permission_denied, "is in no group that may use",
     "User's group not permitted to use this partition"},
    {ErrorCode::permission_denied, "belongs to no tenant", kAccount},
    {ErrorCode::invalid_argument, "name one of the tenants", kAccount},
    {ErrorCode::permission_denied, "account", kAccount},
    {ErrorCode::not_found, "is not in this cluster", "Invalid node name specified"},
    {ErrorCode::invalid_argument, "nodes: there is no node", "Invalid node name specified"},
    {ErrorCode::already_exists, " exists already", "Invalid partition name specified"},
    {ErrorCode::already_exists, "is the same one", "Duplicate event trigger"},
    {ErrorCode::wrong_state, "is in use", "Partition is in use"},
    {ErrorCode::wrong_state, "has ended: ", "Job/step already completing or completed"},
    {ErrorCode::wrong_state, "accepts no jobs",
     "Required partition not available (inactive or drain)"},
    {ErrorCode::invalid_argument, "is not in partition",
     "Requested node configuration is not available"},
    {ErrorCode::not_found, "dependency ", "Job dependency problem"},
    {ErrorCode::invalid_argument, "dependency", "Job dependency problem"},
    {ErrorCode::not_found, "reservation", "Requested reservation is invalid"},
    {ErrorCode::not_found, "priority class", "Invalid qos specification"},
    {ErrorCode::invalid_argument, "priority class", "Invalid qos specification"},
    {ErrorCode::permission_denied, "priority class", "Invalid qos specification"},
    {ErrorCode::invalid_argument, "there is no licence", "Invalid license specification"},
    {ErrorCode::never_fits, "licences of", "Invalid license specification"},
    {ErrorCode::never_fits, "has the features", "Invalid feature specification"},
    {ErrorCode::never_fits, "has the resource", "Invalid generic resource (gres) specification"},
    {ErrorCode::never_fits, "of memory on node", "Memory required by task is not available"},
    {ErrorCode::never_fits, "GPUs on node", "Invalid generic resource (gres) specification"},
    {ErrorCode::never_fits, "do not fit the step's", "More processors requested than permitted"},
    {ErrorCode::never_fits, "", kConfiguration},
    {ErrorCode::invalid_argument, "is not one of job", kConfiguration},
    {ErrorCode::limit_exceeded, "has DenyOnLimit", kLimits},
    {ErrorCode::limit_exceeded, "time limit", kTime},
    {ErrorCode::invalid_argument, "least time limit",
     "Invalid time-min specification (exceeds job's time or other limits)"},
    {ErrorCode::invalid_argument, "before its deadline", kTime},
    {ErrorCode::limit_exceeded, "unlimited time", kTime},
    {ErrorCode::unsupported, "an array of a heterogeneous job", "Invalid job array specification"},
    {ErrorCode::limit_exceeded, "array", "Invalid job array specification"},
    {ErrorCode::invalid_argument, "the number of nodes must be",
     "More processors requested than permitted"},
    {ErrorCode::limit_exceeded, "nodes are above", "Node count specification invalid"},
    {ErrorCode::limit_exceeded, "nodes are below", "Node count specification invalid"},
    {ErrorCode::limit_exceeded, "in this minute",
     "Submission rate too high, suggest using job arrays"},
    {ErrorCode::limit_exceeded, "script has", "Job script file too large"},
    {ErrorCode::limit_exceeded, "", kLimits},
    {ErrorCode::permission_denied, "", "Access/permission denied"},
    {ErrorCode::unauthenticated, "", "Protocol authentication error"},
    {ErrorCode::unavailable, "Requested nodes are busy", "Requested nodes are busy"},
    {ErrorCode::unavailable, "", kNobody},
    {ErrorCode::timed_out, "", "Socket timed out on send/recv operation"},
    {ErrorCode::version_mismatch, "", "Incompatible versions of client and server code"},
    {ErrorCode::not_found, "there is no job", "Invalid job id specified"},
    {ErrorCode::not_found, "there is no step", "Invalid job id specified"},
    {ErrorCode::wrong_state, "cannot be cancelled alone",
     "Operation not permitted on individual component of heterogeneous job"},
    {ErrorCode::wrong_state, ": hold is not possible", "Job is no longer pending execution"},
    {ErrorCode::wrong_state, ": release is not possible", "Job is no longer pending execution"},
    {ErrorCode::wrong_state, "was submitted with --no-requeue",
     "Requested operation is presently disabled"},
    {ErrorCode::wrong_state, "is not suspended",
     "Requested operation not supported on this job state"},
};

// The name in quotes that follows `part`.
std::string quoted_after(const std::string& text, std::string_view part) {
  const std::size_t begin = text.find(part) + part.size();
  return text.substr(begin, text.find('"', begin) - begin);
}

}  // namespace

Words words_for(const Error& error) {
  for (const Row& row : kRows) {
    if (row.code != error.code || error.message.find(row.part) == std::string::npos) continue;
    Words words{std::string(row.text), error.message};
    if (words.detail == words.text) words.detail.clear();
    if (row.part == kNoPartition)
      words.detail = "invalid partition specified: " + quoted_after(error.message, kNoPartition);
    if (row.text == kConfiguration && error.message.find("of memory") != std::string::npos)
      words.detail = "Memory specification can not be satisfied\n" + error.message;
    return words;
  }
  return {error.message, ""};
}

}  // namespace gantry::cli::slurm
