// The rules for tokens: for whom they may be made, and for how long.
#pragma once

#include "common/auth/token.h"
#include "common/proto/session.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"

namespace gantry::rpc {

inline constexpr Duration kUsualTokenLifetime = minutes(30);  // as in Slurm

// Users may make tokens for themselves, administrators for anybody. A user who has proved identity
// with a token, whatever the role, can only make a token for the same user that ends no later. The
// errors are permission_denied and invalid_argument. Whether the user exists is not checked.
Result<auth::Token> token_for(const core::Identity& who, const proto::MakeToken& asked,
                              Duration longest, Instant now);

}  // namespace gantry::rpc
