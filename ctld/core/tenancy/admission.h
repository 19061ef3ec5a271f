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

// The facts of a job that the lists apply to.
struct Applicant {
  std::string account;         // the project, as the job has it
  std::string priority_class;  // its qos
};

// Refuses a job for a queue that accepts none now, or not of this user, or not without a
// reservation. Jobs that wait in it already are not asked.
Result<void> check_open(const Identity& who, const Partition& queue, bool reserved);

// Refuses a job that `who` may not send or move to this queue.
Result<void> check_admission(const State& state, const Identity& who, const Partition& queue,
                             const Applicant& job);

// The same apart from groups, which are known only of who asks at that moment.
Result<void> check_partition_lists(const State& state, const Identity& who, const Partition& queue,
                                   const Applicant& job);

// Why a waiting job may not start in its queue; unset: it may. Groups are checked at submit only.
std::optional<Verdict> verdict_of_admission(const State& state, const Job& job);

// One sentence for each name in the lists that is neither a tenant nor a project, or no priority
// class. Accounts are not checked while there are no tenants, because then any name is an account.
std::vector<std::string> unknown_in_lists(const State& state, const Config& config);

}  // namespace gantry::core
