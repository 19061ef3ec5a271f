// Tokens: a JSON Web Token (RFC 7519) that speaks for a user whoever has it, signed with
// HMAC-SHA256 (HS256) by a key that only the controller has. Its claims are those of Slurm's: `sun`
// is the user's login name, `iat` and `exp` are when it was made and when it ends, in seconds since
// 1970.
#pragma once

#include <string>
#include <string_view>

#include "common/auth/signature.h"
#include "common/time/time.h"

namespace gantry::auth {

struct Token {
  std::string user;
  Instant issued{};
  Instant expires{};
};

inline constexpr std::size_t kMaxTokenBytes = 4096;

std::string make_token(const SigningSeed& key, const Token& token);

// unauthenticated, with what is wrong: no such token, not signed with this key or by another
// method, from the future, or no longer valid.
Result<Token> check_token(const SigningSeed& key, std::string_view text, Instant now);

// The user that a token names, whether it holds or not; "" if it is none. For logs only.
std::string claimed_user(std::string_view text);

}  // namespace gantry::auth
