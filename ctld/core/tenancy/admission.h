// Who may use a partition: the lists allow_accounts, deny_accounts, allow_groups, allow_qos and
// deny_qos of the configuration, and that every job is a tenant's where there are tenants. Asked at
// submit and update, and of waiting jobs for as long as they wait: lists and tenants change.
//
// An entry of a list of accounts is a tenant, which stands for all its projects, a project of one
// tenant (TENANT/PROJECT), or the name of a project, which stands for every project of that name.
#pragma once

#include "ctld/core/context.h"

namespace gantry::core {

// What the lists look at.
struct Applicant {
  std::string account;         // the project, as the job has it
  std::string priority_class;  // its qos
};

// May `who` send or move such a job there?
Result<void> check_admission(const State& state, const Identity& who, const Partition& queue,
                             const Applicant& job);

// Why a waiting job may not start where it is; groups are asked at submit only.
std::optional<Verdict> verdict_of_admission(const State& state, const Job& job);

// Names in the lists that are neither a tenant nor a project, or no priority class: one sentence
// each. Nothing is said of accounts while there are no tenants, as any name is one then.
std::vector<std::string> unknown_in_lists(const State& state, const Config& config);

}  // namespace gantry::core
