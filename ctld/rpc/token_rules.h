// What tokens may be made: for whom and for how long.
#pragma once

#include "common/auth/token.h"
#include "common/proto/session.h"
#include "ctld/core/core.h"

namespace gantry::rpc {

inline constexpr Duration kUsualTokenLifetime = minutes(30);  // as in Slurm

// Everybody's are for themselves, an administrator's for anybody. Who has shown a token makes only
// such as it could be: for its user, whatever the role, and for no longer than it holds itself.
// permission_denied, invalid_argument, with the sentence; whether the user exists is not asked.
Result<auth::Token> token_for(const core::Identity& who, const proto::MakeToken& asked,
                              Duration longest, Instant now);

}  // namespace gantry::rpc
