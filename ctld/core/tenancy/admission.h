// Decides who may use a partition: by the lists allow_accounts, deny_accounts, allow_groups,
// allow_qos and deny_qos of the configuration; and if there are tenants, every job must belong to
// one. This is checked at submit and update, and for waiting jobs as long as they wait, because
// lists and tenants change.
//
// An entry of a list of accounts is a tenant, which stands for all its projects, a project of one
// tenant (TENANT/PROJECT), or the name of a project, which stands for every project of that name.
#pragma once

#include "common/job/job_state.h"
#include "ctld/core/context.h"
#include "ctld/core/request.h"

namespace gantry::core {

struct Partition;

// The facts of a job to which the lists apply.
struct Applicant {
  std::string account;         // the project, as the job names it
  std::string priority_class;  // the job's qos
};

// Refuses a job for a queue that accepts no jobs now, or no jobs of this user, or only jobs with a
// reservation. Not for jobs that wait in the queue already.
Result<void> check_open(const Identity& who, const Partition& queue, bool reserved);

// Refuses a job that `who` may not send or move to this queue.
Result<void> check_admission(const State& state, const Identity& who, const Partition& queue,
                             const Applicant& job);

// The same without the check of groups, which are known only of the asker of the present request.
Result<void> check_partition_lists(const State& state, const Identity& who, const Partition& queue,
                                   const Applicant& job);

// Why a waiting job may not start in its queue; unset if it may. Groups are checked only at submit.
std::optional<Verdict> verdict_of_admission(const State& state, const Job& job);

// One sentence for each name in the lists that is neither a tenant nor a project, or is no priority
// class. Accounts are not checked while there are no tenants, because then any name is an account.
std::vector<std::string> unknown_in_lists(const State& state, const Config& config);

}  // namespace gantry::core
