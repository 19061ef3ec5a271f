// Tokens: a JSON Web Token (RFC 7519) that lets whoever has it act as a user. It is signed with
// HMAC-SHA256 (HS256) by a key that only the controller has. Its claims are those of Slurm's
// tokens: `sun` is the user's login name, `iat` is when it was made and `exp` when it ends, in
// seconds since 1970.
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

// Checks a token. The error unauthenticated tells why: it is no token, is signed with another key
// or method, is from the future, or is no longer valid.
Result<Token> check_token(const SigningSeed& key, std::string_view text, Instant now);

// The user that a token names, without checking the token; "" if it is no token. Use it for logs
// only.
std::string claimed_user(std::string_view text);

}  // namespace gantry::auth
