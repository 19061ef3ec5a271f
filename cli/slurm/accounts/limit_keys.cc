#include "cli/slurm/accounts/limit_keys.h"

#include <fmt/core.h>

#include <span>

#include "cli/slurm/format.h"

namespace gantry::cli::slurm {
namespace {

// Each table stands in the order in which Slurm looks for its keys. Those of kOfBoth come first.
constexpr LimitKey kOfBoth[] = {
    {"GrpCPUMins", 7, "GrpTRESMins", "cpu"},
    {"GrpCPURunMins", 7, "GrpTRESRunMins", "cpu"},
    {"GrpCPUs", 7, "GrpTRES", "cpu"},
    {"GrpJobs", 4, "GrpJobs", ""},
    {"GrpMemory", 4, "GrpTRES", "mem"},
    {"GrpNodes", 4, "GrpTRES", "node"},
    {"GrpSubmitJobs", 4, "GrpSubmitJobs", ""},
    {"GrpTRES", 7, "GrpTRES", ""},
    {"GrpTRESMins", 8, "GrpTRESMins", ""},
    {"GrpTRESRunMins", 8, "GrpTRESRunMins", ""},
    {"GrpWall", 4, "GrpWall", ""},
    {"MaxCPUMinsPerJob", 7, "MaxTRESMinsPerJob", "cpu"},
    {"MaxCPUsPerJob", 7, "MaxTRESPerJob", "cpu"},
};
constexpr LimitKey kOfQos[] = {
    {"MaxCPUsPerUser", 11, "MaxTRESPerUser", "cpu"},
    {"MaxCPUsPU", 9, "MaxTRESPerUser", "cpu"},
    {"MaxJobsPerAccount", 11, "MaxJobsPerAccount", ""},
    {"MaxJobsPA", 9, "MaxJobsPerAccount", ""},
    {"MaxJobsPerUser", 4, "MaxJobsPerUser", ""},
    {"MaxJobsPU", 4, "MaxJobsPerUser", ""},
    {"MaxNodesPerJob", 4, "MaxTRESPerJob", "node"},
    {"MaxNodesPerUser", 8, "MaxTRESPerUser", "node"},
    {"MaxNodesPU", 8, "MaxTRESPerUser", "node"},
    {"MaxSubmitJobsPerAccount", 17, "MaxSubmitJobsPerAccount", ""},
    {"MaxSubmitJobsPA", 15, "MaxSubmitJobsPerAccount", ""},
    {"MaxSubmitJobsPerUser", 4, "MaxSubmitJobsPerUser", ""},
    {"MaxSubmitJobsPU", 4, "MaxSubmitJobsPerUser", ""},
    {"MaxTRESPerAccount", 11, "MaxTRESPerAccount", ""},
    {"MaxTRESPA", 9, "MaxTRESPerAccount", ""},
    {"MaxTRESPerJob", 7, "MaxTRESPerJob", ""},
    {"MaxTRESPerNode", 11, "MaxTRESPerNode", ""},
    {"MaxTRESPerUser", 11, "MaxTRESPerUser", ""},
    {"MaxTRESPU", 9, "MaxTRESPerUser", ""},
    {"MaxTRESMinsPerJob", 8, "MaxTRESMinsPerJob", ""},
    {"MaxWallDurationPerJob", 4, "MaxWallDurationPerJob", ""},
    {"MinCPUsPerJob", 7, "MinTRESPerJob", "cpu"},
    {"MinTRESPerJob", 7, "MinTRESPerJob", ""},
};
constexpr LimitKey kOfAssociation[] = {
    {"MaxJobs", 4, "MaxJobs", ""},
    {"MaxNodesPerJob", 4, "MaxTRESPerJob", "node"},
    {"MaxSubmitJobs", 4, "MaxSubmitJobs", ""},
    {"MaxTRESPerJob", 7, "MaxTRESPerJob", ""},
    {"MaxTRESPerNode", 11, "MaxTRESPerNode", ""},
    {"MaxTRESMinsPerJob", 8, "MaxTRESMinsPerJob", ""},
    {"MaxWallDurationPerJob", 4, "MaxWallDurationPerJob", ""},
    {"Priority", 3, "Priority", ""},
};

const LimitKey* find_limit_key(std::span<const LimitKey> others, std::string_view word) {
  for (const std::span<const LimitKey> table : {std::span<const LimitKey>(kOfBoth), others})
    for (const LimitKey& key : table)
      if (word.size() >= key.least && lower_case(key.name).starts_with(word)) return &key;
  return nullptr;
}

}  // namespace

const LimitKey* qos_limit_key(std::string_view word) {
  return find_limit_key(kOfQos, word);
}

const LimitKey* association_limit_key(std::string_view word) {
  return find_limit_key(kOfAssociation, word);
}

std::string limit_value(const LimitKey& key, std::string_view value) {
  return key.tres.empty() ? std::string(value) : fmt::format("{}={}", key.tres, value);
}

Result<void> put_limit(tenancy::LimitTexts& texts, const LimitKey& key, std::string_view value) {
  const auto* name = tenancy::limit_named(key.limit);
  if (auto done = tenancy::set_limit_text(texts, *name, limit_value(key, value)); !done)
    return fail(ErrorCode::usage,
                fmt::format(" Bad value for {} ({}): {}", key.name, value, done.error().message));
  return {};
}

}  // namespace gantry::cli::slurm
