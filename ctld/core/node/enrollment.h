// Tokens that enroll a node once; see common/proto/control.h.
#pragma once

#include <string>
#include <string_view>

#include "ctld/core/context.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

// The same answer for every token that is not valid, whatever the reason.
inline constexpr std::string_view kTokenRefused =
    "this enrolment token does not count here: it was used, was taken back, has expired, or is for "
    "another node or cluster; an administrator makes another one with gctl enroll --token";

// Whether a token with this hash enrolls this node now.
bool token_counts(const State& state, Instant now, const std::string& hash,
                  const std::string& node);
inline bool token_counts(const Context& ctx, const std::string& hash, const std::string& node) {
  return token_counts(ctx.state, ctx.now, hash, node);
}

}  // namespace gantry::core
