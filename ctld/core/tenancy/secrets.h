// Secrets of tenants and identities of jobs, as far as the core decides about them: names,
// versions, who may use them, and what a job gets. The content is sealed; the shell around the core
// has the key, opens what an order carries to a node, and signs tokens (ctld/secrets).
#pragma once

#include "common/job/job_state.h"
#include "ctld/core/context.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {

struct Partition;

// The number of the version that a SetSecret makes next.
std::uint32_t next_version(const State& state, const std::string& tenant, const std::string& name);

// Whether a submit to this queue may ask for these secrets and tokens: their names, their number,
// and whether the tenant has them now.
Result<void> check_secrets(const Context& ctx, const Partition& queue, const JobSpec& spec);

// What the job's next attempt gets: versions of its tenant, and file names. not_found names what is
// missing as NAME or NAME@VERSION.
Result<std::vector<SecretUse>> secrets_of(const State& state, const Job& job);

// Why a waiting job may not start because of its secrets; unset if it may.
std::optional<Verdict> verdict_of_secrets(const State& state, const Job& job);

// Records which versions a job that has just been placed gets, if it asked for any.
void take_secrets(Context& ctx, JobId job);

// For the order that starts the job: the sealed contents that the shell has to open.
std::vector<SealedSecret> sealed_for(const State& state, const Job& job);

// For the same order, and when the node asks again: the claims of the job's tokens; nullopt if it
// asked for none.
std::optional<IdentityClaims> claims_for(const State& state, const Job& job, const JobSpec& spec,
                                         NodeId node);

// The name of the file with the token for this audience: only letters, digits, '.', '_' and '-'.
std::string token_file(std::string_view audience);

}  // namespace gantry::core
